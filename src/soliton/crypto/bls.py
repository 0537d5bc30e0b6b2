"""Signatures on BLS12-381, with which generators endorse blocks.

Public keys are points of G1 (48 bytes), signatures points of G2 (96 bytes), both compressed. The
scheme is the basic one of the draft: a signature has no other tag than that of hashing to G2, and
signatures of one message are added to an aggregate of the same size.

What lives here: keys, signatures, aggregates. What does not: the messages (``soliton.chain``).

The arithmetic is that of blst, through the package pyblst. Its points are checked when they are
read: the encoding, the curve, the subgroup. The point at infinity is in the subgroup, so it is
refused here where it is no key.

Sources: draft-irtf-cfrg-bls-signature-05, sections 2.3 to 2.9 and 3.1; wavesplatform/Waves
``node/src/main/scala/com/wavesplatform/crypto/bls/{BlsUtils,BlsKeyPair,BlsPublicKey,BlsSignature}``
``.scala``.
"""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Iterable, Sequence
from functools import lru_cache, reduce
from operator import add
from typing import Any, Final

from pyblst import BlstP1Element, BlstP2Element, final_verify, miller_loop

from soliton.crypto.errors import InvalidBlsKey, InvalidBlsSignature

SECRET_KEY_LENGTH: Final = 32
PUBLIC_KEY_LENGTH: Final = 48
SIGNATURE_LENGTH: Final = 96

_TAG: Final = b"BLS_SIG_BLS12381G2_XMD:SHA-256_SSWU_RO_NUL_"
ORDER: Final = 0x73EDA753299D7D483339D80809A1D80553BDA402FFFE5BFEFFFFFFFF00000001
"""That of the groups: secret keys are numbers below it."""
_KEY_SALT: Final = b"BLS-SIG-KEYGEN-SALT-"
_KEY_MATERIAL: Final = 48
"""Bytes of key material, which exceed the order so that the remainder is uniform."""
_INFINITY: Final = bytes((0xC0,)) + bytes(PUBLIC_KEY_LENGTH - 1)
_NOT_AGGREGATED: Final = "Can't aggregate during verification of BLS signature: {}"
_NOT_IN_GROUP: Final = "BLST_POINT_NOT_IN_GROUP"
_Point = Any
"""A point of the library, of either group; it has no types."""
_GENERATOR: Final = BlstP1Element.uncompress(
    bytes.fromhex(
        "97f1d3a73197d7942695638c4fa9ac0fc3688c4f9774b905a14e3a3f171bac58"
        "6c55e83ff97a1aeffb3af00adb22c6bb"
    )
)
_KNOWN_SUMS: Final = 512
"""Sums of keys that are kept: those of the sets that endorse in turn, one for each generator."""
_KNOWN_KEYS: Final = 4_096
"""Points of public keys that are kept: those of a large set of generators, and the next one's."""


def generate_key(material: bytes) -> bytes:
    """Return the secret key of some key material: 32 bytes, big-endian.

    The reference derives the key of an account from its private key.
    """
    salt, key = _KEY_SALT, 0
    while not key:
        extracted = hmac.digest(salt, material + b"\0", hashlib.sha256)
        key = int.from_bytes(_expanded(extracted), "big") % ORDER
        salt = hashlib.sha256(salt).digest()
    return key.to_bytes(SECRET_KEY_LENGTH, "big")


def _expanded(extracted: bytes) -> bytes:
    info = _KEY_MATERIAL.to_bytes(2, "big")
    block, pieces = b"", b""
    for number in (1, 2):
        block = hmac.digest(extracted, block + info + bytes((number,)), hashlib.sha256)
        pieces += block
    return pieces[:_KEY_MATERIAL]


def public_key_of(secret_key: bytes) -> bytes:
    """Return the public key of a secret key."""
    key: bytes = _GENERATOR.scalar_mul(int.from_bytes(secret_key, "big")).compress()
    return key


def sign(secret_key: bytes, message: bytes) -> bytes:
    """Return the signature of a message."""
    point = BlstP2Element.hash_to_group(message, _TAG)
    signature: bytes = point.scalar_mul(int.from_bytes(secret_key, "big")).compress()
    return signature


def check_public_key(public_key: bytes) -> None:
    """Raise ``InvalidBlsKey`` unless the bytes are a public key."""
    _key_point(public_key)


@lru_cache(_KNOWN_KEYS)
def _key_point(public_key: bytes) -> _Point:
    if len(public_key) != PUBLIC_KEY_LENGTH:
        raise InvalidBlsKey(
            f"Unexpected BLS public key length: {len(public_key)}, expected {PUBLIC_KEY_LENGTH}"
        )
    if public_key == _INFINITY:
        raise InvalidBlsKey("Wrong BLS public key: point at infinity")
    try:
        return BlstP1Element.uncompress(public_key)
    except ValueError as error:
        if (reason := _reason(error)) == _NOT_IN_GROUP:
            raise InvalidBlsKey("Wrong BLS public key: not in a group") from error
        raise InvalidBlsKey(f"Error in creating BLS public key: {reason}") from error


def _reason(error: ValueError) -> str:
    """Return the name of the library's error, as the reference node shows it."""
    return str(error).rpartition("(")[2].removesuffix(")")


def _signature_point(signature: bytes) -> _Point:
    if len(signature) != SIGNATURE_LENGTH:
        raise InvalidBlsSignature(
            f"Unexpected BLS signature length: {len(signature)}, expected {SIGNATURE_LENGTH}"
        )
    try:
        return BlstP2Element.uncompress(signature)
    except ValueError as error:
        if (reason := _reason(error)) == _NOT_IN_GROUP:
            raise InvalidBlsSignature(_NOT_AGGREGATED.format(reason)) from error
        raise InvalidBlsSignature(f"Error verifying BLS signature: {reason}") from error


def check_signature(public_keys: Sequence[bytes], message: bytes, signature: bytes) -> None:
    """Check the signature of one message by all these keys.

    Raises ``InvalidBlsKey`` or ``InvalidBlsSignature``, with the reason.
    """
    if not public_keys:
        raise InvalidBlsKey("Empty BLS public key list")
    key = _sum_of(tuple(public_keys))
    point = _signature_point(signature)
    hashed = BlstP2Element.hash_to_group(message, _TAG)
    if not final_verify(miller_loop(key, hashed), miller_loop(_GENERATOR, point)):
        raise InvalidBlsSignature("Wrong BLS signature")


@lru_cache(_KNOWN_SUMS)
def _sum_of(public_keys: tuple[bytes, ...]) -> _Point:
    """Return the sum of keys; it takes a tenth of the time of a check."""
    key = reduce(add, [_key_point(each) for each in public_keys])
    if key.compress() == _INFINITY:
        # Keys of one owner can cancel each other, and would then sign anything.
        raise InvalidBlsSignature(_NOT_AGGREGATED.format("BLST_PK_IS_INFINITY"))
    return key


def is_valid(public_keys: Sequence[bytes], message: bytes, signature: bytes) -> bool:
    """Whether a signature of one message by all these keys is valid."""
    try:
        check_signature(public_keys, message, signature)
    except (InvalidBlsKey, InvalidBlsSignature):
        return False
    return True


def aggregate(signatures: Iterable[bytes]) -> bytes:
    """Return the sum of signatures, which is the signature of all their keys.

    Raises ``InvalidBlsSignature`` if one of them is none, or if there are none.
    """
    points = [_signature_point(each) for each in signatures]
    if not points:
        raise InvalidBlsSignature("Empty BLS signature list")
    total: bytes = reduce(add, points).compress()
    return total
