#!/bin/sh
# The same arguments through others: instructions of each call under callgrind, and the ratio to
# `serde_json::from_str::<T>`, all in one run. `coerced` and `faults` only where something comes of them.
# Usage: agent/benches/others/run.sh          needs valgrind
set -eu
command -v valgrind >/dev/null || { echo "valgrind is not installed" >&2; exit 1; }
cd "$(dirname "$0")"
export CARGO_TARGET_DIR="${CARGO_TARGET_DIR:-$PWD/../../../target}/others"
cargo build -q --release
bench="$CARGO_TARGET_DIR/release/others"

count() { # shape who calls
    valgrind --tool=callgrind --callgrind-out-file=/dev/null "$bench" "$1" "$2" "$3" 2>&1 |
        sed -n 's/.*Collected : \([0-9]*\).*/\1/p'
}
per_call() { # The difference of two runs: start-up does not count.
    few=$(count "$1" "$2" 10)
    many=$(count "$1" "$2" 60)
    echo $(((many - few) / 50))
}

printf '%-10s %-12s %13s %7s\n' shape who instructions ratio
for shape in small big many; do
    floor=$(per_call $shape serde_json)
    for who in serde_json agent from_value jsonschema sonic-rs; do
        n=$(per_call $shape $who)
        printf '%-10s %-12s %13s %7s\n' $shape $who "$n" "$(awk "BEGIN { printf \"%.2f\", $n / $floor }")"
    done
done
floor=$(per_call small serde_json)
for of in 'coerced agent' 'faults agent' 'faults jsonschema'; do
    n=$(per_call $of)
    printf '%-10s %-12s %13s %7s\n' $of "$n" "$(awk "BEGIN { printf \"%.2f\", $n / $floor }")"
done
