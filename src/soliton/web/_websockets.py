"""What we change in uvicorn's WebSocket connections: an end to what may wait for a client.

What an application sends waits until the client has taken what came before, for ever if need be,
and a connection that is closed stays open until then. Answers to pings do not even wait. Here both
have a limit. And what a client says before it is let in waits until then: uvicorn has no answer to
it yet.

Only ``_uvicorn`` imports this module, and only for servers that take such connections. What lives
here: the limits, and word of a connection's end. What does not: the handshake (``_uvicorn``).
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol

if TYPE_CHECKING:
    from uvicorn._types import ASGISendEvent

MAX_UNREAD_BYTES: Final = 4 * 1024 * 1024
"""What waits for a client that does not read; above the longest single message."""


class LimitedWebSocket(WebSocketsSansIOProtocol):
    """One connection; ``when_lost`` is called at its end."""

    when_lost: Callable[[], None] | None = None
    write_seconds = 30.0
    """How long a client may read nothing of what waits for it."""
    _write_timer: asyncio.TimerHandle | None = None
    _early = b""

    def pause_writing(self) -> None:
        super().pause_writing()
        self._write_timer = self.loop.call_later(self.write_seconds, self.transport.abort)

    def resume_writing(self) -> None:
        super().resume_writing()
        self._stop_timer()

    def _stop_timer(self) -> None:
        if self._write_timer is not None:
            self._write_timer.cancel()
            self._write_timer = None

    def data_received(self, data: bytes) -> None:
        if self.handshake_initiated and not self.handshake_complete:
            self._early += data
            self.transport.pause_reading()
            return
        super().data_received(data)
        if self.transport.get_write_buffer_size() > MAX_UNREAD_BYTES:
            self.transport.abort()

    async def send(self, message: ASGISendEvent) -> None:
        await super().send(message)
        if self._early and self.handshake_complete and not self.transport.is_closing():
            early, self._early = self._early, b""
            self.transport.resume_reading()
            self.data_received(early)

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop_timer()
        if self.when_lost is not None:
            self.when_lost()
        super().connection_lost(exc)
