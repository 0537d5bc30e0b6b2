"""What a request asks a key to sign, as the rules see it.

What lives here: the kinds of what is signed, the record of what one asks for (whose account, what
leaves it, to whom, for which fee, which function, which keys, which pair), how it follows from a
transaction or an order, and a sentence that tells a person. What does not: reading JSON
(``asked``), and whether it is allowed (``policy``).

Nothing here knows single types: what a type spends, calls and names is said by its own row
(``TransactionType.spends``, ``calls``, ``accounts``).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from enum import Enum
from fractions import Fraction
from typing import Final

import msgspec

from soliton.chain.addresses import Alias, Recipient, recipient_text
from soliton.chain.function_calls import DEFAULT_CALL, Argument, FunctionCall
from soliton.chain.orders import PRICE_CONSTANT, Order, PriceMode, Side
from soliton.chain.transactions import codec
from soliton.chain.transactions.model import AnyTransaction, TransactionType
from soliton.chain.transactions.table import type_by_id
from soliton.chain.values import AssetId
from soliton.crypto import base58

COIN_DECIMALS: Final = 8
COIN: Final = "WAVES"
"""How the native coin is called in rules and sentences, on every network, as in orders."""
PRICE_DECIMALS: Final = 8
MAX_TOLD: Final = 3
"""Recipients and keys that a sentence names; of more it tells how many there are."""
MAX_TOLD_CHARACTERS: Final = 120
_PRICE_MODE_VERSION: Final = 4

Decimals = Mapping[AssetId | None, int]


class Kind(Enum):
    """What there is to sign."""

    TRANSACTION = "transaction"
    ORDER = "order"
    CANCEL_ORDER = "cancelOrder"
    CUSTOM_DATA = "customData"
    AUTH = "auth"
    WAVES_AUTH = "wavesAuth"
    TEXT = "text"
    BLOCK = "block"
    MICROBLOCK = "microblock"


class Measures(msgspec.Struct, frozen=True, gc=False):
    """What is asked for. ``name`` and ``version`` tell the form: the name of a type or a kind.

    ``sender`` is the public key of the account that it is for, which may be another one than the
    key's (an account with a script). ``spends`` are the amounts that leave it beside ``fee``, by
    asset; where they cannot be told, ``is_uncertain`` says why. ``binds_chain`` tells whether the
    signed bytes say which chain they are for.
    """

    kind: Kind
    type_id: int
    name: str
    version: int
    sender: bytes
    binds_chain: bool
    fee: int = 0
    fee_asset: AssetId | None = None
    spends: tuple[tuple[AssetId | None, int], ...] = ()
    is_uncertain: str = ""
    recipients: tuple[Recipient, ...] = ()
    d_app: Recipient | None = None
    call: FunctionCall | None = None
    data_keys: tuple[str, ...] = ()
    sets_script: bool = False
    order: Order | None = None
    host: str = ""

    @property
    def arguments(self) -> tuple[Argument, ...]:
        """Those of the called function."""
        return () if self.call is None else self.call.args


def of_transaction(transaction: AnyTransaction) -> Measures:
    """What a transaction asks for."""
    kind = type_by_id(transaction.type_id)
    payload = transaction.payload
    d_app = kind.calls(payload)
    accounts = tuple(kind.accounts(payload))
    recipients = tuple(each for each in accounts if each != d_app)
    call: FunctionCall | None = None
    if d_app is not None:
        call = getattr(payload, "call", None) or DEFAULT_CALL
    return Measures(
        kind=Kind.TRANSACTION,
        type_id=kind.type_id,
        name=kind.name,
        version=transaction.version,
        sender=transaction.sender_public_key,
        binds_chain=_binds_chain(kind, transaction, accounts),
        fee=transaction.fee,
        fee_asset=transaction.fee_asset_id,
        spends=_summed(kind.spends(payload)),
        recipients=recipients,
        d_app=d_app,
        call=call,
        data_keys=tuple(entry.key for entry in getattr(payload, "entries", ())),
        sets_script=_sets_script(kind, payload),
    )


def of_order(order: Order, decimals: Decimals) -> Measures:
    """What an order asks for: it can take away what it offers, and the matcher's fee."""
    spends: tuple[tuple[AssetId | None, int], ...] = ()
    uncertain = ""
    if order.side is Side.SELL:
        spends = ((order.amount_asset, order.amount),)
    else:
        cost = _cost(order, decimals)
        if cost is None:
            uncertain = "the decimals of the pair's assets are not in the policy"
        else:
            spends = ((order.price_asset, cost),)
    return Measures(
        kind=Kind.ORDER,
        type_id=0,
        name=Kind.ORDER.value,
        version=order.version,
        sender=order.sender_public_key,
        binds_chain=order.version >= _PRICE_MODE_VERSION,
        fee=order.matcher_fee,
        fee_asset=order.matcher_fee_asset,
        spends=spends,
        is_uncertain=uncertain,
        order=order,
    )


def _binds_chain(
    kind: TransactionType, transaction: AnyTransaction, accounts: tuple[Recipient, ...]
) -> bool:
    if codec.is_protobuf(kind, transaction.version):
        return True
    if "chain_id" in kind.binary[transaction.version].fields:
        return True
    # An address or alias holds it, where it stands in the signed bytes.
    values = (getattr(transaction.payload, field.attribute) for field in kind.fields)
    named = (*accounts, *(each for each in values if isinstance(each, Alias)))
    written = (each.to_bytes() if isinstance(each, Alias) else each for each in named)
    return any(each in transaction.body for each in written)


