#!/bin/sh
# `tools/call` of a tool that does nothing, over HTTP on this machine: our server, with its checks and limits, beside a plain
# one of rmcp with its own macros, both mounted in axum, in short turns in one run. Then 100,000 calls, and the memory before and
# after; and both without sockets, on one thread, which other work on the machine disturbs least.
# Usage: agent/benches/mcp/run.sh [ROUNDS]          claims are ratios of one run, on a machine that does nothing else
set -eu
cd "$(dirname "$0")"
export CARGO_TARGET_DIR="${CARGO_TARGET_DIR:-$PWD/../../../target}/mcp-bench"
cargo build -q --release
"$CARGO_TARGET_DIR/release/mcp-bench" "${1:-31}"
"$CARGO_TARGET_DIR/release/mcp-bench" direct 40000
