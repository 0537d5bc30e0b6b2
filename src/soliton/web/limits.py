"""The limits of a server."""

from __future__ import annotations

from typing import Final

import msgspec

from soliton.proxies import NO_PROXIES, TrustedProxies

BACKLOG: Final = 1024
HEALTH_PATHS: Final = frozenset(("/livez", "/readyz"))
"""Answered also where there are too many connections."""
MAX_REFUSED: Final = 64
"""Connections beyond all limits that wait for their 503; further ones are aborted."""
RETRY_AFTER_SECONDS: Final = 1
"""``Retry-After`` when there are too many connections."""
STOP_SECONDS: Final = 0.7
"""How long running requests may take after ``stop`` before they are cancelled."""


class ServerLimits(msgspec.Struct, frozen=True):
    """Limits on connections, heads of requests, and slow clients."""

    connections: int = 1024
    """Beyond these, the connection that has been idle for longest is closed for each new one; if
    all are in use, further ones are answered with 503.
    """
    reserved: int = 16
    """Connections beyond that limit: for clients on this machine, and for ``HEALTH_PATHS``."""
    connections_per_client: int | None = None
    """The same for one client (``clients.client_key``), over all processes that share
    ``SharedCounters``.
    """
    counts_local_clients: bool = False
    """Whether that limit also holds for clients on this machine."""
    head_bytes: int = 64 * 1024
    """Request line and headers; repeated ``id`` parameters make long lines."""
    head_seconds: float = 10.0
    """The timeout of receiving a request head."""
    keep_alive_seconds: float = 60
    """How long an idle connection stays open, at least; at most twice as long."""
    write_seconds: float = 30.0
    """How long a client may not read while the write buffer is full."""
    websocket_message_bytes: int = 64 * 1024
    """The longest message that a client may send over a WebSocket."""
    proxies: TrustedProxies = NO_PROXIES
    """Reverse proxies: their connections are not limited by address, their clients' requests are.
    """
