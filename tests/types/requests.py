"""Neutral requests of every kind, for `wire encode`: the kinds of content, tools, settings and turns that a request may have."""

import json

PNG = "iVBORw0KGgo="
PDF = "JVBERi0xLjc="


def user(*content):
    return {"role": "user", "content": list(content)}


def text(said):
    return {"type": "text", "text": said}


def call(id, args=None):
    return {"type": "tool_call", "id": id, "name": "look", "args": {"what": "tea"} if args is None else args}


def reply(*content, **fields):
    calls = any(part["type"] == "tool_call" for part in content)
    return {"role": "assistant", "content": list(content), "stop_reason": "tool_use" if calls else "stop", **fields}


def result(id, *content, failed=False):
    outcome = {"outcome": "failed", "is_error": True} if failed else {"outcome": "completed"}
    return {"role": "tool_result", "call_id": id, "tool": "look", "content": list(content), **outcome}


def data(kind, mime, bytes=PNG, **fields):
    return {"type": kind, "data": bytes, "mime_type": mime, **fields}


HI = user(text("Hi"))
IMAGE = data("image", "image/png")

SCHEMAS = {
    "plain": {"type": "object", "properties": {"what": {"type": "string"}}, "required": ["what"]},
    "empty": {"type": "object"},
    "optional": {"type": "object", "properties": {"what": {"type": "string"}, "most": {"type": "integer", "minimum": 1, "maximum": 9}}},
    "nested": {"type": "object", "properties": {"at": {"type": "object", "properties": {"x": {"type": "number"}}, "required": ["x"]},
               "tags": {"type": "array", "items": {"type": "string"}, "maxItems": 3}}, "required": ["at"]},
    "choice": {"type": "object", "properties": {"unit": {"enum": ["C", "F"]}, "value": {"anyOf": [{"type": "string"}, {"type": "null"}]}}},
    "recursive": {"type": "object", "properties": {"next": {"$ref": "#/$defs/node"}}, "$defs": {"node": {
        "type": "object", "properties": {"next": {"$ref": "#/$defs/node"}, "value": {"type": "integer"}}}}},
    "formats": {"type": "object", "properties": {"when": {"type": "string", "format": "date-time"}, "code": {"type": "string", "pattern": "^[A-Z]+$"}}},
    "constant": {"type": "object", "properties": {"kind": {"const": "circle"}, "flag": {"type": "boolean", "default": True}}},
}


def tool(schema, **fields):
    return {"name": "look", "description": "Looks for something.", "parameters": schema, **fields}


