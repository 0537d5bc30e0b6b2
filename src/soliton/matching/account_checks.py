"""Checks of an order against its account: the signature or scripts, the number of active orders,
and the balance.

What lives here: these checks, which follow those of ``validation``. What does not: running scripts
(the node does), and computing free balances (``balances``).

Sources: wavesplatform/matcher
``dex/src/main/scala/com/wavesplatform/dex/model/OrderValidator.scala`` and
``actors/address/AddressActor.scala``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from enum import Enum
from fractions import Fraction
from typing import Final

from soliton.chain.addresses import from_public_key
from soliton.chain.features import Feature
from soliton.chain.orders import MODE_NAMES, Order, Side, signature_claim
from soliton.chain.typed_data import order_hash
from soliton.crypto import base58
from soliton.crypto.curve25519 import SignedMessage, is_weak
from soliton.crypto.hashes import blake2b256
from soliton.matching import errors
from soliton.matching.book import LevelTotal
from soliton.matching.errors import ErrorKind, MatcherError
from soliton.matching.model import ActiveOrder, limit_order
from soliton.matching.pairs import Asset, asset_text, pair_of
from soliton.matching.placement import (
    Assets,
    PlacementSettings,
    balance_param,
    price_param,
)
from soliton.matching.validation import invalid_signature

_FIRST_PROOFS_VERSION: Final = 2
SCRIPT_EXCEPTION: Final = "ScriptException"

# --- signatures and scripts -----------------------------------------------------------------------


def signature_to_verify(order: Order) -> SignedMessage | None:
    """The signature still to verify for an order of an account without a script; ``None`` if a
    wallet signed it, which is verified already.

    Raises ``MatcherError`` if the order cannot be valid. If the verification fails, the caller
    raises ``forged``.
    """
    if order.eip712_signature is None and len(order.proofs) != 1:
        raise invalid_signature(
            order, "Transactions from non-scripted accounts must have exactly 1 proof"
        )
    claim = signature_claim(order)
    if claim is False:
        raise forged(order)
    return None if claim is True else claim


def check_key(order: Order, features: frozenset[int]) -> None:
    """Raise ``MatcherError`` if anyone could sign for the key of an order without a script. The
    chain refuses such orders from version 6 of the script language on, the reference matcher does
    not.
    """
    if Feature.RIDE_V6 in features and is_weak(order.sender_public_key):
        raise forged(order)


def signed_name(order: Order) -> bytes | None:
    """A digest of the signer and the signed data of an order that a wallet signed. Such an order's
    id depends on the signature, so the same order may have many ids. ``None`` for other orders,
    whose id is unique.
    """
    if order.eip712_signature is None:
        return None
    return blake2b256(order.sender_public_key + order_hash(order))


def forged(order: Order) -> MatcherError:
    """The error for an order with an invalid signature."""
    return invalid_signature(order, "Proof doesn't validate as signature")


def other_price_mode(order: Order, amount_decimals: int, price_decimals: int) -> MatcherError:
    """The error for an order signed with a price mode that the matcher does not accept."""
    shift = price_decimals - amount_decimals
    price = Fraction(order.price) * Fraction(10) ** shift
    scaled = f", and the price {price}" if price.denominator == 1 and shift else ""
    given = MODE_NAMES[order.price_mode] or "default"
    return invalid_signature(
        order,
        f"it was signed with the price mode {given}, a matcher takes assetDecimals: set priceMode "
        f'to "assetDecimals"{scaled} before signing',
    )


def check_script_version(order: Order) -> None:
    """Check an order of an account with a script; raises ``MatcherError`` if its version has no
    proofs.
    """
    if order.version < _FIRST_PROOFS_VERSION:
        raise MatcherError(
            errors.ACCOUNT_NOT_SUPPORT_ORDER_VERSION,
            address=_sender_text(order),
            required=_FIRST_PROOFS_VERSION,
            given=order.version,
        )


class ScriptFault(Enum):
    """Why a script rejected an order."""

    DENIED = "denied"
    RETURNED_ERROR = "returned an error"
    UNEXPECTED_RESULT = "returned something else than true or false"
    EXCEPTION = "could not be run"


_BY_ACCOUNT: Final = {
    ScriptFault.DENIED: errors.ACCOUNT_SCRIPT_DENIED_ORDER,
    ScriptFault.RETURNED_ERROR: errors.ACCOUNT_SCRIPT_RETURNED_ERROR,
    ScriptFault.UNEXPECTED_RESULT: errors.ACCOUNT_SCRIPT_UNEXPECT_RESULT,
    ScriptFault.EXCEPTION: errors.ACCOUNT_SCRIPT_EXCEPTION,
}
_BY_ASSET: Final = {
    ScriptFault.DENIED: errors.ASSET_SCRIPT_DENIED_ORDER,
    ScriptFault.RETURNED_ERROR: errors.ASSET_SCRIPT_RETURNED_ERROR,
    ScriptFault.UNEXPECTED_RESULT: errors.ASSET_SCRIPT_UNEXPECT_RESULT,
    ScriptFault.EXCEPTION: errors.ASSET_SCRIPT_EXCEPTION,
}


def account_script_refusal(
    order: Order, fault: ScriptFault, message: str, name: str = SCRIPT_EXCEPTION
) -> MatcherError:
    """The error for an order rejected by its sender's script. ``message`` is the script's or the
    node's; ``name`` is the error's name if the script could not be run.
    """
    return _script_refusal(_BY_ACCOUNT, fault, message, name, address=_sender_text(order))


def asset_script_refusal(
    asset: Asset, fault: ScriptFault, message: str, name: str = SCRIPT_EXCEPTION
) -> MatcherError:
    """The error for an order rejected by an asset's script; parameters as above."""
    return _script_refusal(_BY_ASSET, fault, message, name, assetId=asset_text(asset))


