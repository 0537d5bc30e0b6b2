"""The records of a block that are listed by account and by transaction.

What lives here: making them, with what they replace. What does not: the state itself and when it is
written (``store``), indexes of assets, aliases and leases (``indexes``), keys (``layout``).
"""

from __future__ import annotations

from collections.abc import Callable

from soliton.chain.addresses import Address
from soliton.ledger.state import LEASES, WAVES
from soliton.storage import layout
from soliton.storage.blocks import NewBlock
from soliton.storage.indexes import Records
from soliton.storage.layout import history_key, place_key

Items = dict[bytes, bytes | None]


def put_history(block: NewBlock, state: Records, pending: Items, undo: Items) -> set[Address]:
    """Put the balances of all accounts that a block has changed, above the state with it; whose
    they are.
    """
    waves, all_leases = block.changes.get(WAVES, {}), block.changes.get(LEASES, {})
    addresses = waves.keys() | all_leases.keys()
    for address in addresses:
        balance = waves[address] if address in waves else state.get(WAVES, address)
        leases = all_leases[address] if address in all_leases else state.get(LEASES, address)
        key = history_key(address, block.height)
        undo[key] = None
        pending[key] = layout.HISTORY_VALUE.pack(balance, *leases)
    return addresses


def put_replaced(
    block: NewBlock, now: Callable[[bytes], bytes | None], pending: Items, undo: Items
) -> None:
    """Put what a block changed at its beginning, and what it replaced: from its whole ``undo``, or
    as it is ``now``, also of what was written anew and stayed as it was.
    """
    key = layout.height_key(layout.REPLACED, block.height)
    # A block that grows has its beginning already.
    earlier = now(key) if key in undo else None
    found: Items = {}
    if earlier is None:
        initial, count = layout.encode_changes(block.initial), len(block.transactions)
    else:
        begun = layout.decode_replaced(earlier)
        initial, count = begun.initial, begun.count
        found = layout.pairs(begun.before)
    for table in layout.WITHOUT_HISTORY:
        row = layout.ROWS[table]
        prefixes = layout.ASSET_PREFIXES if row.prefix in layout.ASSET_PREFIXES else (row.prefix,)
        for each in block.changes.get(table, ()):
            name = row.key(each)
            for prefix in prefixes:
                written = prefix + name
                if written not in found:
                    found[written] = undo[written] if written in undo else now(written)
    undo[key] = None
    before = [each for item in found.items() for each in item]
    pending[key] = layout.encode(layout.Replaced(initial, count, before))


def put_transactions(
    block: NewBlock, before: Callable[[bytes], bytes | None], pending: Items, undo: Items
) -> None:
    """Put the places of a block's transactions, and what they did; ``before`` is what there is."""
    height = block.height
    for index, item in enumerate(block.transactions, block.first_index):
        key = layout.TRANSACTION + item.id
        undo.setdefault(key, before(key))
        pending[key] = layout.LOCATION.pack(
            height, index, item.offset, item.length, item.status, item.complexity
        )
        place = place_key(height, index)
        for address in item.accounts:
            key = layout.ADDRESS_TRANSACTION + address + place
            undo[key] = None
            pending[key] = item.id
        key = layout.SNAPSHOT + place
        undo[key] = None
        pending[key] = layout.encode_changes(item.changes)
        if item.call is not None:
            key = layout.CALL + place
            undo[key] = None
            pending[key] = layout.encode(item.call)
