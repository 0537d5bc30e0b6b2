"""Type 11, mass transfer: moves the native coin or an asset to many accounts.

Source: wavesplatform/Waves
``node/src/main/scala/com/wavesplatform/state/diffs/MassTransferTransactionDiff.scala``.
"""

from __future__ import annotations

from soliton.chain.features import Feature
from soliton.chain.transactions.mass_transfer import MassTransfer
from soliton.chain.transactions.model import AnyTransaction
from soliton.ledger.context import Context, PoolRules, TypeRules, constant_purpose
from soliton.ledger.errors import TransactionRejected
from soliton.ledger.portfolio import Portfolio
from soliton.ledger.rules import common
from soliton.ledger.rules_at import Rules
from soliton.ledger.state import ASSETS, Overlay, State
from soliton.ledger.traces import TRANSFER


def _minimum_fee(transaction: AnyTransaction, rules: Rules) -> int:
    payload: MassTransfer = transaction.payload
    pairs = (len(payload.transfers) + 1) // 2
    return common.base_fee(transaction, rules) + pairs * rules.fees.unit


def _total(payload: MassTransfer) -> int:
    return sum(transfer.amount for transfer in payload.transfers)


def _sending(transaction: AnyTransaction, state: State, context: Context) -> None:
    payload: MassTransfer = transaction.payload
    if context.rules.has(Feature.SYNCHRONOUS_CALLS):
        common.require_known(payload.asset_id, state)
    common.check_spending(
        common.sender_of(transaction),
        (payload.asset_id, _total(payload)),
        (None, transaction.fee),
        state,
    )


def _apply(
    transaction: AnyTransaction, overlay: Overlay, portfolio: Portfolio, context: Context
) -> None:
    payload: MassTransfer = transaction.payload
    asset_id = payload.asset_id
    for transfer in payload.transfers:
        address = common.resolve(transfer.recipient, overlay, context.rules)
        portfolio.add(address, asset_id, transfer.amount)
    portfolio.add(common.sender_of(transaction), asset_id, -_total(payload))
    if asset_id is not None and overlay.get(ASSETS, asset_id) is None:
        raise TransactionRejected("Attempt to transfer a nonexistent asset")


RULES = TypeRules(
    common.activation(Feature.MASS_TRANSFER),
    _minimum_fee,
    _sending,
    _apply,
    assets=common.sent_asset,
    purpose=constant_purpose(TRANSFER),
    pool=PoolRules(only_adds=True),
)
