#!/bin/sh
# Instructions of encoding one request as text, under callgrind: a long conversation with 10 tools, and 100 tools with 2 messages.
# Usage: agent/benches/encoding.sh [BINARY]          needs valgrind
set -eu
command -v valgrind >/dev/null || { echo "valgrind is not installed" >&2; exit 1; }
cd "$(dirname "$0")/../.."
bench=${1:-$(cargo bench -p agent --features anthropic,gemini,openai --bench encoding --no-run --message-format=json 2>/dev/null |
    sed -n 's/.*"name":"encoding".*"executable":"\([^"]*\)".*/\1/p' | tail -1)}
[ -x "$bench" ] || { echo "the bench did not build"; exit 1; }

count() { # protocol messages tools times
    valgrind --tool=callgrind --callgrind-out-file=/dev/null "$bench" "$1" "$2" "$3" "$4" 2>&1 |
        sed -n 's/.*Collected : \([0-9]*\).*/\1/p'
}
each() { # The difference of two runs: start-up does not count.
    few=$(count "$1" "$2" "$3" 1)
    many=$(count "$1" "$2" "$3" 3)
    echo $(((many - few) / 2))
}
printf '%-24s %22s %22s\n' protocol '1,000 messages' '100 tools'
for api in openai-chat openai-responses anthropic-messages gemini-generate-content; do
    printf '%-24s %22s %22s\n' "$api" "$(each "$api" 1000 10)" "$(each "$api" 2 100)"
done
echo 'goals of the next turn of one conversation: 1500000 and 300000'
