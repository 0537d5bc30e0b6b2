"""Type 14, sponsor fee: lets users pay fees in an asset, at a rate.

Source: wavesplatform/Waves
``node/src/main/scala/com/wavesplatform/state/diffs/DiffsCommon.scala``.
"""

from __future__ import annotations

from soliton.chain.features import Feature
from soliton.chain.transactions.model import AnyTransaction
from soliton.chain.transactions.sponsor_fee import SponsorFee
from soliton.ledger import assets
from soliton.ledger.context import Context, TypeRules, constant_purpose
from soliton.ledger.errors import TransactionRejected
from soliton.ledger.portfolio import Portfolio
from soliton.ledger.rules import common
from soliton.ledger.rules_at import Rules
from soliton.ledger.state import ASSET_SCRIPTS, SPONSORSHIPS, Overlay
from soliton.ledger.traces import SPONSOR


def _minimum_fee(transaction: AnyTransaction, rules: Rules) -> int:
    if rules.has(Feature.BLOCK_V5):
        return rules.fees.sponsor_fee_after_block_v5
    return common.base_fee(transaction, rules)


def _apply(
    transaction: AnyTransaction, overlay: Overlay, _portfolio: Portfolio, context: Context
) -> None:
    payload: SponsorFee = transaction.payload
    asset_id = payload.asset_id
    assets.require_asset(asset_id, common.sender_of(transaction), overlay, context.rules)
    if overlay.get(ASSET_SCRIPTS, asset_id) is not None:
        raise TransactionRejected("Sponsorship smart assets is disabled.")
    overlay.put(SPONSORSHIPS, asset_id, payload.min_fee or 0)


RULES = TypeRules(
    common.activation(Feature.FEE_SPONSORSHIP),
    _minimum_fee,
    None,
    _apply,
    assets=assets.moved_asset,
    purpose=constant_purpose(SPONSOR),
)
