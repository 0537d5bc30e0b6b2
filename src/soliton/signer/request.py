"""The body of ``POST /data``, read into an account's keys and typed entries.

What lives here: parsing, type inference, and validation. The seed phrase becomes keys here and is
not kept. No message quotes a value, and no error is chained to a parser's error, which would hold
the whole body. What does not: rules on whole transactions (``signing``).

Source of the types: 0bsnetwork/zbs-transactions ``src/transactions/data.ts`` (inference from the
JSON value, and entries with an explicit type).
"""

from __future__ import annotations

import base64
import binascii
import json
import re
from typing import Final

import msgspec

from soliton.chain.json_kinds import BASE64_PREFIX
from soliton.chain.transactions.data import MAX_ENTRIES
from soliton.chain.values import MAX_I64, MIN_I64, DataEntry, DataValue
from soliton.crypto.keys import KeyPair, key_pair
from soliton.signer.errors import (
    BYTE_RANGE,
    INTEGER_RANGE,
    NO_SUCH_TYPE,
    NOT_INTEGER,
    NOT_JSON,
    RULE_BROKEN,
    WRONG_SHAPE,
    RequestRefused,
)
from soliton.web.json_parts import has_more_parts

_MEMBERS: Final = ("seed", "data")
_ENTRY_MEMBERS: Final = ("key", "value", "type")
_TYPES: Final = ("integer", "boolean", "string", "binary")
_QUOTABLE: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,31}")
_MAX_BYTE: Final = 255
_MAX_PARTS: Final = 4_000
"""Objects, arrays and members: several times as many as the largest valid request has."""


class SigningRequest(msgspec.Struct, frozen=True):
    """The sender's keys, and the entries of the transaction."""

    account: KeyPair
    entries: tuple[DataEntry, ...]


class _MemberTwice(ValueError):
    """An object has a duplicate member: parsers would disagree on its value."""


def read_request(body: bytes, max_seed_characters: int) -> SigningRequest:
    """Read a body; raises ``RequestRefused``."""
    value = _parse(body)
    if not isinstance(value, dict):
        raise RequestRefused(WRONG_SHAPE, "the body should be an object {seed, data}")
    _refuse_unknown(value, _MEMBERS, "")
    seed, data = _take(value, "seed", ""), _take(value, "data", "")
    entries = _read_entries(data)
    return SigningRequest(_read_account(seed, max_seed_characters), entries)


def _parse(body: bytes) -> object:
    if has_more_parts(body, _MAX_PARTS):
        message = f"the body has more than {_MAX_PARTS} objects, arrays and members"
        raise RequestRefused(WRONG_SHAPE, message)
    problem = NOT_JSON, "the body is no JSON"
    try:
        return json.loads(body.decode(), object_pairs_hook=_object, parse_constant=_constant)
    except UnicodeDecodeError:
        problem = NOT_JSON, "the body is not UTF-8 text"
    except json.JSONDecodeError as error:
        problem = NOT_JSON, f"the body is no JSON: line {error.lineno}, column {error.colno}"
    except _MemberTwice:
        problem = WRONG_SHAPE, "an object has two members of the same name"
    except RecursionError:
        problem = NOT_JSON, "the body is nested too deeply"
    except ValueError:
        # Python refuses integers of more than 4300 digits.
        problem = INTEGER_RANGE, "an integer does not fit into 64 bits"
    # Raised outside of the handlers, so that the parser's error, which holds the body, is dropped.
    raise RequestRefused(*problem)


def _object(pairs: list[tuple[str, object]]) -> dict[str, object]:
    members = dict(pairs)
    if len(members) < len(pairs):
        raise _MemberTwice
    return members


def _constant(_name: str) -> object:
    raise json.JSONDecodeError("not a JSON number", "", 0)


def _take(value: dict[str, object], name: str, path: str) -> object:
    if name not in value:
        raise RequestRefused(WRONG_SHAPE, f"{path}{name} is missing", path + name)
    return value[name]


def _refuse_unknown(value: dict[str, object], known: tuple[str, ...], path: str) -> None:
    for name in value:
        if name not in known:
            # A name that is not an identifier may be a misplaced secret.
            shown = f"{path}{name}" if _QUOTABLE.fullmatch(name) else f"a member of {path or 'it'}"
            taken = ", ".join(known)
            raise RequestRefused(WRONG_SHAPE, f"{shown} is not known here; known are {taken}")


