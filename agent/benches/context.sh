#!/bin/sh
# Instructions (callgrind) and times of estimates, clears, limits, fallbacks and budgets. The goals are times; at 3 to 4 instructions in a
# nanosecond, which is usual here, they correspond to the instructions beside them. The time of an admission is that at 3.5; the estimate of its tokens does not count.
# Usage: agent/benches/context.sh [BINARY]          needs valgrind
set -eu
command -v valgrind >/dev/null || { echo "valgrind is not installed" >&2; exit 1; }
cd "$(dirname "$0")/../.."
bench=${1:-$(cargo bench -p agent --features openai,runtime,store-sql --bench context --no-run --message-format=json 2>/dev/null |
    sed -n 's/.*"name":"context".*"executable":"\([^"]*\)".*/\1/p' | tail -1)}
[ -x "$bench" ] || { echo "the bench did not build"; exit 1; }

count() { # what times, and a function that counts alone
    valgrind --tool=callgrind --callgrind-out-file=/dev/null ${3:+"--toggle-collect=$3"} "$bench" "$1" "$2" 2>&1 |
        sed -n 's/.*Collected : \([0-9]*\).*/\1/p'
}
allocations() { # what
    for times in 11 1; do
        valgrind --leak-check=no --undef-value-errors=no "$bench" "$1" $times 2>&1 |
            sed -n 's/.*heap usage: \([0-9,]*\) allocs.*/\1/p' | tr -d ,
    done | paste -sd ' ' | awk '{ print ($1 - $2) / 10 }'
}
one() { echo $((($(count "$1" 11) - $(count "$1" 1)) / 10)); }
shortest() { # what times
    for _ in 1 2 3 4 5; do "$bench" "$1" "$2" | sed 's/ .*//'; done | sort -g | head -1
}
# By the shortest of five runs of each length, in microseconds for each.
time_of() { # what times
    awk "BEGIN { print ($(shortest "$1" $((2 * $2))) - $(shortest "$1" "$2")) / $2 * 1000 }"
}
row() { printf '%-44s %14s %14s   %s\n' "$1" "$2" "$3" "$4"; }
minus() { awk "BEGIN { print $1 - $2 }"; }

admit='*QueuePlace*Future*poll'
plain=$(one plain) plain_time=$(time_of plain 2000)
row 'of one' instructions microseconds goal
row 'report of 1,000 messages, one of them new' "$(one report)" "$(time_of report 200)" '20'
row 'report of 1 MB for the first time' "$(one first)" "$(time_of first 50)" '2000'
row 'clear of 300 results of 2 KiB' "$(one clear)" "$(time_of clear 20)" '1000'
short=$(one plain-short) short_time=$(time_of plain-short 5000)
admission=$((($(count limits-short 11 "$admit") - $(count limits-short 1 "$admit")) / 10))
row 'admission to limits that are not reached' "$admission" "about $(awk "BEGIN { printf \"%.2f\", $admission / 3500 }")" '0.5'
row 'a request through limits, without content' "$(($(one limits-short) - short))" "$(minus "$(time_of limits-short 5000)" "$short_time")" ''
row 'limits, beyond it, for each of 100 events' "$((($(one limits) - plain) / 100))" \
    "$(awk "BEGIN { print ($(time_of limits 2000) - $plain_time) / 100 }")" ''
row 'fallback, beyond it, for each of 100 events' "$((($(one fallback) - plain) / 100))" \
    "$(awk "BEGIN { print ($(time_of fallback 2000) - $plain_time) / 100 }")" '1'
row 'reserve and settle, in memory' "$(one budget)" "$(time_of budget 2000)" ''
more=$(minus "$(allocations fallback-long)" "$(allocations plain-long)") fixed=$(minus "$(allocations fallback)" "$(allocations plain)")
echo "allocations of a fallback: $fixed for a request of 100 events, $more for one of 1,100 (goal: none for an event)"
short=$(count history 500) long=$(count history 1000)
short_copied=$(count history 500 '__mem*') long_copied=$(count history 1000 '__mem*')
echo "a request for each message of a history of 1,000 against one of 500: $(awk "BEGIN { printf \"%.2f\", $long / $short }") times the instructions," \
    "$(awk "BEGIN { printf \"%.2f\", ($long - $long_copied) / ($short - $short_copied) }") without copies of bytes (goal 2.2)"
pairs=$("$bench" sqlite 250 | sed 's/ .*//')
echo "reserve and settle on a SQLite file, a transaction each, 8 writers: $(awk "BEGIN { printf \"%.0f\", 8 * 250 / $pairs * 1000 }") pairs a second (goal 200)"
