"""Type 19, commit to generation: what its rules without state, and its JSON, refuse."""

from __future__ import annotations

from typing import Any

import pytest

from tests.chain.transactions.cases import ABSENT, ASSET, outcome, signed

CASES: list[tuple[dict[str, Any], str]] = [
    ({}, "ok"),
    ({"generationPeriodStart": 2**32 - 1}, "ok"),
    ({"generationPeriodStart": 2**32}, "ValueRuleError no height: 4294967296"),
    ({"generationPeriodStart": -1}, "ValueRuleError no height: -1"),
    ({"endorserPublicKey": ASSET}, "ValueRuleError endorser public key of 32 bytes"),
    ({"commitmentSignature": ASSET}, "ValueRuleError commitment signature of 32 bytes"),
    ({"fee": 0}, "InsufficientFee insufficient fee"),
    ({"fee": -1}, "InsufficientFee insufficient fee"),
    ({"fee": 2**63}, "JsonFieldErrors obj.fee: error.expected.long"),
    ({"fee": ABSENT}, "JsonFieldErrors obj.fee: error.path.missing"),
    ({"timestamp": ABSENT}, "JsonFieldErrors obj.timestamp: error.path.missing"),
    ({"senderPublicKey": ABSENT}, "JsonFieldErrors obj.senderPublicKey: error.path.missing"),
    ({"proofs": ABSENT}, "JsonFieldErrors obj.proofs: error.path.missing"),
]


@pytest.mark.parametrize(("members", "expected"), CASES)
def test_refusals(members: dict[str, Any], expected: str) -> None:
    assert outcome(signed(19, members)) == expected
