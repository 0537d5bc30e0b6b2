"""Merkle proofs of the older kind, with prefixes, which one function of scripts checks.

What lives here: the check. What does not: the trees of blocks (``merkle``).

A proof is a row of levels from the leaf to the root: one byte for the side (zero: our node is on
the left), one byte for the length, the neighbour's hash. The last hash may be cut short.

Source: wavesplatform/Waves
``lang/shared/src/main/scala/com/wavesplatform/common/merkle/ScryptoMerkleProof.scala``.
"""

from __future__ import annotations

from typing import Final

from soliton.crypto.hashes import HASH_BYTES, blake2b256

LEAF_PREFIX: Final = b"\0"
NODE_PREFIX: Final = b"\1"
_OUR_NODE_LEFT: Final = 0
_MAX_HASH_LENGTH: Final = 127
"""The length is a signed byte."""


def verify(root: bytes, proof: bytes, value: bytes) -> bool:
    """Whether a value is in the tree with this root; false for anything that is no proof."""
    if len(root) != HASH_BYTES:
        return False
    levels = _levels(proof)
    if levels is None:
        return False
    node = blake2b256(LEAF_PREFIX + value)
    for is_left, neighbour in levels:
        node = blake2b256(NODE_PREFIX + (node + neighbour if is_left else neighbour + node))
    return node == root


def _levels(proof: bytes) -> list[tuple[bool, bytes]] | None:
    levels = []
    place = 0
    while place < len(proof):
        if place + 1 == len(proof) or proof[place + 1] > _MAX_HASH_LENGTH:
            return None
        end = place + 2 + proof[place + 1]
        levels.append((proof[place] == _OUR_NODE_LEFT, proof[place + 2 : end]))
        place = end
    return levels
