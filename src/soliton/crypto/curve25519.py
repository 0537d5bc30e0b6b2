"""Signatures of the protocol: Ed25519 signatures under Curve25519 (X25519) public keys.

What lives here: public keys, sign, verify, the list of weak keys. What does not: the signed
messages, the height from which weak keys are refused, and batch checks (``parallel.threads``).

Rules: the XEdDSA-like scheme of the public curve25519-java library, as wavesplatform/Waves
``crypto/package.scala`` and wavesplatform/gowaves ``pkg/crypto/crypto.go`` use it. The public key
is the Montgomery u coordinate. The top bit of the signature holds the sign of the Edwards x
coordinate.

Signature validity is part of consensus, so ``verify`` accepts exactly what the reference accepts,
including an unreduced second half and points of small order. libsodium is fastest but rejects
those. OpenSSL checks again what libsodium rejects: it behaves like the reference once the second
half is reduced. A batch equation would accept more than the reference.
"""

from __future__ import annotations

import hashlib
import os
from functools import lru_cache
from typing import TypeAlias

from nacl import bindings as sodium
from nacl.exceptions import BadSignatureError

from soliton.crypto.edwards import FIELD_PRIME, GROUP_ORDER
from soliton.crypto.errors import CryptoError

KEY_BYTES = 32
SIGNATURE_BYTES = 64
SIGN_RANDOM_BYTES = 64

MAX_CACHED_KEYS = 16_384
"""Public keys whose Edwards form is cached (about 8 MB)."""

_SIGN_BIT = 0x80
_UNUSED_BITS = 0x60
_NONCE_PREFIX = b"\xfe" + b"\xff" * 31

_WEAK_COORDINATES = (
    0,
    1,
    325606250916557431795983626356110631294008115727848805560023387167927233504,
    39382357235489614581723060781553021112529911719440698176882885853963445705823,
    FIELD_PRIME - 1,
    FIELD_PRIME,
    FIELD_PRIME + 1,
)
_WEAK_KEYS = frozenset(
    (coordinate | top_bit).to_bytes(KEY_BYTES, "little")
    for coordinate in _WEAK_COORDINATES
    for top_bit in (0, 1 << 255)
)

SignedMessage: TypeAlias = tuple[bytes, bytes, bytes]
"""A public key, a message and a signature, in this order."""


def clamp(key: bytes) -> bytes:
    """Set and clear the bits that are fixed in every Curve25519 private key."""
    if len(key) != KEY_BYTES:
        raise CryptoError(f"A private key has {KEY_BYTES} bytes, not {len(key)}")
    return bytes((key[0] & 248,)) + key[1:31] + bytes((key[31] & 127 | 64,))


def public_key(private_key: bytes) -> bytes:
    """Return the public key of a private key: any 32 bytes, which are clamped here."""
    return sodium.crypto_scalarmult_base(clamp(private_key))


def is_weak(public_key: bytes) -> bool:
    """Whether the key is of small order, so that anyone can sign for it."""
    return public_key in _WEAK_KEYS


def signing_point(private_key: bytes) -> bytes:
    """Return the Ed25519 form of the public key, which every signature by this key needs."""
    return sodium.crypto_scalarmult_ed25519_base_noclamp(clamp(private_key))


def sign(
    private_key: bytes, message: bytes, random: bytes | None = None, point: bytes | None = None
) -> bytes:
    """Sign a message.

    ``random`` is 64 secret bytes, never used before; by default the system's. ``point`` is the
    result of ``signing_point``, which a caller that signs often keeps.
    """
    scalar = clamp(private_key)
    if random is None:
        random = os.urandom(SIGN_RANDOM_BYTES)
    elif len(random) != SIGN_RANDOM_BYTES:
        raise CryptoError(f"Signing takes {SIGN_RANDOM_BYTES} random bytes, not {len(random)}")
    key = sodium.crypto_scalarmult_ed25519_base_noclamp(scalar) if point is None else point
    nonce = hash_to_scalar(_NONCE_PREFIX + scalar + message + random)
    commitment = sodium.crypto_scalarmult_ed25519_base_noclamp(nonce)
    challenge = hash_to_scalar(commitment + key + message)
    response = sodium.crypto_core_ed25519_scalar_add(
        sodium.crypto_core_ed25519_scalar_mul(challenge, scalar), nonce
    )
    return commitment + response[:31] + bytes((response[31] | key[31] & _SIGN_BIT,))


