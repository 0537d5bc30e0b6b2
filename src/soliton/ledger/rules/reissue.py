"""Type 5, reissue: increases the quantity of an asset.

Source: wavesplatform/Waves
``node/src/main/scala/com/wavesplatform/state/diffs/AssetTransactionsDiffs.scala``.
"""

from __future__ import annotations

from soliton.chain.features import Feature
from soliton.chain.transactions.model import AnyTransaction
from soliton.chain.transactions.reissue import Reissue
from soliton.ledger import assets
from soliton.ledger.context import Context, TypeRules, constant_purpose
from soliton.ledger.portfolio import Portfolio
from soliton.ledger.rules import common
from soliton.ledger.rules_at import Rules
from soliton.ledger.state import Overlay
from soliton.ledger.traces import REISSUE


def _minimum_fee(transaction: AnyTransaction, rules: Rules) -> int:
    if rules.has(Feature.BLOCK_V5):
        return rules.fees.reissue_after_block_v5
    return common.base_fee(transaction, rules)


def _apply(
    transaction: AnyTransaction, overlay: Overlay, portfolio: Portfolio, context: Context
) -> None:
    payload: Reissue = transaction.payload
    assets.reissue(
        payload.asset_id,
        payload.quantity,
        payload.reissuable,
        common.sender_of(transaction),
        overlay,
        portfolio,
        context,
    )


RULES = TypeRules(
    common.generic_activation,
    _minimum_fee,
    None,
    _apply,
    assets=assets.moved_asset,
    purpose=constant_purpose(REISSUE),
)
