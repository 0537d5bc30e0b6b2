"""Calls of dApp functions in transactions: a name and plain values, in the script language's
serialisation and in JSON.

What lives here: the value, its two formats, and limits for reading. What does not: general
expressions (``soliton.ride``); an argument that needs evaluation is refused.

Sources: wavesplatform/Waves
``lang/shared/src/main/scala/com/wavesplatform/lang/v1/serialization/SerdeV1.scala`` and
``node/src/main/scala/com/wavesplatform/api/http/requests/InvokeScriptRequest.scala``.
"""

from __future__ import annotations

import struct
from decimal import Decimal
from typing import Any, Final, Union

import msgspec

from soliton.chain.errors import FormatError, JsonFieldError
from soliton.chain.json_kinds import decode_base64, encode_base64, expect_long, expect_string
from soliton.chain.json_schemas import (
    BOOLEAN_SCHEMA,
    LONG_SCHEMA,
    TEXT_SCHEMA,
    Named,
    Schema,
    described,
    list_of,
    object_of,
)
from soliton.chain.layouts import take, text
from soliton.chain.values import MAX_I64, MIN_I64

Argument = Union[int, bool, bytes, str, tuple["Argument", ...]]  # noqa: UP007 - it is recursive

DEFAULT_FUNCTION: Final = "default"
MAX_LIST_DEPTH: Final = 16
"""Functions take lists of plain values. Deeper lists can be encoded, and are refused later; this
limit keeps recursion shallow.
"""
MAX_JSON_ARGUMENTS: Final = 10_000
"""The limit for reading, far above what 5120 bytes of a call can contain."""

_LONG, _BYTES, _STRING = 0, 1, 2
_TRUE, _FALSE, _CALL, _LIST = 6, 7, 9, 11
_USER_FUNCTION: Final = 1
_I64: Final = struct.Struct(">q")


class FunctionCall(msgspec.Struct, frozen=True, gc=False):
    """A function's name and its arguments: integers, booleans, bytes, strings and lists."""

    function: str
    args: tuple[Argument, ...] = ()


DEFAULT_CALL: Final = FunctionCall(DEFAULT_FUNCTION)
"""The meaning of a missing call."""


# --- binary ---------------------------------------------------------------------------------------


def call_bytes(call: FunctionCall | None) -> bytes:
    """Return ``00`` for no call, else ``01`` and the serialised call."""
    if call is None:
        return b"\0"
    parts = [bytes((1, _CALL, _USER_FUNCTION)), _sized(call.function.encode())]
    parts.append(len(call.args).to_bytes(4, "big"))
    parts.extend(_argument_bytes(argument, 0) for argument in call.args)
    return b"".join(parts)


def _argument_bytes(argument: Argument, depth: int) -> bytes:
    match argument:
        case bool():
            return bytes((_TRUE if argument else _FALSE,))
        case int():
            if not MIN_I64 <= argument <= MAX_I64:
                raise FormatError(f"{argument} has more than 64 bits")
            return bytes((_LONG,)) + _I64.pack(argument)
        case bytes():
            return bytes((_BYTES,)) + _sized(argument)
        case str():
            return bytes((_STRING,)) + _sized(argument.encode())
        case _:
            if depth >= MAX_LIST_DEPTH:
                raise FormatError(f"lists within lists, more than {MAX_LIST_DEPTH} deep")
            items = b"".join(_argument_bytes(item, depth + 1) for item in argument)
            return bytes((_LIST,)) + len(argument).to_bytes(4, "big") + items


def _sized(data: bytes) -> bytes:
    return len(data).to_bytes(4, "big") + data


def read_call(data: bytes, offset: int) -> tuple[FunctionCall | None, int]:
    """The inverse of ``call_bytes``; raises ``FormatError``."""
    flag = take(data, offset, 1)[0]
    if flag == 0:
        return None, offset + 1
    if flag != 1:
        raise FormatError(f"flag 0 or 1 expected at offset {offset}, found {flag}")
    if take(data, offset + 1, 2) != bytes((_CALL, _USER_FUNCTION)):
        raise FormatError(f"no call of a named function at offset {offset + 1}")
    name, offset = _take_sized(data, offset + 3)
    args, offset = _read_list(data, offset, 0)
    return FunctionCall(text(name), args), offset


def _read_list(data: bytes, offset: int, depth: int) -> tuple[tuple[Argument, ...], int]:
    count = int.from_bytes(take(data, offset, 4), "big", signed=True)
    offset += 4
    # Every item has at least one byte.
    if not 0 <= count <= len(data) - offset:
        raise FormatError(f"{count} values in {len(data) - offset} bytes")
    items = []
    for _ in range(count):
        item, offset = _read_argument(data, offset, depth)
        items.append(item)
    return tuple(items), offset


