#!/bin/sh
# Event streams of text deltas, ours and others', on one core: MB/s, best of several rounds.
# Usage: agent/benches/sse/run.sh [MEGABYTES]
set -eu
cd "$(dirname "$0")"
export CARGO_TARGET_DIR="${CARGO_TARGET_DIR:-$PWD/../../../target}/sse"
cargo build -q --release
exec taskset -c 0 "$CARGO_TARGET_DIR/release/sse" "${1:-64}"
