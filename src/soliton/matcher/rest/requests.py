"""A request as handlers see it, and parsing its path, query, headers and body.

What lives here: the record, and one parser for each kind of value. What does not: authentication
(``auth``), and decoding orders (``order_json``).

Sources: wavesplatform/matcher
``dex/src/main/scala/com/wavesplatform/dex/api/routes/{ApiRoute,PathMatchers}.scala``.
"""

from __future__ import annotations

from typing import Any, Final
from urllib.parse import parse_qsl, unquote

import msgspec

from soliton.chain.addresses import Address, from_public_key, parse_address
from soliton.chain.errors import ChainError, FormatError
from soliton.chain.values import AssetId
from soliton.crypto import base58
from soliton.crypto.errors import Base58Error
from soliton.matcher.node_client import Asset
from soliton.matcher.rest.answers import Refusal, refuse
from soliton.matcher.service import Matcher
from soliton.matching import errors
from soliton.matching.errors import MatcherError
from soliton.matching.pairs import AssetPair, parse_asset

NOT_JSON: Final = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)
"""The exceptions of decoding a body that is not JSON, or not of the expected form."""
MAX_QUERY_FIELDS: Final = 32
MAX_BASE58_CHARS: Final = 128
"""Well above any id or key."""
MAX_INT: Final = 2**31 - 1
MAX_LONG: Final = 2**63 - 1
MAX_DIGITS: Final = 19

_TRUTHS: Final = dict.fromkeys(("true", "yes", "on", "1"), True) | dict.fromkeys(
    ("false", "no", "off", "0"), False
)


class Request(msgspec.Struct):
    """One request. ``segments`` are the decoded parts of the path."""

    core: Matcher
    method: str
    segments: tuple[str, ...]
    headers: dict[bytes, bytes]
    query_string: bytes = b""
    body: bytes = b""
    arguments: dict[str, Any] = {}
    """The parameters of a route of ours, converted."""

    def header(self, name: bytes) -> str | None:
        """A header's text, or None."""
        value = self.headers.get(name)
        return None if value is None else value.decode("latin-1")

    def query(self) -> dict[str, str]:
        """The query; the first of several fields with the same name counts, as in the reference."""
        if not self.query_string:
            return {}
        text = self.query_string.decode("latin-1")
        try:
            fields = parse_qsl(text, keep_blank_values=True, max_num_fields=MAX_QUERY_FIELDS)
            return dict(reversed(fields))
        except ValueError:
            raise refuse(
                errors.REQUEST_ARGUMENT_INVALID, "SimpleErrorResponse", name="query"
            ) from None


def split_path(raw_path: bytes) -> tuple[str, ...]:
    """The segments of a path; one trailing slash is ignored."""
    text = raw_path.decode("latin-1")
    parts = text.removesuffix("/").split("/")[1:]
    return tuple(unquote(part) if "%" in part else part for part in parts)


# --- paths and headers ----------------------------------------------------------------------------


def read_asset(text: str) -> AssetId | None:
    """Parse an asset, without checking that it exists."""
    try:
        return parse_asset(text)
    except FormatError as error:
        raise refuse(
            errors.INVALID_ASSET, "InvalidAsset", assetId=text[:100], reason=str(error)
        ) from None


def read_pair(amount: str, price: str) -> AssetPair:
    """Parse a pair, in either order."""
    return AssetPair(read_asset(amount), read_asset(price))


async def traded_pair(core: Matcher, pair: AssetPair) -> AssetPair:
    """The pair, if it is traded here and its assets exist; raises ``Refusal``."""
    try:
        await core.queries.check_pair(pair)
    except MatcherError as error:
        raise Refusal(error, "InfoNotFound") from None
    return pair


class PairReversed(Exception):
    """The pair is traded in reverse order: the request is redirected to ``pair``."""

    def __init__(self, pair: AssetPair) -> None:
        super().__init__(pair.key)
        self.pair = pair


