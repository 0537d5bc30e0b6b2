"""Type 19, commit to generation: what its rules without state, and its JSON, refuse."""

from __future__ import annotations

from typing import Any

import pytest

from soliton.chain import networks
from soliton.chain.proto import transaction_pb2
from soliton.chain.transactions import codec, json_reader
from soliton.chain.transactions.commit_to_generation import commitment_message
from soliton.consensus.generation import period_at
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


def test_a_transaction_of_the_waves_testnet() -> None:
    """The answer of a node of the public network for a transaction at height 4,116,125.

    Source: docs.waves.tech ``en/blockchain/transaction-type/commit-to-generation-transaction``.
    """
    obj = {
        "type": 19,
        "id": "F68Yra6xEPddivSJiJS4yhP75cBuBgVvu8eHFyqPMRAn",
        "fee": 10_000_000,
        "feeAssetId": None,
        "timestamp": 1_776_232_801_777,
        "version": 1,
        "chainId": 84,
        "sender": "3NA4UdyFVv7v1J6UgGe4moyHm2fambavqvm",
        "senderPublicKey": "C5xv7bdAfKaQyvHfhUvC2NkfWfLVN7VUPsdHmHMJ5crN",
        "proofs": [
            "5xVWUDXiyXYB1v6wAMrxwV7Eyr6FiC8La6wjTUTSBgQRh8ydi31dRNKti1g6bdye4Kui1VYTfH5xuRoXpsGexXRJ"
        ],
        "endorserPublicKey": "63x6JHqFAPRgnugTmJfzsLPbQWzN5vUUgpGJBJtq4CnozMdvpn1jgqPri8xxMfUxvh",
        "generationPeriodStart": 4_119_001,
        "commitmentSignature": (
            "xBpVoBheXoxAiqKpSSTx9nSB7MPPw9myTi7QJKpekyJRDRwHftTwFWUyB1CEyR5CQBb5yA44z6XqWhgmDpUr1dvC"
            "gyQ1dpW5WzUJcqgVfXqxke7Zwaf3T4VACJYdve9Bkeq"
        ),
    }
    network = networks.load("waves-testnet")
    transaction = json_reader.read_signed(obj, network.chain_id)
    codec.validate(transaction)
    assert codec.to_json(transaction) == obj
    assert codec.decode_protobuf(codec.encode_protobuf(transaction), 84) == transaction
    assert verify(transaction.sender_public_key, transaction.body, transaction.proofs[0])
    payload = transaction.payload
    message = commitment_message(payload.endorser_public_key, payload.generation_period_start)
    bls.check_signature([payload.endorser_public_key], message, payload.commitment_signature)
    # Features become active where a voting period of the network ends.
    length = network.functionality.generation_period_length
    voting = network.functionality.feature_check_blocks_period
    assert length == voting == 3_000
    for activation in range(4_116_125 // voting * voting - 10 * voting, 4_116_125, voting):
        period = period_at(4_116_125, activation, length)
        assert period is not None
        assert period.next.start == payload.generation_period_start
