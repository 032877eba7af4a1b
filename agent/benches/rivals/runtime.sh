#!/bin/sh
# Our runtime beside rig's: instructions and allocations of a prompt under valgrind, as ratios of one run; many runs at
# once; a long run.
# Usage: agent/benches/rivals/runtime.sh          needs valgrind
set -eu
command -v valgrind >/dev/null || { echo "skipped: no valgrind"; exit 0; }
cd "$(dirname "$0")"
cargo build -q --release
bench=${CARGO_TARGET_DIR:-target}/release/rivals

instructions() { valgrind --tool=callgrind --callgrind-out-file=/dev/null "$bench" prompts "$1" "$2" 2>&1 |
    sed -n 's/.*Collected : \([0-9]*\).*/\1/p'; }
heap() { valgrind --tool=memcheck --leak-check=no "$bench" prompts "$1" "$2" 2>&1 |
    sed -n 's/.*total heap usage: \([0-9,]*\) allocs.* \([0-9,]*\) bytes allocated/\1 \2/p' | tr -d ,; }
# The difference of two runs: start-up does not count.
each() { echo $((($2 - $1) / 100)); }

for who in ours rig; do
    few=$(instructions $who 10); many=$(instructions $who 110); count=$(each "$few" "$many")
    few=$(heap $who 10); many=$(heap $who 110)
    allocs=$(each "${few% *}" "${many% *}"); bytes=$(each "${few#* }" "${many#* }")
    echo "$who: $count instructions, $allocs allocations, $bytes bytes allocated for a prompt"
    eval "${who}_count=$count ${who}_allocs=$allocs"
done
awk "BEGIN { printf \"ratio: instructions %.2f, allocations %.2f (goal: at most 0.33)\n\",
    $ours_count / $rig_count, $ours_allocs / $rig_allocs }"
for n in 100 10000; do "$bench" concurrent ours $n; done
"$bench" concurrent rig 100
for n in 100 1000 10000; do "$bench" turns ours $n; done
