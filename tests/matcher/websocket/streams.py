"""A served fake matcher, and clients of its streams."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable
from typing import Any

import msgspec
from websockets.asyncio.client import ClientConnection, connect

from soliton.matcher.websocket.hub import Hub
from soliton.web.server import serve
from tests.matcher.fakes import Api, FakeCore


async def eventually(condition: Callable[[], bool]) -> None:
    """Wait until a condition holds."""
    for _ in range(5_000):
        if condition():
            return
        await asyncio.sleep(0.001)
    raise AssertionError("it did not come to that")


class Stream:
    """One connection, whose messages are read as objects."""

    def __init__(self, connection: ClientConnection) -> None:
        self.connection = connection

    async def send(self, **message: Any) -> None:
        await self.connection.send(msgspec.json.encode(message).decode())

    async def receive(self) -> dict[str, Any]:
        message: dict[str, Any] = msgspec.json.decode(await self.connection.recv())
        return message

    async def next(self, kind: str) -> dict[str, Any]:
        """The next message, which has to be of a kind."""
        message = await self.receive()
        assert message["T"] == kind, message
        return message

    async def silent(self) -> None:
        """Nothing was sent before the answer to a message that is none."""
        await self.connection.send("{}")
        await self.next("e")


class Place:
    """A matcher that is served on a free port."""

    def __init__(self, api: Api, port: int) -> None:
        self.api = api
        self.core = api.core
        self.port = port

    @property
    def hub(self) -> Hub:
        hub = self.api.app._hub
        assert isinstance(hub, Hub)
        return hub

    @contextlib.asynccontextmanager
    async def stream(
        self, path: str = "/ws/v0", headers: dict[str, str] | None = None
    ) -> AsyncIterator[Stream]:
        url = f"ws://127.0.0.1:{self.port}{path}"
        async with connect(url, additional_headers=headers, proxy=None) as connection:
            stream = Stream(connection)
            greeting = await stream.next("i")
            assert len(greeting["i"]) == 36
            yield stream


@contextlib.asynccontextmanager
async def served(**changes: Any) -> AsyncIterator[Place]:
    """A matcher with these settings."""
    api = Api(FakeCore(**changes))
    server = await serve(api.app.gate, "127.0.0.1", 0)
    try:
        yield Place(api, server.port)
    finally:
        await server.stop()
