"""What a rule may know besides the transaction and the state, and what a rules module hands over.

Source of the split: wavesplatform/Waves
``node/src/main/scala/com/wavesplatform/state/diffs/TransactionDiffer.scala``.
"""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from soliton.chain.transactions.model import AnyTransaction
from soliton.ledger.portfolio import Portfolio
from soliton.ledger.rules_at import Rules
from soliton.ledger.state import Overlay, State


class Context(msgspec.Struct, frozen=True):
    """The block in which a transaction is applied: its height, its time and its parent's (ms), its
    rules.
    """

    height: int
    timestamp: int
    parent_timestamp: int | None
    rules: Rules


class TypeRules(msgspec.Struct, frozen=True):
    """The rules of one transaction type: what its module in ``ledger.rules`` exports as ``RULES``.

    ``activation`` raises when nothing that is active allows the transaction; ``minimum_fee`` is in
    wavelets, extra fees for scripts aside; ``sending`` is the early check that the sender has what
    is sent, ``None`` where there is none; ``apply`` puts balance changes into the portfolio and
    everything else into the overlay. ``unique`` tells whether an id may occur only once on the
    chain.
    """

    activation: Callable[[AnyTransaction, Context], None]
    minimum_fee: Callable[[AnyTransaction, Rules], int]
    sending: Callable[[AnyTransaction, State, Rules], None] | None
    apply: Callable[[AnyTransaction, Overlay, Portfolio, Context], None]
    unique: bool = True
