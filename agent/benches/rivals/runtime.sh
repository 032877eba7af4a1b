#!/bin/sh
# Our runtime beside rig's, as ratios of one run: instructions (valgrind) and allocations of a prompt; then time and memory of
# many runs at once, of one shared assistant, against those of few; then a long run.
#
# Instructions are the difference of two runs, so start-up does not count. Times are of the processor, in a warm process: see
# src/main.rs. Many runs at once fill the caches, which a busy machine shares with others: so few and many are measured by
# turns, and the best of three counts.
# Usage: agent/benches/rivals/runtime.sh          needs valgrind
set -eu
command -v valgrind >/dev/null || { echo "valgrind is not installed" >&2; exit 1; }
cd "$(dirname "$0")"
cargo build -q --release
bench=${CARGO_TARGET_DIR:-target}/release/rivals

collected() { valgrind --tool=callgrind --callgrind-out-file=/dev/null "$bench" "$@" 2>&1 |
    sed -n 's/.*Collected : \([0-9]*\).*/\1/p'; }
# field N of the line of figures: 1 microseconds, 2 allocations, 3 bytes, 4 KB
field() { echo "$1" | sed 's/.*: //' | tr -dc '0-9. \n' | awk "{ print \$$2 }"; }
least() { printf '%s\n' "$@" | sort -g | head -1; }

for who in ours rig; do
    few=$(collected prompts $who 10); many=$(collected prompts $who 110); count=$(((many - few) / 100))
    line=$("$bench" prompts $who 1000); allocs=$(field "$line" 2)
    echo "$who: $count instructions, $allocs allocations, $(field "$line" 3) bytes allocated for a prompt"
    eval "${who}_count=$count ${who}_allocs=$allocs"
done
awk "BEGIN { printf \"ratio to rig: instructions %.2f, allocations %.2f (must: at most 0.33; ours 90000 and 110)\n\",
    $ours_count / $rig_count, $ours_allocs / $rig_allocs }"

few=$(RUNS=200 collected concurrent ours 100); more=$(RUNS=1200 collected concurrent ours 100)
of_100=$(((more - few) / 1000))
few=$(RUNS=10000 collected concurrent ours 10000); more=$(RUNS=20000 collected concurrent ours 10000)
of_10000=$(((more - few) / 10000))
for _ in 1 2 3; do
    few="${few_us:-} $(field "$("$bench" concurrent ours 100)" 1)"; few_us=$few
    line=$("$bench" concurrent ours 10000)
    many="${many_us:-} $(field "$line" 1)"; many_us=$many
done
# shellcheck disable=SC2086
awk "BEGIN { printf \"ours, 10000 runs at once against 100: instructions %.2f, time %.2f (must: at most 1.2); %.1f KB held for each (must: at most 20)\n\",
    $of_10000 / $of_100, $(least $many_us) / $(least $few_us), $(field "$line" 4) }"
"$bench" concurrent rig 100
"$bench" concurrent rig 2000
for n in 100 1000 10000; do "$bench" turns ours $n; done
