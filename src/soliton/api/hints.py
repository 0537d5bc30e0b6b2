"""Hints for people about a failed request. Programs can ignore them.

A hint is the last member ``hint`` of an error's JSON object, or the header ``X-Hint`` where the
reference answers in plain text. The rest of the response is that of the reference.

What lives here: recognising common mistakes. What does not: the errors.
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
    """The error with the hint, if there is one."""
    return error if hint is None else error.with_hint(hint)


def chain_name(chain_id: int) -> str:
    """A chain id as a character and a number."""
    return f"{chr(chain_id)!r} ({chain_id})" if 0 <= chain_id <= _MAX_CHAIN_ID else str(chain_id)


def about_address(text: str, chain_id: int) -> str | None:
    """A hint about a text that is not an address of this chain."""
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
    """A hint about a text that is not the id of an asset."""
    try:
        is_coin = text.isupper() or base58.decode(text, _MAX_CHARS) in _COIN
    except Base58Error:
        return None
    return NO_ASSET if is_coin else None


def about_transaction(name: bytes, node: Node) -> str | None:
    """A hint about an id that is not a transaction where the client looked for it."""
    if node.chain.store.transaction_location(name) is not None:
        return "it is in a block: ask /transactions/info/{id}"
    if node.chain.height_of(name) is not None:
        return "this is the id of a block: ask /blocks/{id}"
    # Only the writer's process has the pool.
    if node.writes and node.pool.get(name) is not None:
        return "it waits for a block: ask /transactions/unconfirmed/info/{id}"
    return None


def about_block(name: bytes, node: Node) -> str | None:
    """A hint about an id that is not a block of the chain."""
    if node.chain.store.transaction_location(name) is not None:
        return "this is the id of a transaction: ask /transactions/info/{id}"
    return None


def about_method(methods: Iterable[str]) -> Headers:
    """Headers that name the methods of a path."""
    names = ", ".join(sorted(methods))
    return ((b"allow", names.encode()), (b"x-hint", f"this path wants {names}".encode()))


def about_request(reason: str) -> Headers:
    """Headers with the reason why a route rejected a request with the right method."""
    hint = _MALFORMED.get(reason)
    return () if hint is None else ((b"x-hint", hint.encode()),)
