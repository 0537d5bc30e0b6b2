"""Watching a node that has no stream of events: asking for its last block and its pool.

What lives here: how answers become updates; forks are found by comparing the ids of the last
blocks. What does not: single questions (``http_client``).

Source: wavesplatform/matcher ``docs/waves-node-interaction.md`` for what a matcher has to notice.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator, Mapping
from types import MappingProxyType
from typing import Any, Final, NamedTuple, Protocol, TypeAlias

from soliton.chain.errors import ChainError
from soliton.chain.transactions.json_reader import read_signed
from soliton.chain.transactions.model import AnyTransaction
from soliton.crypto import base58
from soliton.crypto.errors import Base58Error
from soliton.matcher.errors import NodeUnavailable
from soliton.matcher.log_throttle import throttled
from soliton.matcher.node_client import ChainStatus, NodeUpdate

MAX_ROLLBACK: Final = 100
"""The network itself never goes back more blocks than this."""
HEADERS_PER_REQUEST: Final = 100
_LONGEST_PAUSE: Final = 30.0

Json: TypeAlias = Any
"""What a node has sent: nothing about it is certain."""

_log = throttled(logging.getLogger(__name__))


class Source(Protocol):
    """Where answers come from."""

    async def get(self, path: str) -> Json:
        """The JSON at a path; raises ``NodeUnavailable``."""


class _Block(NamedTuple):
    """A block by its name, with the transactions in it; ``None`` where they were not read."""

    id: bytes
    transactions: tuple[bytes, ...] | None


class _Moves(NamedTuple):
    """How a chain became another: up to which height it stayed, if any block went; what is in the
    new blocks; the blocks to know from now on; whether something in between was not seen.
    """

    rolled_back_to: int | None = None
    confirmed: tuple[tuple[bytes, int], ...] = ()
    blocks: Mapping[int, _Block] = MappingProxyType({})
    missed: bool = False


_NO_MOVES: Final = _Moves()


class Poller:
    """One watcher of one node. Requests that fail are asked again, ever more slowly."""

    def __init__(self, source: Source, interval: float, chain_id: int) -> None:
        self._source = source
        self._interval = interval
        self._chain_id = chain_id
        self._blocks: dict[int, _Block] = {}
        self._pool: frozenset[bytes] = frozenset()
        self._status: ChainStatus | None = None

    async def updates(self) -> AsyncGenerator[NodeUpdate, None]:
        """What happens on the node, for ever."""
        pause = self._interval
        interrupted = True
        while True:
            try:
                update = await self._ask(interrupted)
            except NodeUnavailable as error:
                _log.warning("%s", error)
                interrupted, pause = True, min(pause * 2, _LONGEST_PAUSE)
            else:
                interrupted, pause = False, self._interval
                if update is not None:
                    yield update
            await asyncio.sleep(pause)

    async def _ask(self, interrupted: bool) -> NodeUpdate | None:
        try:
            return await self._poll(interrupted)
        except (AttributeError, KeyError, TypeError, ValueError, Base58Error) as error:
            raise NodeUnavailable(f"the node answers, but not as a node does: {error!r}") from error

    async def _poll(self, interrupted: bool) -> NodeUpdate | None:
        header = await self._source.get("/blocks/headers/last")
        last = block_status(header)
        pool = await self._read_pool()
        moved = self._status is None or last != self._status
        moves = await self._follow(last) if moved else _NO_MOVES
        # Nothing is known to have happened before it is told: a question that failed comes again.
        appeared = [each for key, each in pool.items() if key not in self._pool]
        vanished = self._pool - pool.keys()
        self._pool = frozenset(pool)
        self._status = last
        self._blocks.update(moves.blocks)
        self._blocks = {
            height: block
            for height, block in self._blocks.items()
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
        )

    async def _follow(self, last: ChainStatus) -> _Moves:
        """How the chain came from the known blocks to the node's; changes nothing here."""
        before = max(self._blocks, default=0)
        stayed = await self._common_height(before, last) if before else None
        if stayed is None or last.height - stayed > MAX_ROLLBACK:
            # Nothing to compare with: what is known starts here, with all blocks that may go.
            blocks = await self._known_from(last)
            return _Moves(confirmed=_mined(blocks), blocks=blocks, missed=bool(before))
        blocks = await self._read_blocks(stayed, last)
        confirmed = _mined(blocks)
        # A last block that grew is no rollback; one that lost transactions, or more, is.
        kept = {each for each, _ in confirmed}
        rolled_back = any(
            height < before or block.transactions is None or not kept.issuperset(block.transactions)
            for height, block in self._blocks.items()
            if height > stayed
        )
        return _Moves(stayed if rolled_back else None, confirmed, blocks)

    async def _common_height(self, before: int, last: ChainStatus) -> int | None:
        """The highest block that is still the same; ``None`` where no known block is."""
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

    async def _known_from(self, last: ChainStatus) -> dict[int, _Block]:
        """The last block and the names of those below it that the network might still take off."""
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
            answer = await self._source.get(f"/blocks/headers/seq/{start}/{end}")
            found.extend(answer if isinstance(answer, list) else [])
        return found

    async def _read_blocks(
        self, stayed: int, last: ChainStatus, known: Mapping[int, _Block] | None = None
    ) -> dict[int, _Block]:
        """The blocks above one that stayed, each of which must follow on the one below: the chain
        may become another one between two answers.
        """
        below = (self._blocks if known is None else known).get(stayed)
        found: dict[int, _Block] = {}
        for height in range(stayed + 1, last.height + 1):
            answer = await self._source.get(f"/blocks/at/{height}")
            status = block_status(answer)
            follows = below is None or _decode(answer.get("reference")) == below.id
            if status.height != height or not follows:
                raise NodeUnavailable("the node's chain changed while it was being read")
            ids = tuple(_decode(each.get("id")) for each in answer.get("transactions", ()))
            below = found[height] = _Block(status.block_id, ids)
        return found

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


def _mined(blocks: Mapping[int, _Block]) -> tuple[tuple[bytes, int], ...]:
    """The transactions that were read, with their heights."""
    return tuple((each, at) for at, block in blocks.items() for each in block.transactions or ())


def block_status(header: Json) -> ChainStatus:
    """Height and id of a block or header; blocks before version 5 are named by their signature.

    Raises ``NodeUnavailable``.
    """
    try:
        return ChainStatus(int(header["height"]), _decode(header.get("id") or header["signature"]))
    except (AttributeError, KeyError, TypeError, ValueError, Base58Error) as error:
        raise NodeUnavailable("the node describes a block, but not as a node does") from error


def _decode(text: object) -> bytes:
    if not isinstance(text, str):
        raise NodeUnavailable("the node leaves out an id")
    return base58.decode(text)
