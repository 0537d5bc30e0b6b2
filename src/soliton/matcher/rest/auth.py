"""Authentication: the operator's API key, and signatures of accounts.

An account signs ``public key ‖ timestamp`` (32 + 8 bytes, big endian, milliseconds) and sends both
in headers. Such a signature is valid only near its timestamp (``rest-api.signature-window``), since
anyone who sees it could replay it; the same goes for the request to cancel all orders. A request to
cancel one order is signed as ``public key ‖ order id`` and does not expire, since it is idempotent.

What lives here: the checks. What does not: which route needs which.

Source: wavesplatform/matcher
``dex/src/main/scala/com/wavesplatform/dex/api/routes/{ApiRoute,AuthRoute}.scala``, whose signatures
hold for ever and whose batch cancel does not compare the account with the one in the path; ours do.
"""

from __future__ import annotations

from typing import Final

import msgspec

from soliton.chain.addresses import PUBLIC_KEY_LENGTH, Address
from soliton.chain.layouts import SIGNATURE_LENGTH
from soliton.crypto import base58
from soliton.crypto.curve25519 import verify
from soliton.crypto.errors import Base58Error
from soliton.matcher.rest.answers import Refusal, Rejected, refuse
from soliton.matcher.rest.forms import Form
from soliton.matcher.rest.requests import (
    MAX_BASE58_CHARS,
    MAX_LONG,
    Request,
    check_content_type,
    invalid_json,
    owner_of,
    read_public_key,
)
from soliton.matcher.service import Matcher
from soliton.matching import errors
from soliton.matching.errors import MatcherError

_KEY_HEADERS: Final = (b"x-api-key", b"api_key")
_MAX_TIMESTAMP_CHARS: Final = 19


def has_signature(request: Request) -> bool:
    """Whether a request has the headers of a signature."""
    return b"timestamp" in request.headers and b"signature" in request.headers


def check_key(request: Request) -> None:
    """Raise ``Refusal`` unless the request has one of the operator's keys."""
    check_key_headers(request.core, request.headers)


def check_key_headers(core: Matcher, headers: dict[bytes, bytes]) -> None:
    """Raise ``Refusal`` unless the headers contain one of the operator's keys."""
    api = core.settings.rest_api
    if not api.api_key_hashes:
        raise refuse(errors.API_KEY_IS_NOT_PROVIDED, "SimpleErrorResponse")
    for name in _KEY_HEADERS:
        value = headers.get(name)
        if value is not None and api.check_api_key(value.decode("latin-1")):
            return
    raise refuse(errors.API_KEY_IS_NOT_VALID, "SimpleErrorResponse")


def named_user(request: Request) -> bytes | None:
    """The public key of the account that the operator acts for, if a header has one."""
    text = request.header(b"x-user-public-key")
    return None if text is None else read_public_key(text, "SimpleErrorResponse")


def not_that_user() -> Refusal:
    """The error if the named account differs from the one in the path."""
    reason = "it is not that of the account in the path"
    return refuse(errors.USER_PUBLIC_KEY_IS_NOT_VALID, "SimpleErrorResponse", reason=reason)


def check_signature(request: Request, public_key: bytes) -> None:
    """Check that the headers have a fresh signature of the account; raises ``Rejected`` if there is
    none at all, so that another route may accept the request.
    """
    if not has_signature(request):
        raise Rejected
    text = request.header(b"timestamp") or ""
    if len(text) > _MAX_TIMESTAMP_CHARS or not (text.isascii() and text.isdecimal()):
        raise _bad_signature()
    signature = request.header(b"signature") or ""
    check_signed_time(request.core, public_key, int(text), signature)


def check_signed_time(core: Matcher, public_key: bytes, timestamp: int, signature: str) -> None:
    """Check a signature (base58) of a public key and a timestamp, which must be fresh."""
    if not 0 <= timestamp <= MAX_LONG:
        raise _bad_signature()
    _check(public_key, timestamp.to_bytes(8, "big"), _signature(signature))
    _check_fresh(core, timestamp, core.settings.rest_api.signature_window_ms)


def check_signature_of(request: Request, owner: Address) -> None:
    """Check that the headers name this account's key, and have a fresh signature by it."""
    public_key = named_user(request)
    if public_key is None:
        raise Rejected
    check_signature(request, public_key)
    if owner_of(request.core, public_key) != owner:
        raise not_that_user()


def check_signature_or_key(request: Request, owner: Address) -> None:
    """Check for a signature of the account or, without one, for the operator's key."""
    try:
        check_signature_of(request, owner)
    except Rejected:
        check_key(request)
        check_named_user(request, owner)


def check_named_user(request: Request, owner: Address) -> None:
    """Check that the account that the operator acts for, if any, is the one in the path."""
    named = named_user(request)
    if named is not None and owner_of(request.core, named) != owner:
        raise not_that_user() from None


# --- signed bodies --------------------------------------------------------------------------------


class CancelRequest(msgspec.Struct, frozen=True):
    """The body of a request to cancel one order, or all orders (with a timestamp)."""

    sender: str
    signature: str
    orderId: str | None = None  # noqa: N815 - the member's name
    timestamp: int | None = None


_CANCEL: Final = Form(CancelRequest)


def read_cancel(request: Request) -> tuple[Address, bytes | None]:
    """The owner of the orders to cancel, and the id of one order or ``None`` for all; verified."""
    check_content_type(request.headers)
    body = _CANCEL.read(request.body)
    sender = _bytes_of(body.sender, "/sender")
    if len(sender) != PUBLIC_KEY_LENGTH:
        raise invalid_json("/sender")
    signature = _bytes_of(body.signature, "/signature")
    order_id = None if body.orderId is None else _bytes_of(body.orderId, "/orderId")
    timestamp = body.timestamp
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
    return owner_of(request.core, sender), order_id


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
    is_valid = (
        len(public_key) == PUBLIC_KEY_LENGTH
        and len(signature) == SIGNATURE_LENGTH
        and verify(public_key, public_key + signed, signature)
    )
    if not is_valid:
        raise _bad_signature()


def _check_fresh(core: Matcher, timestamp: int, window_ms: int) -> None:
    if abs(core.now() - timestamp) > window_ms:
        raise _bad_signature()


def _bad_signature() -> Refusal:
    return refuse(errors.REQUEST_INVALID_SIGNATURE, "InvalidSignature")
