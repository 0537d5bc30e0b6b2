"""Type 17, update asset info: changes the name and description of an asset.

Source: wavesplatform/Waves
``node/src/main/scala/com/wavesplatform/state/diffs/AssetTransactionsDiffs.scala``.
"""

from __future__ import annotations

from soliton.chain.features import Feature
from soliton.chain.transactions.model import AnyTransaction
from soliton.chain.transactions.update_asset_info import UpdateAssetInfo
from soliton.crypto import base58
from soliton.ledger import assets
from soliton.ledger.context import Context, TypeRules, constant_purpose
from soliton.ledger.errors import TransactionRejected
from soliton.ledger.portfolio import Portfolio
from soliton.ledger.rules import common
from soliton.ledger.state import ASSET_NAMES, AssetName, Overlay
from soliton.ledger.traces import UPDATE


def _apply(
    transaction: AnyTransaction, overlay: Overlay, _portfolio: Portfolio, context: Context
) -> None:
    rules, height = context.rules, context.height
    payload: UpdateAssetInfo = transaction.payload
    asset_id = payload.asset_id
    assets.require_asset(asset_id, common.sender_of(transaction), overlay, rules)
    old = overlay.get(ASSET_NAMES, asset_id)
    assert old is not None, "an asset has a name from its issue on"
    interval = rules.min_asset_info_update_interval
    if height < old.height + interval:
        raise TransactionRejected(
            f"Can't update info of asset with id={base58.encode(asset_id)} before "
            f"{old.height + interval} block, current height={height}, "
            f"minUpdateInfoInterval={interval}"
        )
    fee_asset_id = transaction.fee_asset_id
    if fee_asset_id is not None and rules.has(Feature.RIDE_V6):
        raise TransactionRejected(
            f"Invalid fee asset: {base58.encode(fee_asset_id)}, only Waves can be used to pay fees "
            "for UpdateAssetInfoTransaction"
        )
    name = AssetName(payload.name, payload.description, height)
    overlay.put(ASSET_NAMES, asset_id, name)


# Before feature 17 the fee could be paid in an asset, which the sponsor did not receive.
RULES = TypeRules(
    common.activation(Feature.BLOCK_V5),
    common.base_fee,
    None,
    _apply,
    assets=assets.moved_asset,
    sponsored=False,
    purpose=constant_purpose(UPDATE),
)
