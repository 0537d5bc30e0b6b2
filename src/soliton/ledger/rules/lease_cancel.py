"""Type 9, lease cancel: ends a lease.

Source: wavesplatform/Waves
``node/src/main/scala/com/wavesplatform/state/diffs/LeaseTransactionsDiff.scala``.
"""

from __future__ import annotations

from soliton.chain.addresses import Recipient
from soliton.chain.transactions.lease_cancel import LeaseCancel
from soliton.chain.transactions.model import AnyTransaction
from soliton.ledger import leases
from soliton.ledger.context import Context, TypeRules
from soliton.ledger.portfolio import Portfolio
from soliton.ledger.rules import common
from soliton.ledger.state import LEASE_INFO, Overlay, State


def _apply(
    transaction: AnyTransaction, overlay: Overlay, portfolio: Portfolio, context: Context
) -> None:
    payload: LeaseCancel = transaction.payload
    sender = transaction.sender_public_key
    leases.cancel(payload.lease_id, transaction.id, sender, overlay, portfolio, context)


def _names(transaction: AnyTransaction, state: State) -> tuple[Recipient, ...]:
    lease = state.get(LEASE_INFO, transaction.payload.lease_id)
    return () if lease is None else (lease.recipient,)


# An account that has leased out everything can still cancel: the freed coins pay the fee.
RULES = TypeRules(
    common.generic_activation, common.base_fee, None, _apply, checks_funds=False, names=_names
)
