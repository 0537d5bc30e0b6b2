"""Keys of Ed25519 stores as keys of the protocol: any of them can own an account.

A store that signs by RFC 8032 (a hardware module, a vault) keeps the secret; its public key and its
signatures have another form here, which everybody can compute.

What lives here: the two conversions. What does not: stores, and the protocol's own signatures
(``curve25519``).

Rules: RFC 7748 (u = (1 + y) / (1 - y)); the sign of x travels in the top bit of a signature, as in
the curve25519-java library that wavesplatform/Waves uses.
"""

from __future__ import annotations

from soliton.crypto.curve25519 import KEY_BYTES, SIGNATURE_BYTES
from soliton.crypto.edwards import FIELD_PRIME
from soliton.crypto.errors import CryptoError

_SIGN_BIT = 0x80


def protocol_key(ed25519_key: bytes) -> bytes:
    """The public key of the protocol that belongs to one of Ed25519; raises ``CryptoError``."""
    if len(ed25519_key) != KEY_BYTES:
        raise CryptoError(f"an Ed25519 key has {KEY_BYTES} bytes, not {len(ed25519_key)}")
    y = int.from_bytes(ed25519_key, "little") & ((1 << 255) - 1)
    if y >= FIELD_PRIME or y == 1:
        raise CryptoError("this is no Ed25519 key that can sign")
    u = (1 + y) * pow(1 - y, -1, FIELD_PRIME) % FIELD_PRIME
    return u.to_bytes(KEY_BYTES, "little")


def protocol_signature(ed25519_key: bytes, signature: bytes) -> bytes:
    """The signature of the protocol that belongs to one of Ed25519; raises ``CryptoError``."""
    if len(signature) != SIGNATURE_BYTES or signature[-1] & _SIGN_BIT:
        raise CryptoError("this is no Ed25519 signature")
    return signature[:-1] + bytes((signature[-1] | ed25519_key[-1] & _SIGN_BIT,))