def _script_refusal(
    kinds: Mapping[ScriptFault, ErrorKind],
    fault: ScriptFault,
    message: str,
    name: str,
    **owner: str,
) -> MatcherError:
    params: dict[str, str] = {
        ScriptFault.DENIED: {},
        ScriptFault.RETURNED_ERROR: {"scriptError": message},
        ScriptFault.UNEXPECTED_RESULT: {"returnedObject": message},
        ScriptFault.EXCEPTION: {"errorName": name, "errorText": message},
    }[fault]
    return MatcherError(kinds[fault], form=0, **owner, **params)


def _sender_text(order: Order) -> str:
    return base58.encode(from_public_key(order.sender_public_key, order.chain_id))


# --- the account ----------------------------------------------------------------------------------


def check_account(
    active: ActiveOrder,
    tradable: Callable[[Asset], int],
    counter_levels: Iterable[LevelTotal],
    assets: Assets,
) -> None:
    """Check that the account can afford an order; raises ``MatcherError``.

    ``tradable`` returns its free balances. ``counter_levels`` is the other side of the book, best
    first; it is iterated only for market orders, as far as their amount needs, and they are
    rejected if their price is too low (or high) to fill it. A market order needs only one unit of
    the asset it spends.
    """
    order = active.order
    if active.is_market:
        _check_market_price(order, counter_levels, assets)
        required: dict[Asset, int] = {order.matcher_fee_asset: active.fee}
        required[active.spent_asset] = required.get(active.spent_asset, 0) + 1
    else:
        required = active.required_balance()
    for asset, amount in required.items():
        if tradable(asset) < amount:
            raise MatcherError(
                errors.BALANCE_NOT_ENOUGH,
                required=balance_param(required, assets),
                actual=balance_param({each: tradable(each) for each in required}, assets),
            )


def available_for_spending(order: Order, tradable: Callable[[Asset], int]) -> int:
    """What a market order may spend: what it needs at its own price, including a fee in the same
    asset, or the whole free balance if that is less.
    """
    active = limit_order(order)
    spent = active.spent_asset
    return min(tradable(spent), active.required_balance()[spent])


def check_order_count(active_orders: int, settings: PlacementSettings) -> None:
    """Raises ``MatcherError`` if an account has the maximum number of orders, including those whose
    placement is pending.
    """
    if active_orders >= settings.max_active_orders:
        raise MatcherError(errors.ACTIVE_ORDERS_LIMIT_REACHED, limit=settings.max_active_orders)


def duplicate(order: Order) -> MatcherError:
    """The error for an order that was placed before, or executed on the chain."""
    return MatcherError(errors.ORDER_DUPLICATE, id=base58.encode(order.id))


def _check_market_price(order: Order, counter_levels: Iterable[LevelTotal], assets: Assets) -> None:
    rest = order.amount
    buys = order.side is Side.BUY
    for level in counter_levels:
        if (order.price < level.price) if buys else (order.price > level.price):
            raise MatcherError(
                errors.INVALID_MARKET_ORDER_PRICE,
                form=0 if buys else 1,
                orderPrice=price_param(order.price, pair_of(order), assets),
            )
        rest -= level.amount
        if rest <= 0:
            return
