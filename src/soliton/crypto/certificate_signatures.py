"""Signatures of certificates and of lists of revoked certificates, and the keys that may make them.

What lives here: verification with the key of an issuer, and the bounds on keys and algorithms. What
does not: the path algorithm (``certificates``), signatures of scripts' messages (``p256``,
``rsa``).

The algorithms are those that OpenJDK's settings and the reference's cryptographic provider, Amazon
Corretto, both take. Sources: RFC 3279, RFC 4055, RFC 5758, RFC 8410; OpenJDK 17
``conf/security/java.security`` (``jdk.certpath.disabledAlgorithms``); aws/aws-lc
``crypto/fipsmodule/rsa/rsa_impl.c`` (sizes of RSA keys).
"""

from __future__ import annotations

from typing import Final

from cryptography import x509
from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import dsa, ec, ed25519, padding, rsa
from cryptography.hazmat.primitives.asymmetric.types import PublicKeyTypes
from cryptography.hazmat.primitives.serialization import load_der_public_key

from soliton.caching import WeightedCache
from soliton.crypto.der import BIT_STRING, OBJECT_IDENTIFIER, SEQUENCE, Reader
from soliton.crypto.errors import CryptoError
from soliton.crypto.p256 import COORDINATE_LENGTH

MIN_RSA_BITS: Final = 1_024
MAX_RSA_BITS: Final = 16_384
MAX_RSA_EXPONENT_BITS: Final = 33
"""A larger exponent would make a verification as dear as a signature."""
MIN_DSA_BITS: Final = 1_024
CURVES: Final = (ec.SECP224R1, ec.SECP256R1, ec.SECP384R1, ec.SECP521R1, ec.SECP256K1)
HASHES: Final = (hashes.SHA1, hashes.SHA224, hashes.SHA256, hashes.SHA384, hashes.SHA512)
MAX_CACHED_BYTES: Final = 16 * 1024**2
"""The size of the cache of valid signatures: a script can have the same ones verified a thousand
times, and only who has a key can make different ones.
"""
ENTRY_OVERHEAD: Final = 512

_EC_KEY: Final = bytes.fromhex("2a8648ce3d0201")
_UNCHECKED: Final = {
    bytes.fromhex("2a8648ce3d030107"): 32,
    bytes.fromhex("2b81040022"): 48,
    bytes.fromhex("2b81040023"): 66,
}
"""The sizes of coordinates on P-256, P-384 and P-521, by the identifiers of the curves."""

Signed = x509.Certificate | x509.CertificateRevocationList

_VALID: Final[WeightedCache[tuple[bytes, ...], bool]] = WeightedCache(MAX_CACHED_BYTES)


def coordinates(key: bytes) -> bytes:
    """Return both coordinates of a key of an elliptic curve, in DER, with 32 bytes each; raise
    ``CryptoError`` for another key, or if they do not fit. As in the reference, a point of the
    usual curves need not be on its curve.
    """
    loaded = _loaded(key)
    if isinstance(loaded, ec.EllipticCurvePublicKey):
        numbers = loaded.public_numbers()
        pair = numbers.x, numbers.y
    elif loaded is None:
        pair = _unchecked_point(key)
    else:
        raise CryptoError("The key of the certificate is not of an elliptic curve")
    try:
        return b"".join(number.to_bytes(COORDINATE_LENGTH, "big") for number in pair)
    except OverflowError:
        raise CryptoError(
            f"Input is too large to put in byte array of size {COORDINATE_LENGTH}"
        ) from None


def _unchecked_point(key: bytes) -> tuple[int, int]:
    reader = Reader(Reader(key).only(SEQUENCE))
    algorithm = Reader(reader.next(SEQUENCE))
    kind, curve = (algorithm.next(OBJECT_IDENTIFIER) for _ in range(2))
    point = reader.next(BIT_STRING)
    size = _UNCHECKED.get(curve)
    if kind != _EC_KEY or size is None or len(point) != 2 + 2 * size or point[:2] != b"\0\4":
        raise CryptoError("The key of the certificate is malformed")
    return int.from_bytes(point[2 : 2 + size], "big"), int.from_bytes(point[2 + size :], "big")


def _loaded(key: bytes) -> PublicKeyTypes | None:
    try:
        return load_der_public_key(key)
    except (ValueError, TypeError, UnsupportedAlgorithm):
        return None


def check_key(data: bytes) -> None:
    """Raise ``CryptoError`` for a key, in DER, that no path may contain."""
    key = _loaded(data)
    if isinstance(key, rsa.RSAPublicKey):
        allowed = key.key_size >= MIN_RSA_BITS
    elif isinstance(key, dsa.DSAPublicKey):
        allowed = key.key_size >= MIN_DSA_BITS
    elif isinstance(key, ec.EllipticCurvePublicKey):
        allowed = isinstance(key.curve, CURVES)
    else:
        allowed = key is not None
    if not allowed:
        raise CryptoError("Algorithm constraints check failed on keysize limits")


def is_signed_by(signed: Signed, key: bytes) -> bool:
    """Whether a certificate or list has a valid signature of a key, in DER."""
    content = (
        signed.tbs_certificate_bytes
        if isinstance(signed, x509.Certificate)
        else signed.tbs_certlist_bytes
    )
    algorithm = signed.signature_algorithm_oid.dotted_string.encode()
    entry = key, content, signed.signature, algorithm
    if _VALID.get(entry):
        return True
    try:
        valid = _verify(signed, content, _loaded(key))
    except (InvalidSignature, UnsupportedAlgorithm, ValueError, TypeError):
        return False
    if valid:
        _VALID.put(entry, True, ENTRY_OVERHEAD + sum(map(len, entry)))
    return valid


def _verify(signed: Signed, content: bytes, key: object) -> bool:
    """Raise ``InvalidSignature``, or return whether the algorithm is one of the key's."""
    digest = signed.signature_hash_algorithm
    form = signed.signature_algorithm_parameters
    if isinstance(key, ed25519.Ed25519PublicKey):
        if digest is not None:
            return False
        key.verify(signed.signature, content)
        return True
    if not isinstance(digest, HASHES):
        return False
    if isinstance(key, ec.EllipticCurvePublicKey) and isinstance(form, ec.ECDSA):
        key.verify(signed.signature, content, form)
        return True
    if isinstance(key, rsa.RSAPublicKey) and isinstance(form, (padding.PKCS1v15, padding.PSS)):
        numbers = key.public_numbers()
        if key.key_size > MAX_RSA_BITS or numbers.e.bit_length() > MAX_RSA_EXPONENT_BITS:
            return False
        key.verify(signed.signature, content, form, digest)
        return True
    return False
