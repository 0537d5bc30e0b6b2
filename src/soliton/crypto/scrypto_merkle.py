"""Merkle proofs of the older kind, with hash prefixes; only RIDE's ``checkMerkleProof`` uses them.

What lives here: the check. What does not: the trees of blocks (``merkle``).

A proof lists levels from the leaf to the root: one byte for the side (zero: the computed node is on
the left), one byte for the length, the sibling's hash. The last hash may be truncated.

Source: wavesplatform/Waves
``lang/shared/src/main/scala/com/wavesplatform/common/merkle/ScryptoMerkleProof.scala``.
"""

from __future__ import annotations

from typing import Final

from soliton.crypto.hashes import HASH_BYTES, blake2b256

LEAF_PREFIX: Final = b"\0"
NODE_PREFIX: Final = b"\1"
_NODE_ON_LEFT: Final = 0
_MAX_HASH_LENGTH: Final = 127
"""The length is a signed byte."""


def verify(root: bytes, proof: bytes, value: bytes) -> bool:
    """Whether ``proof`` shows that ``value`` is in the tree of ``root``. False if malformed."""
    if len(root) != HASH_BYTES:
        return False
    levels = _levels(proof)
    if levels is None:
        return False
    node = blake2b256(LEAF_PREFIX + value)
    for is_left, sibling in levels:
        node = blake2b256(NODE_PREFIX + (node + sibling if is_left else sibling + node))
    return node == root


def _levels(proof: bytes) -> list[tuple[bool, bytes]] | None:
    levels = []
    start = 0
    while start < len(proof):
        if start + 1 == len(proof) or proof[start + 1] > _MAX_HASH_LENGTH:
            return None
        end = start + 2 + proof[start + 1]
        levels.append((proof[start] == _NODE_ON_LEFT, proof[start + 2 : end]))
        start = end
    return levels
