"""JSON forms of single values: readers, writers and schemas, which ``kinds`` consist of.

Readers take ``(value, chain_id)`` and raise the errors described in ``JsonKind``. What does not
live here: the members of a transaction (its own module), collecting several errors
(``transactions.json_reader``).

Sources: wavesplatform/Waves ``node/src/main/scala/com/wavesplatform/api/http/requests`` and
``state/DataEntry.scala`` (error messages are those of that node).
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Callable
from decimal import Decimal
from functools import lru_cache
from typing import Any, Final, TypeGuard, TypeVar

import msgspec

from soliton.chain.addresses import Recipient, parse_claimed_recipient
from soliton.chain.errors import JsonFieldError, ValueRuleError
from soliton.chain.json_schemas import (
    BOOLEAN_SCHEMA,
    LONG_SCHEMA,
    TEXT_SCHEMA,
    Named,
    Schema,
    described,
    object_of,
    or_null,
)
from soliton.chain.layouts import DIGEST_LENGTH
from soliton.chain.values import MAX_I64, MIN_I64, DataEntry, DataValue
from soliton.crypto import base58
from soliton.crypto.errors import Base58Error

T = TypeVar("T")

MAX_BASE58_CHARS: Final = 192
"""The reference's limit on base58 in JSON."""
CACHED_ASSETS: Final = 4_096
"""The size of the cache of asset ids in base58."""
BASE64_PREFIX: Final = "base64:"
_FIRST_LENGTH_IN_BASE64: Final = 1_024
_NO_BASE64: Final = re.compile(r"[^A-Za-z0-9+/=]")
MAX_JSON_DATA_ENTRIES: Final = 10_000
"""The limit for reading; the rule on entries (100) is checked later."""


class JsonKind(msgspec.Struct, frozen=True):
    """How a value is read from and written to JSON.

    ``read(value, chain_id)`` raises ``JsonFieldError`` with an empty path for a value of the wrong
    type, or another ``ChainError`` for an invalid one (an address, for example). ``schema`` is the
    schema of written values, ``sent`` that of accepted values if it differs.
    """

    read: Callable[[Any, int], Any]
    write: Callable[[Any], Any]
    schema: Schema | Named
    sent: Schema | Named | None = None


def same(value: T) -> T:
    """Return a value unchanged; compiled writers omit the call."""
    return value


def expect_string(value: object) -> str:
    """Return a JSON string without unpaired surrogates, or raise ``JsonFieldError``."""
    if type(value) is str and value.isascii():
        return value
    if not _is_text(value):
        raise JsonFieldError("", "error.expected.jsstring")
    return value


def _is_text(value: object) -> TypeGuard[str]:
    """Whether this is a string without unpaired surrogates, which JSON can escape."""
    if not isinstance(value, str):
        return False
    try:
        value.encode()
    except UnicodeEncodeError:
        return False
    return True


def expect_long(value: object) -> int:
    """Return a JSON number that is a 64-bit integer, or raise ``JsonFieldError``."""
    if type(value) is int and MIN_I64 <= value <= MAX_I64:
        return value
    if isinstance(value, bool) or not isinstance(value, int | float | Decimal):
        raise JsonFieldError("", "error.expected.jsnumber")
    # Check the bounds first: a huge exponent would make an integer that exhausts the memory.
    if not MIN_I64 <= value <= MAX_I64 or value != int(value):
        raise JsonFieldError("", "error.expected.long")
    return int(value)


def expect_byte(value: object) -> int:
    """Return a JSON number between -128 and 127, or raise ``JsonFieldError``."""
    number = expect_long(value)
    if not -128 <= number <= 127:
        raise JsonFieldError("", "error.expected.byte")
    return number


def decode_base58(value: object) -> bytes:
    """Decode a JSON string in base58, or raise ``JsonFieldError``."""
    try:
        return base58.decode(expect_string(value), MAX_BASE58_CHARS)
    except Base58Error as error:
        raise JsonFieldError("", str(error)) from error


def decode_base64(text: str) -> bytes:
    """Decode base64 with or without the ``base64:`` prefix, or raise ``JsonFieldError``."""
    text = text.removeprefix(BASE64_PREFIX)
    try:
        return base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError) as error:
        message = _not_base64(text)
        if message is None:
            # The padding may be omitted.
            return base64.b64decode(text + "=" * (-len(text) % 4))
        raise JsonFieldError("", message) from error


