"""Monitoring the node: whether it responds, and whether it is on the right chain.

Without its node a matcher would match orders against outdated balances, so it rejects orders after
a bounded silence. A node that returns may be another one behind the same address: an empty one, one
that is synchronizing, or one of another chain with the same first block. On its word all orders
would be cancelled for lack of balance. So the matcher remembers blocks that it has seen (anchors),
and the node's chain must contain the last final one of them; as long as it does not, orders are
rejected, nothing is sent to the node, and nothing that it reports has an effect.

What lives here: the health check, and the anchors. What does not: following the chain
(``node_follower``).
"""

from __future__ import annotations

import asyncio
import logging
import time
from typing import Final

import msgspec

from soliton.crypto import base58
from soliton.matcher.errors import ChainMissing, NodeUnavailable, WrongChain
from soliton.matcher.node_client import NodeClient, NodeUpdate
from soliton.matcher.orders_db import OrdersDatabase
from soliton.matcher.renewal import FINAL_DEPTH
from soliton.matcher.session import Session
from soliton.matcher.settings import MatcherSettings

MAX_BEHIND: Final = 10
"""A node that returns may lack so many of the newest blocks: it may have lost them in a crash."""
FIRST_ANCHORS: Final = (1, 2, 5, 10, 20, 50, FINAL_DEPTH)
"""The depths of the blocks that are remembered at the first start."""
_LONGEST_PAUSE: Final = 2.5
_PAUSES: Final = 4
"""The number of checks within the permitted silence."""

_log = logging.getLogger(__name__)


class NodeWatch:
    """Use from one event loop."""

    def __init__(
        self,
        node: NodeClient,
        settings: MatcherSettings,
        database: OrdersDatabase,
        session: Session,
    ) -> None:
        """The database records which chain its orders belong to."""
        self._node = node
        self._session = session
        self._anchors = database.anchors()
        # The chain is not shorter than its newest anchor and the block above that.
        self._top = max(self._anchors, default=0) + 1
        self._final = 0
        self._network = settings.network
        self._database = database
        self._limit = settings.node.max_silence_ms / 1_000
        self._heard = time.monotonic()
        self._has_warned = False

    @property
    def is_silent(self) -> bool:
        """Whether the node has not responded for too long, or has lost the chain."""
        return not self._session.trusted.is_set() or time.monotonic() - self._heard > self._limit

    async def check_chain(self) -> None:
        """Raises ``WrongChain`` if the node is on another chain, ``ChainMissing`` if it lacks the
        blocks that were seen before, and ``NodeUnavailable``.
        """
        await self._check_identity()
        try:
            await self._check_anchors()
        except ChainMissing as error:
            if self._session.trusted.is_set():
                self._session.trusted.clear()
                _log.error(
                    "orders are rejected, and nothing is cancelled, until the node is back on the "
                    "chain: %s",
                    error,
                )
            raise
        if not self._session.trusted.is_set():
            self._session.trusted.set()
            _log.warning("the node is on the chain again: orders are accepted")

    async def _check_anchors(self) -> None:
        height = (await self._node.status()).height
        if height < self._top - MAX_BEHIND:
            raise ChainMissing(
                f"the node's chain ends at block {height}, but block {self._top} was seen: the "
                "node is behind, or is another one (see node.url)"
            )
        heights = sorted((each for each in self._anchors if each <= height), reverse=True)
        # The first, second, fourth... and the last: a fork is rarely deep.
        picked = [heights[(1 << power) - 1] for power in range(len(heights).bit_length())]
        for each in dict.fromkeys((*picked, *heights[-1:])):
            if await self._node.block_id(each) == self._anchors[each]:
                if each != heights[0]:
                    self._forget_above(each)
                return
        if self._anchors:
            lowest = min(self._anchors)
            seen = base58.encode(self._anchors[lowest])
            if lowest > height:
                raise ChainMissing(
                    f"the node's chain ends at block {height}, and lacks block {lowest} ({seen}), "
                    "which is final: the node is behind, or is another one (see node.url)"
                )
            raise ChainMissing(
                f"block {lowest} of the node's chain is not {seen}, which was seen before: the "
                "node is on another branch, deeper than forks can be (see node.url; a matcher for "
                "another chain needs another data-directory)"
            )

    def _forget_above(self, height: int) -> None:
        self._anchors = {each: name for each, name in self._anchors.items() if each <= height}
        self._top = height + 1
        self._database.put_anchors(self._anchors)

    async def admit(self, update: NodeUpdate) -> NodeUpdate:
        """An update as it may take effect: after an interruption, only once the node has the chain
        that was seen before. Raises ``WrongChain``, ``ChainMissing`` and ``NodeUnavailable``; then
        it must be called again.
        """
        was_trusted = self._session.trusted.is_set()
        stayed = update.rolled_back_to
        is_doubtful = update.resumed or update.missed
        if stayed is not None and not update.resumed:
            is_doubtful = stayed < self._final
            if not is_doubtful:
                self._forget_above(stayed)
        if is_doubtful or not was_trusted:
            await self.check_chain()
        if not was_trusted:
            # What it reports of blocks may be that of the other chain.
            update = msgspec.structs.replace(
                update,
                status=await self._node.status(),
                rolled_back_to=None,
                confirmed=(),
                failures={},
                changed=None,
                missed=True,
                finalized=0,
            )
        return update

    async def remember(self, height: int, final: int) -> None:
        """Remember the newest block below the last one, at ``height``, which may still grow, and
        forget those that are older than the one at ``final``, which no fork replaces. Raises
        ``NodeUnavailable``.
        """
        self._final = final
        if height - 1 in self._anchors:
            return
        depths = (1,) if self._anchors else FIRST_ANCHORS
        anchors = dict(self._anchors)
        for each in {final, *(height - depth for depth in depths)} - anchors.keys():
            # The first block is checked by its signature.
            found = await self._node.block_id(each) if 1 < each < height else None
            if found is not None:
                anchors[each] = found
        floor = max([each for each in anchors if each <= final], default=0)
        kept = {each: name for each, name in anchors.items() if floor <= each < height}
        if kept != self._anchors:
            self._anchors, self._top = kept, max(self._top, height)
            self._database.put_anchors(kept)

    async def _check_identity(self) -> None:
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
            except ChainMissing:
                # ``check_chain`` has logged it.
                self._heard = time.monotonic()
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
