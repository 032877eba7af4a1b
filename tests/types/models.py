"""The models that requests are encoded for, and the encoder."""

import json
import subprocess

MODELS = {
    "openai-chat": ["gpt-4.1", "gpt-5", "gpt-4o-audio-preview"],
    "openai-responses": ["gpt-4.1", "gpt-5.1"],
    "anthropic": ["claude-sonnet-4-5", "claude-opus-4-6", "claude-opus-5-5"],
    "gemini": ["gemini-2.5-flash", "gemini-3-pro-preview"],
}

# Why a request may be refused; anything else is a failure.
REASONS = [
    "does not take",
    "takes at most",
    "is known to take no schema",
    "has no such tool",
    "its search models can",
    "a thinking budget of",
]


def encoded(wire, api, model, files):
    """The bodies and the refusals, by file."""
    run = subprocess.run([wire, "encode", "--api", api, "--model", model, *files], capture_output=True, text=True)
    bodies = {line["file"]: line["body"] for line in map(json.loads, run.stdout.splitlines())}
    refusals = {}
    for line in run.stderr.splitlines():
        file, _, message = line.partition(": ")
        if file in files:
            refusals[file] = message
    assert set(bodies) | set(refusals) == set(files), run.stderr
    return bodies, refusals