def _read_account(seed: object, max_characters: int) -> KeyPair:
    if not isinstance(seed, str):
        raise RequestRefused(WRONG_SHAPE, "seed should be a string", "seed")
    if not seed:
        raise RequestRefused(WRONG_SHAPE, "seed is empty", "seed")
    if len(seed) > max_characters:
        message = f"seed is longer than {max_characters} characters"
        raise RequestRefused(WRONG_SHAPE, message, "seed")
    _refuse_lone_surrogates(seed, "seed")
    return key_pair(seed)


def _refuse_lone_surrogates(text: str, path: str) -> None:
    # JSON escapes can contain lone surrogates, which have no UTF-8.
    if any("\ud800" <= character <= "\udfff" for character in text):
        raise RequestRefused(WRONG_SHAPE, f"{path} holds half a character", path)


def _read_entries(data: object) -> tuple[DataEntry, ...]:
    if not isinstance(data, list):
        raise RequestRefused(WRONG_SHAPE, "data should be an array of {key, value}", "data")
    if not data:
        raise RequestRefused(RULE_BROKEN, "data has no entries; nothing would be written", "data")
    if len(data) > MAX_ENTRIES:
        message = f"data has {len(data)} entries; a transaction holds {MAX_ENTRIES}"
        raise RequestRefused(RULE_BROKEN, message, "data")
    return tuple(_read_entry(item, f"data[{index}]") for index, item in enumerate(data))


def _read_entry(item: object, path: str) -> DataEntry:
    if not isinstance(item, dict):
        raise RequestRefused(WRONG_SHAPE, f"{path} should be an object {{key, value}}", path)
    _refuse_unknown(item, _ENTRY_MEMBERS, f"{path}.")
    key = _take(item, "key", f"{path}.")
    value = _take(item, "value", f"{path}.")
    if not isinstance(key, str):
        raise RequestRefused(WRONG_SHAPE, f"{path}.key should be a string", f"{path}.key")
    _refuse_lone_surrogates(key, f"{path}.key")
    where = f"{path}.value"
    if "type" in item:
        return DataEntry(key, _typed_value(item["type"], value, path))
    return DataEntry(key, _inferred_value(value, where))


def _inferred_value(value: object, path: str) -> DataValue:
    match value:
        case bool():
            return value
        case int():
            return _in_range(value, path)
        case float():
            message = f"{path} should be an integer, written without point and exponent"
            raise RequestRefused(NOT_INTEGER, message, path)
        case str():
            _refuse_lone_surrogates(value, path)
            return value
        case list():
            return _bytes(value, path)
        case None:
            message = f"{path} is null; version 1 of the transaction cannot delete entries"
            raise RequestRefused(NO_SUCH_TYPE, message, path)
        case _:
            message = f"{path} is an object; bytes are sent as an array of integers"
            raise RequestRefused(NO_SUCH_TYPE, message, path)


def _in_range(value: int, path: str) -> int:
    if not MIN_I64 <= value <= MAX_I64:
        raise RequestRefused(INTEGER_RANGE, f"{path} does not fit into 64 bits", path)
    return value


def _bytes(items: list[object], path: str) -> bytes:
    for index, item in enumerate(items):
        if type(item) is not int or not 0 <= item <= _MAX_BYTE:
            place = f"{path}[{index}]"
            raise RequestRefused(BYTE_RANGE, f"{place} should be an integer from 0 to 255", place)
    return bytes(item for item in items if isinstance(item, int))


def _typed_value(kind: object, value: object, path: str) -> DataValue:
    """Return the value of an entry with an explicit type."""
    if not isinstance(kind, str) or kind not in _TYPES:
        message = f"{path}.type should be one of {', '.join(_TYPES)}"
        raise RequestRefused(WRONG_SHAPE, message, f"{path}.type")
    where = f"{path}.value"
    if kind == "binary" and isinstance(value, str):
        return _base64(value, where)
    read = _inferred_value(value, where)
    if (kind, type(read)) in (("integer", int), ("boolean", bool), ("string", str)):
        return read
    wanted = f'text that begins with "{BASE64_PREFIX}"' if kind == "binary" else kind
    raise RequestRefused(WRONG_SHAPE, f"{where} should be of type {wanted}", where)


def _base64(text: str, path: str) -> bytes:
    if text.startswith(BASE64_PREFIX):
        encoded = text.removeprefix(BASE64_PREFIX)
        try:
            data = base64.b64decode(encoded, validate=True)
        except (binascii.Error, ValueError):
            data = b""
        # Only canonical base64, since the answer repeats the text.
        if base64.b64encode(data).decode() == encoded:
            return data
    message = f'{path} should be "{BASE64_PREFIX}" followed by standard base64'
    raise RequestRefused(WRONG_SHAPE, message, path)
