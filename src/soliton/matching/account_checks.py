"""Whether an account may place an order: its signature or its scripts, how many orders it has, and
what it can afford.

What lives here: these checks, which come after those of ``validation``. What does not: running
scripts (the node does), and what an account has free (``balances``).

Sources: wavesplatform/matcher
``dex/src/main/scala/com/wavesplatform/dex/model/OrderValidator.scala`` and
``actors/address/AddressActor.scala``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from enum import Enum
from fractions import Fraction
from typing import Final

from soliton.chain.addresses import from_public_key
from soliton.chain.orders import MODE_NAMES, Order, Side, signature_claim, typed_data_hash
from soliton.crypto import base58
from soliton.crypto.curve25519 import SignedMessage
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
    """What is still to be verified of an order of an account without a script; ``None`` where a
    wallet signed it, which is known already.

    Raises ``MatcherError`` for one that cannot be valid; ``forged`` is the refusal if it is not.
    """
    if order.eip712_signature is None and len(order.proofs) != 1:
        raise invalid_signature(
            order, "Transactions from non-scripted accounts must have exactly 1 proof"
        )
    claim = signature_claim(order)
    if claim is False:
        raise forged(order)
    return None if claim is True else claim


def signed_name(order: Order) -> bytes | None:
    """What stands for an order that a wallet signed, whatever its signature looks like: who signed,
    and what. Such an order's id depends on the signature, and there are many of the same. ``None``
    for other orders, whose id says it already.
    """
    if order.eip712_signature is None:
        return None
    return blake2b256(order.sender_public_key + typed_data_hash(order))


def forged(order: Order) -> MatcherError:
    """The refusal of an order whose signature is not valid."""
    return invalid_signature(order, "Proof doesn't validate as signature")


def other_price_mode(order: Order, amount_decimals: int, price_decimals: int) -> MatcherError:
    """The refusal of an order that is signed with a price mode that a matcher does not take."""
    shift = price_decimals - amount_decimals
    price = Fraction(order.price) * Fraction(10) ** shift
    told = f", and the price {price}" if price.denominator == 1 and shift else ""
    given = MODE_NAMES[order.price_mode] or "default"
    return invalid_signature(
        order,
        f"it was signed with the price mode {given}, a matcher takes assetDecimals: set priceMode "
        f'to "assetDecimals"{told} before signing',
    )


def check_script_version(order: Order) -> None:
    """An order of an account with a script; raises ``MatcherError`` where its version has no proofs
    for one.
    """
    if order.version < _FIRST_PROOFS_VERSION:
        raise MatcherError(
            errors.ACCOUNT_NOT_SUPPORT_ORDER_VERSION,
            address=_sender_text(order),
            required=_FIRST_PROOFS_VERSION,
            given=order.version,
        )


class ScriptFault(Enum):
    """Why a script did not let an order pass."""

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
    order: Order, fault: ScriptFault, words: str, name: str = SCRIPT_EXCEPTION
) -> MatcherError:
    """The refusal of an order by its sender's script; ``words`` are the script's or the node's,
    ``name`` is what went wrong where it could not be run.
    """
    return _script_refusal(_BY_ACCOUNT, fault, words, name, address=_sender_text(order))


def asset_script_refusal(
    asset: Asset, fault: ScriptFault, words: str, name: str = SCRIPT_EXCEPTION
) -> MatcherError:
    """The refusal of an order by an asset's script; ``words`` are the script's or the node's,
    ``name`` is what went wrong where it could not be run.
    """
    return _script_refusal(_BY_ASSET, fault, words, name, assetId=asset_text(asset))


def _script_refusal(
    kinds: Mapping[ScriptFault, ErrorKind], fault: ScriptFault, words: str, name: str, **whose: str
) -> MatcherError:
    told: dict[str, str] = {}
    match fault:
        case ScriptFault.DENIED:
            pass
        case ScriptFault.RETURNED_ERROR:
            told = {"scriptError": words}
        case ScriptFault.UNEXPECTED_RESULT:
            told = {"returnedObject": words}
        case ScriptFault.EXCEPTION:
            told = {"errorName": name, "errorText": words}
    return MatcherError(kinds[fault], form=0, **whose, **told)


def _sender_text(order: Order) -> str:
    return base58.encode(from_public_key(order.sender_public_key, order.chain_id))


# --- the account ----------------------------------------------------------------------------------


def check_account(
    active: ActiveOrder,
    tradable: Callable[[Asset], int],
    counter_levels: Sequence[LevelTotal],
    assets: Assets,
) -> None:
    """Whether the account can afford an order; raises ``MatcherError``.

    ``tradable`` are its free balances. ``counter_levels`` is the other side of the book, best
    first, which only market orders need: one whose price does not reach as deep as its amount does
    is refused. Of what it spends a market order needs one unit only.
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
    """What a market order may spend of the asset that it gives: as much as it needs at its own
    price, its fee with it where that is paid in the same asset, or all there is.
    """
    active = limit_order(order)
    spent = active.spent_asset
    return min(tradable(spent), active.required_balance()[spent])


def check_order_count(active_orders: int, settings: PlacementSettings) -> None:
    """Raises ``MatcherError`` where an account has so many orders already, those that wait for
    their placement among them.
    """
    if active_orders >= settings.max_active_orders:
        raise MatcherError(errors.ACTIVE_ORDERS_LIMIT_REACHED, limit=settings.max_active_orders)


def duplicate(order: Order) -> MatcherError:
    """The refusal of an order that was placed already, or executed on the chain."""
    return MatcherError(errors.ORDER_DUPLICATE, id=base58.encode(order.id))


def _check_market_price(order: Order, counter_levels: Sequence[LevelTotal], assets: Assets) -> None:
    rest = order.amount
    buys = order.side is Side.BUY
    for level in counter_levels:
        if rest <= 0:
            return
        if (order.price < level.price) if buys else (order.price > level.price):
            raise MatcherError(
                errors.INVALID_MARKET_ORDER_PRICE,
                form=0 if buys else 1,
                orderPrice=price_param(order.price, pair_of(order), assets),
            )
        rest -= level.amount
