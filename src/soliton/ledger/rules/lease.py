"""Type 8, lease: lends coins for mining.

Source: wavesplatform/Waves
``node/src/main/scala/com/wavesplatform/state/diffs/LeaseTransactionsDiff.scala``.
"""

from __future__ import annotations

from soliton.chain.transactions.lease import Lease
from soliton.chain.transactions.model import AnyTransaction
from soliton.ledger import leases
from soliton.ledger.context import Context, TypeRules
from soliton.ledger.portfolio import Portfolio
from soliton.ledger.rules import common
from soliton.ledger.state import Overlay


def _apply(
    transaction: AnyTransaction, overlay: Overlay, portfolio: Portfolio, context: Context
) -> None:
    payload: Lease = transaction.payload
    leases.lease(
        transaction.id,
        transaction.id,
        transaction.sender_public_key,
        payload.recipient,
        payload.amount,
        transaction.fee,
        overlay,
        portfolio,
        context,
    )


RULES = TypeRules(common.generic_activation, common.base_fee, None, _apply)
