"""The four hash functions of the protocol.

What lives here: BLAKE2b-256 (ids, Merkle trees), Keccak-256 with its original padding (not SHA3),
SHA-256 (private keys), and Keccak of BLAKE2b, which the protocol calls the secure hash (addresses,
account seeds). What does not: who hashes which bytes.

Rules: wavesplatform/Waves ``crypto/package.scala``.
"""

from __future__ import annotations

import hashlib
import sys

HASH_BYTES = 32

if sys.platform == "linux":
    # Several times faster than the other one on short inputs, but wheels exist for Linux only.
    from sha3 import keccak_256 as _keccak_256

    def keccak256(data: bytes) -> bytes:
        """Keccak-256 as it was before SHA3 changed the padding."""
        digest: bytes = _keccak_256(data).digest()
        return digest

else:
    from Crypto.Hash import keccak as _keccak

    def keccak256(data: bytes) -> bytes:
        """Keccak-256 as it was before SHA3 changed the padding."""
        return _keccak.new(digest_bits=256, data=data).digest()


def blake2b256(data: bytes) -> bytes:
    """BLAKE2b without a key, 32 bytes long."""
    return hashlib.blake2b(data, digest_size=HASH_BYTES).digest()


def sha256(data: bytes) -> bytes:
    """SHA-256."""
    return hashlib.sha256(data).digest()


def secure_hash(data: bytes) -> bytes:
    """Keccak-256 of BLAKE2b-256."""
    return keccak256(blake2b256(data))
