#!/usr/bin/env bash
# `npm run check:alerts`: checks deploy/alerts.yml with promtool, and evaluates it over deploy/alerts.test.yml.
# It uses the promtool that PROMTOOL names, or the one on the PATH. Without one it builds it with Go, once, into
# the user's cache: eight minutes on a small machine.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../deploy"

VERSION=v0.305.0 # Prometheus 3.5

promtool=${PROMTOOL:-$(command -v promtool || true)}
if [ -z "$promtool" ]; then
  folder="${XDG_CACHE_HOME:-$HOME/.cache}/mayfly-promtool/$VERSION"
  promtool="$folder/promtool"
  if ! [ -x "$promtool" ]; then
    if ! command -v go >/dev/null; then
      echo 'This needs promtool, of any Prometheus 3, or Go to build it: put one on the PATH.' >&2
      exit 2
    fi
    echo "building promtool $VERSION into $folder, once" >&2
    mkdir -p "$folder"
    draft=$(mktemp -d "$folder/draft.XXXXXX")
    trap 'rm -rf "$draft"' EXIT
    (
      cd "$draft"
      go mod init promtool 2>/dev/null
      go mod edit -require="github.com/prometheus/prometheus@$VERSION"
      GOFLAGS=-mod=mod go build -o promtool github.com/prometheus/prometheus/cmd/promtool
    )
    mv "$draft/promtool" "$promtool"
  fi
fi

"$promtool" check rules --lint=all --lint-fatal alerts.yml
"$promtool" test rules alerts.test.yml
