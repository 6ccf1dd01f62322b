#!/usr/bin/env bash
# npm run contract:openapi-generator: starts a server, has openapi-generator validate its OpenAPI documents, and
# compiles the clients for Go and TypeScript that its newer release makes of the whole one. 7.14 validates more
# strictly; its own clients do not compile where a schema is one of several. Needs Java, Maven and Go.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

here=$PWD/clients/openapi-generator
tools=$PWD/.cache/openapi-generator
strict=7.14.0
newest=7.25.0
mkdir -p "$tools"
for version in $strict $newest; do
  if [ ! -f "$tools/openapi-generator-cli-$version.jar" ]; then
    mvn --quiet --batch-mode org.apache.maven.plugins:maven-dependency-plugin:3.8.1:copy \
      -Dartifact=org.openapitools:openapi-generator-cli:$version -DoutputDirectory="$tools"
  fi
done
cp "$here/package.json" "$here/package-lock.json" "$here/tsconfig.json" "$tools"
npm ci --prefix "$tools" --ignore-scripts --no-fund --no-audit --loglevel error

export MAYFLY_GATE=on
. scripts/served.sh

cd "$tools"
for document in openapi.json openapi-all.json; do
  curl --silent --show-error --fail --output "$document" "$url/$document"
  java -jar openapi-generator-cli-$strict.jar validate -i "$document"
done

rm -rf go typescript
generate() { java -jar openapi-generator-cli-$newest.jar generate -i openapi-all.json "$@" >"$work/generated" 2>&1 || { cat "$work/generated"; return 1; }; }
generate -g go -o go --package-name mayfly --global-property=apiTests=false,modelTests=false
(cd go && go build ./... && go vet ./...)
echo 'The client for Go compiles'
generate -g typescript-fetch -o typescript
node_modules/.bin/tsc -p tsconfig.json
echo 'The client for TypeScript compiles'
