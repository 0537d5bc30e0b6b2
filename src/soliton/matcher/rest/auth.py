"""Who may ask: the operator's key, and signatures of accounts.

An account signs ``public key ‖ timestamp`` (32 + 8 bytes, big endian, milliseconds) and sends both
in headers. Such a signature holds for a while around its timestamp (``rest-api.signature-window``),
since whoever sees it could use it as well; the same goes for the request to cancel all orders.
A request to cancel one order is signed as ``public key ‖ order id`` and needs no time: it can only
do once what its owner wanted.

What lives here: the checks. What does not: which route needs which.

Source: wavesplatform/matcher
``dex/src/main/scala/com/wavesplatform/dex/api/routes/{ApiRoute,AuthRoute}.scala``, whose signatures
hold for ever and whose batch cancel does not compare the account with the one in the path; ours do.
"""

from __future__ import annotations

from typing import Final

import msgspec

from soliton.chain.addresses import PUBLIC_KEY_LENGTH, Address, from_public_key
from soliton.chain.layouts import SIGNATURE_LENGTH
from soliton.crypto import base58
from soliton.crypto.curve25519 import verify
from soliton.crypto.errors import Base58Error
from soliton.matcher.rest.answers import Refusal, Rejected, refuse
from soliton.matcher.rest.requests import (
    MAX_BASE58_CHARS,
    MAX_LONG,
    NOT_JSON,
    Request,
    check_content_type,
    invalid_json,
    read_public_key,
)
from soliton.matcher.service import Matcher
from soliton.matching import errors
from soliton.matching.errors import MatcherError

_KEY_HEADERS: Final = (b"x-api-key", b"api_key")
_MAX_TIMESTAMP_CHARS: Final = 19


def has_signature(request: Request) -> bool:
    """Whether a request is signed at all."""
    return b"timestamp" in request.headers and b"signature" in request.headers


def check_key(request: Request) -> None:
    """The request has one of the operator's keys."""
    check_key_headers(request.core, request.headers)


def check_key_headers(core: Matcher, headers: dict[bytes, bytes]) -> None:
    """One of the operator's keys is among the headers."""
    api = core.settings.rest_api
    if not api.api_key_hashes:
        raise refuse(errors.API_KEY_IS_NOT_PROVIDED, "SimpleErrorResponse")
    for name in _KEY_HEADERS:
        value = headers.get(name)
        if value is not None and api.check_api_key(value.decode("latin-1")):
            return
    raise refuse(errors.API_KEY_IS_NOT_VALID, "SimpleErrorResponse")


def named_user(request: Request) -> bytes | None:
    """The account that the operator wants to act for, if a header names one."""
    text = request.header(b"x-user-public-key")
    return None if text is None else read_public_key(text, "SimpleErrorResponse")


def not_that_user() -> Refusal:
    """The account that was named is another one than the path's."""
    reason = "it is not that of the account in the path"
    return refuse(errors.USER_PUBLIC_KEY_IS_NOT_VALID, "SimpleErrorResponse", reason=reason)


def check_signature(request: Request, public_key: bytes) -> None:
    """The headers have a fresh signature of the account; raises ``Rejected`` where there is none
    at all, so that another route may take the request.
    """
    if not has_signature(request):
        raise Rejected
    text = request.header(b"timestamp") or ""
    if len(text) > _MAX_TIMESTAMP_CHARS or not (text.isascii() and text.isdecimal()):
        raise _bad_signature()
    timestamp = int(text)
    if timestamp > MAX_LONG:
        raise _bad_signature()
    signature = _signature(request.header(b"signature") or "")
    _check(public_key, timestamp.to_bytes(8, "big"), signature)
    _check_fresh(request.core, timestamp, request.core.settings.rest_api.signature_window_ms)


def check_signature_of(request: Request, owner: Address) -> None:
    """The headers name a key of this very account, and have a fresh signature by it."""
    text = request.header(b"x-user-public-key")
    if text is None:
        raise Rejected
    public_key = read_public_key(text, "SimpleErrorResponse")
    check_signature(request, public_key)
    if from_public_key(public_key, request.core.settings.network.chain_id) != owner:
        raise not_that_user()


def check_signature_or_key(request: Request, owner: Address) -> None:
    """A signature of the account or, without one, the operator's key; if that names an account, it
    has to be the one in the path.
    """
    try:
        check_signature_of(request, owner)
    except Rejected:
        check_key(request)
        named = named_user(request)
        chain_id = request.core.settings.network.chain_id
        if named is not None and from_public_key(named, chain_id) != owner:
            raise not_that_user() from None


# --- signed bodies --------------------------------------------------------------------------------


class CancelRequest(msgspec.Struct, frozen=True):
    """Who wants to cancel: one order, or all of them at a time."""

    sender: str
    signature: str
    orderId: str | None = None  # noqa: N815 - the member's name
    timestamp: int | None = None


_decode_cancel: Final = msgspec.json.Decoder(CancelRequest).decode


def read_cancel(request: Request) -> tuple[Address, bytes | None]:
    """Whose orders are to be cancelled, and the id of one, or ``None`` for all of them; checked."""
    check_content_type(request.headers)
    try:
        wanted = _decode_cancel(request.body)
    except NOT_JSON as error:
        raise _cancel_is_malformed(error) from None
    sender = _bytes_of(wanted.sender, "/sender")
    if len(sender) != PUBLIC_KEY_LENGTH:
        raise invalid_json("/sender")
    signature = _bytes_of(wanted.signature, "/signature")
    order_id = None if wanted.orderId is None else _bytes_of(wanted.orderId, "/orderId")
    timestamp = wanted.timestamp
    if timestamp is not None and not 0 <= timestamp <= MAX_LONG:
        raise invalid_json("/timestamp")
    if (order_id is None) == (timestamp is None):
        incomplete = MatcherError(errors.CANCEL_REQUEST_IS_INCOMPLETE)
        raise Refusal(incomplete, "OrderCancelRejected", flat=True)
    if order_id is not None:
        _check(sender, order_id, signature)
    elif timestamp is not None:
        _check(sender, timestamp.to_bytes(8, "big"), signature)
        _check_fresh(request.core, timestamp, request.core.settings.rest_api.cancel_all_window_ms)
    return from_public_key(sender, request.core.settings.network.chain_id), order_id


def _cancel_is_malformed(error: Exception) -> Refusal:
    _, found, path = str(error).rpartition("`$.")
    return invalid_json(f"/{path[:-1]}") if found else invalid_json()


def _bytes_of(text: str, path: str) -> bytes:
    try:
        return base58.decode(text, MAX_BASE58_CHARS)
    except Base58Error:
        raise invalid_json(path) from None


def _signature(text: str) -> bytes:
    try:
        return base58.decode(text, MAX_BASE58_CHARS)
    except Base58Error:
        raise _bad_signature() from None


def _check(public_key: bytes, signed: bytes, signature: bytes) -> None:
    right = (
        len(public_key) == PUBLIC_KEY_LENGTH
        and len(signature) == SIGNATURE_LENGTH
        and verify(public_key, public_key + signed, signature)
    )
    if not right:
        raise _bad_signature()


def _check_fresh(core: Matcher, timestamp: int, window_ms: int) -> None:
    if abs(core.now() - timestamp) > window_ms:
        raise _bad_signature()


def _bad_signature() -> Refusal:
    return refuse(errors.REQUEST_INVALID_SIGNATURE, "InvalidSignature")