def verify(public_key: bytes, message: bytes, signature: bytes) -> bool:
    """Whether the signature is valid. A key or signature of the wrong length is not."""
    claim = to_ed25519(public_key, message, signature)
    return claim is not None and verify_ed25519(*claim)


def to_ed25519(public_key: bytes, message: bytes, signature: bytes) -> SignedMessage | None:
    """Return the key, message and signature that Ed25519 verifies, ``None`` for an invalid form."""
    if len(public_key) != KEY_BYTES or len(signature) != SIGNATURE_BYTES:
        return None
    top = signature[63]
    if top & _UNUSED_BITS:
        return None
    if top & _SIGN_BIT:
        signature = signature[:63] + bytes((top ^ _SIGN_BIT,))
        return edwards_keys(public_key)[1], message, signature
    return edwards_keys(public_key)[0], message, signature


def verify_ed25519(key: bytes, message: bytes, signature: bytes) -> bool:
    """Whether a signature is valid, in the form of ``to_ed25519``."""
    if _SODIUM_IS_EXACT and _sodium_accepts(key, message, signature):
        return True
    return _openssl_accepts(key, message, signature)


@lru_cache(maxsize=MAX_CACHED_KEYS)
def edwards_keys(public_key: bytes) -> tuple[bytes, bytes]:
    """Return the Ed25519 form of a key, without and with the sign of x.

    y = (u - 1) / (u + 1), and 0 for u = -1.
    """
    # A worker process does without, and would start in twice the time.
    import gmpy2

    u = gmpy2.mpz.from_bytes(public_key, "little") % (1 << 255)
    denominator = (u + 1) % FIELD_PRIME
    y = (u - 1) * gmpy2.invert(denominator, FIELD_PRIME) % FIELD_PRIME if denominator else 0
    key = int(y).to_bytes(KEY_BYTES, "little")
    return key, key[:31] + bytes((key[31] | _SIGN_BIT,))


def _sodium_accepts(key: bytes, message: bytes, signature: bytes) -> bool:
    try:
        sodium.crypto_sign_open(signature + message, key)
    except BadSignatureError:
        return False
    return True


def _openssl_accepts(key: bytes, message: bytes, signature: bytes) -> bool:
    # Few processes meet such a signature; the import takes as long as that of all else here.
    from cryptography.exceptions import InvalidSignature
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

    response = int.from_bytes(signature[32:], "little") % GROUP_ORDER
    reduced = signature[:32] + response.to_bytes(32, "little")
    try:
        Ed25519PublicKey.from_public_bytes(key).verify(reduced, message)
    except InvalidSignature:
        return False
    return True


def hash_to_scalar(data: bytes) -> bytes:
    """Return SHA-512 of ``data``, reduced modulo the group order."""
    return sodium.crypto_core_ed25519_scalar_reduce(hashlib.sha512(data).digest())


_COFACTOR_ONLY = (
    bytes.fromhex("7b969d8b8c49d1bc12d5cd7709c1323746589b755d65a58948cc143bcbd9acdc"),
    b"cofactor",
    bytes.fromhex(
        "5ced54d50ee4d8d051d2aaa354e1a6a29c3ae1a7c366d18f718ae8017c660e68"
        "f7cf3587927a193f60387ef01b90ffedad91fcb2e9d6cb4494e20c8cb8d2e20e"
    ),
)
"""Key, message and signature that satisfy Ed25519's equation only when multiplied by eight."""

_SODIUM_IS_EXACT = not _sodium_accepts(*_COFACTOR_ONLY)
"""A libsodium that multiplies by the cofactor would accept more than the reference, so it is not
used."""
