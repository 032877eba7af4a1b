#!/bin/sh
# Instructions per call under callgrind, and the ratio to `serde_json::from_str` of the same type on the same text.
# `coerced`: to the floor of the same call without coercions. Reports: instructions. `… streamed`: 100 KB in deltas of four
# bytes, against one parse of the same text. Goals are those of the project; `*` marks one that has to be met.
# Usage: [PROFILE=user] agent/benches/instructions.sh [SHAPE...]      needs valgrind
# PROFILE=user builds as `cargo build --release` does: without LTO, in 16 units.
set -eu
command -v valgrind >/dev/null || { echo "valgrind is not installed" >&2; exit 1; }
cd "$(dirname "$0")/../.."
if [ "${PROFILE:-bench}" = user ]; then
    export CARGO_PROFILE_BENCH_LTO=false CARGO_PROFILE_BENCH_CODEGEN_UNITS=16
fi
bench=${BENCH:-$(cargo bench -p agent --bench arguments --no-run --message-format=json 2>/dev/null |
    sed -n 's/.*"name":"arguments".*"executable":"\([^"]*\)".*/\1/p' | tail -1)}
[ -x "$bench" ] || { echo "the bench did not build"; exit 1; }
wanted=" $* "

count() { # shape work calls
    valgrind --tool=callgrind --callgrind-out-file=/dev/null "$bench" "$1" "$2" "$3" 2>&1 |
        sed -n 's/.*Collected : \([0-9]*\).*/\1/p'
}
per_call() { # The difference of two runs: start-up does not count.
    few=$(count "$1" "$2" 2)
    many=$(count "$1" "$2" "$((2 + $3))")
    echo $(((many - few) / $3))
}
is_wanted() { [ "$wanted" = "  " ] || case $wanted in *" $1 "*) ;; *) return 1 ;; esac; }
line() { # name instructions floor goal
    awk -v name="$1" -v n="$2" -v floor="$3" -v goal="$4" \
        'BEGIN { printf "%-16s %10d %10d %7.2f %7s\n", name, n, floor, n / floor, goal }'
}
row() { # shape floor calls goal
    is_wanted "$1" || return 0
    line "$1" "$(per_call "$1" parse "$3")" "$(per_call "$2" floor "$3")" "$4"
}
report() { # shape goal
    is_wanted "$1" || return 0
    printf '%-16s %10d %10s %7s %7s\n' "$1" "$(per_call "$1" parse 100)" - - "$2"
}
streamed() { # shape goal
    is_wanted "$1" || return 0
    line "$1 streamed" "$(per_call "$1" stream 4)" "$(per_call "$1" parse 4)" "$2"
}

printf '%-16s %10s %10s %7s %7s\n' shape instructions floor ratio goal
row small small 100 1.35
row scalars scalars 100 1.35
row pair pair 100 1.5
row big big 4 1.05
row many many 4 1.2
row numbers numbers 4 1.2
row floats floats 4 1.2
row deep deep 4 1.2
row texts texts 4 1.2
row integers integers 4 1.2
row tagged tagged 100 '1.3*'
row tagged-many tagged-many 4 '1.3*'
row untagged untagged 100 1.6
row untagged-many untagged-many 4 1.6
row external-many external-many 4 1.2
row optional optional 100 '1.4*'
row conditional conditional 100 2
row coerced small 100 3.0
report faults 71000
report fault '30000*'
report nested-faults -
report nested-fault -
report unknown -
report unknowns -
if is_wanted unknowns; then
    one=$(per_call unknown parse 100)
    five=$(per_call unknowns parse 100)
    printf '%-16s %10d %10s %7s %7s\n' 'each unknown' "$(((five - one) / 4))" - - '20000*'
fi
streamed big 6
streamed many 6
