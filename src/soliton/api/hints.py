"""Hints: what a person who got lost may have meant. Programs need not read them.

A hint is a further member ``hint`` at the end of an error's JSON object, or, where the reference
answers with a bare sentence, the header ``X-Hint``. Errors stay what they are for those who look
only for what the reference says.

What lives here: recognising what was sent in place of what is asked for. What does not: the errors.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

from soliton.api.errors import ApiError
from soliton.chain.addresses import (
    ADDRESS_LENGTH,
    ADDRESS_VERSION,
    address_text,
    check_address,
    from_public_key,
    from_public_key_hash,
)
from soliton.chain.errors import AddressError
from soliton.crypto import base58
from soliton.crypto.errors import Base58Error
from soliton.node.node import Node
from soliton.web.types import Headers

KEY_IS_HASH: Final = (
    "this is the hash of the API key, as it stands in the node's settings: send the key itself"
)
NO_KEY: Final = "this wants the API key in the header X-API-Key, and the request has none"
WRONG_KEY: Final = (
    "the hash of the key in the header X-API-Key is not the node's setting rest-api.api-key-hash: "
    "POST /utils/hash/secure with a key as the body tells its hash"
)
NO_ASSET: Final = "the chain's own coin has no asset id: ask /addresses/balance/{address}"

_COIN: Final = frozenset((b"", bytes(32)))
_MAX_CHARS: Final = 100
_KEY_LENGTH: Final = 32
_ETHEREUM: Final = re.compile(r"0x[0-9a-fA-F]{40}")
_MAX_CHAIN_ID: Final = 255
_MALFORMED: Final = {
    "parameter": "a parameter of the path or the query is malformed or missing",
    "accept": "the header Accept excludes application/json",
    "content type": "send the body with the header Content-Type: application/json",
    "empty body": "this wants a body",
    "malformed JSON": "the body is no JSON object",
}


def with_hint(error: ApiError, hint: str | None) -> ApiError:
    """The error, with a hint if there is one."""
    return error if hint is None else error.with_hint(hint)


def chain_name(chain_id: int) -> str:
    """A chain id as people know it."""
    return f"{chr(chain_id)!r} ({chain_id})" if 0 <= chain_id <= _MAX_CHAIN_ID else str(chain_id)


def about_address(text: str, chain_id: int) -> str | None:
    """What was sent in place of an address."""
    if text.startswith("alias:"):
        return f"this is an alias: /alias/by-alias/{text.rpartition(':')[2]} tells its address"
    if _ETHEREUM.fullmatch(text):
        own = address_text(from_public_key_hash(bytes.fromhex(text[2:]), chain_id))
        return f"this is an address of Ethereum: here it is {own}"
    try:
        data = base58.decode(text, _MAX_CHARS)
    except Base58Error:
        return None
    if len(data) == _KEY_LENGTH:
        own = address_text(from_public_key(data, chain_id))
        return f"this is as long as a public key: the address of that key is {own}"
    if len(data) != ADDRESS_LENGTH or data[0] != ADDRESS_VERSION:
        return None
    try:
        check_address(data, data[1])
    except AddressError:
        return "the checksum is wrong: a character was mistyped or left out"
    if data[1] != chain_id:
        here = chain_name(chain_id)
        return f"this address is of the chain {chain_name(data[1])}, this node is of {here}"
    return None


def about_asset(text: str) -> str | None:
    """What was sent in place of an asset's id."""
    try:
        is_coin = text.isupper() or base58.decode(text, _MAX_CHARS) in _COIN
    except Base58Error:
        return None
    return NO_ASSET if is_coin else None


def about_transaction(name: bytes, node: Node) -> str | None:
    """What the id of a transaction may be that is not where it was looked for."""
    if node.chain.store.transaction_location(name) is not None:
        return "it is in a block: ask /transactions/info/{id}"
    if node.chain.height_of(name) is not None:
        return "this is the id of a block: ask /blocks/{id}"
    # Of the pool only the process that has it can tell.
    if node.writes and node.pool.get(name) is not None:
        return "it waits for a block: ask /transactions/unconfirmed/info/{id}"
    return None


def about_block(name: bytes, node: Node) -> str | None:
    """What the id of a block that the chain does not have may be."""
    if node.chain.store.transaction_location(name) is not None:
        return "this is the id of a transaction: ask /transactions/info/{id}"
    return None


def about_method(methods: Iterable[str]) -> Headers:
    """Headers that name the methods that a path takes."""
    names = ", ".join(sorted(methods))
    return ((b"allow", names.encode()), (b"x-hint", f"this path wants {names}".encode()))


def about_request(reason: str) -> Headers:
    """Headers that tell why a route did not take a request with a method that it has."""
    hint = _MALFORMED.get(reason)
    return () if hint is None else ((b"x-hint", hint.encode()),)
