"""Type 6, burn: decreases the quantity of an asset.

Source: wavesplatform/Waves
``node/src/main/scala/com/wavesplatform/state/diffs/AssetTransactionsDiffs.scala``.
"""

from __future__ import annotations

from soliton.chain.transactions.burn import Burn
from soliton.chain.transactions.model import AnyTransaction
from soliton.ledger import assets
from soliton.ledger.context import Context, TypeRules, constant_purpose
from soliton.ledger.portfolio import Portfolio
from soliton.ledger.rules import common
from soliton.ledger.state import Overlay
from soliton.ledger.traces import BURN


def _apply(
    transaction: AnyTransaction, overlay: Overlay, portfolio: Portfolio, context: Context
) -> None:
    payload: Burn = transaction.payload
    sender = common.sender_of(transaction)
    assets.burn(payload.asset_id, payload.quantity, sender, overlay, portfolio, context)


RULES = TypeRules(
    common.generic_activation,
    common.base_fee,
    None,
    _apply,
    assets=assets.moved_asset,
    purpose=constant_purpose(BURN),
)
