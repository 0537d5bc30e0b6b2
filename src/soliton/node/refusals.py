"""Notification of transactions that the pool refuses, with the reason.

What lives here: calling the listener. What does not: refusing (``pool``), and the client's answer.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from soliton.chain.transactions.model import AnyTransaction
from soliton.errors import SolitonError

Refusal = Callable[[AnyTransaction, SolitonError], None]


def _ignore(_transaction: AnyTransaction, _error: SolitonError) -> None: ...


class Refusals:
    """``listener`` is called with each refused transaction; it must not raise."""

    __slots__ = ("listener",)

    def __init__(self) -> None:
        self.listener: Refusal = _ignore

    @contextmanager
    def of(self, transaction: AnyTransaction) -> Iterator[None]:
        """Report an error raised in the ``with`` block as the refusal of this transaction."""
        try:
            yield
        except SolitonError as error:
            self.listener(transaction, error)
            raise