def _sets_script(kind: TransactionType, payload: object) -> bool:
    """A type that is about scripts also takes one away; others may bring one along."""
    has_script = any(field.attribute == "script" for field in kind.fields)
    return has_script and (len(kind.fields) <= 2 or getattr(payload, "script", None) is not None)


def _summed(
    spends: Iterable[tuple[AssetId | None, int]],
) -> tuple[tuple[AssetId | None, int], ...]:
    totals: dict[AssetId | None, int] = {}
    for asset, amount in spends:
        totals[asset] = totals.get(asset, 0) + amount
    return tuple(totals.items())


# --- orders ---------------------------------------------------------------------------------------


def price_of(order: Order, decimals: Decimals) -> Fraction | None:
    """The price as people say it: whole units of the price asset for one of the amount asset.
    ``None`` where the decimals that it takes are not known.
    """
    if _is_fixed(order):
        return Fraction(order.price, PRICE_CONSTANT)
    shift = _shift(order, decimals)
    return None if shift is None else Fraction(order.price, PRICE_CONSTANT) * _ten_to(-shift)


def _cost(order: Order, decimals: Decimals) -> int | None:
    """What a buyer pays at most, in the smallest unit of the price asset, rounded up."""
    product = Fraction(order.amount * order.price, PRICE_CONSTANT)
    if _is_fixed(order):
        shift = _shift(order, decimals)
        if shift is None:
            return None
        product *= _ten_to(shift)
    return -(-product.numerator // product.denominator)


def _is_fixed(order: Order) -> bool:
    """Whether the price has 8 decimals, whatever its assets have."""
    later = order.version >= _PRICE_MODE_VERSION
    return later and order.price_mode is not PriceMode.ASSET_DECIMALS


def _shift(order: Order, decimals: Decimals) -> int | None:
    amount = decimals_of(order.amount_asset, decimals)
    price = decimals_of(order.price_asset, decimals)
    return None if amount is None or price is None else price - amount


def decimals_of(asset: AssetId | None, decimals: Decimals) -> int | None:
    """How many decimals an asset has; ``None`` if nobody has said it."""
    return COIN_DECIMALS if asset is None else decimals.get(asset)


def _ten_to(power: int) -> Fraction:
    return Fraction(10**power) if power >= 0 else Fraction(1, 10**-power)


# --- for people -----------------------------------------------------------------------------------


def asset_text(asset: AssetId | None) -> str:
    """An asset as rules and sentences call it."""
    return COIN if asset is None else base58.encode(asset)


def amount_text(asset: AssetId | None, amount: int, decimals: Decimals) -> str:
    """An amount with its decimals, or in smallest units where those are not known."""
    places = decimals_of(asset, decimals)
    if places is None:
        return f"{amount} units of {asset_text(asset)}"
    sign, digits = "-" if amount < 0 else "", f"{abs(amount):0{places + 1}d}"
    whole, rest = digits[: len(digits) - places], digits[len(digits) - places :].rstrip("0")
    return f"{sign}{whole}{'.' if rest else ''}{rest} {asset_text(asset)}"


def sentence(asked: Measures, decimals: Decimals) -> str:
    """What a person who is to approve it reads."""
    parts = [f"{asked.name.replace('_', ' ')} (version {asked.version})"]
    if asked.order is not None:
        parts.append(_of_an_order(asked.order, decimals))
    elif asked.spends:
        spent = (amount_text(asset, amount, decimals) for asset, amount in asked.spends)
        parts.append("of " + " and ".join(spent))
    if asked.recipients:
        parts.append("to " + _some(tuple(map(recipient_text, asked.recipients))))
    if asked.d_app is not None and asked.call is not None:
        arguments = ", ".join(map(_argument_text, asked.call.args))
        called = f"{asked.call.function}({arguments})"
        if len(called) > MAX_TOLD_CHARACTERS:
            called = called[:MAX_TOLD_CHARACTERS] + "…"
        parts.append(f"calling {called} of {recipient_text(asked.d_app)}")
    if asked.data_keys:
        parts.append("under " + _some(tuple(map(repr, asked.data_keys))))
    if asked.sets_script:
        parts.append("with a script")
    if asked.host:
        parts.append(f"for {asked.host!r}")
    if asked.fee:
        parts.append(f"for a fee of {amount_text(asked.fee_asset, asked.fee, decimals)}")
    return " ".join(parts)


def _of_an_order(order: Order, decimals: Decimals) -> str:
    price = price_of(order, decimals)
    told = f"{order.price} (as written)" if price is None else f"{float(price):.10g}"
    verb = "selling" if order.side is Side.SELL else "buying"
    return (
        f"{verb} {amount_text(order.amount_asset, order.amount, decimals)} at {told} "
        f"{asset_text(order.price_asset)} each"
    )


def _some(names: tuple[str, ...]) -> str:
    shown = ", ".join(each[:MAX_TOLD_CHARACTERS] for each in names[:MAX_TOLD])
    more = len(names) - MAX_TOLD
    return f"{shown} and {more} more" if more > 0 else shown


def _argument_text(argument: Argument) -> str:
    if isinstance(argument, bytes):
        return base58.encode(argument[:32])
    if isinstance(argument, tuple):
        return f"[{', '.join(map(_argument_text, argument))}]"
    return repr(argument)[:MAX_TOLD_CHARACTERS]