def _not_base64(text: str) -> str | None:
    """Return the message of the reference's library for invalid base64, or ``None``."""
    if len(text) == 1:
        return "Input byte[] should at least have 2 bytes for base64 bytes"
    wrong = _NO_BASE64.search(text)
    digits, is_padded, padding = text.partition("=")
    if wrong is not None and (not is_padded or wrong.start() < len(digits)):
        (byte,) = wrong[0].encode("latin-1", "replace")
        return f"Illegal base64 character {byte if byte < 128 else byte - 256:x}"
    rest = len(digits) % 4
    if is_padded:
        missing = {2: "=", 3: ""}.get(rest)
        if missing is None or not padding.startswith(missing):
            return "Input byte array has wrong 4-byte ending unit"
        end = len(digits) + 1 + len(missing)
        if len(text) > end:
            return f"Input byte array has incorrect ending byte at {end}"
    return "Last unit does not have enough valid bits" if rest == 1 else None


def encode_base64(data: bytes) -> str:
    """Return ``base64:`` and the standard base64 of the bytes."""
    return BASE64_PREFIX + base64.b64encode(data).decode()


def write_bytes(data: bytes) -> str:
    """Return base58, or base64 for 1,024 bytes and more: the reference's ``ByteStr.toString``."""
    return base58.encode(data) if len(data) < _FIRST_LENGTH_IN_BASE64 else encode_base64(data)


def read_string(value: object, _chain_id: int) -> str:
    return expect_string(value)


def read_long(value: object, _chain_id: int) -> int:
    return expect_long(value)


def read_byte(value: object, _chain_id: int) -> int:
    return expect_byte(value)


def read_bytes(value: object, _chain_id: int) -> bytes:
    """Read bytes in base58, or in base64 after ``base64:``."""
    if not _is_text(value):
        raise JsonFieldError("", "Expected JsString")
    if value.startswith(BASE64_PREFIX):
        try:
            return decode_base64(value.removeprefix(BASE64_PREFIX))
        except JsonFieldError as error:
            raise JsonFieldError("", f"Error parsing base64: {error.expected}") from error
    if len(value) > MAX_BASE58_CHARS:
        message = f"base58-encoded string length ({len(value)}) exceeds maximum length of"
        raise JsonFieldError("", f"{message} {MAX_BASE58_CHARS}")
    try:
        return base58.decode(value)
    except Base58Error as error:
        raise JsonFieldError("", f"Error parsing base58: {error}") from error


def read_recipient(value: object, chain_id: int) -> Recipient:
    return parse_claimed_recipient(expect_string(value), chain_id)


def read_boolean(value: object, _chain_id: int) -> bool:
    if not isinstance(value, bool):
        raise JsonFieldError("", "error.expected.jsboolean")
    return value


def read_script(value: object, _chain_id: int) -> bytes | None:
    return read_some_script(value, _chain_id) if expect_string(value) else None


def read_some_script(value: object, _chain_id: int) -> bytes:
    try:
        script = decode_base64(expect_string(value))
    except JsonFieldError as error:
        if not isinstance(value, str):
            raise
        message = f"ScriptParseError(Unable to decode base64: {error.expected})"
        raise ValueRuleError(message) from error
    if not script:
        raise ValueRuleError("ScriptParseError(Can't parse empty script bytes)")
    return script


def write_script(script: bytes | None) -> str | None:
    return None if script is None else encode_base64(script)


def read_asset_id(value: object, _chain_id: int) -> bytes:
    try:
        asset_id = decode_base58(value)
    except JsonFieldError as error:
        raise JsonFieldError("", "Expected base58-encoded assetId") from error
    if len(asset_id) != DIGEST_LENGTH:
        raise JsonFieldError(
            "", f"Invalid validation. Size of asset id {value} not equal {DIGEST_LENGTH} bytes"
        )
    return asset_id


def read_items(
    value: object, chain_id: int, limit: int, read: Callable[[Any, int], T], what: str = "entries"
) -> tuple[T, ...]:
    """Return the items of a JSON array, each converted by ``read``.

    Raises ``JsonFieldError`` with the index of an invalid item, ``ValueRuleError`` for more than
    ``limit`` items, and other errors of ``read``.
    """
    if not isinstance(value, list):
        raise JsonFieldError("", "error.expected.jsarray")
    if len(value) > limit:
        raise ValueRuleError(f"more than {limit} {what}")
    items = []
    for index, item in enumerate(value):
        try:
            items.append(read(item, chain_id))
        except JsonFieldError as error:
            raise error.below(f"[{index}]") from error
    return tuple(items)


