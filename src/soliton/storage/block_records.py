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
