"""Validates what `wire encode` writes against the type definitions of the official SDKs.

Usage: validate.py WIRE, with the packages `anthropic`, `openai` and `google-genai`. Every request of `requests.py` is encoded for every
model. A body must be valid, or the request is refused before it is sent, for one of the reasons that the library documents.
"""

import collections
import importlib
import json
import pathlib
import pkgutil
import sys
import tempfile
import typing

import pydantic
from typing_extensions import is_typeddict

from models import MODELS, REASONS, encoded
from requests import requests

def closed(package):
    """Makes the dictionaries of a package refuse unknown keys, and its lists be read at once."""
    for module in pkgutil.walk_packages(package.__path__, package.__name__ + "."):
        try:
            module = importlib.import_module(module.name)
        except ImportError:
            continue
        for name, value in list(vars(module).items()):
            if is_typeddict(value):
                value.__pydantic_config__ = pydantic.ConfigDict(extra="forbid", arbitrary_types_allowed=True)
            if name == "SequenceNotStr":
                setattr(module, name, typing.List)


def validators():
    # Iterables are validated only when they are read, also those in aliases of types.
    typing.Iterable = typing.List
    import anthropic.types
    import openai.types
    from google.genai import types as google

    closed(anthropic.types)
    closed(openai.types)
    from anthropic.types.message_create_params import MessageCreateParamsStreaming
    from openai.types.chat.completion_create_params import CompletionCreateParamsStreaming
    from openai.types.responses.response_create_params import ResponseCreateParamsStreaming

    def of(kind):
        adapter = pydantic.TypeAdapter(kind)
        return lambda body: adapter.validate_python(body, strict=False)

    parts = {
        "contents": pydantic.TypeAdapter(list[google.Content]),
        "systemInstruction": pydantic.TypeAdapter(google.Content),
        "tools": pydantic.TypeAdapter(list[google.Tool]),
        "toolConfig": pydantic.TypeAdapter(google.ToolConfig),
        "generationConfig": pydantic.TypeAdapter(google.GenerationConfig),
    }

    def gemini(body):
        for key, value in body.items():
            parts[key].validate_python(value)

    messages = of(MessageCreateParamsStreaming)

    def anthropic_body(body):
        # Version 2026-10-21 of the API has no sampling settings. The version that is sent by default has them for older models.
        sampling = {"temperature", "top_p"} if any(old in body["model"] for old in ("-4-5", "-4-6")) else set()
        messages({key: value for key, value in body.items() if key not in sampling})

    return {
        "openai-chat": of(CompletionCreateParamsStreaming),
        "openai-responses": of(ResponseCreateParamsStreaming),
        "anthropic": anthropic_body,
        "gemini": gemini,
    }


def main(wire):
    check, counts, failures = validators(), collections.Counter(), []
    with tempfile.TemporaryDirectory() as folder:
        names = {}
        for number, (name, request) in enumerate(requests().items()):
            file = pathlib.Path(folder, f"{number}.json")
            file.write_text(json.dumps(request))
            names[str(file)] = name
        for api, models in MODELS.items():
            for model in models:
                bodies, refusals = encoded(wire, api, model, list(names))
                for file, message in refusals.items():
                    counts["refused"] += 1
                    if not any(reason in message for reason in REASONS):
                        failures.append(f"{api} {model}, {names[file]}: {message}")
                for file, body in bodies.items():
                    counts["valid"] += 1
                    try:
                        check[api](body)
                    except pydantic.ValidationError as error:
                        counts["valid"] -= 1
                        shown = [f"{'.'.join(map(str, e['loc']))}: {e['msg']}" for e in error.errors()[:4]]
                        failures.append(f"{api} {model}, {names[file]}: {'; '.join(shown)}\n    {json.dumps(body)[:600]}")
    # The types refuse what is wrong: a check that accepts anything is none.
    for api, body in {
        "openai-chat": {"model": "m", "stream": True, "messages": [{"role": "user", "content": [{"type": "sound"}]}]},
        "openai-responses": {"model": "m", "stream": True, "input": [{"type": "function_call_output", "call": "c"}]},
        "anthropic": {"model": "m", "max_tokens": 1, "stream": True, "messages": [{"role": "user", "content": [{"type": "text", "txt": "a"}]}]},
        "gemini": {"contents": [{"role": "user", "parts": [{"txt": "a"}]}]},
    }.items():
        try:
            check[api](body)
            failures.append(f"{api}: the types accept {body}")
        except pydantic.ValidationError:
            pass
    for failure in failures:
        print(failure)
    models = sum(map(len, MODELS.values()))
    print(f"Python, {len(requests())} kinds of requests for {models} models: {dict(counts)}, {len(failures)} failures")
    return 1 if failures or not counts["valid"] else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
