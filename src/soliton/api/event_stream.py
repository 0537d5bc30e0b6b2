"""What one client of ``/events`` gets: the chain from its place on, then what happens.

Events of the chain are not queued for a client. It has a place on the chain, and what lies between
that and the end of the chain is read from the store when the client is ready for more: history and
the present take the same way, and who reads slowly costs nothing. Only what happens in the pool has
to be kept until a client takes it, up to a limit; a client that falls further behind is told so,
and may come back with the id of its last event.

What lives here: the order of events and their form. What does not: parameters (``rest.events``),
ids (``event_ids``), the node's own notices (``soliton.node.events``).

The form is that of server-sent events: https://html.spec.whatwg.org/multipage/server-sent-events.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import AsyncIterator, Callable
from functools import partial
from typing import Final

import msgspec

from soliton.api.errors import TOO_MANY_WAITING
from soliton.api.event_ids import BlockBytes, Found, Place
from soliton.api.event_stream_registry import MAX_STREAMS, EventStreams
from soliton.api.json_blocks import header_json
from soliton.api.json_snapshots import balances_json
from soliton.api.json_transactions import confirmed_json, unconfirmed_json
from soliton.api.time_slices import TimeSlices
from soliton.chain import blocks
from soliton.chain.addresses import Address
from soliton.chain.transactions import codec
from soliton.chain.transactions.model import AnyTransaction
from soliton.crypto import base58
from soliton.ledger.state import ASSET_BALANCES, WAVES, Changes
from soliton.node.blockchain import Blockchain, FoundTransaction
from soliton.node.events import (
    Departure,
    Moved,
    NodeEvent,
    PoolAccepted,
    PoolDropped,
    PoolEvent,
    RolledBack,
    Stopping,
)
from soliton.node.node import Node

HEARTBEAT_SECONDS: Final = 15.0
"""So that proxies do not take a quiet stream for a dead one."""
MAX_WAITING: Final = 20_000
"""Notices about the pool that wait for one client; they share the transactions with the pool."""
_STEP_EVENTS: Final = 64
"""So many events are made before others get their turn: a few milliseconds."""
_RETRY_MS: Final = 2_000

_encode: Final = msgspec.json.Encoder().encode


class EventFilter(msgspec.Struct, frozen=True, kw_only=True):
    """What a client wants to be told; no types or no accounts mean all of them."""

    blocks: bool = True
    microblocks: bool = True
    transactions: bool = True
    pool: bool = False
    types: frozenset[int] = frozenset()
    accounts: tuple[Address, ...] = ()


class EventStream:
    """One client's events, as bytes of a stream."""

    __slots__ = (
        "_at_end",
        "_behind",
        "_block",
        "_filter",
        "_floor",
        "_live",
        "_place",
        "_reason",
        "_shared",
        "_slices",
        "_start",
        "_told_count",
        "_waiting",
        "_wake",
        "node",
    )

    def __init__(
        self,
        node: Node,
        wanted: EventFilter,
        shared: EventStreams,
        slices: TimeSlices,
        start: Callable[[], Found],
    ) -> None:
        """``start`` finds where to begin, when the stream does; what it raises, ``chunks`` does."""
        self.node = node
        self._filter = wanted
        self._shared = shared
        self._slices = slices
        self._start = start
        self._place = Place(0, 0)
        self._floor: Place | None = None
        self._behind = False
        self._block: BlockBytes | None = None
        self._told_count = 0
        self._at_end = False
        self._live = False
        self._reason: str | None = None
        self._waiting: deque[PoolEvent | None] = deque()
        self._wake = asyncio.Event()

    async def chunks(self) -> AsyncIterator[bytes]:
        """The stream; it ends when the client falls behind or the node stops.

        Raises ``ApiError`` when there are too many, and what ``start`` raises.
        """
        if self._shared.open >= MAX_STREAMS:
            raise TOO_MANY_WAITING.error()
        self._begin(self._start())
        self._shared.open += 1
        self.node.events.subscribe(self._notice)
        try:
            yield b"retry: %d\n\n" % _RETRY_MS
            # One of those who read what has been, in each round: there may be hundreds.
            ends_at = await self._slices.take()
            while (chunk := self._chain_events(ends_at)) or not self._at_end:
                if chunk:
                    yield chunk
                ends_at = await self._slices.take()
            # From here to the first wait nothing else runs: the pool is that of the chain's end.
            self._live = True
            if self._filter.pool:
                present = self.node.pool.transactions()
                for start in range(0, len(present), _STEP_EVENTS):
                    yield b"".join(map(self._present, present[start : start + _STEP_EVENTS]))
                    await asyncio.sleep(0)
            yield self._event("synced", self._tip())
            async for chunk in self._present_events():
                if chunk:
                    yield chunk
            self._shared.dropped += self._reason != _STOPS
            yield self._event("closed", {"reason": self._reason})
        finally:
            self.node.events.unsubscribe(self._notice)
            self._shared.open -= 1

    def _begin(self, found: Found) -> None:
        self._place, self._told_count, self._behind = found
        if self._behind:
            self._floor = self._place

    async def _present_events(self) -> AsyncIterator[bytes]:
        while True:
            self._wake.clear()
            while self._waiting and self._reason in (None, _STOPS):
                # A block wakes all streams at once.
                ends_at = await self._slices.take()
                yield self._next(ends_at)
            if self._reason is not None:
                return
            try:
                async with asyncio.timeout(HEARTBEAT_SECONDS):
                    await self._wake.wait()
            except TimeoutError:
                yield b": heartbeat\n\n"

    def _next(self, ends_at: float) -> bytes:
        """Some of what waits; the chain's part stays in line until all of it is told."""
        told = bytearray()
        for _ in range(_STEP_EVENTS):
            if not self._waiting:
                break
            notice = self._waiting[0]
            if notice is None:
                told += self._chain_events(ends_at)
                if not self._at_end:
                    break
            else:
                make = partial(_pool_event, self.node, notice)
                told += self._shared.told(id(notice), make, notice)
            self._waiting.popleft()
            if time.perf_counter() >= ends_at:
                break
        return bytes(told)

    # --- notices of the node ----------------------------------------------------------------------

    def _notice(self, event: NodeEvent) -> None:
        match event:
            case PoolAccepted() | PoolDropped():
                if self._live and self._filter.pool and self._concerns(event):
                    self._wait(event)
                return
            case Stopping():
                self._reason = self._reason or _STOPS
            case RolledBack(height=height, block=block):
                self._shared.forget()
                floor = Place(height, len(block.transactions))
                if self._floor is None or floor < self._floor:
                    self._floor = floor
                self._wait(None)
            case _:
                self._wait(None)
        self._wake.set()

    def _wait(self, notice: PoolEvent | None) -> None:
        if not self._live or (notice is None and self._waiting and self._waiting[-1] is None):
            return
        if len(self._waiting) >= MAX_WAITING:
            self._reason = f"{MAX_WAITING} events wait: the client is too slow"
            self._waiting.clear()
        if self._reason is None:
            self._waiting.append(notice)
        self._wake.set()

    def _concerns(self, event: PoolEvent) -> bool:
        wanted = self._filter
        if wanted.types and event.transaction.type_id not in wanted.types:
            return False
        return not wanted.accounts or any(
            account in event.moved.accounts for account in wanted.accounts
        )

    # --- the chain --------------------------------------------------------------------------------

    def _chain_events(self, ends_at: float) -> bytes:
        """The next events between the client's place and the end of the chain, until a moment."""
        told = bytearray()
        if self._floor is not None:
            told += self._go_back(self._floor)
        chain = self.node.chain
        self._at_end = False
        for _ in range(_STEP_EVENTS):
            block = self._block_here()
            if block is not None and self._place.behind < len(block.spans):
                told += self._next_of(block)
            elif self._place.height < chain.height:
                told += self._next_block()
            else:
                self._at_end = True
                break
            if time.perf_counter() >= ends_at:
                break
        return bytes(told)

    def _go_back(self, floor: Place) -> bytes:
        """What was taken off since the client was told of it has to go."""
        known = Place(self._place.height, max(self._told_count, self._place.behind))
        must, self._behind, self._floor, self._block = self._behind, False, None, None
        if floor >= known and not must:
            return b""
        self._place = min(self._place, floor)
        self._told_count = floor.behind
        return self._event("rollback", self._tip(floor), at_place=True)

    def _block_here(self) -> BlockBytes | None:
        height, chain = self._place.height, self.node.chain
        if height == 0:
            return None
        block = self._block
        if block is None or block.height != height:
            self._block = block = BlockBytes(chain, height)
        else:
            block.follow(chain)
        return block

    def _next_block(self) -> bytes:
        height = self._place.height + 1
        self._place = Place(height, 0)
        block = self._block_here()
        assert block is not None
        self._told_count = len(block.spans)
        if not self._filter.transactions:
            self._place = Place(height, len(block.spans))
        if not self._filter.blocks:
            return b""
        chain = self.node.chain
        key = ("block", height, chain.meta(height).id)
        header = self._shared.told(key, lambda: _encode(header_json(chain, height)))
        return _event(b"block", header, self._id()) + self._edits(height)

    def _edits(self, height: int) -> bytes:
        """What was changed by hand with the block, on a private chain."""
        found = self.node.chain.store.by_hand(height)
        if found is None or not found.edits:
            return b""
        return self._event("edited", {"height": height, "edits": found.edits})

    def _next_of(self, block: BlockBytes) -> bytes:
        """That the block has grown, or its next transaction."""
        height, count = self._place
        total = len(block.spans)
        if self._told_count < total:
            added, self._told_count = total - self._told_count, total
            if not self._filter.transactions:
                self._place = Place(height, total)
            if not self._filter.microblocks:
                return b""
            grown = self._tip(Place(height, total)) | {"added": added}
            return self._event("microblock", grown, at_place=True)
        if not self._filter.transactions:
            self._place = Place(height, total)
            return b""
        place, self._place = self._place, Place(height, count + 1)
        found = self._wanted(block, place)
        if found is None:
            return b""
        chain = self.node.chain
        key = (found.transaction.id, place)
        shown = self._shared.told(key, lambda: _transaction_data(chain, found, place))
        return _event(b"transaction", shown, self._id())

    def _wanted(self, block: BlockBytes, place: Place) -> FoundTransaction | None:
        wanted, chain = self._filter, self.node.chain
        if wanted.accounts and not any(
            chain.store.is_listed(account, *place) for account in wanted.accounts
        ):
            return None
        if block.data is chain.last_block.data:
            transaction: AnyTransaction = chain.last_block.transactions[place.behind]
        else:
            legacy = block.data[0] < blocks.PROTOBUF_VERSION
            decode = codec.decode_legacy if legacy else codec.decode_protobuf
            transaction = decode(block.piece(place.behind), chain.network.chain_id)
        if wanted.types and transaction.type_id not in wanted.types:
            return None
        location = chain.store.transaction_location(transaction.id)
        assert location is not None
        return FoundTransaction(transaction, place.height, location.status, location.complexity)

    def _tip(self, place: Place | None = None) -> dict[str, object]:
        """A block's name and how many of its transactions count."""
        height, count = place or self._place
        name = base58.encode(self.node.chain.meta(height).id) if height else None
        return {"height": height, "id": name, "transactionCount": count}

    def _id(self) -> bytes:
        block = self._block_here()
        return b"" if block is None else self._id_in(block)

    def _id_in(self, block: BlockBytes) -> bytes:
        return block.event_id(self._place.behind, self._told_count).encode()

    # --- the pool ---------------------------------------------------------------------------------

    def _present(self, transaction: AnyTransaction) -> bytes:
        """A transaction that was in the pool when the client came, if it still is."""
        if transaction.id not in self.node.pool:
            return b""
        event = PoolAccepted(transaction, self.node.pool.moved(transaction.id))
        return _pool_event(self.node, event) if self._concerns(event) else b""

    def _event(self, name: str, data: object, *, at_place: bool = False) -> bytes:
        where = self._id() if at_place or name == "synced" else b""
        return _event(name.encode(), _encode(data), where)


