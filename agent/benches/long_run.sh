#!/bin/sh
# Instructions (callgrind) and bytes sent per turn of a managed conversation of 1,000 turns, beside those of one of 100: turns 901 to 1,000 against
# 91 to 100, and all turns of each. A conversation goes through cycles: from one summary to the next the view grows, and is cleared in
# between, so that the turns of a cycle differ by up to a half. Ten turns are a part of a cycle, so that their ratio also says which part they
# are. The last row has whole cycles: the last one of 100 turns against the last one of 1,000. It shows growth, and nothing else.
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
row() { printf '%-60s %12s %12s %8s\n' "$@"; }

# The turns behind the last two summaries of a run: a cycle lies between them.
cycle() { # turns
    "$bench" managed "$1" 0 | sed 's/.*turns //' | awk '{ print $(NF - 1), $NF }'
}
instructions() { # first and last turn
    echo $((($(count "$2") - $(count "$(($1 - 1))")) / ($2 - $1 + 1)))
}
compare() { # name, first and last turn of the one, of the other
    one=$(instructions "$2" "$3") other=$(instructions "$4" "$5")
    row "instructions, $1" "$one" "$other" "$(ratio "$one" "$other")"
    one=$(bytes managed "$2" "$3") other=$(bytes managed "$4" "$5")
    row "bytes sent, $1" "$one" "$other" "$(ratio "$one" "$other")"
}

row 'of a turn, managed' 'of 100' 'of 1,000' ratio
compare '901 to 1,000 against 91 to 100' 91 100 901 1000
compare 'all' 1 100 1 1000
read -r from to <<END
$(cycle 100)
END
read -r late_from late_to <<END
$(cycle 1000)
END
compare "whole cycle: $((late_from + 1)) to $late_to against $((from + 1)) to $to" $((from + 1)) "$to" $((late_from + 1)) "$late_to"
echo 'goal: 1.10'
row 'bytes sent, all, whole' "$(bytes whole 1 100)" "$(bytes whole 1 1000)" ''
for how in managed whole; do
    echo "input of 1,000 turns, $how: $("$bench" "$how-priced" 1000 0 | sed 's/.*, \([0-9.]*\) dollars.*/\1/') dollars at 3.75 for a million tokens that are new to the cache, 0.30 for others"
done
