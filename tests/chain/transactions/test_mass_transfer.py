"""Type 11, mass transfer: what its rules without state, and its JSON, refuse."""

from __future__ import annotations

from typing import Any

import pytest

from soliton.crypto import base58
from tests.chain.transactions.cases import ABSENT, ADDRESS, ASSET, FOREIGN, MAX, outcome, signed

CASES: list[tuple[dict[str, Any], str]] = [
    ({}, "ok"),
    ({"version": 1}, "ok"),
    ({"transfers": []}, "ok"),
    ({"transfers": [], "version": 1}, "ok"),
    ({"assetId": ASSET, "attachment": ASSET}, "ok"),
    ({"attachment": ABSENT, "assetId": ABSENT}, "ok"),
    ({"fee": 0}, "InsufficientFee insufficient fee"),
    ({"fee": -1}, "InsufficientFee insufficient fee"),
    ({"fee": 2**63}, "JsonFieldErrors obj.fee: error.expected.long"),
    ({"fee": ABSENT}, "JsonFieldErrors obj.fee: error.path.missing"),
    ({"timestamp": ABSENT}, "JsonFieldErrors obj.timestamp: error.path.missing"),
    ({"senderPublicKey": ABSENT}, "JsonFieldErrors obj.senderPublicKey: error.path.missing"),
    ({"proofs": ABSENT}, "JsonFieldErrors obj.proofs: error.path.missing"),
    ({"transfers": [{"recipient": ADDRESS, "amount": 0}] * 100}, "ok"),
    (
        {"transfers": [{"recipient": ADDRESS, "amount": 0}] * 101},
        "ValueRuleError Number of transfers 101 is greater than 100",
    ),
    (
        {"transfers": [{"recipient": ADDRESS, "amount": 0}] * 10_001},
        "ValueRuleError more than 10000 entries",
    ),
    (
        {"transfers": [{"recipient": ADDRESS, "amount": -1}], "fee": 0},
        "NegativeAmount negative amount: -1 of asset",
    ),
    (
        {"transfers": [{"recipient": ADDRESS, "amount": MAX}]},
        "AmountOverflow overflow error",
    ),
    (
        {"attachment": base58.encode(bytes([1] * 141))},
        "TooBigInBytes Invalid attachment. Length 141 bytes exceeds maximum of 140 bytes.",
    ),
    (
        {"transfers": [{"recipient": FOREIGN, "amount": 1}]},
        "ValueRuleError One of chain ids not match: List(87)",
    ),
    (
        {"transfers": [{"recipient": ADDRESS}]},
        "JsonFieldErrors obj.transfers[0].amount: error.path.missing",
    ),
    (
        {"transfers": [{"recipient": ADDRESS, "amount": 1}, 5]},
        "JsonFieldErrors obj.transfers[1]: error.expected.jsobject",
    ),
    ({"transfers": {}}, "JsonFieldErrors obj.transfers: error.expected.jsarray"),
]


@pytest.mark.parametrize(("members", "expected"), CASES)
def test_refusals(members: dict[str, Any], expected: str) -> None:
    assert outcome(signed(11, members)) == expected
