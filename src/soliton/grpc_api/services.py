"""The services of a node, put together, and the ports where they are.

What lives here: which functions answer which service, and which services stand at which port. What
does not: the functions, and the process (``soliton.cli.grpc_server``).
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from contextlib import suppress
from typing import Final

from google.protobuf.descriptor import ServiceDescriptor
from grpc import aio
from grpc_health.v1 import health, health_pb2, health_pb2_grpc
from grpc_reflection.v1alpha import reflection, reflection_pb2_grpc

from soliton.errors import EnvironmentProblem
from soliton.grpc_api import (
    accounts,
    assets,
    blockchain,
    blocks,
    matcher_service,
    transactions,
    updates,
)
from soliton.grpc_api.clients import Clients
from soliton.grpc_api.holders import remember
from soliton.grpc_api.link import Asking, Limited
from soliton.grpc_api.server import OPTIONS, Beside, Known, Methods, Unserved, handlers
from soliton.grpc_api.views import Views
from soliton.node.blockchain import Blockchain
from soliton.node.settings import Settings
from soliton.web.shared_counters import SharedCounters

KNOCK_SECONDS: Final = 1.0
"""How long a call of our own may take."""
MATCHER_KEEP_ALIVE_MS: Final = 500
"""As often may the Scala matcher ask whether the connection lives."""

Part = tuple[ServiceDescriptor, Methods]


class Health(health.aio.HealthServicer):  # type: ignore[misc]
    """The health of services that are there from the start to the end.

    Whoever watches one in the library holds a lock while writing, and all others wait for it.
    """

    def __init__(self, names: Iterable[str]) -> None:
        super().__init__()
        self.names = tuple(names)

    async def Watch(  # noqa: N802 - as in the schema
        self, request: health_pb2.HealthCheckRequest, context: aio.ServicerContext
    ) -> None:
        """Say it once, and nothing more as long as the service is there."""
        statuses = health_pb2.HealthCheckResponse
        is_there = request.service in self.names
        status = statuses.SERVING if is_there else statuses.SERVICE_UNKNOWN
        await context.write(statuses(status=status))
        await asyncio.Event().wait()


class Services:
    """All services on the chain that ``views`` read, with the way to the node, and what processes
    count together that serve the same.
    """

    def __init__(
        self,
        settings: Settings,
        views: Views,
        node: Asking,
        counters: SharedCounters | None = None,
    ) -> None:
        self._settings = settings
        self._views = views
        self._node = node
        self.clients = Clients(settings.grpc.limits, counters)
        self._servers: list[aio.Server] = []
        self._places: list[str] = []
        self._updates = updates.Updates(views, node)
        grpc, chain_id = settings.grpc, settings.network.chain_id
        self._matcher = matcher_service.MatcherService(
            chain_id, node, grpc.matcher_pools, grpc.matcher_allowed
        )

    def node_parts(self) -> tuple[Part, ...]:
        """The five services of ``waves.node.grpc``."""
        features = self._settings.features.supported
        return (
            (accounts.SERVICE, accounts.METHODS),
            (assets.SERVICE, assets.METHODS),
            (blockchain.SERVICE, blockchain.methods(features)),
            (blocks.SERVICE, blocks.methods(self._height_of)),
            (transactions.SERVICE, transactions.methods(Limited(self._node))),
        )

    def _height_of(self, chain: Blockchain, block_id: bytes) -> int | None:
        return chain.height_of(block_id) or self._updates.follower.knows(block_id)

    def updates_parts(self) -> tuple[Part, ...]:
        """The stream of updates."""
        return ((updates.SERVICE, self._updates.methods()),)

    def matcher_parts(self) -> tuple[Part, ...]:
        """What the Scala matcher asks."""
        return ((matcher_service.SERVICE, self._matcher.methods()),)

    async def start(self) -> None:
        """Serve where the settings say; raises ``EnvironmentProblem``."""
        where = self._settings.grpc
        await self.follow()
        if where.port is not None:
            await self.listen(where.host, where.port, self.node_parts())
        if where.updates_port is not None:
            pings = _pings(where.keep_alive_ms)
            await self.listen(where.updates_host, where.updates_port, self.updates_parts(), pings)
        if where.matcher_port is not None:
            pings = _pings(MATCHER_KEEP_ALIVE_MS)
            await self.listen(where.matcher_host, where.matcher_port, self.matcher_parts(), pings)

    async def follow(self) -> None:
        """Follow the node, and know from now on what ends a call."""
        remember(asyncio.get_running_loop())
        self._views.let_go = self.clients.let_go
        await self._updates.follower.start()

    async def listen(
        self,
        host: str,
        port: int,
        parts: Iterable[Part],
        options: tuple[tuple[str, int], ...] = (),
    ) -> int:
        """Serve these at a port (0: a free one), with health and reflection; which port it is."""
        limits = self._settings.grpc.limits
        most = limits.streams_per_client + limits.requests_per_client
        options = (*OPTIONS, ("grpc.max_concurrent_streams", most), *options)
        server, parts = aio.server(options=options), tuple(parts)
        own = [handlers(service, methods, self._views, self.clients) for service, methods in parts]
        beside = Beside(self.clients)
        names = [service.full_name for service, _ in parts]
        checks = Health(("", *names))
        health_pb2_grpc.add_HealthServicer_to_server(checks, beside)
        for name in checks.names:
            await checks.set(name, health_pb2.HealthCheckResponse.SERVING)
        shown = reflection.aio.ReflectionServicer(
            (*names, health.SERVICE_NAME, reflection.SERVICE_NAME)
        )
        reflection_pb2_grpc.add_ServerReflectionServicer_to_server(shown, beside)
        server.add_generic_rpc_handlers((Known((*own, beside, Unserved()), self.clients),))
        address = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
        try:
            found: int = server.add_insecure_port(address)
        except RuntimeError as error:
            raise EnvironmentProblem(f"cannot listen on {address}: {error}") from error
        await server.start()
        self._servers.append(server)
        self._places.append(f"{_own(host)}:{found}")
        await self._knock(self._places[-1])
        return found

    async def give_up(self) -> None:
        """End the calls of clients that have sent or read nothing for too long."""
        if self.clients.give_up():
            for place in self._places:
                await self._knock(place)

    async def _knock(self, place: str) -> None:
        """Call: the library holds the first call of a port for ever, and the last one until another
        one comes.
        """
        async with aio.insecure_channel(place) as channel:
            check = channel.unary_unary(f"/{health.SERVICE_NAME}/Check")
            with suppress(aio.AioRpcError):
                await check(b"", timeout=KNOCK_SECONDS)

    async def stop(self, seconds: float) -> None:
        """Serve no more; calls under way have so long to end."""
        await self._matcher.pool.stop()
        for server in self._servers:
            await server.stop(seconds)
        self._servers.clear()
        await self._updates.follower.stop()


def _own(host: str) -> str:
    """Where a server that listens at an address is found from the same machine."""
    if host in ("0.0.0.0", "::"):  # noqa: S104 - nothing listens there
        return "127.0.0.1" if host == "0.0.0.0" else "[::1]"  # noqa: S104 - as above
    return f"[{host}]" if ":" in host else host


def _pings(least_ms: int) -> tuple[tuple[str, int], ...]:
    """Clients may ask so often whether the connection lives, also when no call is under way."""
    return (
        ("grpc.http2.min_ping_interval_without_data_ms", least_ms),
        ("grpc.keepalive_permit_without_calls", 1),
    )
