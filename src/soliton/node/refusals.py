"""Who wants to know which transactions the pool does not take, and why.

What lives here: telling of it. What does not: refusing (``pool``), and telling the sender.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from soliton.chain.transactions.model import AnyTransaction
from soliton.errors import SolitonError

Refusal = Callable[[AnyTransaction, SolitonError], None]


def _nobody(_transaction: AnyTransaction, _error: SolitonError) -> None: ...


class Refusals:
    """``listener`` is called with each transaction that is refused; it raises nothing."""

    __slots__ = ("listener",)

    def __init__(self) -> None:
        self.listener: Refusal = _nobody

    @contextmanager
    def of(self, transaction: AnyTransaction) -> Iterator[None]:
        """What is raised here refuses this transaction."""
        try:
            yield
        except SolitonError as error:
            self.listener(transaction, error)
            raise
