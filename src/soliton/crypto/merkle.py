"""Merkle trees over the transactions of a block.

What lives here: the root, the proof of one leaf, the root that a proof implies. What does not:
which bytes of a transaction are a leaf, and the older tree with prefixes that only one RIDE
function knows.

Rules: wavesplatform/Waves ``common/merkle/Merkle.scala``. Leaves and nodes are hashed without
prefixes; a node that has no neighbour, also a single leaf, is hashed together with `EMPTY_HASH`. No
leaves at all have `EMPTY_HASH` as root. Proofs go from the root to the leaf.
"""

from __future__ import annotations

from collections.abc import Sequence

from soliton.crypto.errors import CryptoError
from soliton.crypto.hashes import HASH_BYTES, blake2b256

EMPTY_HASH = blake2b256(b"\x00")

MAX_PROOF_HASHES = 64
"""Deepest tree that a proof may speak of: far more leaves than any block has."""


def root(leaves: Sequence[bytes]) -> bytes:
    """The root over these leaves, given as they are: they are hashed here."""
    if not leaves:
        return EMPTY_HASH
    level = _parents([blake2b256(leaf) for leaf in leaves])
    while len(level) > 1:
        level = _parents(level)
    return level[0]


def proof(leaves: Sequence[bytes], index: int) -> list[bytes]:
    """The neighbours on the way from the root to the leaf at ``index``."""
    if not 0 <= index < len(leaves):
        raise CryptoError(f"There is no leaf {index} in a tree of {len(leaves)} leaves")
    level = [blake2b256(leaf) for leaf in leaves]
    neighbours = []
    while True:
        neighbour = index ^ 1
        neighbours.append(level[neighbour] if neighbour < len(level) else EMPTY_HASH)
        level = _parents(level)
        index >>= 1
        if len(level) == 1:
            return neighbours[::-1]


def rebuild(leaf_hash: bytes, index: int, proof: Sequence[bytes]) -> bytes:
    """The root of a tree that has the leaf with this hash at ``index``, given its proof."""
    node = leaf_hash
    for neighbour in reversed(proof):
        node = blake2b256(neighbour + node if index & 1 else node + neighbour)
        index >>= 1
    return node


def verify(leaf: bytes, index: int, proof: Sequence[bytes], root: bytes) -> bool:
    """Whether ``leaf`` is at ``index`` of the tree with this root, by a proof of anybody's
    making.
    """
    if not 1 <= len(proof) <= MAX_PROOF_HASHES or not 0 <= index < 1 << len(proof):
        return False
    if any(len(neighbour) != HASH_BYTES for neighbour in proof):
        return False
    return rebuild(blake2b256(leaf), index, proof) == root


def _parents(level: list[bytes]) -> list[bytes]:
    if len(level) % 2:
        level = [*level, EMPTY_HASH]
    return [blake2b256(left + right) for left, right in zip(level[::2], level[1::2], strict=True)]
