"""The node's notes of changes of its pool, for the gRPC process.

A note is an id, so that it costs the node next to nothing; the changes that a transaction makes are
computed on request. Notes are taken from the first request on.

What lives here: the notes, and the state changes of the pool's transactions. What does not: the
events for clients (``pool_events``), notes about the chain (``node_side``).
"""

from __future__ import annotations

import asyncio
from collections import deque
from typing import Final

from soliton.chain.transactions import codec
from soliton.chain.values import value_bytes
from soliton.grpc_api.link import PoolNote, PoolNotes, Step, Steps
from soliton.ledger.state import ASSET_BALANCES, DATA, LEASES, WAVES, Missing
from soliton.node.events import Departure, NodeEvent, PoolAccepted, PoolDropped
from soliton.node.node import Node

MAX_NOTES: Final = 20_000
"""Limit on the notes that are kept; a reader further behind gets the whole pool again."""


class PoolSide:
    """The notes about one node's pool."""

    def __init__(self, node: Node) -> None:
        self._node = node
        self._notes: deque[PoolNote] = deque(maxlen=MAX_NOTES)
        self._last = 0
        self._more = asyncio.Event()
        self._listens = False

    def close(self) -> None:
        """Stop taking notes."""
        if self._listens:
            self._node.events.unsubscribe(self._on_event)

    async def happened(self, after: int) -> PoolNotes:
        """Return the notes after a number, as soon as there is one."""
        if not self._listens:
            self._listens = True
            self._node.events.subscribe(self._on_event)
        while after == self._last:
            await self._more.wait()
        behind = self._last - after
        if after < 0 or not 0 < behind <= len(self._notes):
            ids = [each.id for each in self._node.pool.transactions()]
            return PoolNotes(self._last, [], True, ids)
        skipped = len(self._notes) - behind
        return PoolNotes(self._last, [self._notes[at] for at in range(skipped, len(self._notes))])

    def _on_event(self, event: NodeEvent) -> None:
        match event:
            case PoolAccepted(transaction=transaction):
                note = PoolNote(transaction.id)
            case PoolDropped(transaction=transaction, departure=departure, reason=reason):
                why = (reason or "") if departure is Departure.INVALID else None
                note = PoolNote(transaction.id, True, why)
            case _:
                return
        self._notes.append(note)
        self._last += 1
        self._more.set()
        self._more = asyncio.Event()

    def steps(self, ids: list[bytes]) -> Steps:
        """Return the state changes of those transactions that are in the pool."""
        return Steps([self._step(each) for each in ids if each in self._node.pool])

    def _step(self, name: bytes) -> Step:
        pool = self._node.pool
        transaction = pool.get(name)
        assert transaction is not None, "the caller has checked the pool"
        balances: list[tuple[bytes, bytes, int]] = []
        leases: list[tuple[bytes, int, int]] = []
        entries: list[tuple[bytes, str, bytes]] = []
        for (table, key), before, after in pool.steps_of(name):
            if table is WAVES and after:
                balances.append((key, b"", after))
            elif table is ASSET_BALANCES and after:
                balances.append((*key, after))
            elif table is LEASES and after != before:
                shift = after.lease_in - before.lease_in, after.lease_out - before.lease_out
                leases.append((key, *shift))
            elif table is DATA:
                gone = after is None or isinstance(after, Missing)
                entries.append((*key, b"" if gone else value_bytes(after)))
        accounts: list[bytes] = [*pool.moved(name).accounts]
        data = codec.encode_protobuf(transaction)
        return Step(name, data, accounts, balances, leases, entries)
