"""What one server accepts of all its clients together."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

BACKLOG: Final = 1024
RETRY_AFTER_SECONDS: Final = 1
"""When those may come again who found too many connections."""
STOP_SECONDS: Final = 0.7
"""Running requests may end within this time after ``stop``; then they are cut off."""


@dataclass(frozen=True, slots=True)
class ServerLimits:
    """Connections, heads of requests, and the patience with slow clients."""

    connections: int = 1024
    """More are answered 503 at once."""
    connections_per_client: int | None = None
    """The same for those of one client (``clients.client_key``), of all processes that share their
    ``SharedCounters``.
    """
    counts_local_clients: bool = False
    """Whether that holds for clients on this machine, too."""
    head_bytes: int = 64 * 1024
    """Request line and headers; repeated ``id`` parameters make long lines."""
    head_seconds: float = 10.0
    """How long a connection may take to send one whole request head."""
    keep_alive_seconds: float = 60
    """How long an idle connection stays open, at least; at most twice as long."""
    write_seconds: float = 30.0
    """How long a client may read nothing of an answer that is too long to be sent in one go."""
    websocket_message_bytes: int = 64 * 1024
    """The longest message that a client may send over a WebSocket."""
