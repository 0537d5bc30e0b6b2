"""Watching a node that has no stream of events: asking for its last block and its pool.

What lives here: how answers become updates; forks are found by comparing the ids of the last
blocks. What does not: single questions (``http_client``).

Source: wavesplatform/matcher ``docs/waves-node-interaction.md`` for what a matcher has to notice.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator
from typing import Any, Final, Protocol, TypeAlias

from soliton.chain.errors import ChainError
from soliton.chain.transactions.json_reader import read_signed
from soliton.chain.transactions.model import AnyTransaction
from soliton.crypto import base58
from soliton.matcher.errors import NodeUnavailable
from soliton.matcher.node_client import ChainStatus, NodeUpdate

MAX_ROLLBACK: Final = 100
"""The network itself never goes back more blocks than this."""
HEADERS_PER_REQUEST: Final = 100
_LONGEST_PAUSE: Final = 30.0

Json: TypeAlias = Any
"""What a node has sent: nothing about it is certain."""

_log = logging.getLogger(__name__)


class Source(Protocol):
    """Where answers come from."""

    async def get(self, path: str) -> Json:
        """The JSON at a path; raises ``NodeUnavailable``."""


class Poller:
    """One watcher of one node. Requests that fail are asked again, ever more slowly."""

    def __init__(self, source: Source, interval: float, chain_id: int) -> None:
        self._source = source
        self._interval = interval
        self._chain_id = chain_id
        self._ids: dict[int, bytes] = {}
        self._mined: dict[int, frozenset[bytes]] = {}
        self._pool: frozenset[bytes] = frozenset()
        self._status: ChainStatus | None = None

    async def updates(self) -> AsyncGenerator[NodeUpdate, None]:
        """As ``NodeClient.updates``."""
        pause = self._interval
        interrupted = True
        while True:
            try:
                update = await self._poll(interrupted)
            except NodeUnavailable as error:
                _log.warning("%s", error)
                interrupted, pause = True, min(pause * 2, _LONGEST_PAUSE)
            else:
                interrupted, pause = False, self._interval
                if update is not None:
                    yield update
            await asyncio.sleep(pause)

    async def _poll(self, interrupted: bool) -> NodeUpdate | None:
        header = await self._source.get("/blocks/headers/last")
        last = block_status(header)
        pool = await self._read_pool()
        rolled_back_to: int | None = None
        confirmed: list[tuple[bytes, int]] = []
        moved = self._status is None or last != self._status
        if moved:
            rolled_back_to, confirmed = await self._follow(last)
        appeared = [each for key, each in pool.items() if key not in self._pool]
        vanished = self._pool - pool.keys()
        self._pool = frozenset(pool)
        self._status = last
        if not (moved or appeared or vanished or interrupted):
            return None
        return NodeUpdate(
            status=last,
            rolled_back_to=rolled_back_to,
            confirmed=tuple(confirmed),
            appeared=tuple(each for each in appeared if each is not None),
            vanished=tuple(vanished),
            changed=None if moved or interrupted else frozenset(),
        )

    async def _follow(self, last: ChainStatus) -> tuple[int | None, list[tuple[bytes, int]]]:
        """Bring the known blocks to the node's: up to which height they stayed, if any went, and
        the transactions that are new.
        """
        before = max(self._ids, default=0)
        if not before or last.height - before > MAX_ROLLBACK:
            # Nothing to compare with: what is known starts here.
            self._ids, self._mined = {last.height: last.block_id}, {}
            return None, await self._read_blocks(last.height, last.height)
        stayed = await self._common_height(before, last)
        gone: set[bytes] = set()
        for height in [height for height in self._ids if height > stayed]:
            gone |= self._mined.pop(height, frozenset())
            del self._ids[height]
        confirmed = await self._read_blocks(stayed + 1, last.height)
        for height in [height for height in self._ids if height <= last.height - MAX_ROLLBACK]:
            self._mined.pop(height, None)
            del self._ids[height]
        # A last block that grew is no rollback; one that lost transactions, or more, is.
        rolled_back = stayed < before - 1 or not gone <= {each for each, _ in confirmed}
        return (stayed if rolled_back else None), confirmed

    async def _common_height(self, before: int, last: ChainStatus) -> int:
        """The highest block that is still the same, at most the one below the last known."""
        top = min(before, last.height)
        if self._ids.get(top) == last.block_id:
            return top
        lowest = max(min(self._ids), top - MAX_ROLLBACK)
        headers = await self._headers(lowest, top)
        for header in reversed(headers):
            status = block_status(header)
            if self._ids.get(status.height) == status.block_id:
                return status.height
        return lowest - 1

    async def _headers(self, first: int, last: int) -> list[Json]:
        found: list[Json] = []
        for start in range(first, last + 1, HEADERS_PER_REQUEST):
            end = min(last, start + HEADERS_PER_REQUEST - 1)
            answer = await self._source.get(f"/blocks/headers/seq/{start}/{end}")
            found.extend(answer if isinstance(answer, list) else [])
        return found

    async def _read_blocks(self, first: int, last: int) -> list[tuple[bytes, int]]:
        confirmed: list[tuple[bytes, int]] = []
        for height in range(first, last + 1):
            block = await self._source.get(f"/blocks/at/{height}")
            ids = [_decode(each.get("id")) for each in block.get("transactions", ())]
            self._ids[height] = block_status(block).block_id
            self._mined[height] = frozenset(ids)
            confirmed.extend((each, height) for each in ids)
        return confirmed

    async def _read_pool(self) -> dict[bytes, AnyTransaction | None]:
        """The unconfirmed transactions by id; ``None`` for one that was known before, or that
        cannot be read (its effect is seen when it is mined).
        """
        found: dict[bytes, AnyTransaction | None] = {}
        for each in await self._source.get("/transactions/unconfirmed"):
            transaction_id = _decode(each.get("id"))
            found[transaction_id] = None
            if transaction_id not in self._pool:
                try:
                    found[transaction_id] = read_signed(each, self._chain_id)
                except ChainError as error:
                    _log.info("an unconfirmed transaction is left aside: %s", error)
        return found


def block_status(header: Json) -> ChainStatus:
    """Height and id of a block or header; blocks before version 5 are named by their signature.

    Raises ``NodeUnavailable``.
    """
    try:
        return ChainStatus(int(header["height"]), _decode(header.get("id") or header["signature"]))
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise NodeUnavailable("the node describes a block, but not as a node does") from error


def _decode(text: object) -> bytes:
    if not isinstance(text, str):
        raise NodeUnavailable("the node leaves out an id")
    return base58.decode(text)
