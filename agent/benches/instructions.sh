#!/bin/sh
# Instructions per call under callgrind, and the ratio to `serde_json::from_str` on the small shape (or its own).
# `… streamed`: 100 KB in deltas of four bytes, against one parse of the same text.
# Usage: agent/benches/instructions.sh          needs valgrind
set -eu
command -v valgrind >/dev/null || { echo "valgrind is not installed" >&2; exit 1; }
cd "$(dirname "$0")/../.."
bench=$(cargo bench -p agent --bench arguments --no-run --message-format=json 2>/dev/null |
    sed -n 's/.*"name":"arguments".*"executable":"\([^"]*\)".*/\1/p' | tail -1)
[ -x "$bench" ] || { echo "the bench did not build"; exit 1; }

count() { # shape what calls
    valgrind --tool=callgrind --callgrind-out-file=/dev/null "$bench" "$1" "$2" "$3" 2>&1 |
        sed -n 's/.*Collected : \([0-9]*\).*/\1/p'
}
per_call() { # The difference of two runs: start-up does not count.
    few=$(count "$1" "$2" 10)
    many=$(count "$1" "$2" 110)
    echo $(((many - few) / 100))
}
ratio() { awk "BEGIN { printf \"%.2f\", $1 / $2 }"; }

small=$(per_call small floor)
big=$(per_call big floor)
printf '%-13s %10s %8s %6s\n' shape instructions ratio goal
n=$(per_call small parse);   printf '%-13s %10s %8s %6s\n' small "$n" "$(ratio "$n" "$small")" 1.6
parsed=$(per_call big parse)
printf '%-13s %10s %8s %6s\n' big "$parsed" "$(ratio "$parsed" "$big")" 1.05
n=$(per_call coerced parse); printf '%-13s %10s %8s %6s\n' coerced "$n" "$(ratio "$n" "$small")" 1.8
n=$(per_call faults parse);  printf '%-13s %10s %8s %6s\n' faults "$n" "$(ratio "$n" "$small")" 20
n=$(per_call big stream);    printf '%-13s %10s %8s %6s\n' 'big streamed' "$n" "$(ratio "$n" "$parsed")" 15
parsed=$(per_call many parse)
n=$(per_call many stream);   printf '%-13s %10s %8s %6s\n' 'many streamed' "$n" "$(ratio "$n" "$parsed")" 15
echo "floor: small $small, big $big"
