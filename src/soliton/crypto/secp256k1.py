"""secp256k1, the curve of Ethereum keys: signatures from which the signer's key is recovered.

Public keys are 64 bytes: both coordinates, big-endian. What lives here: recovery and signing of
32-byte hashes, public keys. What does not: the hashed data (``soliton.chain.orders``,
``soliton.chain.transactions.ethereum``).

Sources: SEC 1 version 2, section 4.1.6; wavesplatform/Waves
``node/src/main/scala/com/wavesplatform/transaction/EthereumTransaction.scala`` (through web3j).
"""

from __future__ import annotations

from typing import Final, NamedTuple

from coincurve import PrivateKey, PublicKey

from soliton.crypto.errors import CryptoError

ORDER: Final = 0xFFFFFFFF_FFFFFFFF_FFFFFFFF_FFFFFFFE_BAAEDCE6_AF48A03B_BFD25E8C_D0364141
HALF_ORDER: Final = ORDER // 2
"""Of the two forms of a signature the one with an ``s`` up to this is canonical."""
FIELD: Final = 2**256 - 2**32 - 977
PUBLIC_KEY_LENGTH: Final = 64
PRIVATE_KEY_LENGTH: Final = 32
DIGEST_LENGTH: Final = 32
NO_KEY: Final = bytes(PUBLIC_KEY_LENGTH)

_COMPRESSED: Final = 2
_OVERFLOW_BIT: Final = 2


class RecoverableSignature(NamedTuple):
    """``recovery_id`` (0 to 3) selects one of the possible keys."""

    r: int
    s: int
    recovery_id: int


def recover(digest: bytes, r: int, s: int, recovery_id: int) -> bytes | None:
    """Return the public key that signed ``digest``, or ``None`` if there is none.

    Like the reference node, this reduces ``s`` modulo the order, and accepts an ``r`` above the
    order as a coordinate. The point at infinity has the key ``NO_KEY``.
    """
    if not 0 <= recovery_id <= 3 or len(digest) != DIGEST_LENGTH:
        return None
    if ORDER <= r < FIELD and recovery_id < _OVERFLOW_BIT:
        r, recovery_id = r - ORDER, recovery_id + _OVERFLOW_BIT
    s %= ORDER
    if not 0 < r < ORDER:
        return None
    if s == 0:
        return _key_without_s(digest, r, recovery_id)
    signature = r.to_bytes(32, "big") + s.to_bytes(32, "big") + bytes((recovery_id,))
    try:
        key = PublicKey.from_signature_and_message(signature, digest, hasher=None)
    except Exception:  # noqa: BLE001 - libsecp256k1's binding raises plain Exception
        return NO_KEY if _cancels_out(digest, r, s, recovery_id) else None
    return key.format(compressed=False)[1:]


def _cancels_out(digest: bytes, r: int, s: int, recovery_id: int) -> bool:
    """Whether the two points whose difference would be the key are the same."""
    x = r + ORDER if recovery_id >= _OVERFLOW_BIT else r
    number = int.from_bytes(digest, "big") % ORDER
    try:
        point = PublicKey(bytes((_COMPRESSED + recovery_id % 2,)) + x.to_bytes(32, "big"))
        product = point.multiply(s.to_bytes(32, "big")).format(compressed=False)[1:]
        return product == public_key(number.to_bytes(32, "big"))
    except (ValueError, OverflowError, CryptoError):
        return False


def _key_without_s(digest: bytes, r: int, recovery_id: int) -> bytes | None:
    """Recover the key for ``s == 0``, which no signer produces. The formula then ignores the point
    of ``r``, but that has to exist.
    """
    x = r + ORDER if recovery_id >= _OVERFLOW_BIT else r
    if x >= FIELD:
        return None
    number = -int.from_bytes(digest, "big") * pow(r, -1, ORDER) % ORDER
    try:
        PublicKey(bytes((_COMPRESSED,)) + x.to_bytes(32, "big"))
        return public_key(number.to_bytes(32, "big")) if number else NO_KEY
    except (ValueError, CryptoError):
        return None


def public_key(private_key: bytes) -> bytes:
    """Return the public key of a private key; raise ``CryptoError`` if that is invalid."""
    return _private(private_key).public_key.format(compressed=False)[1:]


def sign(private_key: bytes, digest: bytes) -> RecoverableSignature:
    """Sign a hash deterministically (RFC 6979); raise ``CryptoError`` for invalid arguments."""
    if len(digest) != DIGEST_LENGTH:
        raise CryptoError(f"a hash of {len(digest)} bytes")
    data = _private(private_key).sign_recoverable(digest, hasher=None)
    return RecoverableSignature(
        int.from_bytes(data[:32], "big"), int.from_bytes(data[32:64], "big"), data[64]
    )


def _private(private_key: bytes) -> PrivateKey:
    if len(private_key) != PRIVATE_KEY_LENGTH:
        raise CryptoError(f"a private key of {len(private_key)} bytes")
    try:
        return PrivateKey(private_key)
    except ValueError as error:
        raise CryptoError("a private key outside the order of the curve") from error
