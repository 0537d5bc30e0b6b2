"""Type 19, commit to generation: what its rules without state, and its JSON, refuse."""

from __future__ import annotations

from typing import Any

import pytest

from soliton.chain.proto import transaction_pb2
from soliton.chain.transactions import codec, json_reader
from soliton.chain.transactions.commit_to_generation import commitment_message
from soliton.crypto import base58, bls
from soliton.crypto.curve25519 import verify
from soliton.errors import SolitonError
from tests.chain.transactions.cases import ABSENT, ASSET, outcome, signed
from tests.vectors import load_document, report

CASES: list[tuple[dict[str, Any], str]] = [
    ({}, "ok"),
    ({"generationPeriodStart": 2**31 - 1}, "ok"),
    ({"generationPeriodStart": 2**31}, "ValueRuleError no height: 2147483648"),
    ({"generationPeriodStart": -1}, "ValueRuleError no height: -1"),
    (
        {"endorserPublicKey": ASSET},
        "ValueRuleError Unexpected BLS public key length: 32, expected 48",
    ),
    (
        {"commitmentSignature": ASSET},
        "ValueRuleError Unexpected BLS signature length: 32, expected 96",
    ),
    ({"fee": 0}, "InsufficientFee insufficient fee"),
    ({"fee": -1}, "InsufficientFee insufficient fee"),
    ({"fee": 2**63}, "JsonFieldErrors obj.fee: error.expected.long"),
    ({"fee": ABSENT}, "JsonFieldErrors obj.fee: error.path.missing"),
    ({"timestamp": ABSENT}, "JsonFieldErrors obj.timestamp: error.path.missing"),
    ({"senderPublicKey": ABSENT}, "JsonFieldErrors obj.senderPublicKey: error.path.missing"),
    ({"proofs": ABSENT}, "JsonFieldErrors obj.proofs: error.path.missing"),
]


VECTORS = "finality/commit_tx"


def test_recorded_transactions() -> None:
    recorded = load_document(VECTORS)["valid"]
    report.ran(VECTORS, len(recorded))
    for vector in recorded:
        chain_id, obj = vector["chainId"], vector["json"]
        transaction = json_reader.read_signed(obj, chain_id)
        codec.validate(transaction)
        assert transaction.body.hex() == vector["bodyBytes"]
        assert base58.encode(transaction.id) == vector["id"] == obj["id"]
        signed_bytes = codec.encode_protobuf(transaction)
        assert signed_bytes.hex() == vector["signedBytes"]
        assert codec.decode_protobuf(signed_bytes, chain_id) == transaction
        written = codec.to_json(transaction)
        assert obj.items() <= written.items()
        assert (
            verify(transaction.sender_public_key, transaction.body, transaction.proofs[0])
            == (vector["proofValid"])
        )
        payload = transaction.payload
        message = commitment_message(payload.endorser_public_key, payload.generation_period_start)
        assert bls.is_valid((payload.endorser_public_key,), message, payload.commitment_signature)


def test_recorded_transactions_that_are_invalid() -> None:
    recorded = load_document(VECTORS)["invalid"]
    report.ran(VECTORS, len(recorded))
    for vector in recorded:
        if "signedBytes" not in vector:
            continue
        data = bytes.fromhex(vector["signedBytes"])
        chain_id = transaction_pb2.SignedTransaction.FromString(data).waves_transaction.chain_id
        what, refused = vector["what"], ""
        try:
            transaction = codec.decode_protobuf(data, chain_id)
            codec.validate(transaction)
            payload = transaction.payload
            key, start = payload.endorser_public_key, payload.generation_period_start
            bls.check_public_key(key)
            bls.check_signature(
                (key,), commitment_message(key, start), payload.commitment_signature
            )
        except SolitonError as error:
            refused = str(error)
        # The ledger refuses other versions and heights (``ledger.transactions``, ``ledger.rules``).
        valid_here = ("good (for comparison)", "version 2")
        assert bool(refused) == (what not in valid_here), (what, refused)


@pytest.mark.parametrize(("members", "expected"), CASES)
def test_refusals(members: dict[str, Any], expected: str) -> None:
    assert outcome(signed(19, members)) == expected
