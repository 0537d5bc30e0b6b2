"""Conversion of Ed25519 public keys and signatures to the protocol's form.

A key store that signs by RFC 8032 (a hardware module, a vault) can thus own an account. The
conversion needs no secret.

What lives here: the two conversions. What does not: key stores, and the protocol's own signatures
(``curve25519``).

Rules: RFC 7748 (u = (1 + y) / (1 - y)); the top bit of a signature holds the sign of x, as in
the curve25519-java library that wavesplatform/Waves uses.
"""

from __future__ import annotations

from soliton.crypto.curve25519 import KEY_BYTES, SIGNATURE_BYTES
from soliton.crypto.edwards import FIELD_PRIME
from soliton.crypto.errors import CryptoError

_SIGN_BIT = 0x80


def protocol_key(ed25519_key: bytes) -> bytes:
    """Convert an Ed25519 public key; raise ``CryptoError`` if it cannot sign."""
    if len(ed25519_key) != KEY_BYTES:
        raise CryptoError(f"an Ed25519 key has {KEY_BYTES} bytes, not {len(ed25519_key)}")
    y = int.from_bytes(ed25519_key, "little") & ((1 << 255) - 1)
    if y >= FIELD_PRIME or y == 1:
        raise CryptoError("this is no Ed25519 key that can sign")
    u = (1 + y) * pow(1 - y, -1, FIELD_PRIME) % FIELD_PRIME
    return u.to_bytes(KEY_BYTES, "little")


def protocol_signature(ed25519_key: bytes, signature: bytes) -> bytes:
    """Convert an Ed25519 signature by ``ed25519_key``; raise ``CryptoError`` if it is none."""
    if len(signature) != SIGNATURE_BYTES or signature[-1] & _SIGN_BIT:
        raise CryptoError("this is no Ed25519 signature")
    return signature[:-1] + bytes((signature[-1] | ed25519_key[-1] & _SIGN_BIT,))
