#!/usr/bin/env bash
# npm run contract:mcp-hosts: two hosts of MCP that need no model start `mayfly mcp` from their own configuration, and
# use every tool: the inspector in both revisions, and mcporter. Installs into .cache/mcp-hosts.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

tools=$PWD/.cache/mcp-hosts
mkdir -p "$tools"
cp clients/hosts/package.json clients/hosts/package-lock.json "$tools"
npm ci --prefix "$tools" --ignore-scripts --no-fund --no-audit --loglevel error

. scripts/served.sh
export MCP_INSPECTOR_SECRET_STORE=memory
for host in inspector-modern inspector-legacy mcporter; do
  node clients/hosts/use.mjs "$host" "$url" "$tools/node_modules/.bin" "$work/$host"
  echo "$host used every tool of mayfly mcp"
done
