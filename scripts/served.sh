# Sourced by a script that asks a running service, after `set -euo pipefail`: starts one on the simulator with an
# empty store, and stops it with the script. Sets `work`, a folder that is deleted then, and `url`. `under` may be a
# command that runs it. The server reads the environment, such as MAYFLY_GATE=on or the URL of an empty PostgreSQL
# database.
work=$(mktemp -d)
server=
cleanup() {
  if [ -n "$server" ]; then kill "$server" 2>/dev/null || true; fi
  rm -rf "$work"
}
trap cleanup EXIT
# The loop reads it, and the job that writes it may begin later.
: >"$work/log"
MAYFLY_PORT=0 MAYFLY_DATABASE_URL="${MAYFLY_DATABASE_URL:-sqlite:$work/mayfly.db}" \
  ${under:-} node bin/mayfly.mjs serve >"$work/log" 2>"$work/errors" &
server=$!
url=
for _ in $(seq 150); do
  url=$(sed -n 's/.*"event":"listening","url":"\([^"]*\)".*/\1/p' "$work/log")
  if [ -n "$url" ]; then break; fi
  sleep 0.2
done
if [ -z "$url" ]; then
  cat "$work/log" "$work/errors" >&2
  exit 1
fi