def requests():
    """All requests, by name."""
    cases = {}

    def add(name, messages=None, **fields):
        assert name not in cases, name
        cases[name] = {"messages": messages or [HI], "max_tokens": 40_000, **fields}

    add("text")
    add("texts", [user(text("one"), text("two"))])
    add("system", system="Be brief.")
    add("no limit", max_tokens=None)
    add("blank", [user(text("")), HI])

    # Media.
    for mime in ["image/png", "image/jpeg", "image/jpg", "image/gif", "image/webp", "image/heic", "image/tiff"]:
        add(f"image {mime}", [user(text("See:"), data("image", mime))])
    add("image alone", [user(IMAGE)])
    add("image url", [user({"type": "image", "url": "https://a.example/i.png"})])
    add("image file", [user({"type": "image", "file_id": "file_1"})])
    docx = "application/vnd.openxmlformats-officedocument.wordprocessingml.document"
    for mime in ["application/pdf", "text/plain", "text/csv", "application/json", docx, "application/zip"]:
        add(f"document {mime}", [user(data("document", mime, PDF), text("Sum up."))])
    add("document named", [user(data("document", "application/pdf", PDF, name="a.pdf"))])
    add("document url", [user({"type": "document", "url": "https://a.example/a.pdf"})])
    add("document file", [user({"type": "document", "file_id": "file_1"})])
    for mime in ["audio/wav", "audio/mpeg", "audio/ogg"]:
        add(f"audio {mime}", [user(data("audio", mime))])
    add("resource", [user({"type": "resource", "uri": "file:///a.md", "text": "# A"})])
    add("resource link", [user({"type": "resource_link", "uri": "https://a.example/a", "title": "A"})])

    # Tools, results and choices.
    for name, schema in SCHEMAS.items():
        for strict in [False, True]:
            add(f"tool {name}{' strict' if strict else ''}", tools=[tool(schema)], strict_tools=strict)
        add(f"output {name}", output={"name": "reply", "schema": schema})
    plain = [tool(SCHEMAS["plain"])]
    for choice in ["auto", "none", "required", {"tool": "look"}]:
        for parallel in [None, True, False]:
            fields = {} if parallel is None else {"parallel_tool_calls": parallel}
            add(f"choice {choice} {parallel}", tools=plain, tool_choice=choice, **fields)
    add("examples", tools=[tool(SCHEMAS["plain"], examples=[{"what": "tea"}])])
    add("examples described", tools=[tool(SCHEMAS["plain"], examples=[{"what": "tea"}])], examples_in_descriptions=True)
    add("output and tool", tools=plain, output={"name": "reply", "schema": SCHEMAS["plain"]})
    turn = [HI, reply(text("I look."), call("c1"), call("c2", {}))]
    for name, content in {
        "text": [text("3")], "texts": [text("3"), text("4")], "empty": [], "image": [IMAGE], "both": [text("3"), IMAGE],
        "document": [data("document", "application/pdf", PDF)], "resource": [{"type": "resource", "uri": "file:///a", "text": "x"}],
    }.items():
        for failed in [False, True]:
            results = [result("c1", *content, failed=failed), result("c2", text("5"))]
            add(f"result {name}{' failed' if failed else ''}", turn + results, tools=plain)
            add(f"result {name}{' failed' if failed else ''}, and then", turn + results + [user(text("And?"))], tools=plain)
    add("result not taken", turn + [result("c1", data("image", "image/tiff"), {"type": "resource", "uri": "file:///a", "data": PNG}), result("c2", text("5"))])
    add("result of two", [HI, reply(call("c1")), result("c1", text("3")), reply(call("c2")), result("c2", text("4"))], tools=plain)
    add("call broken", [HI, reply(call("c1", "{broken")), result("c1", text("no"), failed=True)], tools=plain)
    add("call id", [HI, reply(call("call:1.ü" * 20)), result("call:1.ü" * 20, text("3"))], tools=plain)
    add("call unanswered", [HI, reply(call("c1")), user(text("Hello?"))], tools=plain)

    # Windows of a conversation.
    add("assistant first", [reply(text("Hello!")), HI])
    add("call first", [reply(call("c1")), result("c1", text("3")), HI], tools=plain)
    add("result first", [result("c1", text("3")), HI], tools=plain)
    add("aborted", [HI, {**reply(text("half")), "stop_reason": "aborted"}, user(text("Again."))])
    add("instruction", [HI, reply(text("Yes.")), {"role": "custom", "kind": "system", "payload": None, "for_model": [text("Be kind.")]}, HI])
    add("note", [{"role": "custom", "kind": "note", "payload": None, "for_model": [text("A note.")]}, HI])

    # Settings.
    for level in ["none", "minimal", "low", "medium", "high", "xhigh", "max", 2000]:
        add(f"thinking {level}", thinking=level)
        add(f"thinking {level}, tools and sampling", thinking=level, tools=plain, temperature=0.5, tool_choice="required")
        add(f"thinking {level}, output", thinking=level, output={"name": "reply", "schema": SCHEMAS["plain"]})
    for choice in ["auto", "none", "required", {"tool": "look"}]:
        for level in ["none", "high"]:
            add(f"choice {choice}, thinking {level}", thinking=level, tools=plain, tool_choice=choice, parallel_tool_calls=False)
    add("sampling", temperature=0.5, top_p=0.9)
    add("temperature", temperature=0)
    for count in [1, 4, 5]:
        add(f"stop {count}", stop=[f"END{n}" for n in range(count)])
    add("user id", metadata={"user_id": "u1"})
    add("metadata", metadata={"team": "search"})
    add("cache key", cache={"key": "k1"})
    for mark in ["default", "5m", "1h"]:
        add(f"cache {mark}", system="Be brief.", tools=plain, cache={"system": mark, "tools": mark, "automatic": mark})
        add(f"cache part {mark}", [user({**text("The manual."), "cache": mark}, text("Go."))])
    for managed in ["web_search", "web_fetch", "code_execution", "image_generation"]:
        add(f"managed {managed}", managed_tools=[managed])
        add(f"managed {managed} and tool", managed_tools=[managed], tools=plain)

        add(f"managed {managed}, thinking", managed_tools=[managed], thinking="high")
        add(f"managed {managed}, output", managed_tools=[managed], output={"name": "reply", "schema": SCHEMAS["plain"]})
    add("managed both", managed_tools=["web_search", "code_execution"])
    add("two images", [user(text("Compare:"), IMAGE, text("and"), IMAGE)])

    # Turns of other providers, with what only these understand.
    states = {
        # What compatible servers add to calls is not in OpenAI's types.
        "openai-chat": ("openai", {"field": "reasoning_content"}, None),
        "openai-responses": ("openai", {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "x"}, {"id": "fc_1"}),
        "anthropic-messages": ("anthropic", {"signature": "x"}, {"caller": {"type": "direct"}}),
        "gemini-generate-content": ("gemini", {"thoughtSignature": "eA=="}, {"thoughtSignature": "eA=="}),
    }
    for api, (provider, thought, called) in states.items():
        state = lambda value: {"provider_data": {"provider": provider, "data": value}} if value else {}
        origin = {"provider": provider, "api": api, "model": "model-1"}
        thinking = {"type": "thinking", "text": "Hm.", **state(thought)}
        turn = reply(thinking, text("I look."), {**call("c1"), **state(called)}, **origin)
        add(f"turn of {api}", [HI, turn, result("c1", text("3"))], tools=plain, thinking="low")
        search = {"type": "provider_tool", "name": "web_search", "id": "w1", "input": {"query": "tea"}, "output": [], **state({"type": "x"})}
        opaque = {"type": "opaque", "provider": provider, "value": {"type": "hologram"}}
        add(f"odd turn of {api}", [HI, reply(search, opaque, text("Found."), **{**origin, "api": "other"}), HI])
        add(f"media of {api}", [HI, reply(text("Here."), IMAGE, **origin), HI])
        add(f"thought of {api}", [HI, reply(thinking, **origin), HI])
    return cases


if __name__ == "__main__":
    print(json.dumps(requests(), indent=2))
