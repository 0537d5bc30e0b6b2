"""Type 16, invoke script: calls a function of a dApp, with payments.

What lives here: the checks around the call. What does not: running it (``ledger.invocation``).

Source: wavesplatform/Waves
``node/src/main/scala/com/wavesplatform/state/diffs/invoke/InvokeScriptTransactionDiff.scala``,
``CommonValidation.scala`` and ``TransactionDiffer.scala`` (payments).
"""

from __future__ import annotations

from typing import Final

from soliton.chain.addresses import recipient_text
from soliton.chain.features import Feature
from soliton.chain.transactions.invoke_script import InvokeScript, Payment
from soliton.chain.transactions.model import AnyTransaction
from soliton.chain.values import AssetId
from soliton.crypto import base58
from soliton.ledger import invocation, script_setting
from soliton.ledger.balances import check_portfolio
from soliton.ledger.context import Context, PoolRules, TypeRules, constant_purpose
from soliton.ledger.errors import TransactionRejected
from soliton.ledger.portfolio import Portfolio
from soliton.ledger.rules import common
from soliton.ledger.rules_at import Rules
from soliton.ledger.scripts import account_script
from soliton.ledger.state import ASSETS, Overlay, State
from soliton.ledger.state_changes import Invoked
from soliton.ledger.traces import PAYMENT

ASSET_ID_BYTES: Final = 32
_FIRST_VERSION_THAT_MAY_PAY_THE_FEE: Final = 4


def check_payments(payments: tuple[Payment, ...], state: State, rules: Rules) -> None:
    """Raise ``TransactionRejected`` for a payment in an asset that does not exist."""
    if not rules.has(Feature.SYNCHRONOUS_CALLS):
        return
    for payment in payments:
        asset_id = payment.asset_id
        if asset_id is not None and len(asset_id) != ASSET_ID_BYTES:
            raise TransactionRejected(
                f"Transfer error: invalid asset ID '{base58.encode(asset_id)}' length = "
                f"{len(asset_id)} bytes, must be {ASSET_ID_BYTES}"
            )
        common.require_known(asset_id, state)


def _sending(transaction: AnyTransaction, state: State, context: Context) -> None:
    payload: InvokeScript = transaction.payload
    rules = context.rules
    dapp = common.resolve(payload.d_app, state, rules)
    check_payments(payload.payments, state, rules)
    together = rules.block_v5_approved
    script = account_script(dapp, state)
    # A dApp may send its caller the missing fee.
    overdraft = False
    if together and script is not None:
        head = script_setting.inspect(script.script)
        overdraft = head.dapp and head.version >= _FIRST_VERSION_THAT_MAY_PAY_THE_FEE
    sender, fee = common.sender_of(transaction), (transaction.fee_asset_id, transaction.fee)
    for sent in _sums(payload.payments) if together else _singly(payload.payments):
        common.check_spending(sender, sent, fee, state, fee_may_come_later=overdraft)


def _singly(payments: tuple[Payment, ...]) -> list[tuple[AssetId | None, int]]:
    return [(payment.asset_id, payment.amount) for payment in payments]


def _sums(payments: tuple[Payment, ...]) -> list[tuple[AssetId | None, int]]:
    sums: dict[AssetId | None, int] = {}
    for payment in payments:
        sums[payment.asset_id] = sums.get(payment.asset_id, 0) + payment.amount
    return list(sums.items())


def _funds(transaction: AnyTransaction, state: State, context: Context) -> None:
    payload: InvokeScript = transaction.payload
    dapp = common.resolve(payload.d_app, state, context.rules)
    sender = common.sender_of(transaction)
    portfolio = Portfolio()
    for payment in payload.payments:
        asset_id = payment.asset_id
        if asset_id is not None and state.get(ASSETS, asset_id) is None:
            raise TransactionRejected(f"Referenced {base58.encode(asset_id)} not found")
        portfolio.add(sender, asset_id, -payment.amount)
        portfolio.add(dapp, asset_id, payment.amount)
    check_portfolio(portfolio, state, context.rules)


def _assets(transaction: AnyTransaction, _state: State) -> tuple[AssetId, ...]:
    payload: InvokeScript = transaction.payload
    assets = (payment.asset_id for payment in payload.payments)
    return tuple(asset_id for asset_id in assets if asset_id is not None)


def _charged_assets(transaction: AnyTransaction, state: State, rules: Rules) -> tuple[AssetId, ...]:
    return () if rules.has(Feature.SYNCHRONOUS_CALLS) else _assets(transaction, state)


def _apply(
    transaction: AnyTransaction, overlay: Overlay, _portfolio: Portfolio, context: Context
) -> Invoked:
    payload: InvokeScript = transaction.payload
    dapp = common.resolve(payload.d_app, overlay, context.rules)
    script = account_script(dapp, overlay)
    if script is None:
        raise TransactionRejected(f"No contract at address {recipient_text(payload.d_app)}")
    if not script_setting.inspect(script.script).dapp:
        raise TransactionRejected("Trying to call dApp on the account with expression script")
    return invocation.invoke(dapp, transaction, overlay, context)


RULES = TypeRules(
    common.activation(Feature.RIDE_4_DAPPS),
    common.base_fee,
    _sending,
    _apply,
    assets=_assets,
    charged_assets=_charged_assets,
    funds=_funds,
    may_fail=True,
    purpose=constant_purpose(PAYMENT),
    pool=PoolRules(runs_scripts=True),
)
