"""Helpers of handlers: the node, and parsing of addresses and ids in requests.

What lives here: addresses and ids, with the errors that each generation of the interface has for
malformed ones. What does not: declarations (``routes``), other errors (``translate``).

Source: wavesplatform/Waves ``node/src/main/scala/com/wavesplatform/api/http/package.scala``
(``AddrSegment``, ``TransactionId``, ``BlockId``).
"""

from __future__ import annotations

from typing import Final

from soliton.api import errors
from soliton.api.errors import ErrorKind
from soliton.api.hints import about_address, with_hint
from soliton.api.http import Request
from soliton.api.translate import OLDEST
from soliton.chain.addresses import Address, check_address
from soliton.chain.errors import AddressError
from soliton.crypto import base58
from soliton.crypto.errors import Base58Error
from soliton.errors import InvariantBroken
from soliton.node.node import Node

MAX_ADDRESS_TEXT_CHARS: Final = 256
MAX_ID_TEXT_CHARS: Final = 192
"""Longer texts are rejected without decoding, as in the reference."""
DIGEST_LENGTH: Final = 32
SIGNATURE_LENGTH: Final = 64


def node_of(request: Request) -> Node:
    """The node of the API."""
    node = request.context.node
    if node is None:
        raise InvariantBroken("a route of the node is served without one")
    return node


def is_oldest(node: Node) -> bool:
    """Whether the node has the oldest generation of the interface."""
    return node.network.family == OLDEST


def address_argument(request: Request, name: str = "address") -> Address:
    """A path parameter as an address of the node's chain; raises error 102 (199 if not base58)."""
    return address_of_text(request.text(name), node_of(request))


def address_of_text(text: str, node: Node) -> Address:
    """A text as an address of the node's chain; raises the errors of ``address_argument``."""
    try:
        data = base58.decode(text, MAX_ADDRESS_TEXT_CHARS)
    except Base58Error as error:
        if is_oldest(node) or len(text) > MAX_ADDRESS_TEXT_CHARS:
            raise errors.INVALID_ADDRESS.error() from error
        hint = about_address(text, node.network.chain_id)
        raise with_hint(errors.invalid_request(str(error)), hint) from error
    try:
        return check_address(data, node.network.chain_id)
    except AddressError as error:
        hint = about_address(text, node.network.chain_id)
        raise with_hint(errors.INVALID_ADDRESS.error(), hint) from error


def transaction_id(text: str, node: Node) -> bytes:
    """The id of a transaction; raises error 4001 (101 in the oldest generation)."""
    return _identifier(text, node, errors.INVALID_TRANSACTION_ID)


def block_id(text: str, node: Node) -> bytes:
    """The id of a block; raises error 4002 (101 in the oldest generation)."""
    return _identifier(text, node, errors.INVALID_BLOCK_ID)


def _identifier(text: str, node: Node, kind: ErrorKind) -> bytes:
    value = decode_id(text)
    if value is None:
        if is_oldest(node):
            raise errors.INVALID_SIGNATURE.error()
        raise kind.error(message=about_base58(text))
    if not is_oldest(node) and len(value) not in (DIGEST_LENGTH, SIGNATURE_LENGTH):
        raise kind.error(
            message=f"{text} has invalid length {len(value)}. "
            f"Length can either be {DIGEST_LENGTH} or {SIGNATURE_LENGTH}"
        )
    return value


def decode_id(text: str) -> bytes | None:
    """An id of a list, of any length; ``None`` if it is not base58."""
    try:
        return base58.decode(text, MAX_ID_TEXT_CHARS)
    except Base58Error:
        return None


def not_base58(text: str) -> str:
    """The reference's message about an id of a list that is not base58."""
    return f"java.lang.IllegalArgumentException: {about_base58(text)}"


def about_base58(text: str) -> str:
    """The reference's message about a text that is not base58."""
    if len(text) > MAX_ID_TEXT_CHARS:
        return f"requirement failed: base58Decode input exceeds {MAX_ID_TEXT_CHARS}"
    wrong = next((item for item in text if item not in base58.ALPHABET), "")
    return f"requirement failed: Wrong char '{wrong}' in Base58 string '{text}'"
