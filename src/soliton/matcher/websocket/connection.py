"""One WebSocket connection: its send queue, pings, and closing.

What lives here: the lifecycle of the connection. What does not: its subscriptions
(``subscriptions``).

Source: wavesplatform/matcher
``dex/src/main/scala/com/wavesplatform/dex/api/ws/actors/WsExternalClientHandlerActor.scala``.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Final

from soliton.matcher.settings import WebSockets
from soliton.matcher.websocket.messages import error_message, greeting, ping
from soliton.matching import errors
from soliton.matching.errors import MatcherError
from soliton.web.websocket import WebSocket

MAX_WAITING: Final = 100
"""The maximum length of a slow client's send queue; beyond it, the connection is aborted."""
NORMAL_CLOSURE: Final = 1000
UNSUPPORTED_DATA: Final = 1003


class Connection:
    """An accepted connection; ``run`` returns when it ends."""

    def __init__(
        self, identity: str, socket: WebSocket, settings: WebSockets, clock: Callable[[], int]
    ) -> None:
        self.identity = identity
        self.is_closing = False
        self._socket = socket
        self._settings = settings
        self._clock = clock
        self._waiting: asyncio.Queue[bytes | None] = asyncio.Queue()
        self._close_code = NORMAL_CLOSURE
        self._expected_pong: int | None = None
        self._timers: dict[str, asyncio.TimerHandle] = {}
        self._task: asyncio.Task[None] | None = None

    async def run(self) -> None:
        """Send a greeting, queued messages and pings; return when the connection is to be closed.

        Raises ``CancelledError`` if the client is too slow.
        """
        self._task = asyncio.current_task()
        self.push(greeting(self._clock(), self.identity))
        self._after("ping", self._settings.ping_interval_ms, self._ping)
        self._after("life", self._settings.max_connection_lifetime_ms, self._lifetime_exceeded)
        try:
            while (message := await self._waiting.get()) is not None:
                await self._socket.send(message)
            self._socket.close(self._close_code)
        finally:
            self.is_closing = True
            # Break the reference cycle of the task, its exception and this frame.
            self._task = None
            for timer in self._timers.values():
                timer.cancel()
            self._timers.clear()

    def push(self, message: bytes) -> None:
        """Queue a message."""
        if self.is_closing:
            return
        if self._waiting.qsize() >= MAX_WAITING:
            self.is_closing = True
            if self._task is not None:
                self._task.cancel()
            return
        self._waiting.put_nowait(message)

    def push_error(self, error: MatcherError) -> None:
        """Send an error; the connection stays open."""
        self.push(error_message(error, self._clock()))

    def close_for(self, error: MatcherError) -> None:
        """Send an error, then close."""
        self.push_error(error)
        self.close(NORMAL_CLOSURE)

    def close(self, code: int) -> None:
        """Close after the queued messages."""
        if not self.is_closing:
            self.is_closing = True
            self._close_code = code
            self._waiting.put_nowait(None)

    def on_pong(self, timestamp: int) -> None:
        """Handle a pong; only the answer to the last ping counts."""
        if timestamp == self._expected_pong:
            self._expected_pong = None
            timer = self._timers.pop("pong", None)
            if timer is not None:
                timer.cancel()

    def _ping(self) -> None:
        now = self._clock()
        self._expected_pong = now
        self.push(ping(now))
        self._after("ping", self._settings.ping_interval_ms, self._ping)
        if "pong" not in self._timers:
            self._after("pong", self._settings.pong_timeout_ms, self._pong_timed_out)

    def _pong_timed_out(self) -> None:
        self.close_for(MatcherError(errors.WS_CONNECTION_PONG_TIMEOUT))

    def _lifetime_exceeded(self) -> None:
        self.close_for(MatcherError(errors.WS_CONNECTION_MAX_LIFETIME_EXCEEDED))

    def _after(self, name: str, delay_ms: int, call: Callable[[], None]) -> None:
        loop = asyncio.get_running_loop()
        self._timers[name] = loop.call_later(delay_ms / 1_000, call)
