"""Large numbers as strings, for clients whose JSON numbers are doubles.

What lives here: parsing the ``Accept`` header, and rewriting an answer when a client requests
``application/json;large-significand-format=string``. What does not: which members become strings
(each service has its list), and ordinary JSON, which msgspec writes.

Source: wavesplatform/Waves ``node/src/main/scala/com/wavesplatform/api/http/CustomJson.scala``.
"""

from __future__ import annotations

from collections.abc import Set as AbstractSet
from decimal import Decimal
from enum import Enum

import msgspec

JSON_WITH_STRINGS = b"application/json; large-significand-format=string"

_decode = msgspec.json.Decoder(float_hook=Decimal).decode
_encode = msgspec.json.Encoder(decimal_format="number").encode


class Accepted(Enum):
    """The JSON formats that a client accepts."""

    NOTHING = "nothing"
    NUMBERS = "numbers"
    STRINGS = "strings"


def accepted(accept: bytes | None) -> Accepted:
    """Parse an ``Accept`` header; without one, everything is accepted."""
    if accept is None or accept == b"*/*" or accept == b"application/json":
        return Accepted.NUMBERS
    found = Accepted.NOTHING
    for media_range in accept.lower().split(b","):
        media_type, *parameters = (part.strip() for part in media_range.split(b";"))
        if media_type not in (b"*/*", b"application/*", b"application/json"):
            continue
        if b"large-significand-format=string" in parameters:
            return Accepted.STRINGS
        if not any(_is_zero_quality(parameter) for parameter in parameters):
            found = Accepted.NUMBERS
    return found


def _is_zero_quality(parameter: bytes) -> bool:
    name, _, value = parameter.partition(b"=")
    return name.strip() == b"q" and value.strip(b" 0.") == b""


def with_strings(encoded: bytes, members: AbstractSet[str]) -> bytes:
    """Return the JSON with numbers in the listed members, and nested in them, as strings."""
    return _encode(_translate(_decode(encoded), members, within=False))


def _translate(value: object, members: AbstractSet[str], *, within: bool) -> object:
    if isinstance(value, dict):
        return {
            name: _translate(member, members, within=within or name in members)
            for name, member in value.items()
        }
    if isinstance(value, list):
        return [_translate(item, members, within=within) for item in value]
    if isinstance(value, bool) or not isinstance(value, int | Decimal):
        return value
    if within:
        return format(value, "f") if isinstance(value, Decimal) else str(value)
    # msgspec does not encode integers beyond 64 bits, which a block's score can be.
    return msgspec.Raw(str(value).encode("ascii")) if isinstance(value, int) else value
