"""A hash of the trading rules, for matchers that share a topic.

What lives here: a canonical text of any settings, and its hash. What does not: comparing hashes
(``journal.candidate``).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from collections.abc import Set as AbstractSet
from decimal import Decimal
from enum import Enum

import msgspec

from soliton.crypto.hashes import blake2b256
from soliton.errors import InvariantBroken
from soliton.matcher.trading_settings import TradingSettings


def rules_hash(trading: TradingSettings) -> bytes:
    """32 bytes that are equal for settings that accept and match the same orders alike."""
    return blake2b256(_text(trading).encode())


def _text(value: object) -> str:
    match value:
        case msgspec.Struct():
            members = ((name, getattr(value, name)) for name in value.__struct_fields__)
            return f"{type(value).__name__}({_joined(_pair(*each) for each in members)})"
        case Mapping():
            return f"{{{_joined(sorted(_pair(*each) for each in value.items()))}}}"
        case AbstractSet():
            return f"{{{_joined(sorted(map(_text, value)))}}}"
        case tuple() | list():
            return f"[{_joined(map(_text, value))}]"
        case Enum():
            return value.name
        case re.Pattern():
            return f"{value.pattern!r}/{value.flags}"
        case Decimal():
            return str(value.normalize())
        case bool() | int() | float() | str() | bytes() | None:
            return repr(value)
        case _:
            raise InvariantBroken(f"a setting of the type {type(value).__name__}")


def _pair(key: object, value: object) -> str:
    return f"{_text(key)}:{_text(value)}"


def _joined(parts: Iterable[str]) -> str:
    return ",".join(parts)