def member(
    obj: object,
    key: str,
    read: Callable[[Any, int], T],
    chain_id: int,
    default: T | msgspec.UnsetType = msgspec.UNSET,
) -> T:
    """Return a member of a nested JSON object, or the default if it is missing or null.

    Raises ``JsonFieldError`` with the member's path.
    """
    if not isinstance(obj, dict):
        raise JsonFieldError("", "error.expected.jsobject")
    value = obj.get(key)
    if value is None:
        if default is msgspec.UNSET:
            raise JsonFieldError(f".{key}", "error.path.missing")
        return default
    try:
        return read(value, chain_id)
    except JsonFieldError as error:
        raise error.below(f".{key}") from error


def read_asset(value: object, _chain_id: int) -> bytes | None:
    if value is None or value == "":
        return None
    if not isinstance(value, str):
        raise JsonFieldError("", "Expected base58-encoded assetId or null")
    return read_asset_id(value, _chain_id)


def write_asset(asset_id: bytes | None) -> str | None:
    return None if asset_id is None else _asset_text(asset_id)


@lru_cache(CACHED_ASSETS)
def _asset_text(asset_id: bytes) -> str:
    return base58.encode(asset_id)


def read_data_entry(item: object, _chain_id: int = 0) -> DataEntry:
    """Read a ``{key, type, value}`` object; without type and value it deletes the key. Raises
    ``JsonFieldError``.
    """
    key = item.get("key") if isinstance(item, dict) else None
    if not isinstance(item, dict) or not _is_text(key):
        raise JsonFieldError("", "key is missing")
    value = item.get("value")
    kind = item.get("type")
    if not isinstance(kind, str):
        if value is None:
            return DataEntry(key, None)
        raise JsonFieldError("", "type is missing")
    return DataEntry(key, _typed_value(kind, value))


def _typed_value(kind: str, value: object) -> DataValue:
    match kind:
        case "integer":
            if isinstance(value, bool) or not isinstance(value, int | float | Decimal):
                raise JsonFieldError("", "value is missing or not an integer")
            return expect_long(value)
        case "boolean":
            if not isinstance(value, bool):
                raise JsonFieldError("", "value is missing or not a boolean value")
            return value
        case "binary":
            if not isinstance(value, str):
                raise JsonFieldError("", "value is missing or not a string")
            return decode_base64(value)
        case "string":
            if not _is_text(value):
                raise JsonFieldError("", "value is missing or not a string")
            return value
        case _:
            raise JsonFieldError("", f"unknown type {expect_string(kind)}")


def data_entry_json(entry: DataEntry) -> dict[str, Any]:
    """Return an entry as ``{key, type, value}``, a deletion as ``{key, value: null}``."""
    match entry.value:
        case None:
            return {"key": entry.key, "value": None}
        case bool():
            return {"key": entry.key, "type": "boolean", "value": entry.value}
        case int():
            return {"key": entry.key, "type": "integer", "value": entry.value}
        case bytes():
            return {"key": entry.key, "type": "binary", "value": encode_base64(entry.value)}
        case str():
            return {"key": entry.key, "type": "string", "value": entry.value}


def _entry_schema(kind: str, value: Schema) -> Schema:
    return object_of({"key": TEXT_SCHEMA, "type": {"const": kind}, "value": value})


BASE58_SCHEMA: Final = described(TEXT_SCHEMA, "Base58")
SENT_BYTES_SCHEMA: Final = described(TEXT_SCHEMA, "Base58, or base64 after `base64:`")
ASSET_SCHEMA: Final = described(or_null(TEXT_SCHEMA), "Base58; null is the native coin")
SCRIPT_SCHEMA: Final = described(or_null(TEXT_SCHEMA), "Base64 after `base64:`; null for none")
RECIPIENT_SCHEMA: Final = described(
    TEXT_SCHEMA, "An address, or an alias as `alias:{chain}:{name}`"
)
DATA_ENTRY_SCHEMA: Final = Named(
    "DataEntry",
    {
        "oneOf": [
            _entry_schema("integer", LONG_SCHEMA),
            _entry_schema("boolean", BOOLEAN_SCHEMA),
            _entry_schema("binary", described(TEXT_SCHEMA, "Base64 after `base64:`")),
            _entry_schema("string", TEXT_SCHEMA),
            described(
                object_of({"key": TEXT_SCHEMA, "value": {"type": "null"}}), "The key is deleted"
            ),
        ]
    },
)
