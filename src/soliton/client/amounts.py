"""Amounts: integers in the smallest unit, or decimal text.

What lives here: ``units`` and its inverse. What does not: the decimals of an asset, which the asset
brings along.
"""

from __future__ import annotations

import re
from decimal import Context, Decimal, Inexact, InvalidOperation
from typing import Final, Protocol, TypeAlias, runtime_checkable

import msgspec

from soliton.chain.values import MAX_I64, MIN_I64
from soliton.client.errors import AmountError
from soliton.crypto import base58
from soliton.crypto.errors import Base58Error

COIN_DECIMALS: Final = 8
"""Decimals of every chain's own coin."""
MAX_DECIMALS: Final = 8
"""The ledger's limit on the decimals of an asset."""
MAX_TEXT: Final = 64
_ASSET_BYTES: Final = 32
_NUMBER: Final = re.compile(r"[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)")
_COIN_NAMES: Final = frozenset(("", "WAVES"))
# Independent of the caller's decimal context, so that no digit is lost.
_EXACT: Final = Context(prec=2 * MAX_TEXT, traps=[Inexact, InvalidOperation])

Amount: TypeAlias = int | str | Decimal
"""``150`` is 150 of the smallest unit; ``"1.5"`` and ``Decimal("1.5")`` are one and a half."""


@runtime_checkable
class HasDecimals(Protocol):
    """An asset with known decimals: ``Asset``, and the nodes' records of assets."""

    @property
    def asset_id(self) -> str: ...

    @property
    def decimals(self) -> int: ...


class Asset(msgspec.Struct, frozen=True):
    """An asset by its id in base58 with its decimals, so that its amounts can be decimal text.

    >>> units("1.5", Asset("DG2xFkPdDwKUoBkzGAhQtLpSGzfXLiCYPEzeKH2Ad24p", 6))
    1500000
    """

    asset_id: str
    decimals: int
    min_sponsored_asset_fee: int | None = None
    """How much of it replaces 0.001 coins of a fee, if it is sponsored."""


AssetLike: TypeAlias = str | HasDecimals | None
"""An asset's id in base58, or an ``Asset``; ``None`` or ``"WAVES"`` is the chain's own coin."""


def asset_bytes(asset: AssetLike) -> bytes | None:
    """Return the id of an asset in bytes, ``None`` for the coin; raises ``AmountError``."""
    text = asset if isinstance(asset, str) or asset is None else asset.asset_id
    if text is None or text in _COIN_NAMES:
        return None
    return id_bytes(text)


def asset_text(asset: AssetLike) -> str | None:
    """Return the id of an asset in base58, ``None`` for the coin; raises ``AmountError``."""
    data = asset_bytes(asset)
    return None if data is None else base58.encode(data)


def id_bytes(text: str) -> bytes:
    """Return the 32 bytes of an id in base58; raises ``AmountError``."""
    try:
        data = base58.decode(text, MAX_TEXT)
    except Base58Error as error:
        raise AmountError(f"not an id of an asset or transaction: {text[:MAX_TEXT]!r}") from error
    if len(data) != _ASSET_BYTES:
        raise AmountError(f"an id has {_ASSET_BYTES} bytes, not {len(data)}: {text!r}")
    return data


def decimals_of(asset: AssetLike) -> int | None:
    """Return the decimals of an asset, ``None`` if they are not known; raises ``AmountError``."""
    if isinstance(asset, str) or asset is None:
        return COIN_DECIMALS if asset is None or asset in _COIN_NAMES else None
    if not 0 <= asset.decimals <= MAX_DECIMALS:
        raise AmountError(f"an asset has 0 to {MAX_DECIMALS} decimals, not {asset.decimals}")
    return asset.decimals


def sponsored_rate(asset: AssetLike) -> int | None:
    """Return how much of an asset replaces 0.001 coins of a fee, ``None`` if that is not known."""
    rate = getattr(asset, "min_sponsored_asset_fee", None)
    return rate if isinstance(rate, int) and rate > 0 else None


def units(amount: Amount, asset: AssetLike = None) -> int:
    """Convert an amount of an asset to its smallest unit; raises ``AmountError``.

    >>> units(150), units("1.5")
    (150, 150000000)
    """
    if isinstance(amount, int) and not isinstance(amount, bool):
        return _in_range(amount)
    decimals = decimals_of(asset)
    if decimals is None:
        raise AmountError(
            f"unknown decimals of {asset}: give whole units as an int, or the asset as "
            "node.asset(id) tells it"
        )
    return scaled(amount, decimals)


def scaled(amount: Amount, decimals: int) -> int:
    """Return a decimal number times ``10 ** decimals``; raises ``AmountError``."""
    if not isinstance(amount, str | Decimal):
        raise AmountError(f"an amount is an int, text or a Decimal, not {type(amount).__name__}")
    if len(str(amount)) > MAX_TEXT:
        raise AmountError(f"an amount of more than {MAX_TEXT} characters")
    number = decimal_in(amount) if isinstance(amount, str) else amount
    if not number.is_finite() or number.copy_abs() > MAX_I64:
        raise AmountError(f"{amount!r} is not an amount")
    try:
        whole = number.scaleb(decimals, _EXACT).to_integral_exact(context=_EXACT)
    except Inexact:
        raise AmountError(f"{amount} has more than {decimals} decimals") from None
    return _in_range(int(whole))


def decimal_in(text: str) -> Decimal:
    """Return the number in digits, with a sign or a point; raises ``AmountError`` for all else that
    ``Decimal`` takes: underscores, spaces, exponents, digits of other scripts, NaN.
    """
    if len(text) > MAX_TEXT or _NUMBER.fullmatch(text) is None:
        raise AmountError(f"{text[:MAX_TEXT]!r} is not a number")
    return Decimal(text)


def text(amount: int, decimals: int = COIN_DECIMALS) -> str:
    """Convert an amount in the smallest unit to decimal text.

    >>> text(150_000_000), text(7, 2)
    ('1.5', '0.07')
    """
    number = Decimal(amount).scaleb(-decimals, _EXACT)
    return f"{number.normalize(_EXACT):f}"


def _in_range(amount: int) -> int:
    if not MIN_I64 <= amount <= MAX_I64:
        raise AmountError(f"{amount} has more than 64 bits")
    return amount
