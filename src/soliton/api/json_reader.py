"""Untrusted JSON: bounded parsing, and reporting all errors of an object at once.

What lives here: bytes to values (``parse_json``), and ``ObjectReader``, which reads typed members
of an object and reports all missing or ill-typed ones together in the structure of play-json
(``{"obj.fee":[{"msg":["error.path.missing"],"args":[]}]}``). What does not: the meaning of members.

Source of the texts: playframework/play-json ``JsError.toJson`` and ``DefaultReads``; the outer
error is ``WrongJson`` of wavesplatform/Waves
``node/src/main/scala/com/wavesplatform/api/http/ApiError.scala``.
"""

from __future__ import annotations

import json
from decimal import Decimal
from typing import TypeVar

import msgspec

from soliton.api.errors import WRONG_JSON, WRONG_JSON_DATA, ApiError
from soliton.web.json_parts import has_more_parts, outside_texts

MAX_JSON_DEPTH = 128
"""Levels of nesting: far above any transaction, far below the interpreter's own stack."""

MAX_JSON_PARTS = 50_000
"""The limit on objects, arrays and members: as many as a block has; more would block the loop."""

_MAX_LONG_DIGITS = 19
_INT = 2**31

_SEARCHED_BYTES = 16 * 1024
"""In a longer text the name of a duplicate member is not searched for."""

_decode = msgspec.json.Decoder(float_hook=Decimal).decode

Value = TypeVar("Value")


def wrong_json(cause: str) -> ApiError:
    """Error 1 for a body that is not JSON."""
    return WRONG_JSON.error(cause=cause, validationErrors={})


def wrong_texts(name: str, value: object) -> ApiError:
    """Error 1 for a member that should be a list of strings.

    The reference fails at it and answers 500, error 0.
    """
    message = "error.path.missing" if value is None else "error.expected.jsarray"
    if isinstance(value, list):
        message = "error.expected.jsstring"
    faults = {f"obj.{name}": [{"msg": [message], "args": []}]}
    return WRONG_JSON_DATA.error(cause=None, validationErrors=faults)


def parse_json(data: bytes) -> object:
    """The JSON value of ``data``; raises error 1 if it is malformed or over a limit.

    Numbers with a point or an exponent become ``Decimal``, so that no digit is lost. Duplicate
    members are rejected, because two parsers of such a text may see different payments.
    """
    if has_more_parts(data, MAX_JSON_PARTS):
        raise wrong_json(f"JSON has more than {MAX_JSON_PARTS} objects, arrays and members")
    try:
        value: object = _decode(data)
    except UnicodeDecodeError as error:
        raise wrong_json("the body is not UTF-8 text") from error
    except (msgspec.DecodeError, ValueError, ArithmeticError) as error:
        raise wrong_json(str(error)) from error
    except RecursionError as error:
        raise wrong_json(_too_deep()) from error
    members = _count_members(value, 0)
    # Each member has a colon: only texts with more of them need the exact count.
    if data.count(b":") > members and outside_texts(data).count(b":") > members:
        raise wrong_json(_duplicate_member(data))
    return value


def parse_object(data: bytes) -> dict[str, object]:
    """The JSON object of ``data``; raises error 1 for any other value as well."""
    value = parse_json(data)
    if not isinstance(value, dict):
        failure = [{"msg": ["error.expected.jsobject"], "args": []}]
        raise WRONG_JSON.error(cause=None, validationErrors={"obj": failure})
    return value


def _too_deep() -> str:
    return f"JSON is nested deeper than {MAX_JSON_DEPTH} levels"


def _count_members(value: object, depth: int) -> int:
    """The number of members of all objects; raises error 1 beyond the depth limit."""
    if depth > MAX_JSON_DEPTH:
        raise wrong_json(_too_deep())
    count = 0
    if type(value) is dict:
        count = len(value)
        for member in value.values():
            kind = type(member)
            if kind is dict or kind is list:
                count += _count_members(member, depth + 1)
    elif type(value) is list:
        for item in value:
            kind = type(item)
            if kind is dict or kind is list:
                count += _count_members(item, depth + 1)
    return count


def _duplicate_member(data: bytes) -> str:
    """The message about a text with a duplicate member."""
    if len(data) > _SEARCHED_BYTES:
        return "a member is there twice"
    found = []

    def members(pairs: list[tuple[str, object]]) -> None:
        seen: set[str] = set()
        for name, _ in pairs:
            if name in seen:
                found.append(name)
            seen.add(name)

    json.loads(data, object_pairs_hook=members, parse_int=str, parse_float=str)
    return f"the member '{found[0][:100]}' is there twice"


class ObjectReader:
    """Typed members of one JSON object; errors are collected until ``finish``.

    After an error a method returns a default (0, "", False), so that the caller can go on and find
    the other errors. Call ``finish`` before using any value.
    """

    __slots__ = ("_faults", "_value")

    def __init__(self, value: dict[str, object]) -> None:
        self._value = value
        self._faults: dict[str, list[object]] = {}

    def __contains__(self, name: str) -> bool:
        return self._value.get(name) is not None

    def finish(self) -> None:
        """Raise error 1 if there were errors."""
        if self._faults:
            raise WRONG_JSON_DATA.error(cause=None, validationErrors=self._faults)

    def int32(self, name: str) -> int:
        """A 32-bit number."""
        value = self._value.get(name)
        if isinstance(value, Decimal):
            value = _whole(value)
            if value is None:
                return self._wrong(name, "error.expected.int", 0)
        if isinstance(value, bool) or not isinstance(value, int):
            return self._wrong(name, "error.expected.jsnumber", 0)
        return value if -_INT <= value < _INT else self._wrong(name, "error.expected.int", 0)

    def text(self, name: str) -> str:
        """A string."""
        value = self._value.get(name)
        return value if isinstance(value, str) else self._wrong(name, "error.expected.jsstring", "")

    def boolean(self, name: str) -> bool:
        """True or false."""
        value = self._value.get(name)
        if isinstance(value, bool):
            return value
        return self._wrong(name, "error.expected.jsboolean", False)

    def _wrong(self, name: str, message: str, default: Value) -> Value:
        if name not in self._value:
            message = "error.path.missing"
        self._faults[f"obj.{name}"] = [{"msg": [message], "args": []}]
        return default


def _whole(value: Decimal) -> int | None:
    """The integer of ``1.0`` or ``1e3``; ``None`` for fractions and for numbers over 64 bits."""
    if not value.is_finite() or value.adjusted() >= _MAX_LONG_DIGITS:
        return None
    whole = int(value)
    return whole if whole == value else None
