"""Whether the node is there, and whether it is one of the right chain.

A matcher that hears nothing of its node matches orders against balances that may be gone: after a
bounded silence it takes none. A node that comes back may be another one, behind the same address:
its chain is looked at each time.

What lives here: asking, and what follows from the answers. What does not: following the chain
(``node_follower``).
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
"""So often a node is asked within the silence that it may keep."""

_log = logging.getLogger(__name__)


class NodeWatch:
    """Use from one event loop."""

    def __init__(
        self, node: NodeClient, settings: MatcherSettings, database: OrdersDatabase
    ) -> None:
        """The database remembers which chain its orders belong to."""
        self._node = node
        self._network = settings.network
        self._database = database
        self._limit = settings.node.max_silence_ms / 1_000
        self._heard = time.monotonic()
        self._has_warned = False

    @property
    def is_silent(self) -> bool:
        """Whether nothing was heard of the node for too long."""
        return time.monotonic() - self._heard > self._limit

    async def check_chain(self) -> None:
        """Raises ``WrongChain`` for a node of another chain, and ``NodeUnavailable``."""
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
        """Ask for ever; raises ``WrongChain``."""
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
                    _log.info("the node answers again: orders are taken")
            await asyncio.sleep(pause)

    def _warn(self, error: Exception) -> None:
        if self.is_silent and not self._has_warned:
            self._has_warned = True
            _log.warning(
                "the node has not answered for %.0f s, orders are not taken: %s",
                *(self._limit, str(error) or "it hangs"),
            )


def _letter(chain_id: int) -> str:
    return repr(chr(chain_id))
