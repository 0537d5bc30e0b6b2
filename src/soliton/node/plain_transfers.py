"""Checking plain transfers once more, quickly.

After each block everything that is left in the pool is checked again. Most of it are plain
transfers (``soliton.ledger.plain_transfers``); they are applied here without what was checked when
they came and cannot have changed, their signatures above all. Whatever is not plain, or not clearly
fine, is left to the rules: what is done here is what they would do. A test compares.

What lives here: that shortcut. What does not: the pool (``pool``), and any decision against a
transaction.
"""

from __future__ import annotations

from soliton.chain.transactions.model import AnyTransaction
from soliton.ledger.context import Context
from soliton.ledger.plain_transfers import plain_transfer
from soliton.ledger.state import WAVES, Overlay


def apply_again(transaction: AnyTransaction, overlay: Overlay, context: Context) -> bool:
    """Apply a transfer that was accepted before, under the same rules, above other balances.

    ``False``, with nothing done, when it is for the rules to say what becomes of it.
    """
    if transaction.id in context.rules.fixed_outcomes:
        return False
    plain = plain_transfer(transaction, overlay, context)
    if plain is None:
        return False
    overlay.put(WAVES, plain.sender, plain.left)
    overlay.put(WAVES, plain.recipient, plain.received)
    overlay.record_transaction(transaction.id)
    return True
