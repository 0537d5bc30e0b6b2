"""Groth16 proofs: recorded ones, and hostile bytes."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from soliton.crypto import groth16
from soliton.crypto.groth16 import BLS12_381, BN254, Curve
from tests.amounts import examples
from tests.vectors import load_vectors, report

CURVES = {"bls12_381": BLS12_381, "bn254": BN254}


def parts(vector: dict[str, Any]) -> tuple[Curve, bytes, bytes, bytes]:
    key, proof, inputs = (bytes.fromhex(vector[name]) for name in ("vk", "proof", "inputs"))
    return CURVES[vector["curve"]], key, proof, inputs


def test_recorded_proofs() -> None:
    vectors = load_vectors("groth16")
    for vector in vectors:
        assert groth16.verify(*parts(vector)) == bool(vector["valid"])
    report.ran("groth16", len(vectors))


def valid(name: str) -> tuple[Curve, bytes, bytes, bytes]:
    return next(
        parts(vector)
        for vector in load_vectors("groth16")
        if vector["curve"] == name and vector["valid"] and vector["inputs"]
    )


@pytest.mark.parametrize("name", CURVES)
def test_any_change_breaks_a_proof(name: str) -> None:
    curve, key, proof, inputs = valid(name)
    assert groth16.verify(curve, key, proof, inputs)
    for place in (0, len(key) // 2, len(key) - 1):
        changed = key[:place] + bytes((key[place] ^ 1,)) + key[place + 1 :]
        assert not groth16.verify(curve, changed, proof, inputs)
    for place in (0, len(proof) // 2, len(proof) - 1):
        changed = proof[:place] + bytes((proof[place] ^ 1,)) + proof[place + 1 :]
        assert not groth16.verify(curve, key, changed, inputs)
    assert not groth16.verify(curve, key, proof, inputs[:-1] + bytes((inputs[-1] ^ 1,)))


@pytest.mark.parametrize("name", CURVES)
def test_inputs_beyond_the_order(name: str) -> None:
    """The same number plus the order would verify as well if it were let in."""
    curve, key, proof, inputs = valid(name)
    number = int.from_bytes(inputs[:32], "big") + curve.order
    if number < 2**256:
        assert not groth16.verify(curve, key, proof, number.to_bytes(32, "big") + inputs[32:])


@pytest.mark.parametrize("name", CURVES)
def test_infinity_and_sizes(name: str) -> None:
    curve, key, proof, inputs = valid(name)
    size = curve.point_length
    flag = b"\x40" if curve is BN254 else b"\xc0"
    infinity = flag + bytes(size - 1)
    assert not groth16.verify(curve, key, infinity + proof[size:], inputs)
    assert not groth16.verify(curve, infinity + key[size:], proof, inputs)
    assert not groth16.verify(curve, key[:-1], proof, inputs)
    assert not groth16.verify(curve, key, proof[:-1], inputs)
    assert not groth16.verify(curve, key, proof, inputs[:-1])
    assert not groth16.verify(curve, b"", b"", b"")


@settings(max_examples=examples(50))
@given(st.sampled_from(list(CURVES.values())), st.data())
def test_hostile_bytes(curve: Curve, data: st.DataObject) -> None:
    count = data.draw(st.integers(0, 2))
    key = data.draw(st.binary(min_size=curve.key_length(count), max_size=curve.key_length(count)))
    proof = data.draw(st.binary(min_size=curve.proof_length, max_size=curve.proof_length))
    assert not groth16.verify(curve, key, proof, bytes(32 * count))
