#!/usr/bin/env bash
# npm run fuzz: starts a server, and schemathesis sends it valid and invalid requests by its
# openapi-all.json, then with the tokens of an inbox, a monitor and a secret. Needs Python 3.10 or newer, and installs
# into a virtual environment under .cache. `-- --seed 5` repeats a run.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
root=$PWD

SECONDS_AT_MOST=120
tools=$PWD/.cache/fuzz
if [ ! -x "$tools/bin/schemathesis" ]; then
  python3 -m venv "$tools"
  "$tools/bin/pip" install --quiet --disable-pip-version-check 'schemathesis==4.32.5'
fi

export MAYFLY_RATE_LIMITS=off
. scripts/served.sh

# Runs in the temporary folder, because schemathesis writes files into its working directory.
cd "$work"
: >owned.toml
checks=not_a_server_error,status_code_conformance,content_type_conformance,response_schema_conformance,response_headers_conformance
# Both ways to buy a WHISPER have a header that is an integer.
whisper='^/api/payments/whisper$|^/api/buy/whisper/'
fuzz() {
  local status=0
  timeout "$SECONDS_AT_MOST" "$tools/bin/schemathesis" --config-file "$work/owned.toml" run "$url/openapi-all.json" \
    --max-examples 40 --workers 1 --suppress-health-check all "$@" || status=$?
  # 124: the time was over, and schemathesis had found nothing.
  if [ "$status" -ne 0 ] && [ "$status" -ne 124 ]; then exit "$status"; fi
}
tags=$(curl --silent --show-error --fail --max-time 10 "$url/openapi-all.json" |
  node -e 'console.log(JSON.parse(fs.readFileSync(0)).tags.map(({ name }) => name).join(" "))')
# Beside a header that is an integer, schemathesis takes an unknown one for a fault.
for tag in $tags; do
  fuzz --include-tag "$tag" --exclude-path-regex "$whisper" \
    --checks "$checks,unsupported_method,negative_data_rejection" "$@"
done
fuzz --include-path-regex "$whisper" --checks "$checks" "$@"

# With a token, so that requests reach what is behind it. What would destroy the capability or its token stays out.
mayfly() {
  XDG_DATA_HOME=$work/home MAYFLY_URL=$url MAYFLY_WALLET_URL=simulator: node "$root/bin/mayfly.mjs" "$@"
}
member() { node -e 'console.log(JSON.parse(fs.readFileSync(0))[process.argv[1]])' "$1"; }
fuzz_owned() {
  local name=$1 token=$2 paths=$3
  printf '[parameters]\n"path.publicId" = "%s"\n' "$(mayfly show "$name" --json | member publicId)" >"$work/owned.toml"
  fuzz --include-path-regex "$paths" --exclude-path-regex '/tokens/|/extend$' \
    --exclude-operation-id destroyInbox --exclude-operation-id destroyMonitor \
    --exclude-operation-id destroyWhisper --checks "$checks,negative_data_rejection" \
    --header "Authorization: Bearer $(mayfly show "$name" --reveal --json | member "$token")"
}
mayfly buy catch --plan long --name inbox --quiet >/dev/null
mayfly buy pulse --plan long --name monitor --quiet >/dev/null
echo secret | mayfly whisper send --receipt --name secret --quiet >/dev/null
fuzz_owned inbox ingestToken '^/c/'
fuzz_owned inbox ownerToken '^/api/catch/'
fuzz_owned monitor pingToken '^/p/'
fuzz_owned monitor ownerToken '^/api/pulse/\{publicId'
fuzz_owned secret receiptToken '^/api/whisper/'
curl --silent --show-error --fail --max-time 10 "$url/health" >/dev/null
echo 'fuzzed, and still healthy'
