"""Type-checks what `wire encode` writes against the TypeScript definitions of the official SDKs.

Usage: typescript.py WIRE NODE_MODULES, with the packages `openai`, `@anthropic-ai/sdk`, `@google/genai` and `typescript`. Every request of
`requests.py` is encoded for every model, and written as a literal that must satisfy the type of a request's body.
"""

import collections
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile

from models import MODELS, REASONS, encoded
from requests import requests

HEAD = {
    "openai-chat": """import type { ChatCompletionCreateParamsStreaming } from "openai/resources/chat/completions";
type Body = ChatCompletionCreateParamsStreaming;
""",
    "openai-responses": """import type { ResponseCreateParamsStreaming } from "openai/resources/responses/responses";
type Body = ResponseCreateParamsStreaming;
""",
    # Version 2026-10-21 of the API has no sampling settings. The version that is sent by default has them for older models.
    "anthropic": """import type { MessageCreateParamsStreaming } from "@anthropic-ai/sdk/resources/messages";
type Body = MessageCreateParamsStreaming;
""",
    # The body has no type of its own; its parts have. Their enums are words on the wire.
    "gemini": """import type { Content, GenerationConfig, Tool, ToolConfig } from "@google/genai";
type Wire<T> = T extends string ? `${T}` : T extends (infer I)[] ? Wire<I>[] : T extends object ? { [K in keyof T]: Wire<T[K]> } : T;
type Body = Wire<{
  contents: Content[]; systemInstruction?: Content; tools?: Tool[]; toolConfig?: ToolConfig; generationConfig?: GenerationConfig;
}>;
""",
}

HI = {"role": "user", "content": "Hi"}
CHAT = {"model": "m", "stream": True, "messages": [HI]}
RESPONSES = {"model": "m", "stream": True, "input": [HI]}
MESSAGES = {"model": "m", "max_tokens": 1, "stream": True, "messages": [HI]}
CONTENTS = {"contents": [{"role": "user", "parts": [{"text": "Hi"}]}]}

# The types refuse what is wrong: a check that accepts anything is none.
WRONG = {
    "openai-chat": [
        {**CHAT, "messages": [{"role": "user", "content": [{"type": "sound"}]}]},
        {**CHAT, "max_token": 5},
        {**CHAT, "reasoning_effort": "extreme"},
        {**CHAT, "tools": [{"type": "function", "function": {"parameters": {}}}]},
    ],
    "openai-responses": [
        {**RESPONSES, "input": [{"type": "function_call_output", "call": "c"}]},
        {**RESPONSES, "max_tokens": 5},
        {**RESPONSES, "tools": [{"type": "function", "function": {"name": "look"}}]},
    ],
    "anthropic": [
        {**MESSAGES, "messages": [{"role": "user", "content": [{"type": "text", "txt": "a"}]}]},
        {**MESSAGES, "max_token": 5},
        {**MESSAGES, "tool_choice": {"type": "required"}},
        {**MESSAGES, "tools": [{"name": "look"}]},
    ],
    "gemini": [
        {"contents": [{"role": "user", "parts": [{"txt": "a"}]}]},
        {**CONTENTS, "generationConfig": {"maxTokens": 5}},
        {**CONTENTS, "toolConfig": {"functionCallingConfig": {"mode": "MAYBE"}}},
    ],
}

OPTIONS = ["--noEmit", "--strict", "--skipLibCheck", "--target", "es2023", "--module", "nodenext", "--types", "node", "--pretty", "false"]


def main(wire, modules):
    counts, failures, sources, wrong_seen = collections.Counter(), [], {}, set()
    with tempfile.TemporaryDirectory() as folder:
        os.symlink(os.path.abspath(modules), pathlib.Path(folder, "node_modules"))
        pathlib.Path(folder, "package.json").write_text('{"type": "module"}')
        names = {}
        for number, (name, request) in enumerate(requests().items()):
            file = pathlib.Path(folder, f"{number}.json")
            file.write_text(json.dumps(request))
            names[str(file)] = name
        for api, models in MODELS.items():
            # Each body is a line; equal bodies are one.
            head = HEAD[api]
            lines = [f"({json.dumps(body)}) satisfies Body;" for body in WRONG[api]]
            of_line = [None for _ in lines]
            seen = {}
            for model in models:
                bodies, refusals = encoded(wire, api, model, list(names))
                for file, message in refusals.items():
                    counts["refused"] += 1
                    if not any(reason in message for reason in REASONS):
                        failures.append(f"{api} {model}, {names[file]}: {message}")
                for file, body in bodies.items():
                    counts["valid"] += 1
                    if api == "anthropic" and any(old in model for old in ("-4-5", "-4-6")):
                        body = {key: value for key, value in body.items() if key not in {"temperature", "top_p"}}
                    line = f"({json.dumps(body)}) satisfies Body;"
                    at = seen.setdefault(line, len(lines))
                    if at == len(lines):
                        lines.append(line)
                        of_line.append([])
                    of_line[at].append(f"{model}, {names[file]}")
            source = f"{api}.ts"
            pathlib.Path(folder, source).write_text(head + "\n".join(lines) + "\nexport {};\n")
            sources[source] = (api, head.count("\n") + 1, lines, of_line)
        tsc = pathlib.Path(modules, ".bin", "tsc").resolve()
        run = subprocess.run(["node", str(tsc), *OPTIONS, *sources], cwd=folder, capture_output=True, text=True)
        reported = set()
        for message in run.stdout.splitlines():
            found = re.match(r"([\w-]+\.ts)\((\d+),\d+\): error (.*)", message)
            if not found:
                # What an error says in detail is indented below it.
                if message and not message.startswith(" "):
                    failures.append(message)
                continue
            source, line, text = found[1], int(found[2]), found[3]
            api, first, lines, of_line = sources[source]
            if not first <= line < first + len(lines):
                failures.append(message)
                continue
            who = of_line[line - first]
            if who is None:
                wrong_seen.add((api, line - first))
            elif (source, line) not in reported:
                reported.add((source, line))
                counts["valid"] -= len(who)
                counts["wrong"] += len(who)
                failures.append(f"{api} {who[0]} and {len(who) - 1} more: {text[:400]}\n    {lines[line - first][:400]}")
    wrong = [(api, at, body) for api in MODELS for at, body in enumerate(WRONG[api])]
    failures.extend(f"{api}: the types accept {body}" for api, at, body in wrong if (api, at) not in wrong_seen)
    failures.extend([run.stderr] if run.stderr else [])
    for failure in failures:
        print(failure)
    models = sum(map(len, MODELS.values()))
    print(f"TypeScript, {len(requests())} kinds of requests for {models} models: {dict(counts)}, {len(failures)} failures")
    return 1 if failures or not counts["valid"] else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
