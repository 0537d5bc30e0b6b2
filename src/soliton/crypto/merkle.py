"""Merkle trees over the transactions of a block.

What lives here: the root, also of a tree that grows, the proof of a leaf, the root that a proof
implies. What does not: the bytes of a leaf, and the older tree with prefixes (``scrypto_merkle``).

Rules: wavesplatform/Waves ``common/merkle/Merkle.scala``. Leaves and nodes are hashed without
prefixes. A node without a sibling, even a single leaf, is hashed together with ``EMPTY_HASH``. The
root of an empty tree is ``EMPTY_HASH``. Proofs list the siblings from the root to the leaf.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import count, pairwise

from soliton.crypto.errors import CryptoError
from soliton.crypto.hashes import HASH_BYTES, blake2b256

EMPTY_HASH = blake2b256(b"\x00")

MAX_PROOF_HASHES = 64
"""The longest proof that is checked: a tree with far more leaves than a block can have."""


def root(leaves: Sequence[bytes]) -> bytes:
    """Return the root of the tree over these leaves, which are not yet hashed."""
    if not leaves:
        return EMPTY_HASH
    level = _parents([blake2b256(leaf) for leaf in leaves])
    while len(level) > 1:
        level = _parents(level)
    return level[0]


class GrowingTree:
    """A tree whose root is needed again and again while leaves are appended: each time only the
    nodes above the new leaves are hashed.
    """

    __slots__ = ("_levels",)

    def __init__(self) -> None:
        # The nodes that have both children, from the leaves up.
        self._levels: list[list[bytes]] = [[]]

    def __len__(self) -> int:
        return len(self._levels[0])

    def append(self, leaves: Iterable[bytes]) -> None:
        """Append leaves, which are not yet hashed."""
        self._levels[0] += map(blake2b256, leaves)
        for children, parents in pairwise(self._levels):
            _complete(children, parents)
        while len(self._levels[-1]) > 1:
            self._levels.append([])
            _complete(self._levels[-2], self._levels[-1])

    def cut(self, size: int) -> None:
        """Remove all leaves but the first ``size``."""
        for level in self._levels:
            del level[size:]
            size >>= 1

    def root(self) -> bytes:
        """Return the root, as ``root`` does for all leaves."""
        if not self._levels[0]:
            return EMPTY_HASH
        # The last node of a level, if it lacks a right child.
        last: bytes | None = None
        for depth in count():
            level = self._levels[depth] if depth < len(self._levels) else []
            nodes = len(level) + (last is not None)
            if depth and nodes == 1:
                return level[0] if last is None else last
            if nodes % 2:
                last = blake2b256((level[-1] if last is None else last) + EMPTY_HASH)
            elif last is not None:
                last = blake2b256(level[-1] + last)
        raise AssertionError("each level has fewer nodes than the one below")


def _complete(children: list[bytes], parents: list[bytes]) -> None:
    places = range(2 * len(parents), len(children) - 1, 2)
    parents.extend(blake2b256(children[left] + children[left + 1]) for left in places)


def proof(leaves: Sequence[bytes], index: int) -> list[bytes]:
    """Return the proof of the leaf at ``index``: siblings from the root to the leaf."""
    if not 0 <= index < len(leaves):
        raise CryptoError(f"There is no leaf {index} in a tree of {len(leaves)} leaves")
    level = [blake2b256(leaf) for leaf in leaves]
    siblings = []
    while True:
        sibling = index ^ 1
        siblings.append(level[sibling] if sibling < len(level) else EMPTY_HASH)
        level = _parents(level)
        index >>= 1
        if len(level) == 1:
            return siblings[::-1]


def rebuild(leaf_hash: bytes, index: int, proof: Sequence[bytes]) -> bytes:
    """Return the root that the proof of a leaf implies."""
    node = leaf_hash
    for sibling in reversed(proof):
        node = blake2b256(sibling + node if index & 1 else node + sibling)
        index >>= 1
    return node


def verify(leaf: bytes, index: int, proof: Sequence[bytes], root: bytes) -> bool:
    """Whether an untrusted proof shows that ``leaf`` is at ``index`` of the tree."""
    if not 1 <= len(proof) <= MAX_PROOF_HASHES or not 0 <= index < 1 << len(proof):
        return False
    if any(len(sibling) != HASH_BYTES for sibling in proof):
        return False
    return rebuild(blake2b256(leaf), index, proof) == root


def _parents(level: list[bytes]) -> list[bytes]:
    if len(level) % 2:
        level = [*level, EMPTY_HASH]
    return [blake2b256(left + right) for left, right in zip(level[::2], level[1::2], strict=True)]
