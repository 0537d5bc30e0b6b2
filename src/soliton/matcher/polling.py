"""Following a node without an event stream, by polling its last block and its pool.

What lives here: turning responses into updates; forks are detected by comparing the ids of the last
blocks. What does not: single requests (``http_client``).

Source: wavesplatform/matcher ``docs/waves-node-interaction.md`` for what a matcher has to notice.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from types import MappingProxyType
from typing import Any, Final, NamedTuple, TypeAlias

from soliton.chain.errors import ChainError
from soliton.chain.transactions.json_reader import read_signed
from soliton.chain.transactions.model import AnyTransaction
from soliton.crypto import base58
from soliton.crypto.errors import Base58Error
from soliton.matcher.errors import NodeUnavailable
from soliton.matcher.log_throttle import throttled
from soliton.matcher.node_client import ChainStatus, NodeUpdate, failure_in

MAX_ROLLBACK: Final = 100
"""The network never rolls back more blocks than this."""
HEADERS_PER_REQUEST: Final = 100
_LONGEST_PAUSE: Final = 30.0
_FINALIZED: Final = "/blocks/headers/finalized"

Json: TypeAlias = Any
"""A node's response, of unverified form."""
Get: TypeAlias = Callable[[str], Awaitable[Json]]
"""Requests the JSON at a path; raises ``NodeUnavailable``."""

_log = throttled(logging.getLogger(__name__))


class _Block(NamedTuple):
    """A block's id and its transactions (``None`` if they were not read), and those of them that
    were not executed, with ``Inclusion.failure``.
    """

    id: bytes
    transactions: tuple[bytes, ...] | None
    failures: Mapping[bytes, str] = MappingProxyType({})


class _Moves(NamedTuple):
    """A change of the chain: the height of the last remaining block, if any was rolled back; the
    transactions of the new blocks; the blocks to remember; whether blocks in between were missed.
    """

    rolled_back_to: int | None = None
    confirmed: tuple[tuple[bytes, int], ...] = ()
    blocks: Mapping[int, _Block] = MappingProxyType({})
    missed: bool = False


_NO_MOVES: Final = _Moves()


