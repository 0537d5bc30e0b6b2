"""Merkle proofs of the older kind."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from soliton.crypto import scrypto_merkle
from soliton.crypto.hashes import blake2b256
from tests.vectors import load_vectors, report


def test_recorded_proofs() -> None:
    vectors = [v for v in load_vectors("merkle") if v["kind"] == "legacy_checkMerkleProof"]
    for vector in vectors:
        root, proof, leaf = (bytes.fromhex(vector[name]) for name in ("root", "proof", "leaf"))
        assert scrypto_merkle.verify(root, proof, leaf) == (vector["error"] is None)
    report.ran("merkle", len(vectors))


def test_no_levels_and_empty_neighbours() -> None:
    leaf = blake2b256(b"\0one")
    assert scrypto_merkle.verify(leaf, b"", b"one")
    assert scrypto_merkle.verify(blake2b256(b"\1" + leaf), b"\0\0", b"one")
    assert scrypto_merkle.verify(blake2b256(b"\1" + leaf + b"ab"), b"\0\5ab", b"one")
    assert not scrypto_merkle.verify(leaf, b"\0", b"one")
    assert not scrypto_merkle.verify(leaf, b"\0\x80" + bytes(200), b"one")


@given(st.binary(), st.binary(max_size=400), st.binary())
def test_hostile_bytes(root: bytes, proof: bytes, leaf: bytes) -> None:
    assert not scrypto_merkle.verify(root, proof, leaf)
