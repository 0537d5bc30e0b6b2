"""Signing exchange transactions, beside the event loop where that is possible.

An execution gives a transaction and its id at once; the signature comes a little later. Until then
the transaction is here, and whoever needs all of them calls ``finish``: before the orders database
is written or asked for transactions, nothing may be missing in it.

What lives here: the transactions that wait for their signature. What does not: making them
(``exchanges``), sending them (``settlement``), and the process that signs (``soliton.parallel``).
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from soliton.chain.transactions import codec
from soliton.chain.transactions.model import AnyTransaction
from soliton.crypto.curve25519 import sign, signing_point
from soliton.crypto.keys import KeyPair
from soliton.parallel.signatures import SignatureChecker


class ExchangeSigner:
    """Use from one event loop. ``done`` gets each transaction with its signature."""

    def __init__(
        self,
        account: KeyPair,
        signatures: SignatureChecker,
        done: Callable[[AnyTransaction], None],
    ) -> None:
        self._key = account.private_key
        self._point = signing_point(account.private_key)
        self._signatures = signatures
        self._done = done
        self._waiting: dict[bytes, AnyTransaction] = {}

    def sign(self, transaction: AnyTransaction) -> None:
        """Sign a transaction that has no proofs; ``done`` is called later."""
        self._waiting[transaction.id] = transaction
        signed = partial(self._signed, transaction.id)
        self._signatures.sign(self._key, transaction.body, self._point, signed)

    def finish(self) -> None:
        """Sign here and now what still waits."""
        for transaction in list(self._waiting.values()):
            signature = sign(self._key, transaction.body, point=self._point)
            self._signed(transaction.id, signature)

    def _signed(self, transaction_id: bytes, signature: bytes) -> None:
        transaction = self._waiting.pop(transaction_id, None)
        if transaction is not None:
            self._done(codec.with_proofs(transaction, (signature,)))
