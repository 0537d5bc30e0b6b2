"""The services of a node, put together, and the ports where they are.

What lives here: which functions answer which service, and which services stand at which port. What
does not: the functions, and the process (``soliton.cli.grpc_server``).
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from google.protobuf.descriptor import ServiceDescriptor
from grpc import aio
from grpc_health.v1 import health, health_pb2, health_pb2_grpc
from grpc_reflection.v1alpha import reflection

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
from soliton.grpc_api.link import Asking
from soliton.grpc_api.server import OPTIONS, Methods, Unserved, handlers
from soliton.grpc_api.views import Views
from soliton.node.blockchain import Blockchain
from soliton.node.settings import Settings
from soliton.web.shared_counters import SharedCounters

MATCHER_KEEP_ALIVE_MS: Final = 500
"""As often may the Scala matcher ask whether the connection lives."""

Part = tuple[ServiceDescriptor, Methods]


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
            (transactions.SERVICE, transactions.methods(self._node)),
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
        """Follow the node."""
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
        own = (handlers(service, methods, self._views, self.clients) for service, methods in parts)
        server.add_generic_rpc_handlers(tuple(own))
        names = [service.full_name for service, _ in parts]
        checks = health.aio.HealthServicer()
        health_pb2_grpc.add_HealthServicer_to_server(checks, server)
        for name in ("", *names):
            await checks.set(name, health_pb2.HealthCheckResponse.SERVING)
        reflection.enable_server_reflection(
            (*names, health.SERVICE_NAME, reflection.SERVICE_NAME), server
        )
        server.add_generic_rpc_handlers((Unserved(),))
        address = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
        try:
            found: int = server.add_insecure_port(address)
        except RuntimeError as error:
            raise EnvironmentProblem(f"cannot listen on {address}: {error}") from error
        await server.start()
        self._servers.append(server)
        return found

    async def stop(self, seconds: float) -> None:
        """Serve no more; calls under way have so long to end."""
        await self._matcher.pool.stop()
        for server in self._servers:
            await server.stop(seconds)
        self._servers.clear()
        await self._updates.follower.stop()


def _pings(least_ms: int) -> tuple[tuple[str, int], ...]:
    """Clients may ask so often whether the connection lives, also when no call is under way."""
    return (
        ("grpc.http2.min_recv_ping_interval_without_data_ms", least_ms),
        ("grpc.keepalive_permit_without_calls", 1),
    )
