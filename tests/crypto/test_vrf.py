"""The verifiable random function: vectors, tampering, and points that only hostile peers send."""

from __future__ import annotations

import hashlib

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from nacl import bindings as sodium

from soliton.crypto import base58, curve25519, edwards, vrf
from soliton.crypto.edwards import FIELD_PRIME, GROUP_ORDER
from soliton.crypto.errors import CryptoError
from tests.amounts import examples
from tests.vectors import load_vectors, report

# The first published test of the scheme in wavesplatform/gowaves (pkg/crypto/vxeddsa_test.go).
PRIVATE_KEY = bytes.fromhex("38611d253bea85a203805343b74a936d3b13b9e3121453e9740b6b827e337e5d")
PUBLIC_KEY = bytes.fromhex("21f7345f56d9602f1523298f4f6fcecb14dde2d5b9a9b48bca8242681492b920")
MESSAGE = b"This is unique."
PROOF = bytes.fromhex(
    "5d501685d744424de3ef5ca49ecddd880fa7421c975cdf94bae48ca16ec08997"
    "37721200eed1a8b0d2d6852826a1eab78b0df27f35b3f3e89c96e7ae3daaa30f"
    "037297547886e554affc81de54b575768fb30493c537ecdd5a87577deb7d8e03"
)
OUTPUT = bytes.fromhex("45dc7b816b01b36cfa1645dcae8ac9bc8e523cd86d007d19953f03e7d54554a0")
ORDER_EIGHT = bytes.fromhex("26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc05")
REFERENCE_DISTANCE = 101
CONSENSUS_ROW_STEP = 5

private_keys = st.binary(min_size=32, max_size=32)
messages = st.binary(max_size=200)


def number(data: bytes) -> int:
    return int.from_bytes(data, "little")


def scalar_bytes(value: int) -> bytes:
    return (value % GROUP_ORDER).to_bytes(32, "little")


def small_order_part(factor: int) -> bytes:
    point = edwards.decode(ORDER_EIGHT)
    assert point is not None
    return edwards.encode(edwards.multiply_add(factor, point, 0, edwards.NEUTRAL))


def hostile_proof(a: int, r: int, factor: int, message: bytes) -> tuple[bytes, bytes, bytes]:
    """Public key, proof and value whose value carries a part of small order."""
    key = sodium.crypto_scalarmult_ed25519_base_noclamp(scalar_bytes(a))
    if key[31] & 0x80:
        a = -a % GROUP_ORDER
        key = key[:31] + bytes([key[31] & 0x7F])
    point = vrf._message_point(key, message)
    value = sodium.crypto_core_ed25519_add(
        sodium.crypto_scalarmult_ed25519_noclamp(scalar_bytes(a), point), small_order_part(factor)
    )
    commitment = sodium.crypto_scalarmult_ed25519_base_noclamp(scalar_bytes(r))
    value_commitment = sodium.crypto_scalarmult_ed25519_noclamp(scalar_bytes(r), point)
    challenge = vrf._challenge(key, point, value, commitment, value_commitment, message)
    response = scalar_bytes(r + number(challenge) * a)
    y = number(key)
    u = (1 + y) * pow(1 - y, FIELD_PRIME - 2, FIELD_PRIME) % FIELD_PRIME
    return u.to_bytes(32, "little"), value + challenge + response, challenge


def test_published_example() -> None:
    assert curve25519.public_key(PRIVATE_KEY) == PUBLIC_KEY
    assert vrf.prove(PRIVATE_KEY, MESSAGE, bytes(32)) == PROOF
    assert vrf.verify(PUBLIC_KEY, MESSAGE, PROOF) == OUTPUT


@given(private_keys, messages)
@settings(max_examples=examples(40), deadline=None)
def test_proofs_differ_and_stand_for_one_output(private_key: bytes, message: bytes) -> None:
    public_key = curve25519.public_key(private_key)
    first, second = vrf.prove(private_key, message), vrf.prove(private_key, message)
    assert first != second
    assert first[:32] == second[:32]
    output = vrf.verify(public_key, message, first)
    assert output is not None
    assert len(output) == vrf.OUTPUT_BYTES
    assert vrf.verify(public_key, message, second) == output
    assert vrf.verify(public_key, message + b"!", first) is None


