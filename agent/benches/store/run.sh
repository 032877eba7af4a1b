#!/bin/sh
# Pairs of begin and finish a second, beside bare SQL (an insert and an update of the same bytes by the same driver, pool and
# settings), turn by turn in one run: SQLite in a file, and the Postgres of DATABASE_URL if there is one (`.ci/postgres`).
# Usage: agent/benches/store/run.sh [PAIRS]
set -eu
cd "$(dirname "$0")"
export CARGO_TARGET_DIR="${CARGO_TARGET_DIR:-$PWD/../../../target}/store"
cargo build -q --release
exec "$CARGO_TARGET_DIR/release/store" "${1:-2000}"
