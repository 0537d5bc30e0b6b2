"""ECDSA over NIST P-256 with SHA-256, of which scripts verify signatures.

Public keys are 64 bytes, both coordinates, signatures 64 bytes, r and s, all big-endian. What lives
here: verification. What does not: certificates (``certificates``).

Sources: FIPS 186-5, section 6.4; wavesplatform/Waves
``lang/jvm/src/main/scala/com/wavesplatform/crypto/P256Curve.scala`` with the provider that it
prefers, Amazon Corretto, which refuses an r or s outside of 1 to n - 1 where others answer false.
"""

from __future__ import annotations

from typing import Final

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.utils import encode_dss_signature

from soliton.crypto.errors import CryptoError

COORDINATE_LENGTH: Final = 32
PUBLIC_KEY_LENGTH: Final = 2 * COORDINATE_LENGTH
SIGNATURE_LENGTH: Final = 64
ORDER: Final = 0xFFFFFFFF_00000000_FFFFFFFF_FFFFFFFF_BCE6FAAD_A7179E84_F3B9CAC2_FC632551

_ALGORITHM: Final = ec.ECDSA(hashes.SHA256())


def verify(message: bytes, signature: bytes, public_key: bytes) -> bool:
    """Whether a signature of a message is valid. Bytes after a key's first 64 are ignored.

    Raises ``CryptoError`` for a key or a signature that cannot be one.
    """
    if len(public_key) < PUBLIC_KEY_LENGTH:
        raise CryptoError(
            f"Public key of {len(public_key)} bytes, must have at least {PUBLIC_KEY_LENGTH}"
        )
    numbers = ec.EllipticCurvePublicNumbers(
        int.from_bytes(public_key[:COORDINATE_LENGTH], "big"),
        int.from_bytes(public_key[COORDINATE_LENGTH:PUBLIC_KEY_LENGTH], "big"),
        ec.SECP256R1(),
    )
    try:
        key = numbers.public_key()
    except ValueError:
        raise CryptoError("Public key is not on the curve") from None
    if len(signature) != SIGNATURE_LENGTH:
        raise CryptoError(f"requirement failed: Signature must be exactly {SIGNATURE_LENGTH} bytes")
    r, s = (
        int.from_bytes(signature[start : start + COORDINATE_LENGTH], "big")
        for start in (0, COORDINATE_LENGTH)
    )
    if not (0 < r < ORDER and 0 < s < ORDER):
        raise CryptoError("Signature with numbers out of range")
    try:
        key.verify(encode_dss_signature(r, s), message, _ALGORITHM)
    except InvalidSignature:
        return False
    return True
