#!/bin/sh
# Instructions (callgrind) and bytes sent per turn of a managed conversation, by hundreds of turns. The first hundred begins with an empty
# window; from the third on, each has its share of clears and summaries. The bytes without management are beside them.
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
bytes() { echo $(($("$bench" "$1" "$2" $(($2 - 100)) | sed 's/ .*//') / 100)); }
row() { printf '%-26s %12s %12s %12s %10s\n' "$1" "$2" "$3" "$4" "$(awk "BEGIN { printf \"%.2f\", $4 / $3 }")"; }

printf '%-26s %12s %12s %12s %10s\n' 'of a turn' '1 to 100' '201 to 300' '901 to 1000' 'last ratio'
row instructions $((($(count 100) - $(count 0)) / 100)) $((($(count 300) - $(count 200)) / 100)) \
    $((($(count 1000) - $(count 900)) / 100))
row 'bytes sent' "$(bytes managed 100)" "$(bytes managed 300)" "$(bytes managed 1000)"
row 'bytes without management' "$(bytes whole 100)" "$(bytes whole 300)" "$(bytes whole 1000)"
echo 'must of the first two ratios: 1.02'
