#!/usr/bin/env bash
# tests/fuzz/run.sh TARGET SECONDS [libFuzzer option…]     TARGET: engine, foreign, stream, ui
# Needs a C++ compiler. Coverage counters come from rustc's own LLVM passes, so the stable toolchain will do.
# What was learnt stays in corpus/TARGET (not committed); a crash is written to artifacts/TARGET and ends with status 1.
set -euo pipefail
target=${1:?"usage: run.sh TARGET SECONDS [libFuzzer option…]"}
seconds=${2:?"usage: run.sh TARGET SECONDS [libFuzzer option…]"}
shift 2
cd "$(dirname "$0")"
[ -f "src/bin/$target.rs" ] || { echo "no target \`$target\`: $(ls src/bin)" >&2; exit 2; }

export CARGO_TARGET_DIR="${CARGO_TARGET_DIR:-$PWD/../../target}/fuzz"
export RUSTC_WRAPPER="$PWD/instrument.sh"
# Versions that the library is tested with; what only the targets need is added.
[ -f Cargo.lock ] || cp ../../Cargo.lock .
cargo build -q --release --bin "$target"

mkdir -p "corpus/$target" "artifacts/$target"
# The dictionary makes JSON and its keywords likely.
exec "$CARGO_TARGET_DIR/release/$target" "corpus/$target" "seeds/$target" \
  -dict=json.dict -artifact_prefix="artifacts/$target/" \
  -max_total_time="$seconds" -timeout=10 -rss_limit_mb=2048 -max_len=4096 -print_final_stats=1 -verbosity=1 "$@"
