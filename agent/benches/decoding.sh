#!/bin/sh
# Instructions of reading a reply, under callgrind: a delta of each protocol, from bytes to events, beside a floor that only splits the lines
# and reads the text of the delta; and a text delta through an assistant without listeners.
# Usage: agent/benches/decoding.sh [BINARY]          needs valgrind
set -eu
command -v valgrind >/dev/null || { echo "valgrind is not installed" >&2; exit 1; }
cd "$(dirname "$0")/../.."
bench=${1:-$(cargo bench -p agent --features anthropic,gemini,openai --bench decoding --no-run --message-format=json 2>/dev/null |
    sed -n 's/.*"name":"decoding".*"executable":"\([^"]*\)".*/\1/p' | tail -1)}
[ -x "$bench" ] || { echo "the bench did not build"; exit 1; }

count() { # protocol who deltas
    valgrind --tool=callgrind --callgrind-out-file=/dev/null "$bench" "$1" "$2" "$3" 2>&1 |
        sed -n 's/.*Collected : \([0-9]*\).*/\1/p'
}
# The difference of two lengths: start-up does not count.
more() { echo $((($(count "$1" "$2" 3000) - $(count "$1" "$2" 1000)) / 2000)); }

printf '%-24s %8s %8s %8s\n' protocol ours floor ratio
for api in openai-chat openai-responses anthropic-messages gemini-generate-content; do
    made=$(more "$api" none)
    ours=$(($(more "$api" ours) - made)) floor=$(($(more "$api" floor) - made))
    printf '%-24s %8s %8s %8s\n' "$api" "$ours" "$floor" "$(awk "BEGIN { printf \"%.2f\", $floor / $ours }")"
done
echo 'must of the ratio: 0.5 (stretch 0.7)'
echo "a text delta through an assistant: $(more assistant ours) instructions (must: 1500)"
