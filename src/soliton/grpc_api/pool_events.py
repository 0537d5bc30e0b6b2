"""The stream of the matcher's API: the node's pool and its changes.

A subscriber receives the content of the pool, then additions and removals. A subscriber that reads
too slowly receives the whole pool again, which every client of this stream supports. A transaction
that was added and removed before it could be reported is not reported.

What lives here: the pool as reported, its subscribers, and their messages. What does not: the
node's notes about it (``pool_notes``), other calls (``matcher_service``).
Source: wavesplatform/matcher ``waves-ext/src/main/scala/com/wavesplatform/dex/grpc/integration/
utx/UtxState.scala``.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import AsyncIterator, Collection, Iterator
from typing import Final

from soliton.chain.addresses import Address
from soliton.chain.proto.transaction_pb2 import SignedTransaction
from soliton.chain.protobuf import delimited, write_data_entry
from soliton.chain.values import AssetId, DataEntry, DataValue, read_value
from soliton.grpc_api.errors import Code, Refused
from soliton.grpc_api.link import (
    MAX_IDS,
    AwaitPoolNotes,
    FindSteps,
    NodeLink,
    PoolNotes,
    Step,
    Steps,
)
from soliton.grpc_api.proto import waves_blockchain_api_pb2 as pb
from soliton.grpc_api.sending import NOT_REACHABLE
from soliton.ledger.state import ASSET_BALANCES, DATA, LEASES, WAVES, LeaseBalance, Overlay
from soliton.node.blockchain import Blockchain

MAX_QUEUE: Final = 10_000
"""Limit on the events in a subscriber's queue; if it overflows, the whole pool is sent again."""
MAX_QUEUE_BYTES: Final = 64 * 1024 * 1024
"""Limit on the bytes in a subscriber's queue; queues share the events."""
SWITCH_BYTES: Final = 3 * 1024 * 1024
"""The part of a pool that is sent in one message: by default clients accept 4 MiB."""
RETRY_SECONDS: Final = 1.0
_SWITCH: Final = 1
_UPDATE: Final = 2
_TRANSACTIONS: Final = 1
_ADDED: Final = 1
_REMOVED: Final = 2
_TRANSACTION: Final = 1
_REASON_NAME: Final = "TransactionValidationError"
_log = logging.getLogger(__name__)


class _Subscriber:
    """The queue of one stream."""

    def __init__(self) -> None:
        self.waiting: deque[bytes] = deque()
        self.more = asyncio.Event()
        self.is_behind = False
        self.bytes = 0

    def push(self, event: bytes) -> None:
        if len(self.waiting) >= MAX_QUEUE or self.bytes + len(event) > MAX_QUEUE_BYTES:
            self.is_behind = True
            self.waiting.clear()
            self.bytes = 0
        if not self.is_behind:
            self.waiting.append(event)
            self.bytes += len(event)
        self.more.set()

    def pop(self) -> bytes:
        event = self.waiting.popleft()
        self.bytes -= len(event)
        return event


