"""Holds the table of attributes against a published package of the OpenTelemetry conventions.

Usage: conventions.py TABLE, with the package `opentelemetry-semantic-conventions`. The conventions for generative AI have a repository of
their own since; the package has their last state before, by name and well-known value. What is newer is named here.
"""

import json
import pathlib
import sys

from opentelemetry.semconv._incubating.attributes import gen_ai_attributes
from opentelemetry.semconv.attributes import error_attributes, server_attributes

# Attributes and values that are newer than the package.
NEWER = {
    "gen_ai.conversation.compacted",
    "gen_ai.request.reasoning.level",
    "gen_ai.usage.cache_write.input_tokens",
} | {
    f"gen_ai.usage.{modality}.{count}_tokens"
    for modality in ("text", "image", "audio")
    for count in ("input", "output", "cache_read.input")
}
NEWER_VALUES = {"gen_ai.provider.name": {"moonshot_ai"}}


def published():
    modules = [gen_ai_attributes, error_attributes, server_attributes]
    return {value for module in modules for name, value in vars(module).items() if name.isupper() and isinstance(value, str)}


def main(path):
    table = json.loads(pathlib.Path(path).read_text())
    known, failures = published(), []
    for name in table["attributes"]:
        if not name.startswith("otel.") and (name in known) == (name in NEWER):
            failures.append(f"{name}: {'is in the package by now' if name in known else 'is not in the package'}")
    for name in table["own"]:
        if name in known or not name.startswith("agent."):
            failures.append(f"{name}: is not ours")
    for name, kind in {
        "gen_ai.operation.name": gen_ai_attributes.GenAiOperationNameValues,
        "gen_ai.output.type": gen_ai_attributes.GenAiOutputTypeValues,
        "gen_ai.provider.name": gen_ai_attributes.GenAiProviderNameValues,
    }.items():
        theirs, ours = {value.value for value in kind}, set(table["well_known"][name])
        failures.extend(f"{name}: the table has no {value}" for value in theirs - ours)
        newer = NEWER_VALUES.get(name)
        failures.extend(f"{name}: {value} is in neither" for value in ours - theirs if newer is not None and value not in newer)
    for failure in failures:
        print(failure)
    print(f"conventions: {len(table['attributes'])} attributes, {len(failures)} failures")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
