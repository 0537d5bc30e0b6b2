"""The properties of a signing request that rules are evaluated on.

What lives here: the kinds of things to sign, the record of their properties (account, amounts,
recipients, fee, called function, data keys, pair), how it follows from a transaction or an order,
and a sentence about it for people. What does not: reading JSON (``signable``), and the decision
(``policy``).

Nothing here depends on single transaction types: what a type spends, calls and names is declared in
its row (``TransactionType.spends``, ``calls``, ``accounts``).
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
"""The name of the native coin in rules and sentences, on every network, as in orders."""
PRICE_DECIMALS: Final = 8
MAX_NAMED: Final = 3
"""Recipients and keys that a sentence names; the rest is counted."""
MAX_NAMED_CHARACTERS: Final = 120
_PRICE_MODE_VERSION: Final = 4

Decimals = Mapping[AssetId | None, int]


class Kind(Enum):
    """The kinds of things to sign."""

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
    """The properties of one thing to sign. ``name`` is that of a transaction type or of a kind.

    ``sender`` is the public key of the account that it is for, which may differ from the signing
    key (an account with a script). ``spends`` are the amounts that leave it, without the ``fee``,
    by asset; where they are unknown, ``is_uncertain`` says why. ``creates`` are the amounts that
    are issued, ``sets`` those that become a rule, such as a sponsor's rate; ``None`` there stands
    for a new asset. ``binds_chain`` says whether the
    signed bytes determine the chain.
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
    creates: tuple[tuple[AssetId | None, int], ...] = ()
    sets: tuple[tuple[AssetId | None, int], ...] = ()
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
        """The arguments of the called function."""
        return () if self.call is None else self.call.args


def of_transaction(transaction: AnyTransaction) -> Measures:
    """Return the properties of a transaction."""
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
        creates=_summed(kind.creates(payload)),
        sets=_summed(kind.sets(payload)),
        recipients=recipients,
        d_app=d_app,
        call=call,
        data_keys=tuple(entry.key for entry in getattr(payload, "entries", ())),
        sets_script=_sets_script(kind, payload),
    )


def of_order(order: Order, decimals: Decimals) -> Measures:
    """Return the properties of an order, which can spend what it offers and the matcher's fee."""
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
    # An address or alias in the signed bytes contains the chain id.
    values = (getattr(transaction.payload, field.attribute) for field in kind.fields)
    named = (*accounts, *(each for each in values if isinstance(each, Alias)))
    written = (each.to_bytes() if isinstance(each, Alias) else each for each in named)
    return any(each in transaction.body for each in written)


def _sets_script(kind: TransactionType, payload: object) -> bool:
    """Types about scripts alone also remove one; other types may carry one."""
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
    """Return the price in whole units of the price asset for one of the amount asset, ``None``
    where the decimals of the assets are needed and unknown.
    """
    if _is_fixed(order):
        return Fraction(order.price, PRICE_CONSTANT)
    shift = _shift(order, decimals)
    return None if shift is None else Fraction(order.price, PRICE_CONSTANT) * _ten_to(-shift)


