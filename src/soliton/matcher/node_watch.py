"""Monitoring the node: whether it responds, and whether it is on the right chain.

Without its node a matcher would match orders against outdated balances, so it rejects orders after
a bounded silence. A node that returns may be another one behind the same address, so its chain is
checked each time.

What lives here: the health check. What does not: following the chain (``node_follower``).
"""

from __future__ import annotations

import asyncio
import logging
import time
from typing import Final

from soliton.matcher.errors import NodeUnavailable, WrongChain
from soliton.matcher.node_client import NodeClient
from soliton.matcher.orders_db import OrdersDatabase
from soliton.matcher.settings import MatcherSettings

_LONGEST_PAUSE: Final = 2.5
_PAUSES: Final = 4
"""The number of checks within the permitted silence."""

_log = logging.getLogger(__name__)


class NodeWatch:
    """Use from one event loop."""

    def __init__(
        self, node: NodeClient, settings: MatcherSettings, database: OrdersDatabase
    ) -> None:
        """The database records which chain its orders belong to."""
        self._node = node
        self._network = settings.network
        self._database = database
        self._limit = settings.node.max_silence_ms / 1_000
        self._heard = time.monotonic()
        self._has_warned = False

    @property
    def is_silent(self) -> bool:
        """Whether the node has not responded for too long."""
        return time.monotonic() - self._heard > self._limit

    async def check_chain(self) -> None:
        """Raises ``WrongChain`` if the node is on another chain, and ``NodeUnavailable``."""
        found, network = await self._node.identity(), self._network
        if found.chain_id != network.chain_id:
            raise WrongChain(
                f"the node is one of the chain {_letter(found.chain_id)}, the settings say "
                f"{_letter(network.chain_id)} ({network.name}): change node.url, or the network"
            )
        expected = network.genesis.signature
        if expected is not None and found.genesis != expected:
            raise WrongChain(
                f"the node's chain begins with the block {found.genesis}, that of {network.name} "
                f"with {expected}: change node.url, or the network"
            )
        known = self._database.genesis()
        if known is None:
            self._database.put_genesis(found.genesis)
        elif known != found.genesis:
            raise WrongChain(
                f"the node's chain begins with the block {found.genesis}, but the orders are of "
                f"one that begins with {known}: change node.url, or data-directory"
            )

    async def run(self) -> None:
        """Check the node periodically, forever; raises ``WrongChain``."""
        self._heard = time.monotonic()
        pause = min(_LONGEST_PAUSE, self._limit / _PAUSES)
        while True:
            try:
                async with asyncio.timeout(self._limit):
                    await self.check_chain()
                    await self._node.status()
            except (NodeUnavailable, TimeoutError) as error:
                self._warn(error)
            else:
                self._heard = time.monotonic()
                if self._has_warned:
                    self._has_warned = False
                    _log.info("the node responds again: orders are accepted")
            await asyncio.sleep(pause)

    def _warn(self, error: Exception) -> None:
        if self.is_silent and not self._has_warned:
            self._has_warned = True
            _log.warning(
                "the node has not responded for %.0f s, orders are rejected: %s",
                *(self._limit, str(error) or "timeout"),
            )


def _letter(chain_id: int) -> str:
    return repr(chr(chain_id))
