"""Type 4, transfer: moves the native coin or an asset to an account or alias.

Source: wavesplatform/Waves
``node/src/main/scala/com/wavesplatform/state/diffs/TransferTransactionDiff.scala`` and
``TransferDiff.scala``.
"""

from __future__ import annotations

from soliton.chain.addresses import from_public_key
from soliton.chain.errors import AmountOverflow
from soliton.chain.features import Feature
from soliton.chain.transactions.model import AnyTransaction
from soliton.chain.transactions.transfer import Transfer
from soliton.chain.values import MAX_I64
from soliton.ledger.context import Context, TypeRules
from soliton.ledger.portfolio import Portfolio
from soliton.ledger.rules import common
from soliton.ledger.rules_at import Rules
from soliton.ledger.state import Overlay, State


def _activation(transaction: AnyTransaction, context: Context) -> None:
    if transaction.version == 2:
        common.require_feature(Feature.SMART_ACCOUNTS, context.rules)


def _minimum_fee(_transaction: AnyTransaction, rules: Rules) -> int:
    return rules.fees.base[4]


def _sending(transaction: AnyTransaction, state: State, rules: Rules) -> None:
    payload: Transfer = transaction.payload
    if rules.has(Feature.SYNCHRONOUS_CALLS):
        common.require_known(payload.asset_id, state)
    spent = {payload.asset_id: payload.amount}
    fee_asset_id = transaction.fee_asset_id
    spent[fee_asset_id] = spent.get(fee_asset_id, 0) + transaction.fee
    sender = from_public_key(transaction.sender_public_key, transaction.chain_id)
    common.check_spending(sender, spent, state)


def _apply(
    transaction: AnyTransaction, overlay: Overlay, portfolio: Portfolio, context: Context
) -> None:
    payload: Transfer = transaction.payload
    recipient = common.resolve(payload.recipient, overlay)
    if not context.rules.has(Feature.RIDE_4_DAPPS) and payload.amount + transaction.fee > MAX_I64:
        raise AmountOverflow
    if context.timestamp > context.rules.unissued_assets_until:
        common.require_issued(payload.asset_id, overlay, context.rules)
        common.require_issued(transaction.fee_asset_id, overlay, context.rules)
    sender = from_public_key(transaction.sender_public_key, transaction.chain_id)
    portfolio.add(sender, payload.asset_id, -payload.amount)
    portfolio.add(recipient, payload.asset_id, payload.amount)


RULES = TypeRules(_activation, _minimum_fee, _sending, _apply)
