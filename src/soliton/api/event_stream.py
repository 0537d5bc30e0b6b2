"""The events that one client of ``/events`` receives: the chain from its place on, then live ones.

Events of the chain are not queued. A client has a place on the chain, and when it is ready for
more, the events between that place and the tip are read from the store. History and live events
take the same path, and a slow client costs nothing. Only pool events are queued, up to a limit. The
stream of a client that falls further behind is closed with a reason; the client may resume from the
id of its last event.

What lives here: the order and the form of events. What does not: parameters (``rest.events``), ids
(``event_ids``), the node's own events (``soliton.node.events``).

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
from soliton.node.accounts import accounts_of_confirmed
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
"""Keeps proxies from closing a quiet stream."""
MAX_WAITING: Final = 20_000
"""The limit on queued pool events of one client; they share the transactions with the pool."""
_STEP_EVENTS: Final = 64
"""Events rendered before yielding to the event loop: a few milliseconds."""
_RETRY_MS: Final = 2_000

_encode: Final = msgspec.json.Encoder().encode


class EventFilter(msgspec.Struct, frozen=True, kw_only=True):
    """A client's event filter. An empty set of types or accounts matches all."""

    blocks: bool = True
    microblocks: bool = True
    finalized: bool = False
    transactions: bool = True
    pool: bool = False
    types: frozenset[int] = frozenset()
    accounts: tuple[Address, ...] = ()


