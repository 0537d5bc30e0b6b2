"""What comes into the node's pool and leaves it, told to clients: the stream of the DEX extension.

A subscriber hears first what is in the pool, then what comes and goes. Who reads too slowly is told
the whole pool again, which every client of this stream understands. What came and went before it
could be told is not told at all.

What lives here: the pool as it was told, its subscribers, and their messages. What does not: the
node's notes of it (``pool_notes``), other calls (``matcher_service``).

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
    Asking,
    FindSteps,
    PoolHappened,
    PoolNotes,
    Step,
    Steps,
)
from soliton.grpc_api.proto import waves_blockchain_api_pb2 as pb
from soliton.grpc_api.sending import NOT_REACHABLE
from soliton.ledger.state import ASSET_BALANCES, DATA, LEASES, WAVES, LeaseBalance, Overlay
from soliton.node.blockchain import Blockchain

MAX_QUEUE: Final = 10_000
"""Events that may wait for a subscriber; then it is told the whole pool."""
MAX_QUEUE_BYTES: Final = 64 * 1024 * 1024
"""The same of their bytes; what waits for several is there once."""
SWITCH_BYTES: Final = 3 * 1024 * 1024
"""So much of a pool is told in one message, the rest one by one: clients take 4 MiB by default."""
AGAIN_SECONDS: Final = 1.0
_SWITCH: Final = 1
_UPDATE: Final = 2
_TRANSACTIONS: Final = 1
_ADDED: Final = 1
_REMOVED: Final = 2
_TRANSACTION: Final = 1
_REASON_NAME: Final = "TransactionValidationError"
_log = logging.getLogger(__name__)


class _Subscriber:
    """What waits for one stream."""

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
    """The pool of the node, and who hears of it. Use from one event loop."""

    def __init__(self, node: Asking, accounts: Collection[Address] = ()) -> None:
        """Of transactions of these ``accounts`` scripts see what they change (``above``)."""
        self._node = node
        self._accounts = frozenset(accounts)
        self._last = -1
        self._task: asyncio.Task[None] | None = None
        self._waiting: dict[bytes, tuple[Step, bytes]] = {}
        self._subscribers: set[_Subscriber] = set()
        self._turn = asyncio.Lock()
        self._is_over = False

    async def stop(self) -> None:
        """Tell subscribers that it is over."""
        self._is_over = True
        for each in self._subscribers:
            each.more.set()
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    async def begin(self) -> None:
        """Know the pool from now on; raises ``Refused``."""
        async with self._turn:
            if self._task is None:
                await self._take_notes()
                self._task = asyncio.create_task(self._follow())

    async def events(self) -> AsyncIterator[bytes]:
        """The pool, then what becomes of it."""
        await self.begin()
        subscriber = _Subscriber()
        try:
            while True:
                async with self._turn:
                    subscriber.is_behind = False
                    self._subscribers.add(subscriber)
                    pool = [shown for _, shown in self._waiting.values()]
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

    def above(self, chain: Blockchain) -> Overlay:
        """The state of a chain with what transactions of the accounts would change: balances,
        leases and data.
        """
        state = Overlay(chain.store, chain.height + 1)
        for name, (step, _) in self._waiting.items():
            listed = not self._accounts.isdisjoint(step.accounts)
            if listed and chain.store.transaction_location(name) is None:
                _put_above(state, step)
        return state

    # --- following the node -----------------------------------------------------------------------

    async def _follow(self) -> None:
        while True:
            try:
                await self._take_notes()
            except Refused:
                # The node is gone, and with it soon this process.
                return
            except Exception:  # noqa: BLE001 - a fault here must not end the stream for good
                _log.exception("the pool could not be followed: looking at it anew")
                self._last = -1
                await asyncio.sleep(AGAIN_SECONDS)

    async def _take_notes(self) -> None:
        answer = await self._node.ask(PoolHappened(self._last))
        if not isinstance(answer, PoolNotes):
            raise Refused(Code.UNAVAILABLE, NOT_REACHABLE)
        gone: dict[bytes, str | None] = {each.id: each.reason for each in answer.notes if each.gone}
        added = [each.id for each in answer.notes if not each.gone]
        if answer.lost:
            there = set(answer.ids)
            gone = {name: None for name in self._waiting if name not in there}
            added = answer.ids
        # One that came back is there again; one that came and went never was.
        left = {each.id: each.gone for each in answer.notes}
        for name, reason in gone.items():
            found = self._waiting.pop(name, None)
            if found is not None:
                self._tell(_removed(found[1], reason))
        wanted = [name for name in dict.fromkeys(added) if not left.get(name)]
        wanted = [name for name in wanted if name not in self._waiting]
        for start in range(0, len(wanted), MAX_IDS):
            found_steps = await self._node.ask(FindSteps(wanted[start : start + MAX_IDS]))
            if not isinstance(found_steps, Steps):
                raise Refused(Code.UNAVAILABLE, NOT_REACHABLE)
            for step in found_steps.found:
                shown = _shown(step)
                self._waiting[step.id] = step, shown
                self._tell(_added(shown))
        self._last = answer.last

    def _tell(self, event: bytes) -> None:
        for each in self._subscribers:
            each.push(event)


def _put_above(state: Overlay, step: Step) -> None:
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


def _shown(step: Step) -> bytes:
    """``UtxTransaction``. As in the reference, "after" is by how much an amount changes."""
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
    # One by one: the pool is there once, whoever reads it.
    for shown in pool[count:]:
        yield _added(shown)


def _added(shown: bytes) -> bytes:
    return delimited(_UPDATE, delimited(_ADDED, delimited(_TRANSACTION, shown)))


def _removed(shown: bytes, reason: str | None) -> bytes:
    message = pb.UtxEvent.Update.Removed()
    if reason is not None:
        message.reason.name, message.reason.message = _REASON_NAME, reason
    rest = message.SerializeToString()
    return delimited(_UPDATE, delimited(_REMOVED, delimited(_TRANSACTION, shown) + rest))
