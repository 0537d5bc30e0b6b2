"""Routes under ``/addresses/data`` and ``/addresses/scriptInfo``: data and scripts of accounts.

Source: wavesplatform/Waves ``node/src/main/scala/com/wavesplatform/api/http/
AddressApiRoute.scala`` (``getData``, ``scriptInfo``).
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from functools import partial
from operator import itemgetter
from typing import Final

import msgspec

from soliton.api import errors
from soliton.api.http import Request, parse_query
from soliton.api.key_patterns import KeyPattern, PatternError
from soliton.api.lookup import address_argument, node_of
from soliton.api.paging import in_pages
from soliton.api.rest import examples
from soliton.api.route_table import row, table
from soliton.api.routes import Body, BodyKind
from soliton.api.schemas import DATA_ENTRY
from soliton.api.streaming import json_stream
from soliton.api.time_slices import SLICE_SECONDS
from soliton.chain.addresses import Address, address_text
from soliton.chain.json_kinds import data_entry_json, encode_base64
from soliton.chain.json_schemas import list_of
from soliton.chain.transactions.data import MAX_KEY_BYTES
from soliton.chain.values import DataEntry, DataValue
from soliton.crypto import base58
from soliton.ledger import script_setting
from soliton.ledger.scripts import account_script, has_paid_verifier
from soliton.ledger.state import DATA, Missing
from soliton.node.node import Node
from soliton.ride.compiler.compaction import with_original_names
from soliton.ride.errors import ScriptFormatError
from soliton.ride.expressions import DApp
from soliton.ride.meta import ArgumentType, argument_types, read_meta
from soliton.ride.script import parse_script
from soliton.ride.tree_text import tree_text
from soliton.web.request import FORM_URLENCODED

_PAGE: Final = 1_000
"""Data entries read before yielding to the event loop."""


class NamedType(msgspec.Struct, frozen=True, gc=False):
    """A parameter of a function."""

    name: str
    type: str


class Functions(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    """The callable functions of a dApp with their parameters."""

    version: str
    callable_func_types: dict[str, list[NamedType]]


class ScriptMeta(msgspec.Struct, frozen=True, gc=False, omit_defaults=True):
    """The functions of an account's dApp; only the address if it has no script."""

    address: str
    meta: Functions | None = None


