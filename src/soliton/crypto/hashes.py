"""The four hash functions of the protocol.

What lives here: BLAKE2b-256 (ids, Merkle trees), Keccak-256 with its original padding (not SHA3),
SHA-256 (private keys), and Keccak of BLAKE2b, which the protocol calls the secure hash (addresses,
account seeds). What does not: the hashed data.

Rules: wavesplatform/Waves ``crypto/package.scala``.
"""

from __future__ import annotations

import hashlib
import sys
from hashlib import blake2b

HASH_BYTES = 32

if sys.platform == "linux":
    # Several times faster than PyCryptodome on short inputs, but wheels exist for Linux only.
    from sha3 import keccak_256 as _keccak_256

    def keccak256(data: bytes) -> bytes:
        """Return Keccak-256 of ``data``, with the padding that preceded SHA3's."""
        digest: bytes = _keccak_256(data).digest()
        return digest

else:
    from Crypto.Hash import keccak as _keccak

    def keccak256(data: bytes) -> bytes:
        """Return Keccak-256 of ``data``, with the padding that preceded SHA3's."""
        return _keccak.new(digest_bits=256, data=data).digest()


def blake2b256(data: bytes) -> bytes:
    """Return the unkeyed BLAKE2b of ``data``, 32 bytes long."""
    return blake2b(data, digest_size=HASH_BYTES).digest()


def sha256(data: bytes) -> bytes:
    """Return SHA-256 of ``data``."""
    return hashlib.sha256(data).digest()


def secure_hash(data: bytes) -> bytes:
    """Return Keccak-256 of the BLAKE2b-256 of ``data``."""
    return keccak256(blake2b256(data))
