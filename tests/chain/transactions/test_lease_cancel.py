"""Type 9, lease cancel: what its rules without state, and its JSON, refuse."""

from __future__ import annotations

from typing import Any

import pytest

from tests.chain.transactions.cases import ABSENT, ASSET, SHORT_ID, outcome, signed

CASES: list[tuple[dict[str, Any], str]] = [
    ({}, "ok"),
    ({"version": 2}, "ok"),
    ({"version": 1}, "ok"),
    ({"leaseId": ABSENT, "txId": ASSET}, "ok"),
    ({"leaseId": ABSENT}, "JsonFieldErrors obj.leaseId: error.path.missing"),
    ({"fee": 0}, "InsufficientFee insufficient fee"),
    ({"fee": -1}, "InsufficientFee insufficient fee"),
    ({"fee": 2**63}, "JsonFieldErrors obj.fee: error.expected.long"),
    ({"fee": ABSENT}, "JsonFieldErrors obj.fee: error.path.missing"),
    ({"timestamp": ABSENT}, "ok"),
    ({"senderPublicKey": ABSENT}, "ValueRuleError invalid.senderPublicKey"),
    ({"proofs": ABSENT}, "ok"),
    (
        {"leaseId": SHORT_ID},
        f"ValueRuleError Lease id={SHORT_ID} has invalid length = 31 byte(s) while expecting 32",
    ),
    ({"leaseId": "2" * 45}, "ValueRuleError invalid.leaseTx"),
    ({"leaseId": "0"}, "ValueRuleError invalid.leaseTx"),
    (
        {"leaseId": SHORT_ID, "version": 1},
        f"ValueRuleError Lease id={SHORT_ID} has invalid length = 31 byte(s) while expecting 32",
    ),
]


@pytest.mark.parametrize(("members", "expected"), CASES)
def test_refusals(members: dict[str, Any], expected: str) -> None:
    assert outcome(signed(9, members)) == expected
