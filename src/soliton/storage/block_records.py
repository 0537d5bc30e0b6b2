"""The records of a block by account and by transaction.

What lives here: adding them to a batch in steps, with the values that they replace. What does not:
the state itself and writing (``store``), indexes of assets, aliases and leases (``indexes``), keys
(``layout``).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import msgspec

from soliton.chain.addresses import Address
from soliton.ledger.state import DEPOSITS, LEASES, WAVES, Changes
from soliton.steps import Steps
from soliton.storage import layout
from soliton.storage.blocks import NewBlock
from soliton.storage.indexes import Records
from soliton.storage.keeping import Kept
from soliton.storage.layout import history_key, place_key

Items = dict[bytes, bytes | None]

STEP_RECORDS: Final = 256
"""Accounts, values or transactions whose records are made in one step, some two milliseconds."""

_WITHOUT_HISTORY: Final = frozenset(layout.WITHOUT_HISTORY)


def step_ends(number: int) -> bool:
    """Whether a step ends behind so many records."""
    return number % STEP_RECORDS == 0


def put_history(
    block: NewBlock, state: Records, pending: Items, undo: Items
) -> Steps[set[Address]]:
    """Add the new balances of all accounts that a block has changed, and return the accounts.
    ``state`` is that before the block.
    """
    waves, all_leases = block.changes.get(WAVES, {}), block.changes.get(LEASES, {})
    deposits = block.changes.get(DEPOSITS, {})
    addresses = waves.keys() | all_leases.keys() | deposits.keys()
    for number, address in enumerate(addresses, 1):
        balance = waves[address] if address in waves else state.get(WAVES, address)
        leases = all_leases[address] if address in all_leases else state.get(LEASES, address)
        deposit = deposits[address] if address in deposits else state.get(DEPOSITS, address)
        key = history_key(address, block.height)
        undo[key] = None
        pending[key] = layout.encode_history(balance, leases, deposit)
        if step_ends(number):
            yield
    return addresses


def put_replaced(
    block: NewBlock, now: Callable[[bytes], bytes | None], pending: Items, undo: Items
) -> Steps[None]:
    """Add the ``Replaced`` record of a block. Replaced values come from its complete ``undo``, or
    from ``now`` where a value was rewritten unchanged.
    """
    key = layout.height_key(layout.REPLACED, block.height)
    # A block that grows keeps the record of its key block.
    existing = now(key) if key in undo else None
    before: Items = {}
    if existing is None:
        initial, count = layout.encode_changes(block.initial), len(block.transactions)
    else:
        record = layout.decode_replaced(existing)
        initial, count = record.initial, record.count
        before = layout.pairs(record.before)
    if not _WITHOUT_HISTORY.isdisjoint(block.changes):
        yield from _add_replaced(block.changes, now, undo, before)
    undo[key] = None
    flat = [each for item in before.items() for each in item] if before else []
    pending[key] = layout.encode(layout.Replaced(initial, count, flat))


def _add_replaced(
    changes: Changes, now: Callable[[bytes], bytes | None], undo: Items, before: Items
) -> Steps[None]:
    for table in layout.WITHOUT_HISTORY:
        row = layout.ROWS[table]
        prefixes = layout.ASSET_PREFIXES if row.prefix in layout.ASSET_PREFIXES else (row.prefix,)
        for number, each in enumerate(changes.get(table, ()), 1):
            name = row.key(each)
            for prefix in prefixes:
                written = prefix + name
                if written not in before:
                    before[written] = undo[written] if written in undo else now(written)
            if step_ends(number):
                yield


def put_transactions(
    block: NewBlock,
    before: Callable[[bytes], bytes | None],
    pending: Items,
    undo: Items,
    kept: Kept,
) -> Steps[None]:
    """Add the locations, state changes and call records of a block's transactions, as far as they
    are ``kept``; ``before`` reads the present value of a key.
    """
    height = block.height
    for number, (index, transaction_id, offset) in enumerate(block.moved, 1):
        if step_ends(number):
            yield
        key = layout.TRANSACTION + transaction_id
        old = before(key)
        known = None if old is None else layout.decode_location(old)
        if known is not None and (known.height, known.index) == (height, index):
            undo.setdefault(key, old)
            moved = msgspec.structs.replace(known, offset=offset)
            pending[key] = layout.encode_location(moved)
    records = 0
    for index, item in enumerate(block.transactions, block.first_index):
        key = layout.TRANSACTION + item.id
        undo.setdefault(key, before(key))
        pending[key] = layout.LOCATION.pack(
            height, index, item.offset, item.length, item.status, item.complexity
        )
        place = place_key(height, index)
        for address in item.accounts if kept.by_address else ():
            key = layout.ADDRESS_TRANSACTION + address + place
            undo[key] = None
            pending[key] = item.id
        key = layout.SNAPSHOT + place
        undo[key] = None
        pending[key] = layout.encode_changes(item.changes)
        if item.call is not None and kept.calls:
            key = layout.CALL + place
            undo[key] = None
            pending[key] = layout.encode(item.call)
        records += 4 + len(item.accounts) + sum(map(len, item.changes.values()))
        if records >= STEP_RECORDS:
            records = 0
            yield
