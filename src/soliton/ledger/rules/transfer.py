"""Type 4, transfer: moves the native coin or an asset to an account or alias.

Source: wavesplatform/Waves
``node/src/main/scala/com/wavesplatform/state/diffs/TransferTransactionDiff.scala`` and
``TransferDiff.scala``.
"""

from __future__ import annotations

from soliton.chain.addresses import Recipient
from soliton.chain.errors import AmountOverflow
from soliton.chain.features import Feature
from soliton.chain.transactions.model import AnyTransaction
from soliton.chain.transactions.transfer import Transfer
from soliton.chain.values import MAX_I64, AssetId
from soliton.ledger.context import Context, PoolRules, TypeRules, constant_purpose
from soliton.ledger.errors import TransactionRejected
from soliton.ledger.portfolio import Portfolio
from soliton.ledger.rules import common
from soliton.ledger.state import ASSET_SCRIPTS, Overlay, State
from soliton.ledger.traces import TRANSFER


def _sending(transaction: AnyTransaction, state: State, context: Context) -> None:
    payload: Transfer = transaction.payload
    if context.rules.has(Feature.SYNCHRONOUS_CALLS):
        common.require_known(payload.asset_id, state)
    common.check_spending(
        common.sender_of(transaction),
        (payload.asset_id, payload.amount),
        (transaction.fee_asset_id, transaction.fee),
        state,
    )


def move(
    transaction: AnyTransaction,
    recipient: Recipient,
    asset_id: AssetId | None,
    amount: int,
    state: State,
    portfolio: Portfolio,
    context: Context,
) -> None:
    """Send an amount from the transaction's sender; raise ``TransactionRejected``."""
    rules = context.rules
    address = common.resolve(recipient, state, rules)
    fee_asset_id = transaction.fee_asset_id
    if fee_asset_id is not None and state.get(ASSET_SCRIPTS, fee_asset_id) is not None:
        raise TransactionRejected("Smart assets can't participate in TransferTransactions as a fee")
    if not rules.has(Feature.RIDE_4_DAPPS) and amount + transaction.fee > MAX_I64:
        raise AmountOverflow
    if context.timestamp > rules.unissued_assets_until:
        common.require_issued(asset_id, state, rules)
        common.require_issued(fee_asset_id, state, rules)
    portfolio.add(common.sender_of(transaction), asset_id, -amount)
    portfolio.add(address, asset_id, amount)


def _apply(
    transaction: AnyTransaction, overlay: Overlay, portfolio: Portfolio, context: Context
) -> None:
    payload: Transfer = transaction.payload
    recipient, asset_id = payload.recipient, payload.asset_id
    move(transaction, recipient, asset_id, payload.amount, overlay, portfolio, context)


RULES = TypeRules(
    common.generic_activation,
    common.base_fee,
    _sending,
    _apply,
    assets=common.sent_asset,
    purpose=constant_purpose(TRANSFER),
    pool=PoolRules(only_adds=True),
)