_STOPS: Final = "the node stops"


def _transaction_data(chain: Blockchain, found: FoundTransaction, place: Place) -> bytes:
    """A transaction of the chain, with the balances that it left behind."""
    location = chain.store.transaction_location(found.transaction.id)
    changes = None if location is None else chain.store.transaction_changes(location)
    members: dict[str, object] = {"height": place.height, "index": place.behind}
    members |= {"transaction": confirmed_json(found, chain)}
    return _encode(members | {"balances": balances_json(changes or {})})


def _pool_event(node: Node, event: PoolEvent) -> bytes:
    transaction = event.transaction
    balances = balances_json(_balances(node, event.moved))
    if isinstance(event, PoolAccepted):
        shown = unconfirmed_json(transaction, node.chain)
        data = _encode({"transaction": shown, "balances": balances})
        return _event(b"unconfirmed", data, b"")
    members: dict[str, object] = {"id": base58.encode(transaction.id)}
    members["why"] = event.departure.value
    if event.departure is not Departure.MINED:
        members["reason"] = event.reason
    return _event(b"left", _encode(members | {"balances": balances}), b"")


def _balances(node: Node, moved: Moved) -> Changes:
    """What the accounts have, with all that waits in the pool."""
    state = node.pool.state()
    return {
        WAVES: {address: state.get(WAVES, address) for address in moved.waves},
        ASSET_BALANCES: {key: state.get(ASSET_BALANCES, key) for key in moved.assets},
    }


def _event(name: bytes, data: bytes, where: bytes) -> bytes:
    head = b"id: %s\n" % where if where else b""
    return b"%sevent: %s\ndata: %s\n\n" % (head, name, data)
