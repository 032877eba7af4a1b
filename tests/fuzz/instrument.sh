#!/usr/bin/env bash
# Between cargo and rustc: coverage counters for what is fuzzed, and for nothing else. (The oracle would take minutes to
# build with them, and its branches would lead the fuzzer away.)
for argument in "$@"; do
  case $previous in
    --crate-name)
      case $argument in
        agent | agent_fuzz | engine | foreign | stream) counted=1 ;;
      esac
      ;;
  esac
  previous=$argument
done
if [ -n "$counted" ]; then
  set -- "$@" --cfg fuzzing -Cpasses=sancov-module -Cllvm-args=-sanitizer-coverage-level=4 \
    -Cllvm-args=-sanitizer-coverage-inline-8bit-counters -Cllvm-args=-sanitizer-coverage-pc-table \
    -Cllvm-args=-sanitizer-coverage-trace-compares
fi
exec "$@"
