"""The services of a node and their ports.

What lives here: the assignment of functions to services, and of services to ports. What does not:
the functions, and the process (``soliton.cli.grpc_server``).
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from typing import Final

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
from soliton.grpc_api.link import Limited, NodeLink
from soliton.grpc_api.server import Part, listen
from soliton.grpc_api.views import Views
from soliton.node.blockchain import Blockchain
from soliton.node.settings import Settings
from soliton.web.http2.server import Http2Server
from soliton.web.shared_counters import SharedCounters

KEEP_ALIVE_MS: Final = 300_000
"""Default for the shortest interval of a client's pings."""
MATCHER_KEEP_ALIVE_MS: Final = 500
"""Shortest interval of the Scala matcher's pings."""


class Services:
    """All services on the chain of ``views``, with the channel to the node and the counters that
    the serving processes share.
    """

    def __init__(
        self,
        settings: Settings,
        views: Views,
        node: NodeLink,
        counters: SharedCounters | None = None,
    ) -> None:
        self._settings = settings
        self._views = views
        self._node = node
        self.clients = Clients(settings.grpc.limits, counters)
        self._servers: list[Http2Server] = []
        self._updates = updates.Updates(views, node)
        grpc, chain_id = settings.grpc, settings.network.chain_id
        self._matcher = matcher_service.MatcherService(
            chain_id, node, grpc.matcher_pools, grpc.matcher_allowed
        )

    def node_parts(self) -> tuple[Part, ...]:
        """Return the five services of ``waves.node.grpc``."""
        features = self._settings.features.supported
        return (
            (accounts.SERVICE, accounts.METHODS),
            (assets.SERVICE, assets.METHODS),
            (blockchain.SERVICE, blockchain.methods(features)),
            (blocks.SERVICE, blocks.methods(self._height_of)),
            (transactions.SERVICE, transactions.methods(Limited(self._node))),
        )

    def _height_of(self, chain: Blockchain, block_id: bytes) -> int | None:
        return chain.height_of(block_id) or self._updates.follower.height_of(block_id)

    def updates_parts(self) -> tuple[Part, ...]:
        """Return the stream of updates."""
        return ((updates.SERVICE, self._updates.methods()),)

    def matcher_parts(self) -> tuple[Part, ...]:
        """Return the API of the Scala matcher."""
        return ((matcher_service.SERVICE, self._matcher.methods()),)

    async def start(self) -> None:
        """Listen on the ports in the settings; raises ``EnvironmentProblem``."""
        grpc = self._settings.grpc
        await self.follow()
        if grpc.port is not None:
            await self.listen(grpc.host, grpc.port, self.node_parts())
        if grpc.updates_port is not None:
            parts, interval = self.updates_parts(), grpc.keep_alive_ms
            await self.listen(grpc.updates_host, grpc.updates_port, parts, interval)
        if grpc.matcher_port is not None:
            parts, interval = self.matcher_parts(), MATCHER_KEEP_ALIVE_MS
            await self.listen(grpc.matcher_host, grpc.matcher_port, parts, interval)

    async def follow(self) -> None:
        """Start following the node."""
        self._views.free_views = self.clients.abort_waiting
        await self._updates.follower.start()

    async def listen(
        self, host: str, port: int, parts: Iterable[Part], keep_alive_ms: int = KEEP_ALIVE_MS
    ) -> int:
        """Serve on a port (0: a free one), with health and reflection; return the port."""
        made = await listen(
            host, port, parts, self._views, self.clients, ping_seconds=keep_alive_ms / 1_000
        )
        self._servers.append(made)
        return made.port

    def abort_idle(self) -> None:
        """End the calls of clients that were idle for too long."""
        self.clients.abort_idle()

    async def stop(self, seconds: float) -> None:
        """Stop serving; running calls have ``seconds`` to end."""
        await self._matcher.pool.stop()
        await asyncio.gather(*(each.stop(seconds) for each in self._servers))
        self._servers.clear()
        await self._updates.follower.stop()
