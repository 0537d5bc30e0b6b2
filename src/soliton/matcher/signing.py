"""Signing exchange transactions, off the event loop where possible.

An execution produces a transaction and its id immediately, and its signature a little later. Until
then the transaction is held here. Before the orders database is written or searched for
transactions, ``finish`` signs the remaining ones, so that none is missing.

What lives here: the transactions that wait for a signature. What does not: making them
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
    """Use from one event loop. ``done`` receives each signed transaction."""

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
        self.fees = 0
        """The sum of the fees of the waiting transactions."""

    def sign(self, transaction: AnyTransaction) -> None:
        """Sign a transaction without proofs; ``done`` is called later."""
        self._waiting[transaction.id] = transaction
        self.fees += transaction.fee
        signed = partial(self._signed, transaction.id)
        self._signatures.sign(self._key, transaction.body, self._point, signed)

    def finish(self) -> None:
        """Sign all waiting transactions synchronously."""
        for transaction in list(self._waiting.values()):
            signature = sign(self._key, transaction.body, point=self._point)
            self._signed(transaction.id, signature)

    def _signed(self, transaction_id: bytes, signature: bytes) -> None:
        transaction = self._waiting.pop(transaction_id, None)
        if transaction is not None:
            self.fees -= transaction.fee
            self._done(codec.with_proofs(transaction, (signature,)))
