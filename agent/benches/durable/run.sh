#!/bin/sh
# Durable steps beside the same steps of a bare handler, turn by turn in one run; and 1,000 runs at once beside the ideal time.
# The server has as many partitions as the machine has cores; the programs are built as a service is deployed (thin LTO, some minutes).
# Usage: agent/benches/durable/run.sh
set -eu
cd "$(dirname "$0")"
root=$PWD/../../..
export CARGO_TARGET_DIR="${CARGO_TARGET_DIR:-$root/target}"
CARGO_TARGET_DIR="$CARGO_TARGET_DIR/durable" cargo build -q --release
exec "$root/.ci/restate" measure "$CARGO_TARGET_DIR/durable/release/durable"
