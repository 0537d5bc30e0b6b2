"""Signatures on BLS12-381: recorded ones, a second implementation, and hostile bytes."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from py_arkworks_bls12381 import GT, G1Point, G2Point, Scalar

from soliton.crypto import bls
from soliton.crypto.errors import InvalidBlsKey, InvalidBlsSignature
from tests.amounts import examples
from tests.vectors import load_document, report

TAG = b"BLS_SIG_BLS12381G2_XMD:SHA-256_SSWU_RO_NUL_"
ORDER = 0x73EDA753299D7D483339D80809A1D80553BDA402FFFE5BFEFFFFFFFF00000001
SECRETS = st.integers(1, ORDER - 1)


def vectors(part: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = load_document("finality/bls")[part]
    report.ran("finality/bls", len(found))
    return found


def secret(number: int) -> bytes:
    return number.to_bytes(32, "big")


def test_keys_are_derived_from_private_keys_as_the_reference_does() -> None:
    for vector in vectors("keys"):
        for material, expected in (
            ("wavesPrivateKey", "fromWavesPrivateKey_scala"),
            ("sha256OfAccountSeed", "fromAccountSeed_goWallet"),
        ):
            if material not in vector:
                continue
            key = bls.generate_key(bytes.fromhex(vector[material]))
            assert key.hex() == vector[expected]["secretKey"]
            assert bls.public_key_of(key).hex() == vector[expected]["publicKey"]


def test_recorded_signatures() -> None:
    for vector in vectors("signatures"):
        key, message = bytes.fromhex(vector["secretKey"]), bytes.fromhex(vector["message"])
        public, signature = (bytes.fromhex(vector[name]) for name in ("publicKey", "signature"))
        assert bls.sign(key, message) == signature
        assert bls.is_valid((public,), message, signature) == vector["valid"]
        longer = b"\1" + message
        assert bls.is_valid((public,), longer, signature) == vector["validForMessageWith01InFront"]


def test_recorded_aggregates() -> None:
    for vector in vectors("aggregates"):
        message, aggregate = (bytes.fromhex(vector[name]) for name in ("message", "aggregate"))
        keys = [bytes.fromhex(key) for key in vector["publicKeys"]]
        signatures = [bytes.fromhex(signature) for signature in vector["signatures"]]
        assert bls.aggregate(signatures) == aggregate
        assert bls.is_valid(keys, message, aggregate) == vector["valid"]
        assert bls.is_valid(keys[::-1], message, aggregate) == vector["validInReverseOrder"]
        assert bls.is_valid(keys[:-1], message, aggregate) == vector["validWithoutLastKey"]
        assert not bls.is_valid([*keys, keys[0]], message, aggregate)


def test_recorded_bytes_that_are_no_keys_or_signatures() -> None:
    for vector in vectors("invalid"):
        if "signature" in vector and "publicKey" in vector:
            key, message, signature = (
                bytes.fromhex(vector[name]) for name in ("publicKey", "message", "signature")
            )
            assert not bls.is_valid((key,), message, signature), vector["what"]
        elif "publicKey" in vector:
            with pytest.raises(InvalidBlsKey):
                bls.check_public_key(bytes.fromhex(vector["publicKey"]))
        elif "signature" in vector:
            with pytest.raises(InvalidBlsSignature):
                bls.aggregate((bytes.fromhex(vector["signature"]),))


def test_recorded_proofs_of_possession() -> None:
    recorded = load_document("finality/pop")["pop"]
    report.ran("finality/pop", len(recorded))
    for vector in recorded:
        key, message, signature, public = (
            bytes.fromhex(vector[name])
            for name in ("secretKey", "message", "signature", "publicKey")
        )
        assert bls.sign(key, message) == signature
        assert bls.is_valid((public,), message, signature) == vector["valid"]


def test_the_reasons_of_the_reference() -> None:
    key = bls.public_key_of(secret(7))
    with pytest.raises(InvalidBlsKey, match="Unexpected BLS public key length: 47, expected 48"):
        bls.check_public_key(key[:-1])
    with pytest.raises(InvalidBlsKey, match="Wrong BLS public key: point at infinity"):
        bls.check_public_key(b"\xc0" + bytes(47))
    with pytest.raises(InvalidBlsKey, match="Wrong BLS public key: not in a group"):
        bls.check_public_key(b"\x80" + bytes(46) + b"\4")
    with pytest.raises(InvalidBlsKey, match="Error in creating BLS public key: BLST_BAD_ENCODING"):
        bls.check_public_key(bytes(48))
    with pytest.raises(InvalidBlsSignature, match="Wrong BLS signature"):
        bls.check_signature((key,), b"message", bls.sign(secret(8), b"message"))
    with pytest.raises(InvalidBlsSignature, match="BLS signature length: 95, expected 96"):
        bls.check_signature((key,), b"message", bytes(95))
    with pytest.raises(InvalidBlsKey, match="Empty BLS public key list"):
        bls.check_signature((), b"message", bytes(96))
    with pytest.raises(InvalidBlsSignature, match="Empty BLS signature list"):
        bls.aggregate(())


def test_keys_that_cancel_each_other_sign_nothing() -> None:
    keys = [bls.public_key_of(secret(number)) for number in (5, ORDER - 5)]
    infinity = b"\xc0" + bytes(95)
    assert bls.aggregate([bls.sign(secret(n), b"m") for n in (5, ORDER - 5)]) == infinity
    with pytest.raises(InvalidBlsSignature, match="BLST_PK_IS_INFINITY"):
        bls.check_signature(keys, b"m", infinity)


@settings(max_examples=examples(10), deadline=None)
@given(SECRETS, SECRETS, st.binary(max_size=200))
def test_a_second_implementation_agrees(first: int, second: int, message: bytes) -> None:
    keys, signatures = [], []
    hashed = G2Point.hash_to_curve(message, TAG)
    for number in (first, second):
        scalar = Scalar.from_le_bytes(number.to_bytes(32, "little"))
        keys.append(bls.public_key_of(secret(number)))
        signatures.append(bls.sign(secret(number), message))
        assert keys[-1] == bytes((G1Point() * scalar).to_compressed_bytes())
        assert signatures[-1] == bytes((hashed * scalar).to_compressed_bytes())
    total = bls.aggregate(signatures)
    point = G1Point.from_compressed_bytes(keys[0]) + G1Point.from_compressed_bytes(keys[1])
    assert bls.is_valid(keys, message, total)
    assert GT.pairing_check([-G1Point(), point], [G2Point.from_compressed_bytes(total), hashed])
    assert not bls.is_valid(keys, message + b"\0", total)


@settings(max_examples=examples(50), deadline=None)
@given(st.binary(min_size=40, max_size=100), st.binary(min_size=90, max_size=100))
def test_other_bytes_are_refused(key: bytes, signature: bytes) -> None:
    public = bls.public_key_of(secret(3))
    assert not bls.is_valid((key,), b"message", bls.sign(secret(3), b"message"))
    assert not bls.is_valid((public,), b"message", signature)
