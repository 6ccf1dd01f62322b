#!/usr/bin/env bash
# One backup of the store, and the end of old ones (docs/run/backup.md): `backup.sh FOLDER`.
# It needs the settings of the service. The secret is not in a backup; keep its copy in another place.
set -euo pipefail

folder=${1:?name the folder of the backups}
# How many days a copy is kept. The newest one stays, however old it is.
days=${BACKUP_KEEP_DAYS:-14}
mayfly=${BACKUP_MAYFLY:-/usr/bin/node /opt/mayfly/bin/mayfly.mjs}

umask 077
[[ $days =~ ^[1-9][0-9]{0,3}$ ]] || { echo 'BACKUP_KEEP_DAYS must be a number of days from 1 to 9999.' >&2; exit 2; }
url=${MAYFLY_DATABASE_URL:-}
[ -z "${MAYFLY_DATABASE_URL_FILE:-}" ] || url=$(<"$MAYFLY_DATABASE_URL_FILE")
stamp=$(date --utc +%Y-%m-%dT%H%M%SZ)
mkdir -p "$folder"

case $url in
  postgres://* | postgresql://*)
    copy="$folder/mayfly-$stamp.dump"
    # The password is in the environment of pg_dump: every user could read its arguments.
    while IFS= read -r -d '' pair; do export "${pair?}"; done < <(URL=$url ${mayfly%% *} -e '
      // It may name several servers: the one that takes writes is dumped.
      const [, before, servers, after] = /^(\w+:\/\/(?:[^/?#]*@)?)([^/?#]*)(.*)$/s.exec(process.env.URL)
      const urls = servers.split(",").map((server) => new URL(before + server + after))
      const { username, password, pathname, searchParams } = urls[0]
      const pairs = {
        PGHOST: urls.map(({ hostname }) => hostname.replace(/^\[(.*)\]$/, "$1")).join(),
        PGPORT: urls.map(({ port }) => port || "5432").join(),
        PGTARGETSESSIONATTRS: urls.length > 1 ? "read-write" : null,
        PGUSER: decodeURIComponent(username), PGPASSWORD: decodeURIComponent(password),
        PGDATABASE: decodeURIComponent(pathname.slice(1)),
        PGSSLMODE: searchParams.get("sslmode"), PGSSLROOTCERT: searchParams.get("sslrootcert"),
      }
      for (const [name, value] of Object.entries(pairs)) if (value) process.stdout.write(`${name}=${value}\0`)')
    # Of a URL that cannot be read nothing is known: without it, pg_dump would look for a server of its own.
    wait "$!"
    pg_dump --format=custom --file="$copy.draft"
    pg_restore --list "$copy.draft" >/dev/null
    mv "$copy.draft" "$copy"
    ;;
  *)
    copy="$folder/mayfly-$stamp.db"
    # Checks the copy, and gives it its name only when it is complete.
    $mayfly backup "$copy"
    ;;
esac

newest=$(find "$folder" -maxdepth 1 -type f \( -name 'mayfly-*.db' -o -name 'mayfly-*.dump' \) | sort | tail -n 1)
find "$folder" -maxdepth 1 -type f \( -name 'mayfly-*.db' -o -name 'mayfly-*.dump' -o -name 'mayfly-*.draft' \) \
  -mmin "+$((days * 24 * 60))" ! -path "$newest" -print -delete
