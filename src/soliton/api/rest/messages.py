"""Routes ``/addresses/sign…``, ``/addresses/verify…`` and ``/utils/sign``: signatures of texts, as
the older generations of the interface make and check them.

Source: 0bsnetwork/Zbs ``src/main/scala/com/zbsnetwork/api/http/AddressApiRoute.scala`` and
``UtilsApiRoute.scala``.
"""

from __future__ import annotations

import base64
import binascii
from typing import Final

import msgspec

from soliton.api.errors import (
    CUSTOM_VALIDATION_ERROR,
    INVALID_ADDRESS,
    INVALID_MESSAGE,
    MISSING_SENDER_PRIVATE_KEY,
    WRONG_JSON,
    WRONG_JSON_DATA,
    invalid_request,
)
from soliton.api.http import Request
from soliton.api.lookup import ADDRESS, node_of
from soliton.api.rest import examples
from soliton.api.routes import POST, TEXT, Body, BodyKind, Handler, Parameter, Route
from soliton.chain.addresses import PUBLIC_KEY_LENGTH, address_text, from_public_key, parse_address
from soliton.chain.errors import AddressError
from soliton.crypto import base58, curve25519
from soliton.crypto.errors import Base58Error
from soliton.node.node import Node

MAX_MESSAGE_CHARS: Final = 2_048
PRIVATE_KEY_LENGTH: Final = 32
_MAX_KEY_CHARS: Final = 256
_BASE64: Final = "base64:"
_TAG: Final = "addresses"


class Signed(msgspec.Struct, frozen=True, rename="camel"):
    """A message with the signature of an account."""

    message: str
    public_key: str
    signature: str


class SignedByKey(msgspec.Struct, frozen=True):
    """A message in base58 with a signature."""

    message: str
    signature: str


class Valid(msgspec.Struct, frozen=True):
    """Whether the account has signed the message."""

    valid: bool


def sign(request: Request) -> Signed:
    """Sign the body; the message comes back in base58."""
    message = request.body_text()
    return _sign(request, message, base58.encode(message.encode()))


def sign_text(request: Request) -> Signed:
    """Sign the body; the message comes back as it is."""
    message = request.body_text()
    return _sign(request, message, message)


def _sign(request: Request, message: str, shown: str) -> Signed:
    node = node_of(request)
    keys = node.wallet.private_key(_address(request, node))
    if keys is None:
        raise MISSING_SENDER_PRIVATE_KEY.error()
    signature = curve25519.sign(keys.private_key, message.encode())
    return Signed(shown, base58.encode(keys.public_key), base58.encode(signature))


def _address(request: Request, node: Node) -> bytes:
    try:
        return parse_address(request.text("address"), node.network.chain_id)
    except AddressError as error:
        raise INVALID_ADDRESS.error() from error


def sign_with_key(request: Request) -> SignedByKey:
    """Sign a message in base58 with the private key in the path."""
    text = request.body_text().strip()
    try:
        key = base58.decode(request.text("privateKey"), _MAX_KEY_CHARS)
        message = base58.decode(text, MAX_MESSAGE_CHARS)
    except Base58Error as error:
        raise invalid_request(str(error)) from error
    if len(key) != PRIVATE_KEY_LENGTH:
        raise invalid_request(f"a private key has {PRIVATE_KEY_LENGTH} bytes, not {len(key)}")
    return SignedByKey(text, base58.encode(curve25519.sign(key, message)))


def verify(request: Request) -> Valid:
    """Check a signature of a message in base58 or base64."""
    return _verify(request, encoded=True)


def verify_text(request: Request) -> Valid:
    """Check a signature of a text."""
    return _verify(request, encoded=False)


