#!/usr/bin/env bash
# npm run contract:webkit: Debian's WebKit, the engine of Safari, driven over WebDriver on a screen of its own, buys and
# uses every product by the pages. Leaves pictures of them in .cache/webkit.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

MINI_BROWSER=$(find /usr/lib -path '*/webkit2gtk-4.1/MiniBrowser' -print -quit 2>/dev/null || true)
if [ -z "$MINI_BROWSER" ] || ! command -v WebKitWebDriver >/dev/null || ! command -v Xvfb >/dev/null; then
  echo 'This needs WebKitGTK, its driver and Xvfb: apt-get install libwebkit2gtk-4.1-0 webkit2gtk-driver xvfb' >&2
  exit 2
fi
export MINI_BROWSER PICTURES=$PWD/.cache/webkit
mkdir -p "$PICTURES"
node --test --test-reporter=spec clients/webkit/pages.mjs