class PoolEvents:
    """The pool of the node, and its subscribers. Use from one event loop."""

    def __init__(self, node: NodeLink, accounts: Collection[Address] = ()) -> None:
        """``accounts`` are those whose transactions ``overlay`` applies."""
        self._node = node
        self._accounts = frozenset(accounts)
        self._last = -1
        self._task: asyncio.Task[None] | None = None
        self._pool: dict[bytes, tuple[Step, bytes]] = {}
        self._subscribers: set[_Subscriber] = set()
        self._lock = asyncio.Lock()
        self._is_over = False

    async def stop(self) -> None:
        """End the streams of all subscribers."""
        self._is_over = True
        for each in self._subscribers:
            each.more.set()
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    async def start(self) -> None:
        """Start following the pool; raises ``Refused``."""
        async with self._lock:
            if self._task is None:
                await self._take_notes()
                self._task = asyncio.create_task(self._follow())

    async def events(self) -> AsyncIterator[bytes]:
        """Stream the content of the pool, then its changes."""
        await self.start()
        subscriber = _Subscriber()
        try:
            while True:
                async with self._lock:
                    subscriber.is_behind = False
                    self._subscribers.add(subscriber)
                    pool = [data for _, data in self._pool.values()]
                for each in _switch(pool):
                    yield each
                del pool
                while not subscriber.is_behind:
                    if subscriber.waiting:
                        yield subscriber.pop()
                    elif self._is_over:
                        raise Refused(Code.UNAVAILABLE, "", (("desc", "Shutting down"),))
                    else:
                        subscriber.more.clear()
                        await subscriber.more.wait()
        finally:
            self._subscribers.discard(subscriber)

    def overlay(self, chain: Blockchain) -> Overlay:
        """Return the state of a chain with the changes that unconfirmed transactions of the
        accounts would make: balances, leases and data.
        """
        state = Overlay(chain.store, chain.height + 1)
        for name, (step, _) in self._pool.items():
            listed = not self._accounts.isdisjoint(step.accounts)
            if listed and chain.store.transaction_location(name) is None:
                _apply(state, step)
        return state

    # --- following the node -----------------------------------------------------------------------

    async def _follow(self) -> None:
        while True:
            try:
                await self._take_notes()
            except Refused:
                # The node is gone, and will end this process.
                return
            except Exception:  # noqa: BLE001 - a fault must not end the stream for good
                _log.exception("the pool could not be followed: reading it again")
                self._last = -1
                await asyncio.sleep(RETRY_SECONDS)

    async def _take_notes(self) -> None:
        answer = await self._node.ask(AwaitPoolNotes(self._last))
        if not isinstance(answer, PoolNotes):
            raise Refused(Code.UNAVAILABLE, NOT_REACHABLE)
        gone: dict[bytes, str | None] = {each.id: each.reason for each in answer.notes if each.gone}
        added = [each.id for each in answer.notes if not each.gone]
        if answer.lost:
            present = set(answer.ids)
            gone = {name: None for name in self._pool if name not in present}
            added = answer.ids
        # The last note about a transaction counts.
        is_gone = {each.id: each.gone for each in answer.notes}
        for name, reason in gone.items():
            found = self._pool.pop(name, None)
            if found is not None:
                self._publish(_removed(found[1], reason))
        new = [name for name in dict.fromkeys(added) if not is_gone.get(name)]
        new = [name for name in new if name not in self._pool]
        for start in range(0, len(new), MAX_IDS):
            found_steps = await self._node.ask(FindSteps(new[start : start + MAX_IDS]))
            if not isinstance(found_steps, Steps):
                raise Refused(Code.UNAVAILABLE, NOT_REACHABLE)
            for step in found_steps.found:
                data = _transaction_bytes(step)
                self._pool[step.id] = step, data
                self._publish(_added(data))
        self._last = answer.last

    def _publish(self, event: bytes) -> None:
        for each in self._subscribers:
            each.push(event)


def _apply(state: Overlay, step: Step) -> None:
    for owner, asset_id, amount in step.balances:
        if asset_id:
            key = Address(owner), AssetId(asset_id)
            state.put(ASSET_BALANCES, key, state.get(ASSET_BALANCES, key) + amount)
        else:
            state.put(WAVES, Address(owner), state.get(WAVES, Address(owner)) + amount)
    for owner, lease_in, lease_out in step.leases:
        now = state.get(LEASES, Address(owner))
        leased = LeaseBalance(now.lease_in + lease_in, now.lease_out + lease_out)
        state.put(LEASES, Address(owner), leased)
    for owner, name, value in step.entries:
        state.put(DATA, (Address(owner), name), _read(value))


def _read(data: bytes) -> DataValue:
    return read_value(data, 0)[0] if data else None


# --- messages -------------------------------------------------------------------------------------


def _transaction_bytes(step: Step) -> bytes:
    """Return a ``UtxTransaction``; as in the reference, "after" is the change of an amount."""
    message = pb.UtxTransaction(id=step.id, transaction=SignedTransaction.FromString(step.data))
    update = message.diff.state_update
    for owner, asset_id, amount in step.balances:
        balance = update.balances.add(address=owner)
        balance.amount_after.SetInParent()
        balance.amount_after.asset_id, balance.amount_after.amount = asset_id, amount
    for owner, lease_in, lease_out in step.leases:
        update.leasing_for_address.add(address=owner, in_after=lease_in, out_after=lease_out)
    for owner, name, value in step.entries:
        written = update.data_entries.add(address=owner)
        write_data_entry(written.data_entry, DataEntry(name, _read(value)))
    return message.SerializeToString()


def _switch(pool: list[bytes]) -> Iterator[bytes]:
    size, count = 0, 0
    while count < len(pool) and size + len(pool[count]) <= SWITCH_BYTES:
        size += len(pool[count])
        count += 1
    yield delimited(_SWITCH, b"".join(delimited(_TRANSACTIONS, each) for each in pool[:count]))
    # One by one, from the list that all subscribers share.
    for each in pool[count:]:
        yield _added(each)


def _added(transaction: bytes) -> bytes:
    return delimited(_UPDATE, delimited(_ADDED, delimited(_TRANSACTION, transaction)))


def _removed(transaction: bytes, reason: str | None) -> bytes:
    message = pb.UtxEvent.Update.Removed()
    if reason is not None:
        message.reason.name, message.reason.message = _REASON_NAME, reason
    rest = message.SerializeToString()
    return delimited(_UPDATE, delimited(_REMOVED, delimited(_TRANSACTION, transaction) + rest))