class Poller:
    """Polls one node. Failed requests are retried with growing pauses."""

    def __init__(self, get: Get, interval: float, chain_id: int) -> None:
        self._get = get
        self._interval = interval
        self._chain_id = chain_id
        self._blocks: dict[int, _Block] = {}
        self._pool: frozenset[bytes] = frozenset()
        self._status: ChainStatus | None = None

    async def updates(self) -> AsyncGenerator[NodeUpdate, None]:
        """The node's updates, forever."""
        pause = self._interval
        interrupted = True
        while True:
            try:
                update = await self._poll_valid(interrupted)
            except NodeUnavailable as error:
                _log.warning("%s", error)
                interrupted, pause = True, min(pause * 2, _LONGEST_PAUSE)
            else:
                interrupted, pause = False, self._interval
                if update is not None:
                    yield update
            await asyncio.sleep(pause)

    async def _poll_valid(self, interrupted: bool) -> NodeUpdate | None:
        try:
            return await self._poll(interrupted)
        except (AttributeError, KeyError, TypeError, ValueError, Base58Error) as error:
            raise NodeUnavailable(f"the node sends an invalid response: {error!r}") from error

    async def _poll(self, interrupted: bool) -> NodeUpdate | None:
        header = await self._get("/blocks/headers/last")
        last = block_status(header)
        pool = await self._read_pool()
        moved = self._status is None or last != self._status
        moves = await self._follow(last) if moved else _NO_MOVES
        blocks = {**self._blocks, **moves.blocks}
        finalized = await self._finalized_in(blocks) if moved else 0
        # The state changes only after the last request: a failed poll is repeated as a whole.
        appeared = [each for key, each in pool.items() if key not in self._pool]
        vanished = self._pool - pool.keys()
        self._pool = frozenset(pool)
        self._status = last
        self._blocks = {
            height: block
            for height, block in blocks.items()
            if last.height - MAX_ROLLBACK <= height <= last.height
        }
        if not (moved or appeared or vanished or interrupted):
            return None
        return NodeUpdate(
            status=last,
            rolled_back_to=moves.rolled_back_to,
            confirmed=moves.confirmed,
            appeared=tuple(each for each in appeared if each is not None),
            vanished=tuple(vanished),
            changed=None if moved or interrupted else frozenset(),
            missed=moves.missed,
            failures=_failures(moves.blocks),
            resumed=interrupted,
            finalized=finalized,
        )

    async def _finalized_in(self, blocks: Mapping[int, _Block]) -> int:
        """The height of the node's last final block, if that is one of these: the chain may have
        changed since they were read. 0 otherwise, and for nodes that do not know of finality.
        """
        try:
            final = block_status(await self._get(_FINALIZED))
        except NodeUnavailable:
            return 0
        known = blocks.get(final.height)
        return final.height if known is not None and known.id == final.block_id else 0

    async def _follow(self, last: ChainStatus) -> _Moves:
        """The changes from the remembered blocks to the node's; does not change the state."""
        before = max(self._blocks, default=0)
        common = await self._common_height(before, last) if before else None
        if common is None or last.height - common > MAX_ROLLBACK:
            # Nothing to compare with: start with all blocks that may still be rolled back.
            blocks = await self._start_blocks(last)
            return _Moves(confirmed=_mined(blocks), blocks=blocks, missed=bool(before))
        blocks = await self._read_blocks(common, last)
        confirmed = _mined(blocks)
        # A last block that grew is not a rollback; one that lost transactions is.
        kept = {each for each, _ in confirmed}
        rolled_back = any(
            height < before or block.transactions is None or not kept.issuperset(block.transactions)
            for height, block in self._blocks.items()
            if height > common
        )
        return _Moves(common if rolled_back else None, confirmed, blocks)

    async def _common_height(self, before: int, last: ChainStatus) -> int | None:
        """The height of the highest unchanged block; ``None`` if no remembered block is."""
        top = min(before, last.height)
        if top in self._blocks and self._blocks[top].id == last.block_id:
            return top
        lowest = max(min(self._blocks), top - MAX_ROLLBACK)
        for header in reversed(await self._headers(lowest, top)):
            status = block_status(header)
            known = self._blocks.get(status.height)
            if known is not None and known.id == status.block_id:
                return status.height
        return None

    async def _start_blocks(self, last: ChainStatus) -> dict[int, _Block]:
        """The last block, and the ids of those below it that may still be rolled back."""
        lowest = max(1, last.height - MAX_ROLLBACK)
        headers = await self._headers(lowest, last.height - 1)
        blocks = {
            status.height: _Block(status.block_id, None) for status in map(block_status, headers)
        }
        return blocks | await self._read_blocks(last.height - 1, last, blocks)

    async def _headers(self, first: int, last: int) -> list[Json]:
        found: list[Json] = []
        for start in range(first, last + 1, HEADERS_PER_REQUEST):
            end = min(last, start + HEADERS_PER_REQUEST - 1)
            headers = await self._get(f"/blocks/headers/seq/{start}/{end}")
            found.extend(headers if isinstance(headers, list) else [])
        return found

    async def _read_blocks(
        self, common: int, last: ChainStatus, known: Mapping[int, _Block] | None = None
    ) -> dict[int, _Block]:
        """The blocks above an unchanged one, each of which must reference the one below: the chain
        may change between two requests.
        """
        parent = (self._blocks if known is None else known).get(common)
        found: dict[int, _Block] = {}
        for height in range(common + 1, last.height + 1):
            block = await self._get(f"/blocks/at/{height}")
            status = block_status(block)
            follows = parent is None or _decode(block.get("reference")) == parent.id
            if status.height != height or not follows:
                raise NodeUnavailable("the node's chain changed while it was being read")
            statuses = {
                _decode(each.get("id")): failure_in(each.get("applicationStatus"))
                for each in block.get("transactions", ())
            }
            failures = {each: failure for each, failure in statuses.items() if failure}
            parent = found[height] = _Block(status.block_id, tuple(statuses), failures)
        return found

    async def _read_pool(self) -> dict[bytes, AnyTransaction | None]:
        """The unconfirmed transactions by id; ``None`` for one that was known before, or that
        cannot be decoded (its effect shows when it is mined).
        """
        found: dict[bytes, AnyTransaction | None] = {}
        for each in await self._get("/transactions/unconfirmed"):
            transaction_id = _decode(each.get("id"))
            found[transaction_id] = None
            if transaction_id not in self._pool:
                try:
                    found[transaction_id] = read_signed(each, self._chain_id)
                except ChainError as error:
                    _log.info("an unconfirmed transaction is ignored: %s", error)
        return found


def _mined(blocks: Mapping[int, _Block]) -> tuple[tuple[bytes, int], ...]:
    """The transactions of the blocks that were read, with their heights."""
    return tuple((each, at) for at, block in blocks.items() for each in block.transactions or ())


def _failures(blocks: Mapping[int, _Block]) -> dict[bytes, str]:
    """Those of the same transactions that were not executed."""
    return {each: why for block in blocks.values() for each, why in block.failures.items()}


def block_status(header: Json) -> ChainStatus:
    """Height and id of a block or header; the id of blocks before version 5 is their signature.

    Raises ``NodeUnavailable``.
    """
    try:
        return ChainStatus(int(header["height"]), _decode(header.get("id") or header["signature"]))
    except (AttributeError, KeyError, TypeError, ValueError, Base58Error) as error:
        raise NodeUnavailable("the node sends an invalid block") from error


def _decode(text: object) -> bytes:
    if not isinstance(text, str):
        raise NodeUnavailable("the node leaves out an id")
    return base58.decode(text)
