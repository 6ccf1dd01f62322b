#!/usr/bin/env bash
# npm run contract:firefox: Debian's Firefox, driven over WebDriver BiDi, buys and uses every product by the pages.
# `FIREFOX` names another Firefox. Installs into .cache/firefox, and leaves pictures of the pages there.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

export FIREFOX=${FIREFOX:-$(command -v firefox-esr || command -v firefox || true)}
if [ -z "$FIREFOX" ]; then
  echo "This needs Firefox: install Debian's package with \`apt-get install firefox-esr\`" >&2
  exit 2
fi

tools=$PWD/.cache/firefox
mkdir -p "$tools"
cp clients/firefox/package.json clients/firefox/package-lock.json "$tools"
npm ci --prefix "$tools" --ignore-scripts --no-fund --no-audit --loglevel error

TOOLS=$tools node --test --test-reporter=spec clients/firefox/pages.mjs
