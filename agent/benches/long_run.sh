#!/bin/sh
# Instructions (callgrind) and bytes sent per turn of a managed conversation of 1,000 turns, beside those of one of 100: the turns of each, from
# the first to the last, which is the figure of the goal. The first 16 turns or so of both find an empty window. Beside it are the turns at the
# ends: 91 to 100 of the one, 901 to 1,000 of the other, and 201 to 300. Ten turns are shorter than a cycle of clears and a summary, whose
# turns differ by up to a half, so that their ratio says at which point of its cycle the 91st turn was; 201 to 300 are several cycles.
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
bytes() { # how, first and last turn
    echo $(($("$bench" "$1" "$3" "$(($2 - 1))" | sed 's/ .*//') / ($3 - $2 + 1)))
}
ratio() { awk "BEGIN { printf \"%.2f\", $2 / $1 }"; }
row() { printf '%-26s %12s %12s %8s   %12s %12s %12s %8s\n' "$@"; }

none=$(count 0) c90=$(count 90) c100=$(count 100) c200=$(count 200) c300=$(count 300) c900=$(count 900) c1000=$(count 1000)
row 'of a turn' 'all of 100' 'of 1,000' ratio '91 to 100' '201 to 300' '901 to 1000' 'to 201'
short=$(((c100 - none) / 100)) long=$(((c1000 - none) / 1000)) early=$(((c300 - c200) / 100)) late=$(((c1000 - c900) / 100))
row instructions "$short" "$long" "$(ratio $short $long)" $(((c100 - c90) / 10)) "$early" "$late" "$(ratio $early $late)"
for how in managed whole; do
    short=$(bytes $how 1 100) long=$(bytes $how 1 1000) early=$(bytes $how 201 300) late=$(bytes $how 901 1000)
    row "bytes sent, $how" "$short" "$long" "$(ratio "$short" "$long")" "$(bytes $how 91 100)" "$early" "$late" "$(ratio "$early" "$late")"
done
echo 'goal of the ratios of a managed conversation: 1.10; the last one shows growth'
for how in managed whole; do
    echo "input of 1,000 turns, $how: $("$bench" "$how-priced" 1000 0 | sed 's/.*, \(.*\) dollars.*/\1/') dollars at 3.75 for a million tokens that are new to the cache, 0.30 for others"
done
