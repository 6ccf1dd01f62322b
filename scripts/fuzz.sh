#!/usr/bin/env bash
# npm run fuzz: starts a server, and schemathesis sends it valid and invalid requests by its openapi.json and by
# each document that this one links, for two minutes each. Needs Python 3.10 or newer, and installs into a
# virtual environment under .cache. `-- --seed 5` repeats a run.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

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
checks=not_a_server_error,status_code_conformance,content_type_conformance,response_schema_conformance,response_headers_conformance
# Both ways to buy a WHISPER have a header that is an integer.
whisper='^/api/payments/whisper$|^/api/buy/whisper/'
fuzz() {
  local document=$1 status=0
  shift
  timeout "$SECONDS_AT_MOST" "$tools/bin/schemathesis" run "$url/$document" \
    --max-examples 40 --workers 1 --suppress-health-check all "$@" || status=$?
  # 124: the time was over, and schemathesis had found nothing.
  if [ "$status" -ne 0 ] && [ "$status" -ne 124 ]; then exit "$status"; fi
}
for document in openapi.json $(linked); do
  # A stream does not end. Beside a header that is an integer, schemathesis takes an unknown one for a fault.
  fuzz "$document" --exclude-path-regex "/stream\$|$whisper" \
    --checks "$checks,unsupported_method,negative_data_rejection" "$@"
done
fuzz openapi.json --include-path-regex "$whisper" --checks "$checks" "$@"
curl --silent --show-error --fail --max-time 10 "$url/health" >/dev/null
echo 'fuzzed, and still healthy'
