"""What we change in uvicorn's WebSocket connections: an end to what may wait for a client.

What an application sends waits until the client has taken what came before. Answers to pings do
not, and a client may ping without reading: what waits for it has a limit here.

Only ``_uvicorn`` imports this module, and only for servers that take such connections. What lives
here: the limit, and word of a connection's end. What does not: the handshake (``_uvicorn``).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol

MAX_UNREAD_BYTES: Final = 4 * 1024 * 1024
"""What waits for a client that does not read; above the longest single message."""


class LimitedWebSocket(WebSocketsSansIOProtocol):
    """One connection; ``when_lost`` is called at its end."""

    when_lost: Callable[[], None] | None = None

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        if self.transport.get_write_buffer_size() > MAX_UNREAD_BYTES:
            self.transport.abort()

    def connection_lost(self, exc: Exception | None) -> None:
        if self.when_lost is not None:
            self.when_lost()
        super().connection_lost(exc)
