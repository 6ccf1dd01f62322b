#!/usr/bin/env bash
# npm run fuzz: schemathesis reads openapi.json of a running server and sends it what the document
# allows and what it does not, for two minutes. Needs Python 3.10 or newer; installs into a virtual
# environment of its own under .cache. Settings of the environment hold, such as MAYFLY_GATE=on or an
# empty database of a PostgreSQL server; `-- --seed 5` repeats a run.
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

# From the temporary folder, since it keeps notes where it runs.
status=0
cd "$work"
timeout "$SECONDS_AT_MOST" "$tools/bin/schemathesis" run "$url/openapi.json" \
  --checks not_a_server_error,status_code_conformance,content_type_conformance,response_schema_conformance,response_headers_conformance,unsupported_method,negative_data_rejection \
  --max-examples 40 --workers 2 --exclude-path-regex '/stream$' --suppress-health-check all "$@" || status=$?
# 124: the time ran out with nothing found.
if [ "$status" -ne 0 ] && [ "$status" -ne 124 ]; then exit "$status"; fi
curl --silent --show-error --fail --max-time 10 "$url/health" >/dev/null
echo 'fuzzed, and still healthy'
