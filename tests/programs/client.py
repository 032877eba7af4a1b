"""The clients of the Python SDK and of FastMCP against our server: `client.py mcp|fastmcp SERVER`, in both eras and over both transports."""

import asyncio
import subprocess
import sys

LIMIT = 60


class Checks:
    """Counts what holds, and prints what does not."""

    def __init__(self, title):
        self.title, self.passed, self.failed = title, 0, 0

    def that(self, name, holds, found=None):
        if holds:
            self.passed += 1
        else:
            self.failed += 1
            print(f"FAIL {self.title}: {name}: {found!r}")

    def ended(self):
        print(f"{self.title}: {self.passed} passed, {self.failed} failed")
        return self.failed == 0 and self.passed > 0


def text(result):
    return "".join(block.text for block in result.content if block.type == "text")


async def use(client, checks, call, version, tools, wraps):
    """Everything that a host does. `call` returns a result, also for errors."""
    checks.that("the version", client.session.protocol_version == version, client.session.protocol_version)
    listed = {tool.name: tool for tool in tools}
    checks.that("the list", sorted(listed) == ["add", "book_room", "draw", "find_hotels", "state_of", "work"], sorted(listed))
    schema = listed["book_room"].output_schema or {}
    checks.that("an output schema of an object", set(schema.get("properties", {})) == {"hotel", "nights", "guests"}, schema)
    schema = listed["find_hotels"].output_schema or {}
    checks.that("an output schema of a list", set(schema.get("properties", {})) == {"result"}, schema)

    added = await call("add", {"a": "40", "b": 2})
    checks.that("text for a number is coerced", (text(added), added.is_error) == ("42", False), added)

    refused = await call("book_room", {"hotel": "Lutetia", "nights": 31, "guests": []})
    said = text(refused)
    checks.that("a refused call is an error result", refused.is_error is True, refused)
    whole = said.startswith("Invalid arguments for `book_room`: 2 problems") and "/nights" in said and "/guests" in said
    checks.that("the whole report", whole, said)

    booked = await call("book_room", {"hotel": "Lutetia", "nights": "2", "guests": ["Ann", "Bo"]})
    expected = {"hotel": "Lutetia", "nights": 2, "guests": ["Ann", "Bo"]}
    checks.that("structured content of an object", booked.structured_content == expected, booked)
    found = await call("find_hotels", {})
    hotels = [{"name": "Lutetia", "stars": 5}, {"name": "Mistral", "stars": 2}]
    checks.that("structured content of a list", found.structured_content == {"result": hotels}, found)
    if wraps:
        names = [getattr(hotel, "name", None) for hotel in found.data or []]
        checks.that("data of a list", names == ["Lutetia", "Mistral"], found.data)
        checks.that("data of an object", getattr(booked.data, "nights", None) == 2, booked.data)

    picture = (await call("draw", {})).content[0]
    checks.that("a picture", (picture.type, picture.mime_type) == ("image", "image/png"), picture)

    steps = []

    async def progress(done, total, message):
        steps.append((done, total, message))

    worked = await call("work", {"label": "whole", "steps": 4}, progress)
    checks.that("a call with progress", text(worked) == "4 steps", worked)
    checks.that("every step of the progress", steps == [(n, 4, f"step {n}") for n in range(1, 5)], steps)

    job = asyncio.create_task(call("work", {"label": "cancelled", "steps": 200}))
    state = "unknown"
    while not state.startswith("step") or state == "step 1":
        await asyncio.sleep(0.05)
        state = text(await call("state_of", {"label": "cancelled"}))
    job.cancel()
    await asyncio.wait([job])
    for _ in range(60):
        state = text(await call("state_of", {"label": "cancelled"}))
        if not state.startswith("step"):
            break
        await asyncio.sleep(0.05)
    checks.that("the tool hears that its call was cancelled", state.startswith("cancelled at step"), state)

    again = await call("add", {"a": 1, "b": 2})
    checks.that("the connection is still good", text(again) == "3", again)


def sdk(place, mode):
    from mcp import Client, StdioServerParameters

    target = place if isinstance(place, str) else StdioServerParameters(command=place[0], args=place[1:])
    client = Client(target, mode=mode)

    def call(tool, arguments, progress=None):
        return client.call_tool(tool, arguments, progress_callback=progress)

    async def tools():
        return (await client.list_tools()).tools

    return client, call, tools, False


def fastmcp(place, mode):
    from fastmcp import Client
    from fastmcp.client.transports import StdioTransport

    client = Client(place if isinstance(place, str) else StdioTransport(place[0], place[1:], keep_alive=False), mode=mode)

    def call(tool, arguments, progress=None):
        return client.call_tool(tool, arguments, progress_handler=progress, raise_on_error=False)

    return client, call, client.list_tools, True


async def run(title, kind, place, mode):
    checks = Checks(f"{title}, {mode}")
    try:
        async with asyncio.timeout(LIMIT):
            client, call, tools, wraps = kind(place, mode)
            async with client:
                version = "2025-11-25" if mode == "legacy" else "2026-07-28"
                await use(client, checks, call, version, await tools(), wraps)
    except BaseException as error:  # A client may end with a group of errors.
        checks.that("it runs to its end", False, error)
    return checks.ended()


async def main(name, program):
    kind = {"mcp": sdk, "fastmcp": fastmcp}[name]
    server = subprocess.Popen([program, "http"], stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    try:
        url = server.stderr.readline().split()[-1]
        held = []
        for mode in ["auto", "legacy"]:
            held.append(await run(f"{name} over HTTP", kind, url, mode))
            held.append(await run(f"{name} over stdio", kind, [program, "stdio"], mode))
        return all(held)
    finally:
        server.kill()
        server.wait()


sys.exit(0 if asyncio.run(main(sys.argv[1], sys.argv[2])) else 1)
