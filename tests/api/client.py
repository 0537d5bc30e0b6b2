"""Talking to an ASGI application without sockets, as the API tests do."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from dataclasses import dataclass, field

import msgspec

from soliton.api.context import ApiContext
from soliton.web.types import (
    AsgiApplication,
    Message,
    QuickApplication,
    SoonAnswer,
    WholeAnswer,
)

KEY = "the api key"


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


@dataclass
class Answer:
    status: int = 0
    headers: dict[bytes, bytes] = field(default_factory=dict)
    chunks: list[bytes] = field(default_factory=list)

    @property
    def body(self) -> bytes:
        return b"".join(self.chunks)

    @property
    def content_type(self) -> str:
        return self.headers[b"content-type"].decode()

    def json(self) -> object:
        return msgspec.json.decode(self.body)

    def plain(self) -> object:
        """The JSON as the reference would give it: without a hint."""
        found = self.json()
        if isinstance(found, dict):
            found.pop("hint", None)
        return found


async def call_at_once(
    app: QuickApplication,
    line: str,
    body: bytes = b"",
    headers: dict[str, str] | None = None,
    *,
    host: str = "127.0.0.1",
) -> Answer:
    """The same the short way, as the server asks for a request that came in one piece."""
    method, target = line.split(" ", 1)
    path, _, query = target.partition("?")
    lower = {k.lower().encode(): v.encode() for k, v in (headers or {}).items()}
    found = app.answer_at_once(method, path.encode(), query.encode(), lower, body, host)
    if isinstance(found, SoonAnswer):
        told: asyncio.Future[WholeAnswer] = asyncio.get_running_loop().create_future()
        found.begin(told.set_result)
        found = await told
    if isinstance(found, Coroutine):
        found = await found
    if isinstance(found, WholeAnswer):
        assert found.headers[1] == (b"content-length", b"%d" % len(found.body))
        return Answer(found.status, dict(found.headers), [found.body])
    return await call(found, line, b"", headers, host=host)


async def call(
    app: AsgiApplication,
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
    method, target = line.split(" ", 1)
    raw_path, _, query = target.partition("?")
    pieces = list(body) if isinstance(body, list) else [body]
    answer = Answer()

    async def receive() -> Message:
        if not pieces and leaves:
            return {"type": "http.disconnect"}
        if not pieces:
            await asyncio.Event().wait()
        piece = pieces.pop(0)
        return {"type": "http.request", "body": piece, "more_body": bool(pieces) or leaves}

    async def send(message: Message) -> None:
        if message["type"] == "http.response.start":
            assert answer.status == 0, "two starts"
            answer.status = message["status"]  # type: ignore[assignment]
            answer.headers = dict(message["headers"])  # type: ignore[call-overload]
        else:
            answer.chunks.append(message["body"])  # type: ignore[arg-type]

    scope: Message = {
        "type": "http",
        "method": method,
        "path": raw_path,
        "raw_path": raw_path.encode(),
        "query_string": query.encode(),
        "client": (host, 50_000),
        "headers": [(k.lower().encode(), v.encode()) for k, v in (headers or {}).items()],
    }
    await app(scope, receive, send)
    return answer
