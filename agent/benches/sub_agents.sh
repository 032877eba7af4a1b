#!/bin/sh
# The memory of each sub-agent that one run starts in one reply, by the growth of the process: while each waits for its model, and while all
# are suspended for a decision. Flat means that 1,000 take no more each than 100.
# Usage: agent/benches/sub_agents.sh
set -eu
cd "$(dirname "$0")/../.."
bench=${1:-$(cargo bench -p agent --features runtime --bench sub_agents --no-run --message-format=json 2>/dev/null |
    sed -n 's/.*"name":"sub_agents".*"executable":"\([^"]*\)".*/\1/p' | tail -1)}
[ -x "$bench" ] || { echo "the bench did not build"; exit 1; }

for how in running waiting; do
    few=$("$bench" "$how" 100 | tr -dc '0-9.')
    many=$("$bench" "$how" 1000 | tr -dc '0-9.')
    awk "BEGIN { printf \"%-8s %8.1f KB each of 100, %8.1f KB each of 1000, ratio %.2f\n\", \"$how\", $few / 1000, $many / 1000, $many / $few }"
done
