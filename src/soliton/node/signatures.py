"""Verifying a transaction's signature before its turn, where the chain does not matter for it.

What lives here: which transactions that is possible for. What does not: the verification itself
(``soliton.crypto``), the order in which a transaction is checked (``soliton.ledger.transactions``).
"""

from __future__ import annotations

from soliton.chain.transactions.model import AnyTransaction
from soliton.crypto import curve25519
from soliton.ledger.rules import rules_of


def is_verified(transaction: AnyTransaction) -> bool:
    """Whether its one proof is its sender's signature, and nothing else is signed in it.

    What the chain says about the sender (a script in place of the signature, a key that is refused)
    is still to be checked; for any other transaction everything is.
    """
    of_type = rules_of(transaction.type_id)
    if not of_type.proven or of_type.proofs is not None or len(transaction.proofs) != 1:
        return False
    key, body = transaction.sender_public_key, transaction.body
    return curve25519.verify(key, body, transaction.proofs[0])
