"""Keys recovered from signatures, Merkle roots, limits of sizes."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from soliton.crypto import merkle, secp256k1
from soliton.crypto.hashes import HASH_BYTES, blake2b256, keccak256, sha256
from soliton.ride.environment import Switches
from soliton.ride.errors import EvaluationError, NativeCrash, ThrownError
from soliton.ride.functions import cryptography
from soliton.ride.functions.library import implementations
from soliton.ride.values import CaseObject, Value, ride_list
from tests.ride.functions.plain import call
from tests.ride.functions.setting import context_of
from tests.vectors import load_vectors, report

SHA256 = CaseObject("Sha256", {}, 40)


BEFORE_THE_FIX = context_of(8, Switches(ecrecover_fix=False))


def test_recorded_recoveries() -> None:
    """The recordings are of keys; the reference wrote them as numbers first."""
    vectors = load_vectors("ecrecover")
    broken = 0
    for vector in vectors:
        key = bytes.fromhex(vector["public_uncompressed"])[1:]
        digest, signature = bytes.fromhex(vector["digest"]), bytes.fromhex(vector["signature"])
        if 0 < key.lstrip(b"\0")[0] < 16:
            broken += 1
            with pytest.raises(NativeCrash):
                cryptography.recover_key(BEFORE_THE_FIX, digest, signature)
        else:
            assert cryptography.recover_key(BEFORE_THE_FIX, digest, signature) == key.lstrip(b"\0")
    assert broken == 1
    report.ran("ecrecover", len(vectors) - broken)
    report.skipped("ecrecover", broken, "reference: fails for a key that begins so")


def test_key_that_begins_with_half_a_byte_of_zeros() -> None:
    for number in range(1, 200):
        private_key = number.to_bytes(32, "big")
        key = secp256k1.public_key(private_key)
        signed = secp256k1.sign(private_key, bytes(32))
        signature = signed.r.to_bytes(32, "big") + signed.s.to_bytes(32, "big")
        signature += bytes((27 + signed.recovery_id,))
        if 0 < key[0] < 16:
            with pytest.raises(NativeCrash):
                cryptography.recover_key(BEFORE_THE_FIX, bytes(32), signature)
            assert cryptography.recover_key(context_of(8), bytes(32), signature) == key
            return
        assert cryptography.recover_key(BEFORE_THE_FIX, bytes(32), signature) == key.lstrip(b"\0")
    raise AssertionError("no such key")


@pytest.mark.parametrize("header", [4, 26, 31, 34, 35, 127, 128, 200])
def test_headers_out_of_range(header: int) -> None:
    with pytest.raises(NativeCrash):
        cryptography.recover_key(
            BEFORE_THE_FIX, bytes(32), bytes(31) + b"\1" + bytes(31) + b"\1" + bytes((header,))
        )


@pytest.mark.parametrize(("digest", "signature"), [(31, 65), (33, 65), (32, 64), (32, 66)])
def test_sizes_of_a_recovery(digest: int, signature: int) -> None:
    with pytest.raises(EvaluationError, match="size"):
        cryptography.recover_key(context_of(8), bytes(digest), bytes(signature))


@given(st.lists(st.binary(max_size=8), min_size=1, max_size=20), st.data())
def test_merkle_root_of_a_block(leaves: list[bytes], data: st.DataObject) -> None:
    index = data.draw(st.integers(0, len(leaves) - 1))
    proof = merkle.proof(leaves, index)[::-1]
    root = cryptography.create_merkle_root(ride_list(proof), blake2b256(leaves[index]), index)
    assert root == merkle.root(leaves)


def test_merkle_index_out_of_range() -> None:
    proof = ride_list([bytes(32)])
    create = cryptography.create_merkle_root
    for index in (2, 2**31 - 1, -2, -3):
        with pytest.raises(ThrownError, match="out of range"):
            create(proof, bytes(32), index)
    with pytest.raises(ThrownError, match="overflow"):
        create(proof, bytes(32), 2**31)
    # Halving toward zero makes -1 a right child.
    assert create(proof, b"a" * 32, -1) == create(proof, b"a" * 32, 1)


@pytest.mark.parametrize(
    ("proofs", "value"), [([bytes(31)], bytes(32)), ([bytes(32)] * 17, bytes(32)), ([], bytes(31))]
)
def test_merkle_sizes(proofs: list[Value], value: bytes) -> None:
    with pytest.raises(EvaluationError, match="Can't apply"):
        cryptography.create_merkle_root(ride_list(proofs), value, 0)


@pytest.mark.parametrize(("first", "name"), [(2700, keccak256), (2800, blake2b256), (2900, sha256)])
def test_limited_hashes(first: int, name: cryptography.Hash) -> None:
    context = context_of(6)
    for place, kilobytes in enumerate((16, 32, 64, 128)):
        message = bytes(kilobytes * 1024)
        assert call(first + place, [message], context) == name(message)
        with pytest.raises(EvaluationError, match="Invalid message size"):
            call(first + place, [message + b"\0"], context)


@pytest.mark.parametrize(("place", "kilobytes"), list(enumerate((8, 16, 32, 64, 128))))
def test_limited_signatures(place: int, kilobytes: int) -> None:
    message = bytes(kilobytes * 1024)
    assert call(2500 + place, [message, bytes(64), bytes(32)], context_of(4)) is False
    with pytest.raises(EvaluationError, match="Invalid message size"):
        call(2500 + place, [message + b"\0", bytes(64), bytes(32)], context_of(4))


@pytest.mark.parametrize("key", [500, 504])
def test_limit_of_version_3(key: int) -> None:
    arguments: list[Value] = [bytes(32 * 1024 + 1), b"", b""]
    if key == 504:
        arguments.insert(0, SHA256)
    with pytest.raises(EvaluationError, match="Invalid message size"):
        call(key, arguments, context_of(3))
    if key == 500:
        assert call(key, arguments, context_of(4)) is False
    else:
        with pytest.raises(EvaluationError, match="Invalid key"):
            call(key, arguments, context_of(4))


def test_unknown_digest() -> None:
    with pytest.raises(EvaluationError, match="Unknown digest"):
        cryptography.verify_rsa(CaseObject("Up", {}, 40), b"", b"", b"")


@pytest.mark.parametrize(("first", "unit"), [(2400, 48), (2450, 32)])
def test_sizes_of_groth16(first: int, unit: int) -> None:
    for inputs in range(1, 16):
        verify = implementations(6)[first + inputs - 1]
        context = context_of(6)
        key, proof, given_inputs = bytes(unit * (8 + inputs)), bytes(unit * 4), bytes(32 * inputs)
        assert verify([key, proof, given_inputs], context) is False
        for arguments in (
            [key, proof, given_inputs + bytes(32)],
            [key, proof, given_inputs + b"\0"],
            [key, proof[1:], given_inputs],
            [key[1:], proof, given_inputs],
        ):
            with pytest.raises(EvaluationError, match="Invalid"):
                verify(arguments, context)


def test_hash_length() -> None:
    assert all(len(algorithm(b"")) == HASH_BYTES for algorithm in cryptography.HASHES.values())
