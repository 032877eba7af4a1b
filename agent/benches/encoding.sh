#!/bin/sh
# Instructions of encoding a request as text, under callgrind: a long conversation with 10 tools, and 100 tools with 2 messages; the first
# request of each, whose tools are written, too, and the next one. Then prompts of a fork and of a loaded conversation, and of a long one.
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
first() { echo $(($(count "$1" "$2" "$3" 1) - $(count "$1" "$2" "$3" 0))); }
next() { echo $((($(count "$1" "$2" "$3" 5) - $(count "$1" "$2" "$3" 1)) / 4)); }

printf '%-24s %16s %16s %16s %16s\n' protocol '1,000 messages' 'next turn' '100 tools' 'next turn'
for api in openai-chat openai-responses anthropic-messages gemini-generate-content; do
    printf '%-24s %16s %16s %16s %16s\n' "$api" \
        "$(first "$api" 1000 10)" "$(next "$api" 1000 10)" "$(first "$api" 2 100)" "$(next "$api" 2 100)"
done
echo 'must of the next turn: 1500000 and 300000 (stretch 500000 and 100000)'
echo 'must of the first: half of 13.9, 10.6, 16.9, 17.7 million, and of 10.1, 7.6, 7.1, 15.2 million'
for how in fork loaded; do
    echo "a prompt, $how, with a conversation of 1,000 messages: $((($(count $how 1000 0 12) - $(count $how 1000 0 2)) / 10)), of none: $((($(count $how 0 0 12) - $(count $how 0 0 2)) / 10)) (must: 250000)"
done
# A conversation of 2,000 prompts with 50 tools, each a call, its result and a reply: two requests.
live() { count live "$1" 50 "$2"; }
early=$((($(live 1 200) - $(live 1 100)) / 100)) late=$((($(live 1 2000) - $(live 1 1900)) / 100))
echo "a prompt with its two requests, 50 tools: number 101 to 200 $early, 1,901 to 2,000 $late"
