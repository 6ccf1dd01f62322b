#!/usr/bin/env bash
# `npm run check:units`: systemd reads the units of deploy/, and says how exposed they are. Then the service sells, and
# the backup runs, with the system calls that their units leave them. It needs Debian's systemd and python3-seccomp, but
# no systemd that runs.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

# Ten times what `systemd-analyze security` may say, so that nobody opens a unit by accident.
SERVICE_EXPOSURE=14
BACKUP_EXPOSURE=13

python=/usr/bin/python3
if ! command -v systemd-analyze >/dev/null || ! "$python" -c 'import seccomp' 2>/dev/null; then
  echo 'This needs systemd-analyze and seccomp for Python: apt-get install systemd python3-seccomp' >&2
  exit 2
fi

units=$(mktemp -d)
trap 'rm -rf "$units"' EXIT
# As installed, with the places of this checkout.
for unit in deploy/*.service deploy/*.timer; do
  sed -e "s#/opt/mayfly/dist/main.js#$PWD/src/main.ts#" -e "s#/opt/mayfly#$PWD#" -e "s#/usr/bin/node#$(command -v node)#" \
    "$unit" >"$units/${unit##*/}"
done
told=$(systemd-analyze verify "$units"/mayfly* 2>&1) || true
if [ -n "$told" ]; then
  echo "$told" >&2
  exit 1
fi
echo 'systemd understands every line'
systemd-analyze security --offline=true --no-pager --threshold=$SERVICE_EXPOSURE "$units/mayfly.service" | tail -1
systemd-analyze security --offline=true --no-pager --threshold=$BACKUP_EXPOSURE "$units/mayfly-backup.service" | tail -1

under="$python scripts/under-unit.py deploy/mayfly.service"
. scripts/served.sh
trap 'cleanup; rm -rf "$units"' EXIT
# The value at a path of the JSON on stdin.
value() { node -e "console.log(JSON.parse(fs.readFileSync(0))$1)"; }
ask() { curl --silent --show-error --max-time 10 "$@"; }

ask "$url/api/payments/catch" --header 'Content-Type: application/json' \
  --header "Idempotency-Key: $(cat /proc/sys/kernel/random/uuid)" --data '{"planId":"spark"}' >"$work/quote"
ask --fail --output "$work/paid" "$url/simulator/pay" --header 'Content-Type: application/json' \
  --data "{\"bolt11\":\"$(value .bolt11 <"$work/quote")\"}"
ask --fail --retry 5 "$url/api/payments/$(value .orderId <"$work/quote")" >"$work/bought"
inbox=$(value .resource.publicId <"$work/bought")
ask --fail --data 'a needle in it' "$url/c/$inbox"
ask --fail "$url/api/catch/$inbox/events?q=needle" --output "$work/found" \
  --header "Authorization: Bearer $(value .resource.ownerToken <"$work/bought")"
test "$(value .events.length <"$work/found")" = 1
# The 19th value of a thread is its nice value; the 2nd may contain spaces.
if ! sed 's/.*) //' "/proc/$server/task/"*/stat | cut -d ' ' -f 17 | grep -qx 10; then
  echo 'The thread that searches gives way to no other: the unit refuses setpriority' >&2
  exit 1
fi
echo 'the service sells and searches with what its unit leaves it'

MAYFLY_DATABASE_URL="sqlite:$work/mayfly.db" BACKUP_MAYFLY="$(command -v node) $PWD/bin/mayfly.mjs" \
  $python scripts/under-unit.py deploy/mayfly-backup.service deploy/backup.sh "$work/backup" >"$work/told"
test "$(find "$work/backup" -name 'mayfly-*.db' | wc -l)" = 1
echo 'the backup runs with what its unit leaves it'