@given(private_keys, messages)
@settings(max_examples=15, deadline=None)
def test_exact_path_agrees_with_the_fast_one(private_key: bytes, message: bytes) -> None:
    key = curve25519.edwards_keys(curve25519.public_key(private_key))[0]
    point = vrf._message_point(key, message)
    proof = vrf.prove(private_key, message)
    parts = (key, point, proof[:32], proof[32:64], proof[64:])
    assert vrf._solve(*parts) == vrf._solve_exactly(*parts)


@given(st.integers(0, 96 * 8 - 1))
@settings(max_examples=examples(80), deadline=None)
def test_every_bit_of_a_proof_counts(bit: int) -> None:
    proof = bytearray(PROOF)
    proof[bit // 8] ^= 1 << bit % 8
    assert vrf.verify(PUBLIC_KEY, MESSAGE, bytes(proof)) is None


@given(st.binary(min_size=32, max_size=32), messages, st.binary(min_size=96, max_size=96))
@settings(max_examples=examples(80), deadline=None)
def test_random_bytes_prove_nothing(public_key: bytes, message: bytes, proof: bytes) -> None:
    reduced = proof[:63] + bytes([proof[63] & 15]) + proof[64:95] + bytes([proof[95] & 15])
    assert vrf.verify(public_key, message, proof) is None
    assert vrf.verify(public_key, message, reduced) is None


def test_values_with_a_part_of_small_order() -> None:
    """Valid when the challenge cancels that part, as in the reference; the output ignores it."""
    verdicts = set()
    for r in range(1, 60):
        public_key, proof, challenge = hostile_proof(12345, r, 1 + r % 7, MESSAGE)
        output = vrf.verify(public_key, MESSAGE, proof)
        cancels = number(challenge) * (1 + r % 7) % 8 == 0
        assert (output is not None) == cancels
        verdicts.add(output)
    honest, proof, _ = hostile_proof(12345, 1, 0, MESSAGE)
    assert verdicts == {None, vrf.verify(honest, MESSAGE, proof)}


def test_small_order_keys_and_values_are_refused() -> None:
    for factor in range(8):
        point = small_order_part(factor)
        y = number(point) % 2**255
        u = (1 + y) * pow(1 - y, FIELD_PRIME - 2, FIELD_PRIME) % FIELD_PRIME
        key = u.to_bytes(32, "little")
        edwards_key = curve25519.edwards_keys(key)[0]
        message_point = vrf._message_point(edwards_key, MESSAGE)
        nonce = scalar_bytes(5)
        commitment = sodium.crypto_scalarmult_ed25519_base_noclamp(nonce)
        value_commitment = sodium.crypto_scalarmult_ed25519_noclamp(nonce, message_point)
        challenge = vrf._challenge(
            edwards_key, message_point, point, commitment, value_commitment, MESSAGE
        )
        assert vrf.verify(key, MESSAGE, point + challenge + nonce) is None
        assert vrf.verify(PUBLIC_KEY, MESSAGE, point + PROOF[32:]) is None


def test_numbers_that_are_not_reduced_are_refused() -> None:
    value, challenge, response = PROOF[:32], PROOF[32:64], PROOF[64:]
    for multiple in range(1, 16):
        more = multiple * GROUP_ORDER
        longer = (number(response) + more).to_bytes(32, "little")
        assert vrf.verify(PUBLIC_KEY, MESSAGE, value + challenge + longer) is None
        longer = (number(challenge) + more).to_bytes(32, "little")
        assert vrf.verify(PUBLIC_KEY, MESSAGE, value + longer + response) is None
    top_bit_set = PUBLIC_KEY[:31] + bytes([PUBLIC_KEY[31] | 0x80])
    assert vrf.verify(top_bit_set, MESSAGE, PROOF) is None
    for y in range(FIELD_PRIME, 2**255):
        for sign in (0, 2**255):
            unreduced = (y | sign).to_bytes(32, "little")
            assert vrf.verify(PUBLIC_KEY, MESSAGE, unreduced + challenge + response) is None


def test_zero_scalars() -> None:
    for challenge, response in ((bytes(32), bytes(32)), (PROOF[32:64], bytes(32))):
        assert vrf.verify(PUBLIC_KEY, MESSAGE, PROOF[:32] + challenge + response) is None
    assert vrf.verify(PUBLIC_KEY, MESSAGE, PROOF[:32] + bytes(32) + PROOF[64:]) is None


@pytest.mark.parametrize("length", [0, 31, 33, 64])
def test_wrong_lengths(length: int) -> None:
    assert vrf.verify(bytes(length), MESSAGE, PROOF) is None
    assert vrf.verify(PUBLIC_KEY, MESSAGE, bytes(length)) is None
    assert vrf.verify(PUBLIC_KEY, MESSAGE, PROOF + b"\0") is None
    with pytest.raises(CryptoError, match="32 bytes"):
        vrf.prove(bytes(length), MESSAGE)
    with pytest.raises(CryptoError, match="32 random bytes"):
        vrf.prove(PRIVATE_KEY, MESSAGE, bytes(length))


def test_message_limit() -> None:
    largest = bytes(vrf.MAX_MESSAGE_BYTES)
    proof = vrf.prove(PRIVATE_KEY, largest)
    assert vrf.verify(PUBLIC_KEY, largest, proof) is not None
    assert vrf.verify(PUBLIC_KEY, largest + b"\0", proof) is None
    with pytest.raises(CryptoError, match="VRF message"):
        vrf.prove(PRIVATE_KEY, largest + b"\0")


def test_output_is_the_hash_of_eight_times_the_value() -> None:
    value = edwards.decode(PROOF[:32])
    assert value is not None
    cleared = edwards.encode(edwards.clear_cofactor(value))
    digest = hashlib.sha512(vrf._BASE_POINT + vrf._OUTPUT_LABELS + cleared).digest()
    assert digest[:32] == OUTPUT


def test_vectors() -> None:
    vectors = load_vectors("vrf")
    kinds = set()
    for vector in vectors:
        message = bytes.fromhex(vector["message"])
        match vector["kind"]:
            case "sign":
                random = bytes.fromhex(vector["random"])
                random = random if len(random) == vrf.RANDOM_BYTES else bytes(vrf.RANDOM_BYTES)
                proof = vrf.prove(bytes.fromhex(vector["secret"]), message, random)
                assert proof.hex() == vector["proof"]
            case "verify":
                public_key, proof = bytes.fromhex(vector["public"]), bytes.fromhex(vector["proof"])
                output = vrf.verify(public_key, message, proof)
                assert (output is not None) == vector["valid"]
                assert (output or b"").hex() == vector["vrf"]
            case "compute":
                secret = bytes.fromhex(vector["secret"])
                proof = vrf.prove(secret, message)
                output = vrf.verify(curve25519.public_key(secret), message, proof)
                assert output is not None
                assert output.hex() == vector["vrf"]
            case other:
                pytest.fail(f"unknown kind of vector: {other}")
        kinds.add(vector["kind"])
    assert kinds == {"sign", "verify", "compute"}
    report.ran("vrf", len(vectors))


def test_reference_chain() -> None:
    """Each output is the function of the output a hundred blocks before the block's parent."""
    rows = load_vectors("consensus_vrf_pos_scala")
    checked = 0
    for position in range(REFERENCE_DISTANCE, len(rows), CONSENSUS_ROW_STEP):
        row, source = rows[position], rows[position - REFERENCE_DISTANCE]
        private_key = base58.decode(row["privateKey"])
        public_key = curve25519.public_key(private_key)
        assert base58.encode(public_key) == row["publicKey"]
        message = base58.decode(source["vrf"])
        output = vrf.verify(public_key, message, vrf.prove(private_key, message))
        assert output is not None
        assert base58.encode(output) == row["vrf"]
        assert vrf.verify(public_key, message, base58.decode(row["genSig"])) == output
        checked += 1
    assert checked > 500
    report.ran("consensus_vrf_pos_scala", checked)
    report.skipped("consensus_vrf_pos_scala", len(rows) - checked, "every fifth is enough here")