def _cost(order: Order, decimals: Decimals) -> int | None:
    """Return the most that a buyer pays, in the smallest unit of the price asset, rounded up."""
    product = Fraction(order.amount * order.price, PRICE_CONSTANT)
    if _is_fixed(order):
        shift = _shift(order, decimals)
        if shift is None:
            return None
        product *= _ten_to(shift)
    return -(-product.numerator // product.denominator)


def _is_fixed(order: Order) -> bool:
    """Whether the price has 8 decimals, whatever the decimals of its assets."""
    has_mode = order.version >= _PRICE_MODE_VERSION
    return has_mode and order.price_mode is not PriceMode.ASSET_DECIMALS


def _shift(order: Order, decimals: Decimals) -> int | None:
    amount = decimals_of(order.amount_asset, decimals)
    price = decimals_of(order.price_asset, decimals)
    return None if amount is None or price is None else price - amount


def decimals_of(asset: AssetId | None, decimals: Decimals) -> int | None:
    """Return the decimals of an asset; ``None`` if unknown."""
    return COIN_DECIMALS if asset is None else decimals.get(asset)


def _ten_to(power: int) -> Fraction:
    return Fraction(10**power) if power >= 0 else Fraction(1, 10**-power)


# --- for people -----------------------------------------------------------------------------------


def asset_text(asset: AssetId | None) -> str:
    """Return the name of an asset in rules and sentences."""
    return COIN if asset is None else base58.encode(asset)


def amount_text(asset: AssetId | None, amount: int, decimals: Decimals) -> str:
    """Return an amount with its decimals, or in smallest units where those are unknown."""
    places = decimals_of(asset, decimals)
    if places is None:
        return f"{amount} units of {asset_text(asset)}"
    sign, digits = "-" if amount < 0 else "", f"{abs(amount):0{places + 1}d}"
    whole, rest = digits[: len(digits) - places], digits[len(digits) - places :].rstrip("0")
    return f"{sign}{whole}{'.' if rest else ''}{rest} {asset_text(asset)}"


def sentence(measures: Measures, decimals: Decimals) -> str:
    """Return a description for approvers."""
    parts = [f"{measures.name.replace('_', ' ')} (version {measures.version})"]
    if measures.order is not None:
        parts.append(_of_an_order(measures.order, decimals))
    elif measures.spends:
        spent = (amount_text(asset, amount, decimals) for asset, amount in measures.spends)
        parts.append("of " + " and ".join(spent))
    for verb, amounts in (("creating", measures.creates), ("setting", measures.sets)):
        parts += [f"{verb} {_created_text(*each, decimals)}" for each in amounts]
    if measures.recipients:
        parts.append("to " + _some(tuple(map(recipient_text, measures.recipients))))
    if measures.d_app is not None and measures.call is not None:
        arguments = ", ".join(map(_argument_text, measures.call.args))
        called = f"{measures.call.function}({arguments})"
        if len(called) > MAX_NAMED_CHARACTERS:
            called = called[:MAX_NAMED_CHARACTERS] + "…"
        parts.append(f"calling {called} of {recipient_text(measures.d_app)}")
    if measures.data_keys:
        parts.append("under " + _some(tuple(map(repr, measures.data_keys))))
    if measures.sets_script:
        parts.append("with a script")
    if measures.host:
        parts.append(f"for {measures.host!r}")
    if measures.fee:
        parts.append(f"for a fee of {amount_text(measures.fee_asset, measures.fee, decimals)}")
    return " ".join(parts)


def _created_text(asset: AssetId | None, amount: int, decimals: Decimals) -> str:
    if asset is None:
        return f"{amount} units of a new asset"
    return amount_text(asset, amount, decimals)


def _of_an_order(order: Order, decimals: Decimals) -> str:
    price = price_of(order, decimals)
    price_text = f"{order.price} (as written)" if price is None else f"{float(price):.10g}"
    verb = "selling" if order.side is Side.SELL else "buying"
    return (
        f"{verb} {amount_text(order.amount_asset, order.amount, decimals)} at {price_text} "
        f"{asset_text(order.price_asset)} each"
    )


def _some(names: tuple[str, ...]) -> str:
    shown = ", ".join(each[:MAX_NAMED_CHARACTERS] for each in names[:MAX_NAMED])
    more = len(names) - MAX_NAMED
    return f"{shown} and {more} more" if more > 0 else shown


def _argument_text(argument: Argument) -> str:
    if isinstance(argument, bytes):
        return base58.encode(argument[:32])
    if isinstance(argument, tuple):
        return f"[{', '.join(map(_argument_text, argument))}]"
    return repr(argument)[:MAX_NAMED_CHARACTERS]