class ScriptInfo(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    """The script of an account, if it has one, with its complexities and extra fee."""

    address: str
    script: str | None = None
    script_text: str | None = None
    version: int | None = None
    complexity: int = 0
    verifier_complexity: int = 0
    callable_complexities: dict[str, int] = {}
    extra_fee: int = 0
    public_key: str | None = None


# --- data -----------------------------------------------------------------------------------------


def data_entry(request: Request) -> object:
    """One data entry of an account."""
    node, address = node_of(request), address_argument(request)
    entry = _entry(node, address, request.text("key"))
    if entry is None:
        raise errors.DATA_KEY_DOES_NOT_EXIST.error()
    return entry


def _entry(node: Node, address: Address, key: str) -> object:
    try:
        value = node.chain.store.get(DATA, (address, key))
    except UnicodeEncodeError:
        return None
    return None if value is None or isinstance(value, Missing) else _shown(key, value)


def _shown(key: str, value: DataValue) -> object:
    return data_entry_json(DataEntry(key, value))


def data(request: Request) -> object:
    """Data entries of an account: all, those with given keys, or those whose key matches."""
    node, address = node_of(request), address_argument(request)
    is_form = request.method == "POST" and request.content_type() == FORM_URLENCODED
    form = parse_query(request.body) if is_form else {}
    patterns = form.get("matches") or request.query.get("matches")
    if patterns:
        try:
            pattern = KeyPattern(patterns[0])
        except PatternError as error:
            raise errors.invalid_request("Cannot compile regex").with_hint(str(error)) from error
        if not _may_begin_keys(pattern.prefix):
            return []
        if pattern.is_literal:
            entry = _entry(node, address, pattern.prefix)
            return [] if entry is None else [entry]
        return json_stream(request, _matching(node, address, pattern))
    keys = request.listed("key", "keys", node.settings.rest_api.data_keys_request_limit)
    if keys:
        found = (_entry(node, address, key) for key in keys)
        return [entry for entry in found if entry is not None]
    if request.method != "GET":
        raise errors.DATA_KEYS_NOT_SPECIFIED.error()
    return json_stream(request, _entries(node, address))


def _may_begin_keys(prefix: str) -> bool:
    """Whether keys of the store may begin so: half a character, or too much, is in none."""
    try:
        return len(prefix.encode()) <= MAX_KEY_BYTES
    except UnicodeEncodeError:
        return False


async def _entries(node: Node, address: Address) -> AsyncIterator[object]:
    async for page in _pages(node, address):
        for key, value in page:
            yield _shown(key, value)


async def _matching(node: Node, address: Address, pattern: KeyPattern) -> AsyncIterator[object]:
    """The entries whose key matches. Yields to the event loop also while none does."""
    until = time.perf_counter() + SLICE_SECONDS
    async for page in _pages(node, address, pattern.prefix):
        for key, value in page:
            if pattern.matches(key):
                yield _shown(key, value)
            if time.perf_counter() > until:
                await asyncio.sleep(0)
                until = time.perf_counter() + SLICE_SECONDS


def _pages(
    node: Node, address: Address, prefix: str = ""
) -> AsyncIterator[list[tuple[str, DataValue]]]:
    read = partial(node.chain.store.data_entries, address, prefix=prefix)
    return in_pages(read, itemgetter(0), _PAGE)


# --- scripts --------------------------------------------------------------------------------------


def script_info(request: Request) -> ScriptInfo:
    """The script of an account."""
    node, address = node_of(request), address_argument(request)
    chain = node.chain
    text = address_text(address)
    found = account_script(address, chain.store)
    if found is None:
        return ScriptInfo(text)
    rules = chain.rules.at(chain.height)
    # The script may have been set when an earlier estimator was the current one.
    callables = found.callables.get(rules.estimation.current.number, {})
    is_paid = has_paid_verifier(address, chain.store, rules)
    return ScriptInfo(
        address=text,
        script=encode_base64(found.script),
        script_text=tree_text(parse_script(found.script)),
        version=script_setting.inspect(found.script).version,
        complexity=max((found.verifier_complexity, *callables.values())),
        verifier_complexity=found.verifier_complexity,
        callable_complexities=callables,
        extra_fee=rules.fees.script_extra if is_paid else 0,
        public_key=base58.encode(found.public_key),
    )


def script_meta(request: Request) -> ScriptMeta:
    """The callable functions of an account's script; only the address if there is none."""
    node, address = node_of(request), address_argument(request)
    text = address_text(address)
    found = account_script(address, node.chain.store)
    if found is None:
        return ScriptMeta(text)
    content = parse_script(found.script).content
    if not isinstance(content, DApp):
        raise errors.invalid_request("ScriptParseError(Expected DApp)")
    try:
        return ScriptMeta(text, _functions(content))
    except ScriptFormatError as error:
        raise errors.invalid_request(f"ScriptParseError({error})") from error


def _functions(dapp: DApp) -> Functions:
    meta = read_meta(dapp.meta)
    types = argument_types(meta)
    if types is None:
        return Functions(str(meta.version), {})
    callables = [each.function for each in with_original_names(dapp).callables]
    return Functions(
        str(meta.version),
        {
            function.name: [
                NamedType(name, _type_name(kind))
                for name, kind in zip(function.parameters, kinds, strict=False)
            ]
            for function, kinds in zip(callables, types, strict=False)
        },
    )


def _type_name(kind: ArgumentType) -> str:
    name = "|".join(kind.types)
    return f"List[{name}]" if kind.is_list else name


_KEYS: Final = Body(
    BodyKind.FORM_OR_JSON,
    "Keys as `keys` of a JSON object or as `key` of a form; or a form's `matches`",
    {"keys": ["greeting"]},
    {
        "type": "object",
        "properties": {"keys": {"type": "array", "items": {"type": "string"}}},
        "required": ["keys"],
    },
)
_ENTRIES: Final = (list_of(DATA_ENTRY), [examples.DATA_ENTRY])
_KEY_ERRORS: Final = "INVALID_ADDRESS CUSTOM_VALIDATION_ERROR TOO_BIG_SEQUENCE_WITH_LIMIT"
_POSTED_KEY_ERRORS: Final = "INVALID_ADDRESS TOO_BIG_SEQUENCE_WITH_LIMIT DATA_KEYS_NOT_SPECIFIED"
_META_EXAMPLE: Final = {
    "address": examples.ADDRESS,
    "meta": {"version": "2", "callableFuncTypes": {"send": [{"name": "to", "type": "String"}]}},
}

ROUTES: Final = table("addresses", """
key     | text  | Key                                 | greeting
key.any | text* | Keys                                | greeting
matches | text  | A regular expression for whole keys | gree.*
""",
    row("GET /addresses/data/{address}?matches&key.any", data,
        "Data entries of an account in the order of their keys", *_ENTRIES, _KEY_ERRORS),
    row("POST /addresses/data/{address} reads=chain", data,
        "Data entries of an account by their keys", *_ENTRIES, _POSTED_KEY_ERRORS, body=_KEYS),
    row("GET /addresses/data/{address}/{key}", data_entry, "One data entry of an account",
        DATA_ENTRY, examples.DATA_ENTRY, "INVALID_ADDRESS DATA_KEY_DOES_NOT_EXIST"),
    # Several segments after the address are ignored, as in the reference.
    row("GET /addresses/data/{address}/*?matches&key.any", data,
        "Data entries of an account in the order of their keys", *_ENTRIES, _KEY_ERRORS,
        documented=False),
    row("POST /addresses/data/{address}/* reads=chain", data,
        "Data entries of an account by their keys", *_ENTRIES, _POSTED_KEY_ERRORS, body=_KEYS,
        documented=False),
    row("GET /addresses/scriptInfo/{address}", script_info,
        "The script of an account, with its complexities and extra fee", ScriptInfo,
        msgspec.to_builtins(ScriptInfo(examples.ADDRESS)), "INVALID_ADDRESS"),
    row("GET /addresses/scriptInfo/{address}/meta", script_meta,
        "The callable functions of an account's script", ScriptMeta,
        _META_EXAMPLE,
        "INVALID_ADDRESS CUSTOM_VALIDATION_ERROR"),
    reads="state",
)  # fmt: skip
