"""Streams of a matcher in the process of the tests: its WebSocket without a wire.

What lives here: one end of a connection, for the matcher, and reading the other one. What does not:
what messages mean (``soliton.client.streams``), the matcher's life (``matching``).
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Iterator
from typing import Any, Final, Protocol, cast

from soliton.client.streams import PATH, MatcherStream, Update
from soliton.errors import InvariantBroken
from soliton.matcher.rest.application import Application
from soliton.testing.loops import QuietLoop
from soliton.web.answers import Awaited, Upgrade
from soliton.web.request import Request
from soliton.web.websocket import WebSocket, WebSocketClosed

QUIET_SECONDS: Final = 1.0
"""So long of the matcher's time nothing comes where there is nothing to tell: it gathers changes
for a tenth of that.
"""
_LOCAL: Final = "127.0.0.1"


class Life(Protocol):
    """One life of a matcher."""

    interface: Application
    loop: QuietLoop

    def begin(self, work: Coroutine[Any, Any, None]) -> None:
        """Go on with something until the end."""


class _Line:
    """A connection: ``receive``, ``send`` and ``close`` are the matcher's."""

    def __init__(self) -> None:
        self._asked: asyncio.Queue[str | None] = asyncio.Queue()
        self._told: asyncio.Queue[bytes | None] = asyncio.Queue()
        self._is_closed = False

    async def receive(self) -> str:
        """As ``WebSocket``."""
        message = await self._asked.get()
        if message is None:
            self._asked.put_nowait(None)
            raise WebSocketClosed
        return message

    async def send(self, data: bytes, *, is_text: bool = True) -> None:
        """As ``WebSocket``."""
        del is_text
        if self._is_closed:
            raise WebSocketClosed
        self._told.put_nowait(data)

    def close(self, code: int = 1000, reason: str = "") -> None:
        """As ``WebSocket``."""
        del code, reason
        self._is_closed = True
        self._asked.put_nowait(None)
        self._told.put_nowait(None)

    def say(self, message: str) -> None:
        """What a client sends."""
        self._asked.put_nowait(message)

    async def hear(self) -> bytes | None:
        """What a client gets; ``None`` at the end."""
        return await self._told.get()


def updates(settled: Callable[[], Life], stream: MatcherStream) -> Iterator[Update]:
    """What changes, over as many lives of a matcher as it takes; ``settled`` gives the one that
    lives, after all that has happened. It ends with ``InvariantBroken`` where nothing more happens
    by itself, since nobody else is here who could do something.
    """
    running: Life | None = None
    line = _Line()
    try:
        while True:
            now = settled()
            if now is not running:
                running, line = now, _Line()
                _connect(running, line)
                for message in stream.opening():
                    line.say(message)
            update = _next(running, line, stream)
            if update is not None:
                yield update
    finally:
        line.close()


def _connect(running: Life, line: _Line) -> None:
    request = Request("GET", PATH, b"", {}, b"", _LOCAL)
    request.is_websocket = True
    given = running.interface.gate.respond(request)
    if isinstance(given, Awaited):
        given = running.loop.finish(given.work)
    if not isinstance(given, Upgrade):
        raise InvariantBroken(f"the matcher takes no stream: {given}")
    running.begin(given.run(cast("WebSocket", line)))


def _next(running: Life, line: _Line, stream: MatcherStream) -> Update | None:
    """An update; ``None`` at the end of the connection."""
    until = running.loop.time() + QUIET_SECONDS
    while (message := running.loop.finish(line.hear())) is not None:
        update, reply = stream.received(message)
        if reply is not None:
            line.say(reply)
        if update is not None:
            return update
        if running.loop.time() > until:
            raise InvariantBroken("the stream has told everything: nothing more happens by itself")
    return None
