"""Checks that several transaction types share.

Source: wavesplatform/Waves
``node/src/main/scala/com/wavesplatform/state/diffs/CommonValidation.scala``.
"""

from __future__ import annotations

from soliton.chain.addresses import Address, Alias, Recipient
from soliton.chain.features import DESCRIPTIONS, Feature
from soliton.chain.values import MAX_I64, MIN_I64, AssetId
from soliton.crypto import base58
from soliton.ledger.errors import ActivationError, AliasDoesNotExist, TransactionRejected
from soliton.ledger.rules_at import Rules
from soliton.ledger.state import ALIASES, ASSET_BALANCES, ASSETS, WAVES, State


def require_feature(feature: Feature, rules: Rules) -> None:
    """Raise ``ActivationError`` unless the feature is active."""
    if not rules.has(feature):
        raise ActivationError(f"{DESCRIPTIONS[feature]} feature has not been activated yet")


def resolve(recipient: Recipient, state: State) -> Address:
    """The account that a recipient names; raises ``AliasDoesNotExist``."""
    if not isinstance(recipient, Alias):
        return recipient
    address = state.get(ALIASES, recipient.name)
    if address is None:
        raise AliasDoesNotExist(recipient.text())
    return address


def require_known(asset_id: AssetId | None, state: State) -> None:
    """Raise ``TransactionRejected`` when an asset that is to be sent does not exist."""
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
    spent: dict[AssetId | None, int],
    state: State,
) -> None:
    """Raise ``TransactionRejected`` when the sender has less than is sent and paid together.

    ``spent`` holds positive amounts by asset, ``None`` for the native coin.
    """
    waves = spent.get(None, 0)
    balance = state.get(WAVES, sender)
    if waves > MAX_I64 or not balance - waves >= MIN_I64:
        raise TransactionRejected("Waves balance sum overflow")
    if balance - waves < 0:
        raise TransactionRejected(
            "Attempt to transfer unavailable funds: Transaction application leads to negative "
            "waves balance to (at least) temporary negative state, current balance equals "
            f"{balance}, "
            f"spends equals {-waves}, result is {balance - waves}"
        )
    for asset_id, amount in spent.items():
        if asset_id is None:
            continue
        available = state.get(ASSET_BALANCES, (sender, asset_id))
        if available - amount < 0:
            raise TransactionRejected(
                "Attempt to transfer unavailable funds: Transaction application leads to negative "
                f"asset '{base58.encode(asset_id)}' balance to (at least) temporary negative "
                "state, "
                f"current balance is {available}, spends equals {-amount}, "
                f"result is {available - amount}"
            )