class EventStream:
    """One client's events as server-sent events."""

    __slots__ = (
        "_at_end",
        "_behind",
        "_block",
        "_filter",
        "_final",
        "_floor",
        "_known_count",
        "_live",
        "_place",
        "_reason",
        "_shared",
        "_slices",
        "_start",
        "_waiting",
        "_wake",
        "node",
    )

    def __init__(
        self,
        node: Node,
        filters: EventFilter,
        shared: EventStreams,
        slices: TimeSlices,
        start: Callable[[], Found],
    ) -> None:
        """``start`` finds the first place when the stream begins; ``chunks`` raises its errors."""
        self.node = node
        self._filter = filters
        self._shared = shared
        self._slices = slices
        self._start = start
        self._place = Place(0, 0)
        self._final = 0
        self._floor: Place | None = None
        self._behind = False
        self._block: BlockBytes | None = None
        self._known_count = 0
        self._at_end = False
        self._live = False
        self._reason: str | None = None
        self._waiting: deque[PoolEvent | None] = deque()
        self._wake = asyncio.Event()

    async def chunks(self) -> AsyncIterator[bytes]:
        """Yield the stream, which ends when the client falls behind or the node stops.

        Raises ``ApiError`` when there are too many streams, and the errors of ``start``.
        """
        if self._shared.open >= MAX_STREAMS:
            raise TOO_MANY_WAITING.error()
        self._begin(self._start())
        self._shared.open += 1
        self.node.events.subscribe(self._notice)
        try:
            yield b"retry: %d\n\n" % _RETRY_MS
            # Hundreds of streams may read history, so each takes time slices.
            ends_at = await self._slices.take()
            while (chunk := self._chain_events(ends_at)) or not self._at_end:
                if chunk:
                    yield chunk
                ends_at = await self._slices.take()
            # There is no await up to the snapshot of the pool, so it matches the chain's tip.
            self._live = True
            # As of the events so far: blocks may come while the pool is sent.
            synced = self._tip() | {"finalizedHeight": self.node.chain.finalized_height}
            if self._filter.pool:
                present = self.node.pool.transactions()
                for start in range(0, len(present), _STEP_EVENTS):
                    yield b"".join(map(self._present, present[start : start + _STEP_EVENTS]))
                    await asyncio.sleep(0)
            yield self._event("synced", synced)
            async for chunk in self._present_events():
                if chunk:
                    yield chunk
            self._shared.dropped += self._reason != _STOPS
            yield self._event("closed", {"reason": self._reason})
        finally:
            self.node.events.unsubscribe(self._notice)
            self._shared.open -= 1

    def _begin(self, found: Found) -> None:
        self._place, self._known_count, self._behind = found
        self._final = self._final_at(self._place.height)
        if self._behind:
            self._floor = self._place

    async def _present_events(self) -> AsyncIterator[bytes]:
        while True:
            self._wake.clear()
            while self._waiting and self._reason in (None, _STOPS):
                # A block wakes all streams at once, so each takes time slices.
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
        """Render some of the queue. ``None`` in it means the chain's events, and stays there until
        all of them are rendered.
        """
        chunk = bytearray()
        for _ in range(_STEP_EVENTS):
            if not self._waiting:
                break
            notice = self._waiting[0]
            if notice is None:
                chunk += self._chain_events(ends_at)
                if not self._at_end:
                    break
            else:
                make = partial(_pool_event, self.node, notice)
                chunk += self._shared.rendered(id(notice), make, notice)
            self._waiting.popleft()
            if time.perf_counter() >= ends_at:
                break
        return bytes(chunk)

    # --- events of the node -----------------------------------------------------------------------

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
        filters = self._filter
        if filters.types and event.transaction.type_id not in filters.types:
            return False
        return not filters.accounts or any(
            account in event.moved.accounts for account in filters.accounts
        )

    # --- the chain --------------------------------------------------------------------------------

    def _chain_events(self, ends_at: float) -> bytes:
        """Render events between the client's place and the tip, until ``ends_at``."""
        chunk = bytearray()
        if self._floor is not None:
            chunk += self._go_back(self._floor)
        chain = self.node.chain
        self._at_end = False
        for _ in range(_STEP_EVENTS):
            block = self._block_here()
            if block is not None and self._place.offset < len(block.spans):
                chunk += self._next_of(block)
            elif self._place.height < chain.height:
                chunk += self._next_block()
            else:
                self._at_end = True
                break
            if time.perf_counter() >= ends_at:
                break
        return bytes(chunk)

    def _go_back(self, floor: Place) -> bytes:
        """Render the rollback of events that the client has and the chain no longer has."""
        known = Place(self._place.height, max(self._known_count, self._place.offset))
        must, self._behind, self._floor, self._block = self._behind, False, None, None
        if floor >= known and not must:
            return b""
        self._place = min(self._place, floor)
        self._final = min(self._final, floor.height)
        self._known_count = floor.offset
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
        final = self._newly_final(height)
        self._place = Place(height, 0)
        block = self._block_here()
        assert block is not None
        self._known_count = len(block.spans)
        if not self._filter.transactions:
            self._place = Place(height, len(block.spans))
        if not self._filter.blocks:
            return final
        chain = self.node.chain
        key = ("block", height, chain.meta(height).id)
        header = self._shared.rendered(key, lambda: _encode(header_json(chain, height)))
        return final + _event(b"block", header, self._id()) + self._edits(height)

    def _newly_final(self, height: int) -> bytes:
        """The block that becomes final with the block at a height. It comes before that block, with
        the id of the place there: a client that resumes after the block has had it.
        """
        final = self._final_at(height)
        if final <= self._final:
            # After a fork less may be known to be final; what was final still is.
            return b""
        self._final = final
        if not self._filter.finalized:
            return b""
        found = {"height": final, "id": base58.encode(self.node.chain.meta(final).id)}
        return self._event("finalized", found, at_place=True)

    def _final_at(self, height: int) -> int:
        """The height of the last final block when the block at a height was the last one."""
        return self.node.chain.finalized_under(height) if height else 0

    def _edits(self, height: int) -> bytes:
        """The state that a private chain's controls edited with the block."""
        found = self.node.chain.store.by_hand(height)
        if found is None or not found.edits:
            return b""
        return self._event("edited", {"height": height, "edits": found.edits})

    def _next_of(self, block: BlockBytes) -> bytes:
        """The growth of the block (``microblock``), or its next transaction."""
        height, count = self._place
        total = len(block.spans)
        if self._known_count < total:
            added, self._known_count = total - self._known_count, total
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
        found = self._matching(block, place)
        if found is None:
            return b""
        chain = self.node.chain
        key = (found.transaction.id, place)
        shown = self._shared.rendered(key, lambda: _transaction_data(chain, found, place))
        return _event(b"transaction", shown, self._id())

    def _matching(self, block: BlockBytes, place: Place) -> FoundTransaction | None:
        """The transaction at a place, if it passes the filter."""
        filters, chain = self._filter, self.node.chain
        is_listed = chain.store.kept.by_address
        if (
            filters.accounts
            and is_listed
            and not any(chain.store.is_listed(account, *place) for account in filters.accounts)
        ):
            return None
        if block.data is chain.last_block.data:
            transaction: AnyTransaction = chain.last_block.transactions[place.offset]
        else:
            legacy = block.data[0] < blocks.PROTOBUF_VERSION
            decode = codec.decode_legacy if legacy else codec.decode_protobuf
            transaction = decode(block.piece(place.offset), chain.network.chain_id)
        if filters.types and transaction.type_id not in filters.types:
            return None
        location = chain.store.transaction_location(transaction.id)
        assert location is not None
        if filters.accounts and not is_listed:
            changes = chain.store.changes_and_call(*place)[0]
            own = accounts_of_confirmed(transaction, location.status, changes, chain.state)
            if not any(account in own for account in filters.accounts):
                return None
        return FoundTransaction(transaction, place.height, location.status, location.complexity)

    def _tip(self, place: Place | None = None) -> dict[str, object]:
        """The height, the id and the number of transactions of a place's block."""
        height, count = place or self._place
        name = base58.encode(self.node.chain.meta(height).id) if height else None
        return {"height": height, "id": name, "transactionCount": count}

    def _id(self) -> bytes:
        block = self._block_here()
        return b"" if block is None else self._id_in(block)

    def _id_in(self, block: BlockBytes) -> bytes:
        return block.event_id(self._place.offset, self._known_count).encode()

    # --- the pool ---------------------------------------------------------------------------------

    def _present(self, transaction: AnyTransaction) -> bytes:
        """A transaction from the pool's snapshot, if it is still there and passes the filter."""
        if transaction.id not in self.node.pool:
            return b""
        event = PoolAccepted(transaction, self.node.pool.moved(transaction.id))
        return _pool_event(self.node, event) if self._concerns(event) else b""

    def _event(self, name: str, data: object, *, at_place: bool = False) -> bytes:
        where = self._id() if at_place or name == "synced" else b""
        return _event(name.encode(), _encode(data), where)


_STOPS: Final = "the node stops"


def _transaction_data(chain: Blockchain, found: FoundTransaction, place: Place) -> bytes:
    """A confirmed transaction with the balances after it."""
    location = chain.store.transaction_location(found.transaction.id)
    changes = None if location is None else chain.store.transaction_changes(location)
    members: dict[str, object] = {"height": place.height, "index": place.offset}
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
    """The balances of the accounts after all transactions of the pool."""
    state = node.pool.state()
    return {
        WAVES: {address: state.get(WAVES, address) for address in moved.waves},
        ASSET_BALANCES: {key: state.get(ASSET_BALANCES, key) for key in moved.assets},
    }


def _event(name: bytes, data: bytes, where: bytes) -> bytes:
    head = b"id: %s\n" % where if where else b""
    return b"%sevent: %s\ndata: %s\n\n" % (head, name, data)
