#!/usr/bin/env bash
# npm run contract:runtimes: packs the SDK alone, installs it without any other package, and buys and uses every
# product with it in Node, Bun and Deno, by its modules and by its one file for browsers. Installs into
# .cache/runtimes.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

here=$PWD/clients/runtimes
tools=$PWD/.cache/runtimes
mkdir -p "$tools"
cp "$here"/package.json "$tools"
export PATH=$PWD/node_modules/.bin:$PATH
# Both come as a package with a program for each platform, so no lockfile of one platform fits another.
npm install --no-package-lock --prefix "$tools" --no-fund --no-audit --loglevel error

. scripts/served.sh

node scripts/package.ts "$work/build" >"$work/packed"
mkdir "$work/alone"
echo '{"type":"module"}' >"$work/alone/package.json"
npm install --prefix "$work/alone" --offline --no-fund --no-audit --loglevel error "$(sed -n 2p "$work/packed")"
cp "$here/buy.mjs" "$work/alone"
cd "$work/alone"
if [ "$(ls node_modules)" != mayfly-client ]; then
  echo 'The SDK brought other packages.' >&2
  exit 1
fi
for module in mayfly-client mayfly-client/mayfly-client.min.js; do
  node buy.mjs "$module" "$url"
  echo "Node bought and used every product with $module"
  "$tools/node_modules/.bin/bun" run buy.mjs "$module" "$url"
  echo "Bun did with $module"
  "$tools/node_modules/.bin/deno" run --quiet --node-modules-dir=manual --allow-net --allow-read buy.mjs "$module" "$url"
  echo "Deno did with $module"
done
