"""The services of a node, put together, and the ports where they are.

What lives here: which functions answer which service, and which services stand at which port. What
does not: the functions, and the process (``soliton.cli.grpc_server``).
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
from soliton.grpc_api.link import Asking, Limited
from soliton.grpc_api.server import Part, listen
from soliton.grpc_api.views import Views
from soliton.node.blockchain import Blockchain
from soliton.node.settings import Settings
from soliton.web.http2.server import Http2Server
from soliton.web.shared_counters import SharedCounters

KEEP_ALIVE_MS: Final = 300_000
"""As often may clients ask by default whether the connection lives."""
MATCHER_KEEP_ALIVE_MS: Final = 500
"""As often may the Scala matcher ask whether the connection lives."""


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
        self._servers: list[Http2Server] = []
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
            parts, least = self.updates_parts(), where.keep_alive_ms
            await self.listen(where.updates_host, where.updates_port, parts, least)
        if where.matcher_port is not None:
            parts, least = self.matcher_parts(), MATCHER_KEEP_ALIVE_MS
            await self.listen(where.matcher_host, where.matcher_port, parts, least)

    async def follow(self) -> None:
        """Follow the node, and know from now on what ends a call."""
        self._views.let_go = self.clients.let_go
        await self._updates.follower.start()

    async def listen(
        self, host: str, port: int, parts: Iterable[Part], keep_alive_ms: int = KEEP_ALIVE_MS
    ) -> int:
        """Serve these at a port (0: a free one), with health and reflection; which port it is."""
        made = await listen(
            host, port, parts, self._views, self.clients, ping_seconds=keep_alive_ms / 1_000
        )
        self._servers.append(made)
        return made.port

    def give_up(self) -> None:
        """End the calls of clients that have sent or read nothing for too long."""
        self.clients.give_up()

    async def stop(self, seconds: float) -> None:
        """Serve no more; calls under way have so long to end."""
        await self._matcher.pool.stop()
        await asyncio.gather(*(each.stop(seconds) for each in self._servers))
        self._servers.clear()
        await self._updates.follower.stop()