async def pair_or_redirect(request: Request) -> AssetPair:
    """The pair in the path, if it is traded here; raises ``PairReversed`` if its reverse is."""
    core, pair = request.core, read_pair(*request.segments[2:4])
    try:
        await core.queries.check_pair(pair)
    except MatcherError as error:
        if error.kind is errors.ORDER_ASSET_PAIR_REVERSED and await _is_traded(
            core, pair.reversed()
        ):
            raise PairReversed(pair.reversed()) from None
        raise Refusal(error, "InfoNotFound") from None
    return pair


async def _is_traded(core: Matcher, pair: AssetPair) -> bool:
    try:
        await core.queries.check_pair(pair)
    except MatcherError:
        return False
    return True


async def pair_assets(core: Matcher, pair: AssetPair) -> tuple[Asset, Asset]:
    """The amount asset and the price asset of a pair; raises ``MatcherError``."""
    return await core.queries.asset(pair.amount_asset), await core.queries.asset(pair.price_asset)


def read_order_id(text: str) -> bytes:
    """Parse an order id."""
    try:
        return base58.decode(text, MAX_BASE58_CHARS)
    except Base58Error as error:
        raise refuse(
            errors.INVALID_BASE58_STRING, "InvalidBase58String", reason=str(error)
        ) from None


def read_public_key(text: str, word: str = "InvalidPublicKey") -> bytes:
    """Parse a public key, of any length: it may be the asset that another route expects there."""
    try:
        key = base58.decode(text, MAX_BASE58_CHARS)
    except Base58Error as error:
        raise refuse(errors.USER_PUBLIC_KEY_IS_NOT_VALID, word, reason=str(error)) from None
    return key


def read_address(core: Matcher, text: str) -> Address:
    """Parse an address of this network."""
    try:
        return parse_address(text, core.settings.network.chain_id)
    except ChainError as error:
        raise refuse(errors.INVALID_ADDRESS, "InvalidAddress", reason=str(error)) from None


def owner_of(core: Matcher, public_key: bytes) -> Address:
    """The address of a public key on this network."""
    return from_public_key(public_key, core.settings.network.chain_id)


# --- queries --------------------------------------------------------------------------------------


def read_flag(query: dict[str, str], name: str) -> bool | None:
    """A boolean of a query, or None if it is absent or blank."""
    text = query.get(name)
    if not text:
        return None
    value = _TRUTHS.get(text.lower())
    if value is None:
        raise refuse(errors.REQUEST_ARGUMENT_INVALID, "SimpleErrorResponse", name=name)
    return value


def read_depth(query: dict[str, str]) -> int | None:
    """The requested depth of a book, or None."""
    text = query.get("depth")
    if text is None:
        return None
    depth = _whole(text)
    if depth is None or abs(depth) > MAX_INT:
        raise _bad_depth(f"Depth value '{text[:40]}' must be an Integer")
    if depth < 0:
        raise _bad_depth(f"Depth value '{text[:40]}' must be non-negative")
    return depth


def _bad_depth(reason: str) -> Refusal:
    return refuse(errors.INVALID_DEPTH, "InvalidDepth", reason=reason)


def _whole(text: str) -> int | None:
    digits = text[1:] if text[:1] in ("-", "+") else text
    if not digits.isdecimal() or not digits.isascii() or len(digits) > MAX_DIGITS:
        return None
    return int(text)


# --- bodies ---------------------------------------------------------------------------------------


def check_content_type(headers: dict[bytes, bytes]) -> None:
    """Raise ``Refusal`` unless the content type is JSON."""
    declared = headers.get(b"content-type", b"")
    if declared != b"application/json":
        media_type = declared.partition(b";")[0].strip().lower()
        if media_type != b"application/json":
            raise Refusal(MatcherError(errors.UNSUPPORTED_CONTENT_TYPE), "InvalidJsonResponse")


def invalid_json(*fields: str) -> Refusal:
    """The error for invalid JSON, or for invalid members (given as paths)."""
    error = MatcherError(errors.INVALID_JSON, form=1, invalidFields=fields) if fields else None
    return Refusal(error or MatcherError(errors.INVALID_JSON), "InvalidJsonResponse")


def read_json(request: Request) -> object:
    """The body as JSON of any form; raises ``Refusal``."""
    check_content_type(request.headers)
    try:
        value: object = msgspec.json.decode(request.body)
    except NOT_JSON:
        raise invalid_json() from None
    return value
