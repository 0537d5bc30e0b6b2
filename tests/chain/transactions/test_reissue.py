"""Type 5, reissue: what its rules without state, and its JSON, refuse."""

from __future__ import annotations

from typing import Any

import pytest

from tests.chain.transactions.cases import ABSENT, MAX, SHORT_ID, SHORT_ID_WORDS, outcome, signed

CASES: list[tuple[dict[str, Any], str]] = [
    ({}, "ok"),
    ({"version": 2}, "ok"),
    ({"version": 1}, "ok"),
    ({"fee": 0}, "InsufficientFee insufficient fee"),
    ({"fee": -1}, "InsufficientFee insufficient fee"),
    ({"fee": 2**63}, "JsonFieldErrors obj.fee: error.expected.long"),
    ({"fee": ABSENT}, "JsonFieldErrors obj.fee: error.path.missing"),
    ({"timestamp": ABSENT}, "ok"),
    ({"senderPublicKey": ABSENT}, "ValueRuleError invalid.senderPublicKey"),
    ({"proofs": ABSENT}, "ok"),
    ({"assetId": ABSENT}, "JsonFieldErrors obj.assetId: error.path.missing"),
    ({"assetId": "0"}, "JsonFieldErrors obj.assetId: Expected base58-encoded assetId"),
    ({"assetId": SHORT_ID}, SHORT_ID_WORDS),
    ({"quantity": 0, "fee": 0}, "InsufficientFee insufficient fee"),
    ({"quantity": 0}, "NonPositiveAmount non-positive amount: 0 of assets"),
    ({"quantity": MAX}, "ok"),
    ({"reissuable": "yes"}, "JsonFieldErrors obj.reissuable: error.expected.jsboolean"),
]


@pytest.mark.parametrize(("members", "expected"), CASES)
def test_refusals(members: dict[str, Any], expected: str) -> None:
    assert outcome(signed(5, members)) == expected
