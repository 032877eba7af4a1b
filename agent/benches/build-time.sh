#!/usr/bin/env bash
# How long a build of many tools takes, each with two structs, against the same structs with the plain derives of serde
# and schemars, parsed by serde_json. One after the other, dependencies built before; the median of ROUNDS (3) of each.
# Wall time, and the processors' time (user and system) beside it: the ratio of that is the one that other programs on the
# machine do not spoil.
# Usage: [ROUNDS=1] agent/benches/build-time.sh [TOOLS [check|debug|release|lto]]     40 and release; writes to a scratch folder
set -eu
# A build of the whole crate: nothing is kept from the round before.
export CARGO_INCREMENTAL=0
root=$(cd "$(dirname "$0")/../.." && pwd)
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
tools=${1:-40}
mode=${2:-release}
case $mode in
    check) command=check flags='' lto=off ;;
    debug) command=build flags='' lto=off ;;
    release) command=build flags=--release lto=off ;;
    lto) command=build flags=--release lto=fat ;;
    *) echo "build-time: no mode $mode" >&2; exit 2 ;;
esac

crate() { # name dependencies
    mkdir -p "$scratch/$1/src"
    cat >"$scratch/$1/Cargo.toml" <<TOML
[package]
name = "$1"
version = "0.0.0"
edition = "2024"
[workspace]
[dependencies]
$2
[profile.release]
lto = "$lto"
TOML
}

field_types='String u32 Option<i64> Vec<String> bool f64'
structs() { # derives
    for n in $(seq 1 "$tools"); do
        printf '/// Part %s.\n%s\npub struct Inner%s {\n' "$n" "$1" "$n"
        i=0
        for type in $field_types; do
            i=$((i + 1))
            printf '    /// Field %s.\n    pub f%s: %s,\n' "$i" "$i" "$type"
        done
        printf '}\n/// Arguments %s.\n%s\npub struct Args%s {\n    /// The part.\n    pub inner: Inner%s,\n    pub more: Vec<Inner%s>,\n    pub name: String,\n    pub count: Option<u32>,\n}\n' \
            "$n" "$1" "$n" "$n" "$n"
    done
}

crate plain 'serde = { version = "1", features = ["derive"] }
serde_json = "1"
schemars = "1"'
{
    structs '#[derive(serde::Deserialize, schemars::JsonSchema)]'
    echo 'fn main() { let text = std::env::args().nth(1).unwrap_or_default(); let mut sum = 0;'
    for n in $(seq 1 "$tools"); do
        printf '    if let Ok(a) = serde_json::from_str::<Args%s>(&text) { sum += a.name.len() + a.more.len() + a.inner.f1.len(); }\n' "$n"
        printf '    sum += schemars::schema_for!(Args%s).to_value().to_string().len();\n' "$n"
    done
    echo '    println!("{sum}"); }'
} >"$scratch/plain/src/main.rs"

crate tools "agent = { path = \"$root/agent\" }
tokio = { version = \"1\", features = [\"rt\"] }"
{
    echo 'use agent::{Registry, ToolArgs, ToolContext, message::ToolCall, tool, tools};'
    structs '#[derive(ToolArgs)]'
    for n in $(seq 1 "$tools"); do
        printf '/// Tool %s.\n#[tool]\nasync fn tool%s(args: Args%s) -> String { format!("{}{}{}", args.name, args.more.len(), args.inner.f1) }\n' "$n" "$n" "$n"
    done
    echo 'fn main() { let text = std::env::args().nth(1).unwrap_or_default();'
    printf '    let registry = Registry::new(tools![tool1'
    for n in $(seq 2 "$tools"); do printf ', tool%s' "$n"; done
    echo ']).expect("tools");'
    echo '    let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");'
    echo '    let result = runtime.block_on(registry.call(&ToolCall::new("1", "tool7", text), &ToolContext::default()));'
    echo '    println!("{result:?}"); }'
} >"$scratch/tools/src/main.rs"

build() { # name; prints "wall cpu" in milliseconds
    touch "$scratch/$1/src/main.rs"
    local TIMEFORMAT='%R %U %S'
    # shellcheck disable=SC2086
    { time cargo $command $flags -q --manifest-path "$scratch/$1/Cargo.toml" --target-dir "$scratch/target-$1" 2>"$scratch/errors" || { cat "$scratch/errors" >&3; exit 1; }; } \
        2>&1 | awk 'END { printf "%d %d\n", $1 * 1000, ($2 + $3) * 1000 }'
}
rounds=${ROUNDS:-3}
for name in plain tools; do build "$name" 3>&2 >/dev/null; done
for _ in $(seq 1 "$rounds"); do
    for name in plain tools; do build "$name" 3>&2 >>"$scratch/$name.ms"; done
done
median() { cut -d ' ' -f "$2" "$scratch/$1.ms" | sort -n | sed -n "$(((rounds + 1) / 2))p"; }
print() { # what column
    awk "BEGIN { printf \"$tools tools, $mode, $1: plain %.1f s, tools %.1f s, ratio %.2f (goal 1.5)\n\", $(median plain "$2") / 1000, $(median tools "$2") / 1000, $(median tools "$2") / $(median plain "$2") }"
}
print wall 1
print processors 2
