"""RSA signatures (PKCS #1 version 1.5), verified as Bouncy Castle does it.

What lives here: parsing of keys (X.509 SubjectPublicKeyInfo) and verification. What does not:
generating keys and signing, which the protocol never does.

OpenSSL would be slightly faster, but the reference accepts more: signatures without their leading
zeros, digests whose algorithm lacks the NULL parameters, and no digest at all. All data is public,
so Python integers are safe.

Sources: RFC 8017, sections 8.2.2 and 9.2; wavesplatform/Waves ``lang/shared/src/main/scala/com/
wavesplatform/lang/v1/evaluator/ctx/impl/crypto/RSA.scala``; limits on keys: OpenJDK
``sun/security/rsa/RSAKeyFactory.java``.
"""

from __future__ import annotations

import hashlib
from typing import Final, NamedTuple

import gmpy2

from soliton.crypto.der import (
    BIT_STRING,
    INTEGER,
    NULL,
    OBJECT_IDENTIFIER,
    OCTET_STRING,
    SEQUENCE,
    Reader,
)
from soliton.crypto.errors import CryptoError

MIN_MODULUS_BITS: Final = 512
MAX_MODULUS_BITS: Final = 16_384
MAX_FREE_EXPONENT_MODULUS_BITS: Final = 3_072
"""Up to this size of the modulus, the exponent has no limit of its own."""
MAX_EXPONENT_BITS: Final = 64
"""The limit of the exponent for larger moduli."""
MIN_EXPONENT: Final = 3

NO_DIGEST: Final = "none"
DIGESTS: Final = {
    # The object identifier of the algorithm in DER, without tag and length.
    "md5": bytes.fromhex("2a864886f70d0205"),
    "sha1": bytes.fromhex("2b0e03021a"),
    "sha224": bytes.fromhex("608648016503040204"),
    "sha256": bytes.fromhex("608648016503040201"),
    "sha384": bytes.fromhex("608648016503040202"),
    "sha512": bytes.fromhex("608648016503040203"),
    "sha3_224": bytes.fromhex("608648016503040207"),
    "sha3_256": bytes.fromhex("608648016503040208"),
    "sha3_384": bytes.fromhex("608648016503040209"),
    "sha3_512": bytes.fromhex("60864801650304020a"),
}
"""By ``hashlib`` name."""

_RSA_ENCRYPTION: Final = bytes.fromhex("2a864886f70d010101")
_MIN_PADDING: Final = 8


class PublicKey(NamedTuple):
    """A modulus and an exponent, both within the limits."""

    modulus: int
    exponent: int


def parse_public_key(data: bytes) -> PublicKey:
    """Parse a key; raise ``CryptoError`` if it is malformed or out of the limits."""
    outer = Reader(Reader(data).only(SEQUENCE))
    algorithm = Reader(outer.next(SEQUENCE))
    if algorithm.next(OBJECT_IDENTIFIER) != _RSA_ENCRYPTION:
        raise CryptoError("not an RSA key")
    if algorithm.rest and algorithm.next(NULL):
        raise CryptoError("parameters of an RSA key")
    bits = outer.next(BIT_STRING)
    if outer.rest or algorithm.rest or bits[:1] != b"\0":
        raise CryptoError("excess key data")
    numbers = Reader(Reader(bits[1:]).only(SEQUENCE))
    modulus = int.from_bytes(numbers.next(INTEGER), "big")
    exponent = int.from_bytes(numbers.next(INTEGER), "big")
    if numbers.rest:
        raise CryptoError("extra data available")
    _check_size(modulus, exponent)
    return PublicKey(modulus, exponent)


def verify(digest: str, message: bytes, signature: bytes, key: PublicKey) -> bool:
    """Whether the signature of the message is valid.

    ``digest`` is one of ``DIGESTS``, or ``NO_DIGEST`` for a message that is signed unhashed.
    Raises ``CryptoError`` in one case where the reference fails.
    """
    if digest == NO_DIGEST:
        return verify_hashed(digest, message, signature, key)
    hashed = hashlib.new(digest, message, usedforsecurity=False).digest()
    return verify_hashed(digest, hashed, signature, key)


def verify_hashed(digest: str, hashed: bytes, signature: bytes, key: PublicKey) -> bool:
    """Like ``verify``, for a message that is already hashed."""
    length = (key.modulus.bit_length() + 7) // 8
    number = int.from_bytes(signature, "big")
    if len(signature) > length or number >= key.modulus:
        return False
    block = int(gmpy2.powmod(number, key.exponent, key.modulus)).to_bytes(length, "big")
    found = _without_padding(block)
    if found is None:
        return False
    expected = hashed if digest == NO_DIGEST else _digest_info(digest, hashed)
    if len(found) == len(expected) - 2:
        return _equal_without_null(found, expected)
    return found == expected


def _check_size(modulus: int, exponent: int) -> None:
    bits = modulus.bit_length()
    if bits < MIN_MODULUS_BITS:
        raise CryptoError(f"RSA keys must be at least {MIN_MODULUS_BITS} bits long")
    if bits > MAX_MODULUS_BITS:
        raise CryptoError(f"RSA keys must be no longer than {MAX_MODULUS_BITS} bits")
    if bits > MAX_FREE_EXPONENT_MODULUS_BITS and exponent.bit_length() > MAX_EXPONENT_BITS:
        raise CryptoError(
            f"RSA exponents can be no longer than {MAX_EXPONENT_BITS} bits if modulus is "
            f"greater than {MAX_FREE_EXPONENT_MODULUS_BITS} bits"
        )
    if exponent >= modulus:
        raise CryptoError("exponent is larger than modulus")
    if exponent < MIN_EXPONENT:
        raise CryptoError("exponent is smaller than 3")


def _without_padding(block: bytes) -> bytes | None:
    if block[:2] != b"\0\1":
        return None
    padding = block[2:].lstrip(b"\xff")
    if len(block) - 2 - len(padding) < _MIN_PADDING or padding[:1] != b"\0":
        return None
    return padding[1:]


def _digest_info(digest: str, hashed: bytes) -> bytes:
    algorithm = _short(OBJECT_IDENTIFIER, DIGESTS[digest]) + _short(NULL, b"")
    return _short(SEQUENCE, _short(SEQUENCE, algorithm) + _short(OCTET_STRING, hashed))


def _short(tag: int, content: bytes) -> bytes:
    return bytes((tag, len(content))) + content


def _equal_without_null(found: bytes, expected: bytes) -> bool:
    """Whether ``found`` is the expected digest info without the NULL parameters.

    As in the reference, an unhashed message is parsed as if it were a digest info.
    """
    if len(expected) < 4:
        raise CryptoError("index out of bounds")
    header = bytes((expected[0], (expected[1] - 2) & 255, expected[2], (expected[3] - 2) & 255))
    changed = header + expected[4:]
    start = 4 + (changed[3] - 256 if changed[3] > 127 else changed[3])
    if not 0 <= start <= len(found) or start + 2 > len(expected):
        raise CryptoError("index out of bounds")
    return found[start:] == changed[start + 2 :] and found[:start] == changed[:start]
