"""Asking an application without sockets, as the API tests do."""

from __future__ import annotations

import asyncio
from typing import Any

from soliton.api.context import ApiContext
from soliton.web.answers import Awaited, Deferred, Service, Stream, Whole
from tests.web.memory import Answer as Answer
from tests.web.memory import Wire, head

KEY = "the api key"
_SENT = ("GET", "POST", "PUT", "DELETE", "OPTIONS", "PATCH")


def make_context(**changes: object) -> ApiContext:
    values: dict[str, object] = {
        "title": "Test Node",
        "version": "1.0",
        "check_api_key": lambda key: key == KEY,
        "clock": lambda: 1_700_000_000_000,
        "network_clock": lambda: 1_700_000_000_001,
        "random_bytes": lambda count: bytes(range(256))[:count].ljust(count, b"\0"),
    }
    return ApiContext(**(values | changes))  # type: ignore[arg-type]


async def call_at_once(
    app: Service[Any],
    line: str,
    body: bytes = b"",
    headers: dict[str, str] | None = None,
    *,
    host: str = "127.0.0.1",
) -> Answer:
    """Ask the application itself, as the server does when the whole request is there."""
    method, target = line.split(" ", 1)
    path, _, query = target.partition("?")
    lower = {k.lower().encode(): v.encode() for k, v in (headers or {}).items()}
    raw_path = path.encode().decode("latin-1")
    found = app.respond(app.request_class(method, raw_path, query.encode(), lower, body, host))
    if isinstance(found, Deferred):
        told: asyncio.Future[object] = asyncio.get_running_loop().create_future()
        found.ask(told.set_result)
        found = found.then(await told)
    if isinstance(found, Awaited):
        found = await found.work
    if isinstance(found, Stream):
        return Answer(found.status, dict(found.headers), [chunk async for chunk in found.chunks])
    assert isinstance(found, Whole)
    own = {b"content-type": found.content_type, b"content-length": b"%d" % len(found.body)}
    return Answer(found.status, own | dict(found.headers), [found.body])


async def call(
    app: Service[Any],
    line: str,
    body: bytes | list[bytes] = b"",
    headers: dict[str, str] | None = None,
    *,
    leaves: bool = False,
    host: str = "127.0.0.1",
) -> Answer:
    """Send ``METHOD /path?query``; a list is a body that comes in pieces.

    A client that ``leaves`` is gone after its last piece, before the end of its body; others stay
    and wait.
    """
    pieces = list(body) if isinstance(body, list) else [body]
    if line.split(" ")[0] not in _SENT or not line.isascii():
        return await call_at_once(app, line, b"".join(pieces), headers, host=host)
    length = sum(map(len, pieces)) + (leaves and not line.startswith("GET"))
    given = {**(headers or {})}
    if length and not {"content-length", "Content-Length"} & given.keys():
        given["Content-Length"] = str(length)
    wire = Wire(app, host=host)
    wire.send(head(line, given) + (b"" if isinstance(body, list) else body))
    for piece in pieces if isinstance(body, list) else ():
        await asyncio.sleep(0)
        wire.send(piece)
    try:
        if leaves:
            await asyncio.sleep(0.01)
            wire.leave()
        return await wire.answer()
    finally:
        wire.leave()
