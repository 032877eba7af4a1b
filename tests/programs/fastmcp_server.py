"""A FastMCP server whose types are hard for clients: `fastmcp_server.py stdio`, or `fastmcp_server.py http PORT`."""

import sys
from datetime import date
from typing import Annotated, Literal, Union

from fastmcp import Context, FastMCP
from pydantic import BaseModel, Field

server = FastMCP("shop")


class Card(BaseModel):
    kind: Literal["card"]
    number: Annotated[str, Field(pattern=r"^[0-9]{12,19}$")]


class Invoice(BaseModel):
    kind: Literal["invoice"]
    days: Annotated[int, Field(ge=1, le=90)] = 30


class Line(BaseModel):
    article: str
    count: Annotated[int, Field(ge=1)]
    parts: list["Line"] = []


@server.tool
def order(lines: Annotated[list[Line], Field(min_length=1)], payment: Annotated[Union[Card, Invoice], Field(discriminator="kind")], due: date) -> dict:
    """Orders articles."""

    def articles(some: list[Line]) -> int:
        return sum(line.count + articles(line.parts) for line in some)

    return {"articles": articles(lines), "payment": payment.kind, "due": due.isoformat()}


@server.tool
def corner(point: tuple[int, int], scale: float | None = None) -> list[float]:
    """Returns a point, scaled."""
    return [value * (scale or 1) for value in point]


@server.tool
async def count(to: Annotated[int, Field(ge=1, le=10)], context: Context) -> int:
    """Counts, with progress."""
    for number in range(1, to + 1):
        await context.report_progress(number, to)
    return to


if sys.argv[1] == "stdio":
    server.run(transport="stdio", show_banner=False)
else:
    server.run(transport="http", host="127.0.0.1", port=int(sys.argv[2]), show_banner=False)