def _read_argument(data: bytes, offset: int, depth: int) -> tuple[Argument, int]:
    kind = take(data, offset, 1)[0]
    offset += 1
    match kind:
        case 0:
            return int.from_bytes(take(data, offset, 8), "big", signed=True), offset + 8
        case 1:
            return _take_sized(data, offset)
        case 2:
            piece, offset = _take_sized(data, offset)
            return text(piece), offset
        case 6 | 7:
            return kind == _TRUE, offset
        case 11 if depth < MAX_LIST_DEPTH:
            return _read_list(data, offset, depth + 1)
        case _:
            raise FormatError(f"no plain value at offset {offset - 1}: it begins with {kind}")


def _take_sized(data: bytes, offset: int) -> tuple[bytes, int]:
    length = int.from_bytes(take(data, offset, 4), "big", signed=True)
    return take(data, offset + 4, length), offset + 4 + length


# --- JSON -----------------------------------------------------------------------------------------


def call_json(call: FunctionCall | None) -> dict[str, Any]:
    """Return a call as ``{function, args}``; a missing call like the default one."""
    call = DEFAULT_CALL if call is None else call
    return {"function": call.function, "args": [_argument_json(item, 0) for item in call.args]}


def _argument_json(argument: Argument, depth: int) -> dict[str, Any]:
    match argument:
        case bool():
            return {"type": "boolean", "value": argument}
        case int():
            return {"type": "integer", "value": argument}
        case bytes():
            return {"type": "binary", "value": encode_base64(argument)}
        case str():
            return {"type": "string", "value": argument}
        case _ if depth > 0:
            return {"type": "list", "value": "unsupported"}
        case _:
            items = [_argument_json(item, depth + 1) for item in argument]
            return {"type": "list", "value": items}


def read_call_json(value: object, _chain_id: int) -> FunctionCall | None:
    """The inverse of ``call_json``; returns ``None`` for the default call without arguments.

    Raises ``JsonFieldError``.
    """
    if not isinstance(value, dict):
        raise JsonFieldError("", "Undefined call function name")
    args = value.get("args", [])
    if not isinstance(args, list):
        raise JsonFieldError("", "Unexpected args format")
    if "function" not in value:
        raise JsonFieldError("", "Undefined call function name")
    name = value["function"]
    if not isinstance(name, str):
        raise JsonFieldError("", "Unexpected call function name format")
    call = FunctionCall(expect_string(name), _read_json_list(args, 0))
    return None if call == DEFAULT_CALL else call


def _read_json_list(values: list[object], depth: int) -> tuple[Argument, ...]:
    if len(values) > MAX_JSON_ARGUMENTS:
        raise JsonFieldError("", f"more than {MAX_JSON_ARGUMENTS} values")
    return tuple(_read_json_argument(value, depth) for value in values)


def _read_json_argument(obj: object, depth: int) -> Argument:
    kind = obj.get("type") if isinstance(obj, dict) else None
    value = obj.get("value") if isinstance(obj, dict) else None
    match kind, value:
        case "integer", int() | float() | Decimal() if not isinstance(value, bool):
            return expect_long(value)
        case "integer", _:
            raise JsonFieldError("", "value is missing or not an integer")
        case "boolean", bool():
            return value
        case "boolean", _:
            raise JsonFieldError("", "value is missing or not an boolean")
        case "string", str():
            return expect_string(value)
        case "string", _:
            raise JsonFieldError("", "value is missing or not an string")
        case "binary", str():
            return decode_base64(value)
        case "binary", _:
            raise JsonFieldError("", "value is missing or not an base64 encoded string")
        case "list", list() if depth < MAX_LIST_DEPTH:
            return _read_json_list(value, depth + 1)
        case "list", _:
            raise JsonFieldError("", "value is missing or not a list")
        case _:
            raise JsonFieldError("", "type is missing")


def _argument(kind: str, value: Schema) -> Schema:
    return object_of({"type": {"const": kind}, "value": value})


_PLAIN_ARGUMENTS: Final = [
    _argument("integer", LONG_SCHEMA),
    _argument("boolean", BOOLEAN_SCHEMA),
    _argument("binary", described(TEXT_SCHEMA, "Base64 after `base64:`")),
    _argument("string", TEXT_SCHEMA),
]
_INNER_LIST: Final = _argument("list", described({"const": "unsupported"}, "A list in a list"))


def _call_schema(items: Schema) -> Schema:
    of_list = _argument("list", list_of(items))
    return object_of(
        {"function": TEXT_SCHEMA, "args": list_of({"oneOf": [*_PLAIN_ARGUMENTS, of_list]})}
    )


CALL_SCHEMA: Final = Named("Call", _call_schema({"oneOf": [*_PLAIN_ARGUMENTS, _INNER_LIST]}))
SENT_CALL_SCHEMA: Final = Named(
    "CallToSend", {**_call_schema({"oneOf": _PLAIN_ARGUMENTS}), "required": ["function"]}
)
"""The arguments may be omitted."""
