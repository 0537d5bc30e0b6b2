"""Verifying a transaction's signature before its turn, where the chain does not matter for it.

What lives here: which transactions that is possible for. What does not: the verification itself
(``soliton.crypto``), the order in which a transaction is checked (``soliton.ledger.transactions``).
"""

from __future__ import annotations

from soliton.chain.transactions.model import AnyTransaction
from soliton.crypto import curve25519
from soliton.crypto.curve25519 import SignedMessage
from soliton.ledger.rules import rules_of


def only_signature(transaction: AnyTransaction) -> SignedMessage | None:
    """What its sender has to have signed, if it has one proof and nothing else is signed in it."""
    of_type = rules_of(transaction.type_id)
    if not of_type.proven or of_type.proofs is not None or len(transaction.proofs) != 1:
        return None
    return transaction.sender_public_key, transaction.body, transaction.proofs[0]


def is_verified(transaction: AnyTransaction) -> bool:
    """Whether its one proof is its sender's signature, and nothing else is signed in it.

    What the chain says about the sender (a script in place of the signature, a key that is refused)
    is still to be checked; for any other transaction everything is.
    """
    signed = only_signature(transaction)
    return signed is not None and curve25519.verify(*signed)
