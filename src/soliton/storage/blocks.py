"""What is stored of a block: the records that whoever applies blocks hands over to the store."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from soliton.chain.addresses import Address
from soliton.ledger.edits import ByHand
from soliton.ledger.environment import BlockMeta
from soliton.ledger.state import Changes
from soliton.ledger.state_changes import JsonObject


class NewTransaction(msgspec.Struct, frozen=True, gc=False):
    """What is stored of a transaction: its place in the block's bytes, how it was applied, the
    accounts under which it is listed, what it wrote, and what clients see of the dApp that it
    called (``soliton.ledger.state_changes``), if it called one.
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
    """Everything that is stored of a block; ``transactions`` are those from number ``first_index``
    on. What was done ``by_hand``, which ``edited`` state came of it, and what was changed before
    the first transaction (``initial``) goes with its first form.
    """

    height: int
    data: bytes
    meta: BlockMeta
    changes: Changes
    transactions: Sequence[NewTransaction]
    first_index: int = 0
    by_hand: ByHand | None = None
    edited: Changes = {}
    initial: Changes = {}
