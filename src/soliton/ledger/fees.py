"""Fees: the minimum, who pays, and the generator's share.

Sources: wavesplatform/Waves
``node/src/main/scala/com/wavesplatform/state/diffs/FeeValidation.scala``,
``state/diffs/BlockDiffer.scala``.
"""

from __future__ import annotations

import msgspec

from soliton.chain.addresses import from_public_key
from soliton.chain.transactions.model import AnyTransaction
from soliton.chain.transactions.table import type_by_id
from soliton.chain.values import AssetId
from soliton.crypto import base58
from soliton.ledger.errors import TransactionRejected
from soliton.ledger.portfolio import Portfolio
from soliton.ledger.rules import rules_of
from soliton.ledger.rules_at import Rules
from soliton.ledger.scripts import has_paid_verifier, smart_assets
from soliton.ledger.sponsorship import from_waves, sponsor_of, take_fee, to_waves
from soliton.ledger.state import State


class MinimumFee(msgspec.Struct, frozen=True):
    """The minimum fee in wavelets, and in the asset that the transaction pays with (the same for
    the native coin). ``reasons`` explain extra fees.
    """

    waves: int
    asset_id: AssetId | None
    amount: int
    reasons: tuple[str, ...] = ()


def minimum_fee(transaction: AnyTransaction, state: State, rules: Rules) -> MinimumFee:
    """Return the minimum fee of a transaction.

    Raises ``TransactionRejected`` if its fee asset does not exist or is not sponsored.
    """
    of_type = rules_of(transaction.type_id)
    waves = of_type.minimum_fee(transaction, rules)
    asset_id = transaction.fee_asset_id if rules.sponsorship else None
    sponsorship = 0 if asset_id is None else sponsor_of(asset_id, state)[1]
    reasons: tuple[str, ...] = ()
    if of_type.charged_assets is None:
        involved = of_type.assets(transaction, state)
    else:
        involved = of_type.charged_assets(transaction, state, rules)
    scripted = len(smart_assets(involved, state))
    if asset_id is not None:
        scripted += len(smart_assets((asset_id,), state))
    if scripted:
        extra = scripted * rules.fees.script_extra
        reasons = (f"Transaction involves {scripted} scripted assets. Requires {extra} extra fee",)
        waves += extra
    if of_type.proven and transaction.sender_public_key:
        sender = from_public_key(transaction.sender_public_key, rules.chain_id)
        if has_paid_verifier(sender, state, rules):
            extra = rules.fees.script_extra
            reasons = (
                f"Transaction sent from smart account. Requires {extra} extra fee",
                *reasons,
            )
            waves += extra
    if asset_id is None:
        return MinimumFee(waves, None, waves, reasons)
    amount = from_waves(waves, sponsorship, rules.fees.unit)
    return MinimumFee(waves, asset_id, amount, reasons)


def check_fee(transaction: AnyTransaction, state: State, rules: Rules) -> None:
    """Raise ``TransactionRejected`` if the fee is too small."""
    if not rules.sponsorship:
        if transaction.fee <= 0 and transaction.sender_public_key:
            raise TransactionRejected("Fee must be positive.")
        return
    minimum = minimum_fee(transaction, state, rules)
    if transaction.fee >= minimum.amount or not rules.minimum_fees_enforced:
        return
    title = type_by_id(transaction.type_id).title
    if minimum.asset_id is None:
        paid, alternative = f"{transaction.fee} in {rules.coin}", ""
    else:
        asset = base58.encode(minimum.asset_id)
        paid, alternative = f"{transaction.fee} in {asset}", f" or {minimum.amount} {asset}"
    message = (
        f"Fee for {title} ({paid}) does not exceed minimal value of "
        f"{minimum.waves} {rules.coin}{alternative}."
    )
    raise TransactionRejected(". ".join((*minimum.reasons, message)))


def add_fee(transaction: AnyTransaction, portfolio: Portfolio, state: State, rules: Rules) -> None:
    """Charge the fee to the sender, and its wavelets to the sponsor once sponsorship is active."""
    add = add_sponsored_fee if rules.sponsorship else add_unsponsored_fee
    add(transaction, portfolio, state, rules)


def add_sponsored_fee(
    transaction: AnyTransaction, portfolio: Portfolio, state: State, rules: Rules
) -> None:
    """Charge the fee to the sender; if it is in an asset, its wavelets to the sponsor."""
    if transaction.sender_public_key:
        sender = from_public_key(transaction.sender_public_key, rules.chain_id)
        take_fee(sender, transaction.fee_asset_id, transaction.fee, portfolio, state, rules)


def add_unsponsored_fee(
    transaction: AnyTransaction, portfolio: Portfolio, _state: State, rules: Rules
) -> None:
    """Charge the fee to the sender, ignoring sponsorship."""
    if not transaction.sender_public_key:
        return
    sender = from_public_key(transaction.sender_public_key, rules.chain_id)
    portfolio.add(sender, transaction.fee_asset_id, -transaction.fee)


def generator_fee(
    transaction: AnyTransaction, state: State, rules: Rules
) -> tuple[AssetId | None, int]:
    """Return what generators receive: wavelets, or an asset before sponsorship was active."""
    asset_id = transaction.fee_asset_id
    if asset_id is None or not rules.sponsorship:
        return asset_id, transaction.fee
    _, sponsorship = sponsor_of(asset_id, state)
    return None, to_waves(transaction.fee, sponsorship, rules.fees.unit)


def current_part(fee: int) -> int:
    """Return the 40% of a fee that the generator of the transaction's own block receives."""
    return fee // 5 * 2
