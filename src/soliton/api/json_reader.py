"""Reading JSON objects that strangers sent: bounded parsing, and all faults of an object at once.

What lives here: bytes to values (``parse_json``), and ``ObjectReader``, which takes typed members
out of an object, notes every missing or ill-typed one and reports them together in the structure
of play-json (``{"obj.fee":[{"msg":["error.path.missing"],"args":[]}]}``). What does not: the
meaning of members.

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
"""Objects, arrays and members of a text: a block's worth, and the most that is read in a moment."""

_MAX_LONG_DIGITS = 19
_INT = 2**31

_SEARCHED_BYTES = 16 * 1024
"""In a longer text nobody looks for the name of a member that is there twice."""

_decode = msgspec.json.Decoder(float_hook=Decimal).decode

Value = TypeVar("Value")


def wrong_json(cause: str) -> ApiError:
    """Error 1 for a body that is no JSON."""
    return WRONG_JSON.error(cause=cause, validationErrors={})


def wrong_texts(name: str, value: object) -> ApiError:
    """Error 1 for a member that should be a list of texts.

    The reference fails at it and answers 500, error 0.
    """
    said = "error.path.missing" if value is None else "error.expected.jsarray"
    if isinstance(value, list):
        said = "error.expected.jsstring"
    faults = {f"obj.{name}": [{"msg": [said], "args": []}]}
    return WRONG_JSON_DATA.error(cause=None, validationErrors=faults)


def parse_json(data: bytes) -> object:
    """The JSON value of ``data``; anything wrong with it is error 1.

    Numbers with a point or an exponent come as ``Decimal``, so that no digit is lost. An object
    with a member twice is refused: two readers of such a text may see two different payments.
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
    # Each member has a colon: only texts with more of them need a closer look.
    if data.count(b":") > members and outside_texts(data).count(b":") > members:
        raise wrong_json(_said_twice(data))
    return value


def parse_object(data: bytes) -> dict[str, object]:
    """The JSON object of ``data``; another kind of value is error 1 as well."""
    value = parse_json(data)
    if not isinstance(value, dict):
        failure = [{"msg": ["error.expected.jsobject"], "args": []}]
        raise WRONG_JSON.error(cause=None, validationErrors={"obj": failure})
    return value


def _too_deep() -> str:
    return f"JSON is nested deeper than {MAX_JSON_DEPTH} levels"


def _count_members(value: object, depth: int) -> int:
    """How many members all objects have together; also where the depth limit is kept."""
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


def _said_twice(data: bytes) -> str:
    """What is wrong with a text that has a member twice."""
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
    """Typed members of one JSON object; faults are collected until ``finish``.

    A method returns a value that stands for "absent" (0, "", False) after a fault, so that the
    reading can go on and find the other faults; call ``finish`` before using any value.
    """

    __slots__ = ("_faults", "_value")

    def __init__(self, value: dict[str, object]) -> None:
        self._value = value
        self._faults: dict[str, list[object]] = {}

    def __contains__(self, name: str) -> bool:
        return self._value.get(name) is not None

    def finish(self) -> None:
        """Raise error 1 with every fault noted here."""
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

    def _wrong(self, name: str, message: str, stand_in: Value) -> Value:
        said = message if name in self._value else "error.path.missing"
        self._faults[f"obj.{name}"] = [{"msg": [said], "args": []}]
        return stand_in


def _whole(value: Decimal) -> int | None:
    """The integer of ``1.0`` or ``1e3``; nothing for fractions and for what cannot fit 64 bits."""
    if not value.is_finite() or value.adjusted() >= _MAX_LONG_DIGITS:
        return None
    whole = int(value)
    return whole if whole == value else None
