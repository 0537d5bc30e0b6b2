"""The formats of values in responses: money, large numbers, times, and the options of ``Accept``.

What lives here: formats. What does not: the members of responses (``transactions`` and others).

Source: wavesplatform/data-service ``src/http/_common``, ``src/services/_common``.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from decimal import Context, Decimal
from typing import Final, NamedTuple

import msgspec

from soliton.data_service.errors import WrongValue

NATIVE: Final = "WAVES"
NATIVE_DECIMALS: Final = 8
PRICE_DECIMALS: Final = 8

_EXACT: Final = Context(prec=1_000)
_SMALL_EXPONENT: Final = -7
_LARGE_EXPONENT: Final = 21

encode_json = msgspec.json.Encoder().encode


class Format(NamedTuple):
    """The format that a client requests: large numbers as ``strings`` or not, amounts as ``long``
    integers or divided by the decimals of their asset.
    """

    strings: bool = False
    long: bool = False

    @property
    def content_type(self) -> bytes:
        """The content type of a response in this format."""
        more = "; large-significand-format=string" if self.strings else ""
        more += "; money-format=long" if self.long else ""
        return f"application/json; charset=utf-8{more}".encode()

    def number(self, value: Decimal | int) -> msgspec.Raw:
        """Format a large number."""
        number = Decimal(value)
        if self.strings:
            return msgspec.Raw(f'"{_exponential(number)}"'.encode())
        return msgspec.Raw(plain(number).encode())

    def optional(self, value: Decimal | int | None) -> msgspec.Raw | None:
        """Format a large number, or null."""
        return None if value is None else self.number(value)

    def money(self, value: Decimal | int, decimals: int) -> msgspec.Raw:
        """Format an amount, in whole units of its asset or in the smallest ones."""
        return self.number(value if self.long else scaled(value, -decimals))


def scaled(value: Decimal | int, places: int) -> Decimal:
    """Return a number times a power of ten, exactly."""
    return Decimal(value).scaleb(places, _EXACT)


def plain(value: Decimal) -> str:
    """Format a number without an exponent and without trailing zeros."""
    text = format(value, "f")
    return text.rstrip("0").rstrip(".") if "." in text else text


def _exponential(value: Decimal) -> str:
    """Format a number as JavaScript's BigNumber does."""
    if not value:
        return "0"
    exponent = value.adjusted()
    if _SMALL_EXPONENT < exponent < _LARGE_EXPONENT:
        return plain(value)
    digits = "".join(map(str, value.as_tuple().digits)).rstrip("0")
    mantissa = digits[0] + ("." + digits[1:] if len(digits) > 1 else "")
    return f"{'-' if value < 0 else ''}{mantissa}e{exponent:+d}"


def moment(value: datetime) -> str:
    """Format a time in UTC with milliseconds; a time without a zone is in UTC."""
    value = value.replace(tzinfo=UTC) if value.tzinfo is None else value.astimezone(UTC)
    return value.isoformat(timespec="milliseconds").removesuffix("+00:00") + "Z"


_OPTIONS: Final[Mapping[str, tuple[str, str, str]]] = {
    "large-significand-format": ("number", "string", "Invalid Large significand format"),
    "money-format": ("float", "long", "Invalid Money Format"),
}


def read_format(accept: str) -> Format:
    """Read the options in ``Accept``; raises ``WrongValue``."""
    chosen = dict.fromkeys(_OPTIONS, False)
    for part in accept.replace(",", ";").split(";"):
        name, _, value = part.strip().partition("=")
        if name in _OPTIONS:
            usual, other, message = _OPTIONS[name]
            if value not in (usual, other):
                raise WrongValue(message, "Accept", value, f"{name}={usual} or {name}={other}")
            chosen[name] = value == other
    return Format(*chosen.values())


def one(kind: str, data: object, **beside: object) -> dict[str, object]:
    """Return the envelope of one item."""
    return {"__type": kind, "data": data, **beside}


def listed(items: list[dict[str, object]], **meta: object) -> dict[str, object]:
    """Return the envelope of a list."""
    return {"__type": "list", **meta, "data": items}
