"""Checking plain transfers once more, quickly.

After each block everything that is left in the pool is checked again. Most of it are transfers of
the chain's coin from one ordinary account to another, and nothing but a few balances decides about
those. Here they are found and applied without all the rest that was checked when they came and
cannot have changed. Whatever is not plain, or not clearly fine, is left to the rules
(``soliton.ledger``): what is done here is what they would do. A test compares.

What lives here: that shortcut. What does not: the pool (``pool``), and any decision against a
transaction.
"""

from __future__ import annotations

from typing import Final

from soliton.chain.addresses import Alias, from_public_key
from soliton.chain.transactions import transfer
from soliton.chain.transactions.model import AnyTransaction
from soliton.chain.values import MAX_I64
from soliton.ledger.context import Context
from soliton.ledger.errors import Mistiming
from soliton.ledger.scripts import account_script
from soliton.ledger.state import LEASES, WAVES, Overlay
from soliton.ledger.transactions import check_time

_TYPE: Final = transfer.TYPE.type_id


def apply_again(transaction: AnyTransaction, overlay: Overlay, context: Context) -> bool:
    """Apply a transfer that was accepted before, under the same rules, above other balances.

    ``False``, with nothing done, when it is for the rules to say what becomes of it.
    """
    rules = context.rules
    if transaction.type_id != _TYPE or transaction.fee_asset_id is not None:
        return False
    if not rules.balances_enforced or context.timestamp < rules.temporary_negative_until:
        return False
    payload = transaction.payload
    recipient, amount = payload.recipient, payload.amount
    if payload.asset_id is not None or isinstance(recipient, Alias):
        return False
    sender = from_public_key(transaction.sender_public_key, transaction.chain_id)
    if sender == recipient or transaction.id in rules.fixed_outcomes:
        return False
    if account_script(sender, overlay) is not None or overlay.get(LEASES, sender).lease_out:
        return False
    left = overlay.get(WAVES, sender) - amount - transaction.fee
    received = overlay.get(WAVES, recipient) + amount
    if left < 0 or received > MAX_I64 or overlay.transaction_height(transaction.id) is not None:
        return False
    try:
        check_time(transaction, context)
    except Mistiming:
        return False
    overlay.put(WAVES, sender, left)
    overlay.put(WAVES, recipient, received)
    overlay.record_transaction(transaction.id)
    return True
