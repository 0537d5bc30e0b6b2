"""Fees in assets: the sponsor receives the asset and pays wavelets instead.

Source: wavesplatform/Waves ``node/src/main/scala/com/wavesplatform/state/Sponsorship.scala``.
"""

from __future__ import annotations

from soliton.chain.addresses import Address, from_public_key
from soliton.chain.values import MAX_I64, AssetId
from soliton.crypto import base58
from soliton.ledger.errors import TransactionRejected
from soliton.ledger.portfolio import Portfolio
from soliton.ledger.rules_at import Rules
from soliton.ledger.state import ASSETS, SPONSORSHIPS, AssetInfo, State


def take_fee(
    payer: Address,
    asset_id: AssetId | None,
    fee: int,
    portfolio: Portfolio,
    state: State,
    rules: Rules,
) -> None:
    """Charge a fee to an account; for an asset, its sponsor receives it and pays wavelets."""
    portfolio.add(payer, asset_id, -fee)
    if asset_id is not None:
        info, sponsorship = sponsor_of(asset_id, state)
        issuer = from_public_key(info.issuer, rules.chain_id)
        portfolio.add(issuer, asset_id, fee)
        portfolio.add(issuer, None, -to_waves(fee, sponsorship, rules.fees.unit))


def sponsor_of(asset_id: AssetId, state: State) -> tuple[AssetInfo, int]:
    """Return the asset and its sponsorship (asset units per fee unit).

    Raises ``TransactionRejected`` if the asset does not exist or is not sponsored.
    """
    info = state.get(ASSETS, asset_id)
    if info is None:
        raise TransactionRejected(
            f"Asset {base58.encode(asset_id)} does not exist, cannot be used to pay fees"
        )
    sponsorship = state.get(SPONSORSHIPS, asset_id)
    if sponsorship <= 0:
        raise TransactionRejected(
            f"Asset {base58.encode(asset_id)} is not sponsored, cannot be used to pay fees"
        )
    return info, sponsorship


def to_waves(amount: int, sponsorship: int, unit: int) -> int:
    """Convert an amount of the asset to wavelets; raise ``TransactionRejected`` beyond 64 bits."""
    return _checked(amount * unit // sponsorship)


def from_waves(waves: int, sponsorship: int, unit: int) -> int:
    """Convert wavelets to an amount of the asset; raise ``TransactionRejected`` beyond 64 bits."""
    return _checked(waves * sponsorship // unit)


def _checked(value: int) -> int:
    if value > MAX_I64:
        raise TransactionRejected("BigInteger out of long range")
    return value
