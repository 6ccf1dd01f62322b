#!/usr/bin/env bash
# npm run contract:clients: starts a server, checks its OpenAPI documents, generates three clients of them by
# foreign generators, compiles them strictly, and buys and uses every product with each. Two
# Python clients with an address and a wallet buy by one URL. Needs Python 3.11 or
# newer with pip, and installs into .cache/clients.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

here=$PWD/clients
tools=$PWD/.cache/clients
mkdir -p "$tools"
cp "$here"/package.json "$here"/package-lock.json "$here"/tsconfig.json "$here"/*.ts "$here"/*.py "$here/mypy.ini" "$tools"
npm ci --prefix "$tools" --ignore-scripts --no-fund --no-audit --loglevel error
if [ ! -x "$tools/venv/bin/python" ]; then python3 -m venv "$tools/venv"; fi
"$tools/venv/bin/pip" install --quiet --disable-pip-version-check -r "$here/requirements.txt"

export MAYFLY_GATE=on
. scripts/served.sh

cd "$tools"
export PATH=$tools/node_modules/.bin:$tools/venv/bin:$PATH REDOCLY_TELEMETRY=off
get() { curl --silent --show-error --fail --output "$1" "$url/$1"; }
for document in openapi.json openapi-all.json; do
  get "$document"
  redocly lint --format=summary "$document"
  openapi-spec-validator "$document"
  echo "$document has $(wc -c <"$document") bytes"
done

rm -rf hey schema.d.ts mayfly_client whole
openapi-ts -i openapi.json -o hey --silent
openapi-typescript openapi.json --output schema.d.ts
openapi-python-client generate --path openapi.json --meta none --output-path mayfly_client --overwrite
openapi-ts -i openapi-all.json -o whole/hey --silent
openapi-typescript openapi-all.json --output whole/schema.d.ts
openapi-python-client generate --path openapi-all.json --meta none --output-path whole/mayfly_client --overwrite
tsc -p tsconfig.json
mypy

node dist/hey.js "$url"
echo '@hey-api/openapi-ts bought and used every product'
node dist/fetch.js "$url"
echo 'openapi-typescript bought and used every product'
python use.py "$url"
echo 'openapi-python-client bought and used every product'
python pay.py "$url"
echo 'pympp and l402-requests bought by one URL, also when the answer was lost'
python "$here/../examples/webhook.py" "$url/openapi.json"
echo 'examples/webhook.py read its webhook'
