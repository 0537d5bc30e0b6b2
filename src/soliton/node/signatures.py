"""Signatures of a transaction that can be verified in advance, without the chain.

What lives here: which signatures these are. What does not: the verification itself
(``soliton.crypto``), the order of checks of a transaction (``soliton.ledger.transactions``).
"""

from __future__ import annotations

from soliton.chain.transactions.model import AnyTransaction
from soliton.crypto import curve25519
from soliton.crypto.curve25519 import SignedMessage
from soliton.ledger.rules import rules_of
from soliton.ledger.transactions import signed_message


def signed_messages(transaction: AnyTransaction) -> tuple[SignedMessage, ...]:
    """Return the signatures that the rules will require unless an account has a script; none if
    there are proofs other than one signature each.
    """
    of_type = rules_of(transaction.type_id)
    if not of_type.proven or len(transaction.proofs) != 1:
        return ()
    own = signed_message(transaction)
    if of_type.proofs is None:
        return (own,)
    others = None if of_type.signed is None else of_type.signed(transaction)
    return () if others is None else (own, *others)


def verified_messages(transaction: AnyTransaction) -> tuple[SignedMessage, ...]:
    """Return the same if all of them are valid, else none."""
    messages = signed_messages(transaction)
    return messages if all(curve25519.verify(*each) for each in messages) else ()
