"""Merkle trees: vectors, every proof of every small tree, hostile proofs."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from soliton.crypto import merkle
from soliton.crypto.errors import CryptoError
from soliton.crypto.hashes import blake2b256
from tests.vectors import load_vectors, report

trees = st.lists(st.binary(max_size=40), min_size=1, max_size=40)


def test_empty_hash_is_a_published_number() -> None:
    assert merkle.EMPTY_HASH.hex() == (
        "03170a2e7597b7b7e3d84c05391d139a62b157e78786d8c082f29dcf4c111314"
    )
    assert merkle.root([]) == merkle.EMPTY_HASH


def test_small_trees_by_hand() -> None:
    a, b, c = (blake2b256(leaf) for leaf in (b"a", b"b", b"c"))
    empty = merkle.EMPTY_HASH
    assert merkle.root([b"a"]) == blake2b256(a + empty)
    assert merkle.root([b"a", b"b"]) == blake2b256(a + b)
    assert merkle.root([b"a", b"b", b"c"]) == blake2b256(blake2b256(a + b) + blake2b256(c + empty))
    assert merkle.proof([b"a"], 0) == [empty]
    assert merkle.proof([b"a", b"b", b"c"], 0) == [blake2b256(c + empty), b]
    assert merkle.proof([b"a", b"b", b"c"], 2) == [blake2b256(a + b), empty]


@pytest.mark.parametrize("count", [*range(1, 20), 33])
def test_each_leaf_can_be_proved(count: int) -> None:
    leaves = [b"leaf" + bytes([number]) for number in range(count)]
    root = merkle.root(leaves)
    for index, leaf in enumerate(leaves):
        proof = merkle.proof(leaves, index)
        assert merkle.verify(leaf, index, proof, root)
        assert merkle.rebuild(blake2b256(leaf), index, proof) == root
        assert not merkle.verify(leaf + b"!", index, proof, root)
        assert not merkle.verify(leaf, index ^ 1, proof, root)


@given(trees, st.data())
def test_changed_proofs_prove_nothing(leaves: list[bytes], data: st.DataObject) -> None:
    index = data.draw(st.integers(0, len(leaves) - 1))
    proof, root = merkle.proof(leaves, index), merkle.root(leaves)
    assert merkle.verify(leaves[index], index, proof, root)
    depth = data.draw(st.integers(0, len(proof) - 1))
    changed = [*proof]
    changed[depth] = bytes([changed[depth][0] ^ 1]) + changed[depth][1:]
    assert not merkle.verify(leaves[index], index, changed, root)
    assert not merkle.verify(leaves[index], index, proof[1:], root)
    assert not merkle.verify(leaves[index], index, [*proof, merkle.EMPTY_HASH], root)
    assert not merkle.verify(leaves[index], index, proof, root[1:])


@pytest.mark.parametrize("index", [-1, 3, 2**70])
def test_no_such_leaf(index: int) -> None:
    with pytest.raises(CryptoError, match="no leaf"):
        merkle.proof([b"a", b"b", b"c"], index)


def test_hostile_proofs() -> None:
    root = merkle.root([b"a", b"b"])
    other = [blake2b256(b"b")]
    assert merkle.verify(b"a", 0, other, root)
    for index in (-1, -2, 2, 2**40):
        assert not merkle.verify(b"a", index, other, root)
    assert not merkle.verify(b"a", 0, [], blake2b256(b"a"))
    assert not merkle.verify(b"a", 0, [other[0] + b"\0"], root)
    assert not merkle.verify(b"a", 0, [b""], blake2b256(blake2b256(b"a")))
    deep = [merkle.EMPTY_HASH] * (merkle.MAX_PROOF_HASHES + 1)
    assert not merkle.verify(b"a", 0, deep, merkle.rebuild(blake2b256(b"a"), 0, deep))
    assert merkle.verify(b"a", 0, deep[1:], merkle.rebuild(blake2b256(b"a"), 0, deep[1:]))


def test_vectors() -> None:
    vectors = load_vectors("merkle")
    kinds: dict[str, int] = {}
    for vector in vectors:
        kind = vector["kind"]
        kinds[kind] = kinds.get(kind, 0) + 1
        if kind == "root":
            leaves = [bytes.fromhex(leaf) for leaf in vector["leaves"]]
            assert merkle.root(leaves).hex() == vector["root"]
        elif kind == "rebuild":
            proof = [bytes.fromhex(neighbour) for neighbour in vector["proofs_root_to_leaf"]]
            leaf_hash = bytes.fromhex(vector["leaf_digest"])
            assert merkle.rebuild(leaf_hash, vector["index"], proof).hex() == vector["root"]
    assert kinds["root"] > 0
    assert kinds["rebuild"] > 0
    report.ran("merkle", kinds["root"] + kinds["rebuild"])
    legacy = len(vectors) - kinds["root"] - kinds["rebuild"]
    report.skipped("merkle", legacy, "the tree with prefixes: tested with the RIDE functions")


@given(st.lists(st.integers(0, 40) | st.lists(st.binary(max_size=8), max_size=9), max_size=20))
def test_a_tree_that_grows_and_is_cut_has_the_same_root(script: list[int | list[bytes]]) -> None:
    tree, leaves = merkle.GrowingTree(), list[bytes]()
    for each in script:
        if isinstance(each, int):
            del leaves[each:]
            tree.cut(each)
        else:
            leaves += each
            tree.append(each)
        assert (len(tree), tree.root()) == (len(leaves), merkle.root(leaves))
