#!/usr/bin/env bash
# Pins the images of compose.yaml and Dockerfile by digest: a tag can be moved to other bytes, a digest
# cannot. Run it from a checkout where Docker reaches the registry, read the difference, and commit it.
# Run it again after a new tag was written by hand. Images that are pinned already stay as they are.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

digest_of() {
  local digest
  digest=$(docker buildx imagetools inspect --format '{{.Manifest.Digest}}' "$1") || return 1
  if ! [[ $digest =~ ^sha256:[0-9a-f]{64}$ ]]; then
    echo "No digest for $1: docker answered \"$digest\"." >&2
    return 1
  fi
  printf '%s' "$digest"
}

# What is built here has no registry; stages of the Dockerfile have no tag.
images=$(sed -nE \
  -e 's/^[[:space:]]*image: ([^[:space:]@]+:[^[:space:]@]+)$/\1/p' \
  -e 's/^FROM ([^[:space:]@]+:[^[:space:]@]+)( AS .*)?$/\1/p' \
  compose.yaml Dockerfile | sort -u)

# All digests are known before a file changes.
edits=()
for image in $images; do
  digest=$(digest_of "$image")
  escaped=${image//./\\.}
  edits+=(-e "s#^([[:space:]]*image: |FROM )$escaped( AS .*)?\$#\\1$image@$digest\\2#")
  echo "$image@$digest"
done
if [ ${#edits[@]} -eq 0 ]; then
  echo 'Every image is pinned already.'
  exit 0
fi
for file in compose.yaml Dockerfile; do
  draft=$(mktemp "$file.XXXXXX")
  sed -E "${edits[@]}" "$file" >"$draft"
  cat "$draft" >"$file"
  rm "$draft"
done
