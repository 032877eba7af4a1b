#!/bin/sh
# `tools/call` of a tool that does nothing: our server, with its checks and limits, beside a plain one of rmcp with its own
# macros, whose router is made once. Without sockets (in the newest version, without and with a token for progress, and in an
# older one), over HTTP (both mounted in axum, 16 connections), and over standard input (16 calls at once). Each server is a
# process of its own, built with the features of dependencies that it needs itself. They are asked in short turns by the same
# client, and say themselves how much of the processor and of the memory they use. Then memory after 100,000 and after 500,000
# calls, because the allocator's arenas fill up during the first. Where valgrind is installed, instructions too, as the difference of two run lengths.
# Usage: agent/benches/mcp/run.sh [ROUNDS]          claims are ratios of one run
set -eu
cd "$(dirname "$0")"
export CARGO_TARGET_DIR="${CARGO_TARGET_DIR:-$PWD/../../../target/mcp-bench}"
cargo build -q --release
cargo build -q --release --features own --bin mcp-own
programs=$CARGO_TARGET_DIR/release
if command -v valgrind >/dev/null; then
    collected() { valgrind --tool=callgrind --callgrind-out-file=/dev/null "$programs/$1" direct "$2" "$3" 2>&1 |
        sed -n 's/.*Collected : \([0-9]*\).*/\1/p'; }
    for form in newest progress older; do
        for who in own plain; do
            few=$(collected mcp-$who $form 100) many=$(collected mcp-$who $form 2100)
            eval "$who=$(((many - few) / 2000))"
        done
        awk "BEGIN { printf \"in process, $form: %d instructions a call, rmcp %d: rmcp : ours %.2f\n\", $own, $plain, $plain / $own }"
    done
fi
"$programs/mcp-bench" "${1:-15}"
