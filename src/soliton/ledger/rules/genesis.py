"""Type 1, genesis: creates coins, in the first block only.

Source: wavesplatform/Waves
``node/src/main/scala/com/wavesplatform/state/diffs/GenesisTransactionDiff.scala``.
"""

from __future__ import annotations

from soliton.chain.transactions.model import AnyTransaction
from soliton.ledger.context import Context, TypeRules
from soliton.ledger.errors import TransactionRejected
from soliton.ledger.portfolio import Portfolio
from soliton.ledger.rules_at import Rules
from soliton.ledger.state import Overlay


def _activation(_transaction: AnyTransaction, context: Context) -> None:
    if context.height != 1:
        raise TransactionRejected(
            f"GenesisTransaction cannot appear in non-initial block ({context.height - 1})"
        )


def _minimum_fee(_transaction: AnyTransaction, _rules: Rules) -> int:
    return 0


def _apply(
    transaction: AnyTransaction, _overlay: Overlay, portfolio: Portfolio, _context: Context
) -> None:
    portfolio.add(transaction.payload.recipient, None, transaction.payload.amount)


RULES = TypeRules(_activation, _minimum_fee, None, _apply)
