"""Under which accounts a transaction is listed: its sender and everybody it pays.

Source: wavesplatform/Waves
``node/src/main/scala/com/wavesplatform/state/StateSnapshot.scala`` (affected accounts).
"""

from __future__ import annotations

from soliton.chain.addresses import Address, Alias, from_public_key
from soliton.chain.transactions.model import AnyTransaction
from soliton.ledger.state import ALIASES, State


def accounts_of(transaction: AnyTransaction, state: State) -> tuple[Address, ...]:
    """The accounts of a transaction, each once, the sender first; aliases are resolved in
    ``state``.
    """
    accounts: dict[Address, None] = {}
    if transaction.sender_public_key:
        accounts[from_public_key(transaction.sender_public_key, transaction.chain_id)] = None
    recipient = getattr(transaction.payload, "recipient", None)
    if isinstance(recipient, Alias):
        recipient = state.get(ALIASES, recipient.name)
    if recipient is not None:
        accounts[recipient] = None
    return tuple(accounts)
