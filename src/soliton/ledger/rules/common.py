"""Checks that several transaction types share.

Source: wavesplatform/Waves
``node/src/main/scala/com/wavesplatform/state/diffs/CommonValidation.scala``.
"""

from __future__ import annotations

from collections.abc import Callable

from soliton.chain.addresses import Address, Alias, Recipient, from_public_key
from soliton.chain.features import DESCRIPTIONS, Feature
from soliton.chain.transactions.model import AnyTransaction
from soliton.chain.values import MIN_I64, AssetId
from soliton.crypto import base58
from soliton.ledger.context import Context
from soliton.ledger.errors import (
    ActivationError,
    AliasDoesNotExist,
    AliasIsDisabled,
    TransactionRejected,
)
from soliton.ledger.rules_at import Rules
from soliton.ledger.state import ALIASES, ASSET_BALANCES, ASSETS, WAVES, State


def require_feature(feature: Feature, rules: Rules) -> None:
    """Raise ``ActivationError`` unless the feature is active."""
    if not rules.has(feature):
        raise ActivationError(f"{DESCRIPTIONS[feature]} feature has not been activated yet")


def generic_activation(transaction: AnyTransaction, context: Context) -> None:
    """The rule of the oldest types, whose version 2 needs smart accounts."""
    if transaction.version == 2:
        require_feature(Feature.SMART_ACCOUNTS, context.rules)


def activation(feature: Feature) -> Callable[[AnyTransaction, Context], None]:
    """Return the rule of a type that needs a feature."""

    def check(_transaction: AnyTransaction, context: Context) -> None:
        require_feature(feature, context.rules)

    return check


def base_fee(transaction: AnyTransaction, rules: Rules) -> int:
    """Return the fee in the network's table, or one fee unit for types that it does not contain."""
    return rules.fees.base.get(transaction.type_id, rules.fees.unit)


def sender_of(transaction: AnyTransaction) -> Address:
    """Return the account that sends a transaction."""
    return from_public_key(transaction.sender_public_key, transaction.chain_id)


def sent_asset(transaction: AnyTransaction, _state: State) -> tuple[AssetId, ...]:
    """Return the asset that a transfer or mass transfer moves, if any."""
    asset_id = transaction.payload.asset_id
    return () if asset_id is None else (asset_id,)


def resolve(recipient: Recipient, state: State, rules: Rules) -> Address:
    """Return the account of a recipient; raise ``AliasDoesNotExist`` or ``AliasIsDisabled``."""
    if not isinstance(recipient, Alias):
        return recipient
    if recipient.name in rules.disabled_aliases:
        raise AliasIsDisabled(recipient.text())
    address = state.get(ALIASES, recipient.name)
    if address is None:
        raise AliasDoesNotExist(recipient.text())
    return address


def require_known(asset_id: AssetId | None, state: State) -> None:
    """Raise ``TransactionRejected`` if an asset to be sent does not exist."""
    if asset_id is not None and state.get(ASSETS, asset_id) is None:
        raise TransactionRejected(
            f"Transfer error: asset '{base58.encode(asset_id)}' is not found on the blockchain"
        )


def require_issued(asset_id: AssetId | None, state: State, rules: Rules) -> None:
    """Raise ``TransactionRejected`` for an asset that was never issued."""
    if asset_id is not None and state.get(ASSETS, asset_id) is None:
        raise TransactionRejected(
            "Unissued assets are not allowed after "
            f"allowUnissuedAssetsUntil={rules.unissued_assets_until}"
        )


def check_spending(
    sender: Address,
    sent: tuple[AssetId | None, int],
    fee: tuple[AssetId | None, int],
    state: State,
    *,
    fee_may_come_later: bool = False,
) -> None:
    """Raise ``TransactionRejected`` if the sender has less than amount and fee together.

    Amounts are positive, with their asset (``None``: the native coin). With ``fee_may_come_later``
    the sender need not have the fee yet.
    """
    spent: dict[AssetId | None, int] = {sent[0]: sent[1]}
    spent[fee[0]] = spent.get(fee[0], 0) + fee[1]
    waves = spent.get(None, 0)
    balance = state.get(WAVES, sender)
    if -waves < MIN_I64:
        raise TransactionRejected("Waves balance sum overflow")
    if balance - waves < MIN_I64:
        raise TransactionRejected("Spendings sum overflow")
    without_fee = balance - (sent[1] if sent[0] is None else 0)
    if balance - waves < 0 and not (fee_may_come_later and without_fee >= 0):
        raise TransactionRejected(
            "Attempt to transfer unavailable funds: Transaction application leads to negative "
            "waves balance to (at least) temporary negative state, current balance equals "
            f"{balance}, "
            f"spends equals {-waves}, result is {balance - waves}"
        )
    for asset_id, amount in spent.items():
        if asset_id is None:
            continue
        if -amount < MIN_I64:
            raise TransactionRejected(f"asset {base58.encode(asset_id)} sum overflow")
        available = state.get(ASSET_BALANCES, (sender, asset_id))
        if amount > 0 and available - amount < 0:
            raise TransactionRejected(
                "Attempt to transfer unavailable funds: Transaction application leads to negative "
                f"asset '{base58.encode(asset_id)}' balance to (at least) temporary negative "
                "state, "
                f"current balance is {available}, spends equals {-amount}, "
                f"result is {available - amount}"
            )
