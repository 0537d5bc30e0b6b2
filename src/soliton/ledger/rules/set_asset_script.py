"""Type 15, set asset script: replaces the script of a smart asset.

Source: wavesplatform/Waves
``node/src/main/scala/com/wavesplatform/state/diffs/AssetTransactionsDiffs.scala``.
"""

from __future__ import annotations

from soliton.chain.features import Feature
from soliton.chain.transactions.model import AnyTransaction
from soliton.chain.transactions.set_asset_script import SetAssetScript
from soliton.ledger import assets
from soliton.ledger.context import Context, PoolRules, TypeRules, constant_purpose
from soliton.ledger.errors import TransactionRejected
from soliton.ledger.portfolio import Portfolio
from soliton.ledger.rules import common
from soliton.ledger.rules.set_script import check_script, estimate_asset
from soliton.ledger.state import ASSET_SCRIPTS, Overlay
from soliton.ledger.traces import UPDATE


def _activation(transaction: AnyTransaction, context: Context) -> None:
    common.require_feature(Feature.SMART_ASSETS, context.rules)
    check_script(transaction.payload.script, context)


def _apply(
    transaction: AnyTransaction, overlay: Overlay, _portfolio: Portfolio, context: Context
) -> None:
    payload: SetAssetScript = transaction.payload
    asset_id = payload.asset_id
    assets.require_asset(asset_id, common.sender_of(transaction), overlay, context.rules)
    script = None if payload.script is None else estimate_asset(payload.script, context)
    if overlay.get(ASSET_SCRIPTS, asset_id) is None:
        raise TransactionRejected("Cannot set script on an asset issued without a script")
    assets.check_script_size(payload.script, context.rules)
    if script is not None:
        overlay.put(ASSET_SCRIPTS, asset_id, script)


RULES = TypeRules(
    _activation,
    common.base_fee,
    None,
    _apply,
    assets=assets.moved_asset,
    purpose=constant_purpose(UPDATE),
    pool=PoolRules(sets_script=True),
)
