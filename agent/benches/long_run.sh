#!/bin/sh
# Instructions (callgrind) and bytes sent per turn of a managed conversation: turns 901 to 1,000 beside turns 91 to 100. The same without
# management, for the bytes.
# Usage: agent/benches/long_run.sh [BINARY]          needs valgrind
set -eu
command -v valgrind >/dev/null || { echo "valgrind is not installed" >&2; exit 1; }
cd "$(dirname "$0")/../.."
bench=${1:-$(cargo bench -p agent --features anthropic,gemini,openai,runtime --bench long_run --no-run --message-format=json 2>/dev/null |
    sed -n 's/.*"name":"long_run".*"executable":"\([^"]*\)".*/\1/p' | tail -1)}
[ -x "$bench" ] || { echo "the bench did not build"; exit 1; }

count() { # turns
    valgrind --tool=callgrind --callgrind-out-file=/dev/null "$bench" managed "$1" 0 2>&1 |
        sed -n 's/.*Collected : \([0-9]*\).*/\1/p'
}
bytes() { "$bench" "$1" "$2" "$3" | sed 's/ .*//'; }

early=$((($(count 100) - $(count 0)) / 100))
late=$((($(count 1000) - $(count 900)) / 100))
printf '%-28s %14s %14s %8s\n' '' 'early' 'late' 'ratio'
row() { printf '%-28s %14s %14s %8s\n' "$1" "$2" "$3" "$(awk "BEGIN { printf \"%.2f\", $3 / $2 }")"; }
row 'instructions of a turn' "$early" "$late"
row 'bytes of a turn' $(($(bytes managed 100 10) / 90)) $(($(bytes managed 1000 900) / 100))
row 'bytes without management' $(($(bytes whole 100 10) / 90)) $(($(bytes whole 1000 900) / 100))
echo 'must of the first two ratios: 1.10'
