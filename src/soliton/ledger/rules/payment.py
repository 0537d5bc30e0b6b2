"""Type 2, payment: moves coins; refused once block version 3 is in force.

Source: wavesplatform/Waves
``node/src/main/scala/com/wavesplatform/state/diffs/PaymentTransactionDiff.scala``.
"""

from __future__ import annotations

from soliton.chain.addresses import from_public_key
from soliton.chain.transactions.model import AnyTransaction
from soliton.ledger.context import Context, TypeRules
from soliton.ledger.errors import TransactionRejected
from soliton.ledger.portfolio import Portfolio
from soliton.ledger.rules_at import Rules
from soliton.ledger.state import WAVES, Overlay, State


def _activation(_transaction: AnyTransaction, _context: Context) -> None:
    return


def _minimum_fee(_transaction: AnyTransaction, rules: Rules) -> int:
    return rules.fees.base[2]


def _sending(transaction: AnyTransaction, state: State, _context: Context) -> None:
    sender = from_public_key(transaction.sender_public_key, transaction.chain_id)
    needed = transaction.payload.amount + transaction.fee
    balance = state.get(WAVES, sender)
    if balance < needed:
        raise TransactionRejected(
            f"Attempt to pay unavailable funds: balance {balance} is less than {needed}"
        )


def _apply(
    transaction: AnyTransaction, _overlay: Overlay, portfolio: Portfolio, context: Context
) -> None:
    if not context.rules.payments_allowed:
        raise TransactionRejected(
            "Payment transaction is deprecated after "
            f"h={context.rules.block_version_3_after_height}"
        )
    sender = from_public_key(transaction.sender_public_key, transaction.chain_id)
    portfolio.add(sender, None, -transaction.payload.amount)
    portfolio.add(transaction.payload.recipient, None, transaction.payload.amount)


RULES = TypeRules(_activation, _minimum_fee, _sending, _apply, unique=lambda _rules: False)
