#!/usr/bin/env bash
# npm run fuzz: starts a server, and schemathesis sends it valid and invalid requests by its openapi.json
# for two minutes. Needs Python 3.10 or newer, and installs into a virtual environment under .cache. The
# server reads the environment, such as MAYFLY_GATE=on or the URL of an empty PostgreSQL database.
# `-- --seed 5` repeats a run.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

SECONDS_AT_MOST=120
tools=$PWD/.cache/fuzz
if [ ! -x "$tools/bin/schemathesis" ]; then
  python3 -m venv "$tools"
  "$tools/bin/pip" install --quiet --disable-pip-version-check 'schemathesis==4.32.5'
fi

work=$(mktemp -d)
server=
cleanup() {
  if [ -n "$server" ]; then kill "$server" 2>/dev/null || true; fi
  rm -rf "$work"
}
trap cleanup EXIT
MAYFLY_PORT=0 MAYFLY_RATE_LIMITS=off \
  MAYFLY_DATABASE_URL="${MAYFLY_DATABASE_URL:-sqlite:$work/mayfly.db}" \
  node bin/mayfly.mjs serve >"$work/log" 2>/dev/null &
server=$!
url=
for _ in $(seq 150); do
  url=$(sed -n 's/.*"event":"listening","url":"\([^"]*\)".*/\1/p' "$work/log")
  if [ -n "$url" ]; then break; fi
  sleep 0.2
done

# Runs in the temporary folder, because schemathesis writes files into its working directory.
status=0
cd "$work"
checks=not_a_server_error,status_code_conformance,content_type_conformance,response_schema_conformance,response_headers_conformance
fuzz() {
  timeout "$SECONDS_AT_MOST" "$tools/bin/schemathesis" run "$url/openapi.json" \
    --max-examples 40 --workers 1 --suppress-health-check all "$@" || status=$?
}
# Of a purchase by one URL the description lists one method of three. For WHISPER, schemathesis takes an unknown
# header for a fault of the request.
fuzz --exclude-path-regex '/stream$|^/api/buy/|^/api/payments/whisper$' \
  --checks "$checks,unsupported_method,negative_data_rejection" "$@"
if [ "$status" -eq 0 ]; then
  fuzz --include-path-regex '^/api/buy/|^/api/payments/whisper$' --checks "$checks" "$@"
fi
# 124: the time was over, and schemathesis had found nothing.
if [ "$status" -ne 0 ] && [ "$status" -ne 124 ]; then exit "$status"; fi
curl --silent --show-error --fail --max-time 10 "$url/health" >/dev/null
echo 'fuzzed, and still healthy'
