"""The hash functions, against published values and the vectors."""

from __future__ import annotations

from soliton.crypto import hashes
from tests.vectors import load_vectors, report

FUNCTIONS = {
    "blake2b256": hashes.blake2b256,
    "keccak256": hashes.keccak256,
    "sha256": hashes.sha256,
    "keccak256(blake2b256)": hashes.secure_hash,
}


def test_published_values_of_the_empty_input() -> None:
    assert hashes.blake2b256(b"").hex() == (
        "0e5751c026e543b2e8ab2eb06099daa1d1e5df47778f7787faab45cdf12fe3a8"
    )
    assert hashes.keccak256(b"").hex() == (
        "c5d2460186f7233c927e7db2dcc703c0e500b653ca82273b7bfad8045d85a470"
    )
    assert hashes.sha256(b"").hex() == (
        "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
    )


def test_secure_hash_is_keccak_of_blake() -> None:
    assert hashes.secure_hash(b"soliton") == hashes.keccak256(hashes.blake2b256(b"soliton"))


def test_vectors() -> None:
    vectors = load_vectors("hashes")
    wrong = [
        vector
        for vector in vectors
        if FUNCTIONS[vector["alg"]](bytes.fromhex(vector["in"])).hex() != vector["out"]
    ]
    assert not wrong
    assert {vector["alg"] for vector in vectors} == set(FUNCTIONS)
    report.ran("hashes", len(vectors))
