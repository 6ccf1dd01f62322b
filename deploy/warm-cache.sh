#!/bin/sh
# Keeps what Node compiles of the program, so that each start of the service takes two thirds of the time.
# Run it as root after each installation and upgrade: deploy/warm-cache.sh <user of the service>
#
# Whoever writes to this cache runs code as the service. Node has one for each user, so that user starts the
# service once, on a store that is thrown away. Then the cache is root's, and the service only reads it.
set -eu
user=$1
program=$(cd "$(dirname "$0")/.." && pwd)
cache=$program/.cache/compiled
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

rm -rf "$cache"
mkdir -p "$cache"
chmod 755 "$program/.cache" "$cache"
chown "$user" "$cache" "$work"
cd "$work"
# A start that takes longer is ended before it leaves anything, and the service does without.
env -i PATH="$PATH" MAYFLY_PORT=0 MAYFLY_DATABASE_URL="sqlite:$work/mayfly.db" \
  setpriv --reuid="$user" --regid="$(id -g "$user")" --clear-groups \
  timeout --preserve-status 10 node --max-semi-space-size=8 "$program/dist/main.js" serve >log 2>&1 || cat log
chown -R root:root "$cache"
chmod -R u=rwX,go=rX "$cache"
