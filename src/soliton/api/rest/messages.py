"""Routes ``/addresses/sign…``, ``/addresses/verify…`` and ``/utils/sign``: signatures of messages
in the older generations of the interface.

Source: 0bsnetwork/Zbs ``src/main/scala/com/zbsnetwork/api/http/AddressApiRoute.scala`` and
``UtilsApiRoute.scala``.
"""

from __future__ import annotations

import base64
import binascii
from typing import Final

import msgspec

from soliton.api import errors
from soliton.api.http import Request
from soliton.api.lookup import node_of
from soliton.api.rest import examples
from soliton.api.rest.signing import key_of, signature_of
from soliton.api.route_table import Row, json_body, row, table, text_body
from soliton.api.routes import Body, Handler
from soliton.chain.addresses import PUBLIC_KEY_LENGTH, address_text, from_public_key, parse_address
from soliton.chain.errors import AddressError
from soliton.chain.json_schemas import shape
from soliton.crypto import base58, curve25519
from soliton.crypto.errors import Base58Error
from soliton.crypto.keys import KeyPair
from soliton.node.node import Node

MAX_MESSAGE_CHARS: Final = 2_048
PRIVATE_KEY_LENGTH: Final = 32
_MAX_KEY_CHARS: Final = 256
_BASE64: Final = "base64:"


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


async def sign(request: Request) -> Signed:
    """Sign the body; the response has the message in base58."""
    message = request.body_text()
    return await _sign(request, message, base58.encode(message.encode()))


async def sign_text(request: Request) -> Signed:
    """Sign the body; the response has the message unchanged."""
    message = request.body_text()
    return await _sign(request, message, message)


async def _sign(request: Request, message: str, shown: str) -> Signed:
    node = node_of(request)
    keys = key_of(node, _address(request, node))
    if isinstance(keys, KeyPair):
        signature = curve25519.sign(keys.private_key, message.encode())
    else:
        signature = await signature_of(keys.signer.text(keys.public_key, message))
    return Signed(shown, base58.encode(keys.public_key), base58.encode(signature))


def _address(request: Request, node: Node) -> bytes:
    try:
        return parse_address(request.text("address"), node.network.chain_id)
    except AddressError as error:
        raise errors.INVALID_ADDRESS.error() from error


def sign_with_key(request: Request) -> SignedByKey:
    """Sign a message in base58 with the private key in the path."""
    text = request.body_text().strip()
    try:
        key = base58.decode(request.text("privateKey"), _MAX_KEY_CHARS)
        message = base58.decode(text, MAX_MESSAGE_CHARS)
    except Base58Error as error:
        raise errors.invalid_request(str(error)) from error
    if len(key) != PRIVATE_KEY_LENGTH:
        raise errors.invalid_request(
            f"a private key has {PRIVATE_KEY_LENGTH} bytes, not {len(key)}"
        )
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
        raise errors.INVALID_MESSAGE.error() from error
    if len(key) != PUBLIC_KEY_LENGTH:
        return Valid(valid=False)
    owner = address_text(from_public_key(key, node.network.chain_id))
    is_signed = curve25519.verify(key, message, signature)
    return Valid(valid=is_signed and owner == request.text("address"))


def _decode(text: str) -> bytes:
    if text.startswith(_BASE64):
        return base64.b64decode(text.removeprefix(_BASE64), validate=True)
    return base58.decode(text, MAX_MESSAGE_CHARS)


_MESSAGE: Final = text_body("The text to sign", "hello")
_SIGNATURE: Final = "2tFJsZSKkz3SVP1smojRNVgZeTRge13bubCnqayvsESP7SCtbPEbnSXGqkRvdYCW2uMxWjhXrFqaT"


def _signed_body(message: str, what: str) -> Body:
    return json_body(
        f"Message ({what}), signature and public key, both in base58",
        {"message": message, "publickey": examples.PUBLIC_KEY, "signature": _SIGNATURE},
        # Clients write ``publickey`` or ``publicKey``.
        shape("message: string, publickey?: string, signature: string"),
    )


def _signing(name: str, handler: Handler, summary: str, message: str) -> Row:
    example = {"message": message, "publicKey": examples.PUBLIC_KEY, "signature": _SIGNATURE}
    line = f"POST /addresses/{name}/{{address}} key=sign"
    error_names = "INVALID_ADDRESS MISSING_SENDER_PRIVATE_KEY SIGNER_REFUSES"
    return row(line, handler, summary, Signed, example, error_names, body=_MESSAGE)


def _verifying(name: str, handler: Handler, summary: str, body: Body) -> Row:
    line = f"POST /addresses/{name}/{{address}} key=sign"
    error_names = "WRONG_JSON WRONG_JSON_DATA INVALID_ADDRESS INVALID_MESSAGE"
    return row(line, handler, summary, Valid, {"valid": True}, error_names, body=body)


ROUTES: Final = table("addresses", f"""
privateKey | text | Private key in base58 | {examples.ACCOUNT_SEED}
""",
    _signing("sign", sign, "Sign a text; the answer has it in base58", "Cn8eVZg"),
    _signing("signText", sign_text, "Sign a text", "hello"),
    _verifying("verify", verify, "Whether an account has signed a message",
        _signed_body("Cn8eVZg", "base58, or base64 with prefix")),
    _verifying("verifyText", verify_text, "Whether an account has signed a text",
        _signed_body("hello", "plain text")),
    row("POST /utils/sign/{privateKey} family=zbs tag=utils", sign_with_key,
        "Sign with a private key; the path, and so every log of it, contains the key", SignedByKey,
        {"message": "Cn8eVZg", "signature": _SIGNATURE}, "CUSTOM_VALIDATION_ERROR",
        body=text_body("The message in base58", "Cn8eVZg")),
    family="zbs,tn",
)  # fmt: skip
