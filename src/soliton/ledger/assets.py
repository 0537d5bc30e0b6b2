"""Assets: permissions, reissuing, burning; shared by transactions and actions of dApps.

Source: wavesplatform/Waves
``node/src/main/scala/com/wavesplatform/state/diffs/AssetTransactionsDiffs.scala`` and
``DiffsCommon.scala``.
"""

from __future__ import annotations

from typing import Final

from soliton.chain.addresses import Address, from_public_key
from soliton.chain.features import Feature
from soliton.chain.transactions.model import AnyTransaction
from soliton.chain.values import MAX_I64, AssetId, wrapped
from soliton.ledger.context import Context
from soliton.ledger.errors import TransactionRejected
from soliton.ledger.portfolio import Portfolio
from soliton.ledger.rules_at import Rules
from soliton.ledger.script_setting import MAX_EXPRESSION_BYTES
from soliton.ledger.state import ASSET_VOLUMES, ASSETS, AssetInfo, AssetVolume, Overlay, State

ERC20_ADDRESS_BYTES: Final = 20
"""An asset's address for Ethereum wallets is the beginning of its id."""


def erc20_address(asset_id: AssetId) -> bytes:
    """Return the address of an asset in Ethereum transactions."""
    return asset_id[:ERC20_ADDRESS_BYTES]


def is_nft(quantity: int, decimals: int, reissuable: bool, rules: Rules) -> bool:
    """Whether an asset is a single indivisible token, which is cheaper to issue."""
    unique = quantity == 1 and decimals == 0 and not reissuable
    return unique and rules.has(Feature.REDUCED_NFT_FEE)


def require_asset(
    asset_id: AssetId, sender: Address, state: State, rules: Rules, *, issuer_only: bool = True
) -> AssetInfo:
    """Return an asset that the sender may change; raise ``TransactionRejected``."""
    info = state.get(ASSETS, asset_id)
    if info is None:
        raise TransactionRejected("Referenced assetId not found")
    if issuer_only and from_public_key(info.issuer, rules.chain_id) != sender:
        raise TransactionRejected("Asset was issued by other address")
    return info


def volume_of(asset_id: AssetId, state: State) -> AssetVolume:
    """Return the volume of an existing asset."""
    volume = state.get(ASSET_VOLUMES, asset_id)
    assert volume is not None, "an asset has a volume from its issue on"
    return volume


def reissue(
    asset_id: AssetId,
    quantity: int,
    reissuable: bool,
    sender: Address,
    overlay: Overlay,
    portfolio: Portfolio,
    context: Context,
) -> None:
    """Increase the quantity of an asset; raise ``TransactionRejected``."""
    rules = context.rules
    require_asset(asset_id, sender, overlay, rules)
    old = volume_of(asset_id, overlay)
    if not old.reissuable and context.timestamp > rules.invalid_reissue_until:
        raise TransactionRejected("Asset is not reissuable")
    # A dApp could once reissue a negative quantity: in 64 bits, the room for it overflows.
    if wrapped(MAX_I64 - quantity) < old.quantity and rules.has(Feature.DATA_TRANSACTION):
        raise TransactionRejected("Asset total value overflow")
    portfolio.add(sender, asset_id, quantity)
    new = AssetVolume(old.reissuable and reissuable, old.quantity + quantity)
    overlay.put(ASSET_VOLUMES, asset_id, new)


def burn(
    asset_id: AssetId,
    quantity: int,
    sender: Address,
    overlay: Overlay,
    portfolio: Portfolio,
    context: Context,
) -> None:
    """Decrease the quantity of an asset; raise ``TransactionRejected``."""
    issuer_only = not context.rules.has(Feature.BURN_ANY_TOKENS)
    require_asset(asset_id, sender, overlay, context.rules, issuer_only=issuer_only)
    old = volume_of(asset_id, overlay)
    portfolio.add(sender, asset_id, -quantity)
    overlay.put(ASSET_VOLUMES, asset_id, AssetVolume(old.reissuable, old.quantity - quantity))


def check_script_size(script: bytes | None, rules: Rules) -> None:
    """Raise ``TransactionRejected`` if a script is too large for an asset."""
    if script is None or not rules.has(Feature.BLOCK_REWARD_DISTRIBUTION):
        return
    if len(script) > MAX_EXPRESSION_BYTES:
        raise TransactionRejected(
            f"Script is too large: {len(script)} bytes > {MAX_EXPRESSION_BYTES} bytes"
        )


def moved_asset(transaction: AnyTransaction, _state: State) -> tuple[AssetId, ...]:
    """Return the asset whose script is run, for types that change one asset."""
    return (transaction.payload.asset_id,)
