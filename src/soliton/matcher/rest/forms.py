"""Bodies with declared members.

A whole number may have an exponent or a fraction of zeros (``1e8``, ``100000000.0``): programs
whose numbers are doubles send it so, and the reference reads it. Such a body is rare, so it is
decoded a second time, exactly.

What lives here: decoding, and the error that names all members that are missing or invalid. What
does not: the members of each body, and the rules on their values.

Sources: wavesplatform/matcher
``dex/src/main/scala/com/wavesplatform/dex/api/http/{ApiMarshallers,directives/ProtectDirective}
.scala``; the reading of whole numbers is that of play-json.
"""

from __future__ import annotations

from decimal import Decimal
from functools import cached_property
from typing import Any, Final, Generic, TypeVar

import msgspec

from soliton.matcher.rest.requests import MAX_DIGITS, NOT_JSON, invalid_json

Members = TypeVar("Members", bound=msgspec.Struct)

_decode_any: Final = msgspec.json.Decoder(float_hook=Decimal).decode


class Form(Generic[Members]):
    """Reads bodies of one form."""

    def __init__(self, kind: type[Members]) -> None:
        self._kind = kind
        self._decode = msgspec.json.Decoder(kind).decode

    def read(self, body: bytes) -> Members:
        """The members of a body; raises ``Refusal``."""
        try:
            return self._decode(body)
        except msgspec.ValidationError:
            return self._read_slowly(body)
        except NOT_JSON:
            raise invalid_json() from None

    @cached_property
    def _fields(self) -> tuple[msgspec.structs.FieldInfo, ...]:
        # Computing them takes longer than decoding ten orders.
        return msgspec.structs.fields(self._kind)

    def _read_slowly(self, body: bytes) -> Members:
        try:
            members = _decode_any(body)
        except NOT_JSON:
            raise invalid_json() from None
        if not isinstance(members, dict):
            raise invalid_json("")
        found: dict[str, Any] = {}
        wrong: list[str] = []
        for field in self._fields:
            if field.name not in members:
                if field.required:
                    wrong.append(f"/{field.name}")
                continue
            try:
                found[field.name] = msgspec.convert(_whole(members[field.name]), field.type)
            except msgspec.ValidationError:
                wrong.append(f"/{field.name}")
        if wrong:
            raise invalid_json(*sorted(wrong))
        return self._kind(**found)


def _whole(value: object) -> object:
    """A whole number as an integer, anything else as it is."""
    if not isinstance(value, Decimal) or abs(value.adjusted()) > MAX_DIGITS:
        return value
    return int(value) if value == value.to_integral_value() else value
