#!/bin/bash
# Whether the service in this container answers GET /health with 200. Bash alone: a whole Node every ten seconds
# would cost more than an idle service. Liveness alone, too: an instance whose Lightning node is away must not be
# restarted for it.
set -u
exec 3<>"/dev/tcp/127.0.0.1/${MAYFLY_PORT:-8402}" || exit 1
printf 'GET /health HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n' >&3
read -r -t 2 _ status _ <&3
[ "${status:-}" = 200 ]
