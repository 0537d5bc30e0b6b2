"""Type 8, lease: what its rules without state, and its JSON, refuse."""

from __future__ import annotations

from typing import Any

import pytest

from tests.chain.transactions.cases import ABSENT, FOREIGN, MAX, SELF, outcome, signed

CASES: list[tuple[dict[str, Any], str]] = [
    ({}, "ok"),
    ({"version": 2}, "ok"),
    ({"version": 1}, "ok"),
    ({"recipient": "alias:T:somebody"}, "ok"),
    ({"fee": 0}, "InsufficientFee insufficient fee"),
    ({"fee": -1}, "InsufficientFee insufficient fee"),
    ({"fee": 2**63}, "JsonFieldErrors obj.fee: error.expected.long"),
    ({"fee": ABSENT}, "JsonFieldErrors obj.fee: error.path.missing"),
    ({"timestamp": ABSENT}, "ok"),
    ({"senderPublicKey": ABSENT}, "ValueRuleError invalid.senderPublicKey"),
    ({"proofs": ABSENT}, "ok"),
    ({"amount": 0}, "NonPositiveAmount non-positive amount: 0 of waves"),
    ({"amount": -1, "fee": 0}, "InsufficientFee insufficient fee"),
    ({"amount": MAX - 100}, "ok"),
    ({"amount": MAX - 99}, "AmountOverflow overflow error"),
    ({"recipient": SELF}, "ToSelf Transaction to yourself"),
    ({"recipient": SELF, "amount": MAX}, "AmountOverflow overflow error"),
    (
        {"recipient": FOREIGN},
        "ValueRuleError Address or alias from other network",
    ),
    (
        {"recipient": "alias:W:somebody"},
        "ValueRuleError Address or alias from other network",
    ),
]


@pytest.mark.parametrize(("members", "expected"), CASES)
def test_refusals(members: dict[str, Any], expected: str) -> None:
    assert outcome(signed(8, members)) == expected
