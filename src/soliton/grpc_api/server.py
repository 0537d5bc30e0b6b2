"""Serving calls on a port: services, their connections, and the limits of both.

What lives here: a port. What does not: the services on each port (``services``), HTTP/2
(``soliton.web.http2``), one connection's calls (``peers``).
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from soliton.grpc_api.clients import Clients
from soliton.grpc_api.health import SERVICE as HEALTH
from soliton.grpc_api.health import Health
from soliton.grpc_api.peers import Peer
from soliton.grpc_api.reflection import VERSIONS, Reflection, service_of
from soliton.grpc_api.routes import Metadata, Methods, Part, Routes
from soliton.grpc_api.views import Views
from soliton.web.http2.connection import Http2Connection
from soliton.web.http2.limits import Http2Limits
from soliton.web.http2.server import Http2Server, serve
from soliton.web.server import bind

__all__ = ["Metadata", "Methods", "Part", "listen"]

MAX_CONNECTIONS: Final = 4_096
"""Limit on the connections of one port."""
MAX_CONNECTIONS_PER_CLIENT: Final = 256
"""Limit on the connections of one address to all ports and processes."""
IDLE_SECONDS: Final = 600.0
HANDSHAKE_SECONDS: Final = 20.0


async def listen(
    host: str,
    port: int,
    parts: Iterable[Part],
    views: Views,
    clients: Clients,
    *,
    ping_seconds: float,
) -> Http2Server:
    """Serve services on a port (0: a free one), with health and reflection. Clients may send a ping
    every ``ping_seconds``. Raises ``EnvironmentProblem``.
    """
    routes = Routes(_with_health_and_reflection(tuple(parts)))
    calls = clients.limits
    limits = Http2Limits(
        connections=MAX_CONNECTIONS,
        connections_per_client=MAX_CONNECTIONS_PER_CLIENT,
        counts_local_clients=calls.local_clients,
        streams=calls.streams_per_client + calls.requests_per_client,
        handshake_seconds=HANDSHAKE_SECONDS,
        idle_seconds=IDLE_SECONDS,
        write_seconds=calls.read_ms / 1_000,
        ping_seconds=ping_seconds,
        proxies=calls.proxies,
    )

    def make(connection: Http2Connection) -> Peer:
        return Peer(connection, routes, clients, views)

    return await serve(bind(host, port, shares_port=True), make, limits, clients.counters)


def _with_health_and_reflection(parts: tuple[Part, ...]) -> Iterable[Part]:
    names = [service.full_name for service, _ in parts]
    listed = (*names, HEALTH.full_name, *(service_of(each).full_name for each in VERSIONS))
    yield from parts
    yield HEALTH, Health(names).methods()
    for each in VERSIONS:
        yield service_of(each), Reflection(each, listed).methods()
