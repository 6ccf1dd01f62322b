#!/usr/bin/env bash
# npm run contract:ldk: a wallet on LDK Node buys from a Mayfly over a real LND, and is paid through GATE. Builds the
# wallet into .cache/ldk, in three minutes the first time.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

if ! command -v cargo >/dev/null || ! command -v cc >/dev/null; then
  echo 'This needs Rust 1.88 or newer with cargo (Debian 12 has an older one: rustup.rs), a C compiler, and Go or TESTNODES_BIN for LND.' >&2
  exit 2
fi
cargo build --quiet --locked --manifest-path clients/ldk/Cargo.toml --target-dir .cache/ldk
LDK_WALLET=$PWD/.cache/ldk/debug/ldk-wallet node --test --test-reporter=spec test/e2e/ldk.ts
