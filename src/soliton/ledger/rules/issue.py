"""Type 3, issue: creates an asset.

Source: wavesplatform/Waves
``node/src/main/scala/com/wavesplatform/state/diffs/AssetTransactionsDiffs.scala``.
"""

from __future__ import annotations

from soliton.chain.features import Feature
from soliton.chain.transactions.issue import Issue
from soliton.chain.transactions.model import AnyTransaction
from soliton.crypto import base58
from soliton.ledger import assets
from soliton.ledger.context import Context, PoolRules, TypeRules
from soliton.ledger.errors import TransactionRejected
from soliton.ledger.portfolio import Portfolio
from soliton.ledger.rules import common
from soliton.ledger.rules.set_script import check_script, estimate_asset
from soliton.ledger.rules_at import Rules
from soliton.ledger.state import (
    ASSET_NAMES,
    ASSET_SCRIPTS,
    ASSET_VOLUMES,
    ASSETS,
    ERC20,
    AssetInfo,
    AssetName,
    AssetVolume,
    Overlay,
)


def _activation(transaction: AnyTransaction, context: Context) -> None:
    check_script(transaction.payload.script, context)


def _minimum_fee(transaction: AnyTransaction, rules: Rules) -> int:
    payload: Issue = transaction.payload
    if assets.is_nft(payload.quantity, payload.decimals, payload.reissuable, rules):
        return rules.fees.nft_issue
    return common.base_fee(transaction, rules)


def _is_text(data: bytes) -> bool:
    try:
        data.decode()
    except UnicodeDecodeError:
        return False
    return True


def _apply(
    transaction: AnyTransaction, overlay: Overlay, portfolio: Portfolio, context: Context
) -> None:
    rules = context.rules
    payload: Issue = transaction.payload
    asset_id = transaction.id
    if overlay.get(ERC20, assets.erc20_address(asset_id)) is not None:
        raise TransactionRejected(f"Asset {base58.encode(asset_id)} is already issued")
    texts = _is_text(payload.name) and _is_text(payload.description)
    if rules.has(Feature.BLOCK_V5) and not texts:
        raise TransactionRejected("Valid UTF-8 strings required")
    assets.check_script_size(payload.script, rules)
    script = None if payload.script is None else estimate_asset(payload.script, context)
    nft = assets.is_nft(payload.quantity, payload.decimals, payload.reissuable, rules)
    sequence = overlay.count_written(ASSETS) + 1
    info = AssetInfo(
        transaction.sender_public_key,
        payload.decimals,
        nft,
        transaction.id,
        context.height,
        sequence,
    )
    overlay.put(ASSETS, asset_id, info)
    overlay.put(ASSET_VOLUMES, asset_id, AssetVolume(payload.reissuable, payload.quantity))
    overlay.put(ASSET_NAMES, asset_id, AssetName(payload.name, payload.description, context.height))
    # State hashes also have an entry for a new asset without a script.
    overlay.put(ASSET_SCRIPTS, asset_id, script)
    overlay.put(ERC20, assets.erc20_address(asset_id), asset_id)
    portfolio.add(common.sender_of(transaction), asset_id, payload.quantity)


RULES = TypeRules(_activation, _minimum_fee, None, _apply, pool=PoolRules(sets_script=True))
