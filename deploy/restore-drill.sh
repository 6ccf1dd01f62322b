#!/usr/bin/env bash
# Shows that the newest backup of a SQLite store can be restored, and that the copy of the secret opens it:
# `restore-drill.sh FOLDER SECRET_FILE`. It works in a folder of its own and touches nothing of the service.
# docs/run/backup.md has the same for PostgreSQL.
set -euo pipefail

folder=${1:?name the folder of the backups}
secret=${2:?name the copy of the secret}
mayfly=${BACKUP_MAYFLY:-/usr/bin/node /opt/mayfly/bin/mayfly.mjs}
# How old the newest backup may be.
hours=${BACKUP_MAX_HOURS:-26}

newest=$(find "$folder" -maxdepth 1 -type f -name 'mayfly-*.db' | sort | tail -n 1)
[ -n "$newest" ] || { echo "There is no backup in $folder." >&2; exit 1; }
if [ -n "$(find "$newest" -mmin "+$((hours * 60))")" ]; then
  echo "$newest is older than $hours hours: the timer does not run." >&2
  exit 1
fi

umask 077
drill=$(mktemp -d)
trap 'rm -rf "$drill"' EXIT
# Nothing of the service's settings is used: not its store, and not its node.
for name in $(compgen -e MAYFLY_ || true); do unset "$name"; done
export MAYFLY_DATABASE_URL="sqlite:$drill/mayfly.db" MAYFLY_SECRET_FILE="$secret"

$mayfly restore "$newest"
# Reads the store, and whether its orders were made under this secret. No service runs on it.
export MAYFLY_URL=http://127.0.0.1:9
$mayfly doctor --json >"$drill/doctor.json" || true
if grep -qE '"check":"(configuration|store|secret)","state":"bad"' "$drill/doctor.json"; then
  grep -oE '\{"check":"(configuration|store|secret)","state":"bad"[^}]*\}' "$drill/doctor.json" >&2
  exit 1
fi
$mayfly order list --limit 3
echo "$newest was restored, and the secret opens it."
