"""The records that are passed to the store for a block."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from soliton.chain.addresses import Address
from soliton.ledger.edits import ByHand
from soliton.ledger.environment import BlockMeta
from soliton.ledger.state import Changes
from soliton.ledger.state_changes import JsonObject


class NewTransaction(msgspec.Struct, frozen=True, gc=False):
    """What is stored of a transaction: its position in the block's bytes, its status, the accounts
    that it is listed under, its state changes, and the record of its dApp call, if any
    (``soliton.ledger.state_changes``).
    """

    id: bytes
    offset: int
    length: int
    status: int
    complexity: int
    accounts: Sequence[Address]
    changes: Changes
    call: JsonObject | None = None


class NewBlock(msgspec.Struct, frozen=True):
    """Everything that is stored of a block; ``transactions`` are those from index ``first_index``
    on. ``moved`` has the earlier ones if they are elsewhere in the bytes of a longer version: their
    index, id and offset. Changes ``by_hand``, the ``edited`` state that results from them, and the
    changes before the first transaction (``initial``) are stored with the key block.
    """

    height: int
    data: bytes
    meta: BlockMeta
    changes: Changes
    transactions: Sequence[NewTransaction]
    first_index: int = 0
    moved: Sequence[tuple[int, bytes, int]] = ()
    by_hand: ByHand | None = None
    edited: Changes = {}
    initial: Changes = {}