def _verify(request: Request, *, encoded: bool) -> Valid:
    node, reader = node_of(request), request.reader()
    text, signature_text = reader.text("message"), reader.text("signature")
    key_text = reader.text("publickey" if "publickey" in reader else "publicKey")
    reader.finish()
    _address(request, node)
    try:
        message = _decode(text) if encoded else text.encode()
        signature = base58.decode(signature_text, _MAX_KEY_CHARS)
        key = base58.decode(key_text, _MAX_KEY_CHARS)
    except (Base58Error, binascii.Error, ValueError) as error:
        raise INVALID_MESSAGE.error() from error
    if len(key) != PUBLIC_KEY_LENGTH:
        return Valid(valid=False)
    owner = address_text(from_public_key(key, node.network.chain_id))
    is_signed = curve25519.verify(key, message, signature)
    return Valid(valid=is_signed and owner == request.text("address"))


def _decode(text: str) -> bytes:
    if text.startswith(_BASE64):
        return base64.b64decode(text.removeprefix(_BASE64), validate=True)
    return base58.decode(text, MAX_MESSAGE_CHARS)


_MESSAGE: Final = Body(BodyKind.TEXT, "The text to sign", "hello", {"type": "string"})
_SIGNATURE: Final = "2tFJsZSKkz3SVP1smojRNVgZeTRge13bubCnqayvsESP7SCtbPEbnSXGqkRvdYCW2uMxWjhXrFqaT"


def _signed_body(message: str, what: str) -> Body:
    return Body(
        BodyKind.JSON,
        f"Message ({what}), signature and public key, both in base58",
        {"message": message, "publickey": examples.PUBLIC_KEY, "signature": _SIGNATURE},
        {
            "type": "object",
            "properties": {
                "message": {"type": "string"},
                "publickey": {"type": "string"},
                "signature": {"type": "string"},
            },
            "required": ["message", "signature"],
        },
    )


def _signing(path: str, handler: Handler, summary: str, message: str) -> Route:
    return Route(
        methods=POST,
        path=path,
        handler=handler,
        tag=_TAG,
        summary=summary,
        parameters=(ADDRESS,),
        body=_MESSAGE,
        key=True,
        response=Signed,
        example={"message": message, "publicKey": examples.PUBLIC_KEY, "signature": _SIGNATURE},
        errors=(INVALID_ADDRESS, MISSING_SENDER_PRIVATE_KEY),
    )


def _verifying(path: str, handler: Handler, summary: str, body: Body) -> Route:
    return Route(
        methods=POST,
        path=path,
        handler=handler,
        tag=_TAG,
        summary=summary,
        parameters=(ADDRESS,),
        body=body,
        key=True,
        response=Valid,
        example={"valid": True},
        errors=(WRONG_JSON, WRONG_JSON_DATA, INVALID_ADDRESS, INVALID_MESSAGE),
    )


ROUTES: tuple[Route, ...] = (
    _signing("/addresses/sign/{address}", sign, "Sign a text; it is answered in base58", "Cn8eVZg"),
    _signing("/addresses/signText/{address}", sign_text, "Sign a text", "hello"),
    _verifying(
        "/addresses/verify/{address}",
        verify,
        "Whether an account has signed a message",
        _signed_body("Cn8eVZg", "base58, or base64 with prefix"),
    ),
    _verifying(
        "/addresses/verifyText/{address}",
        verify_text,
        "Whether an account has signed a text",
        _signed_body("hello", "as it is"),
    ),
    Route(
        methods=POST,
        path="/utils/sign/{privateKey}",
        handler=sign_with_key,
        tag="utils",
        summary="Sign with a private key, which anybody who sees addresses of requests learns",
        parameters=(Parameter("privateKey", TEXT, "Private key in base58", examples.ACCOUNT_SEED),),
        body=Body(BodyKind.TEXT, "The message in base58", "Cn8eVZg", {"type": "string"}),
        response=SignedByKey,
        example={"message": "Cn8eVZg", "signature": _SIGNATURE},
        errors=(CUSTOM_VALIDATION_ERROR,),
    ),
)

FAMILIES: Final = {
    route.path: ("zbs",) if route.tag == "utils" else ("zbs", "tn") for route in ROUTES
}
"""Routes that only some families of networks have."""
