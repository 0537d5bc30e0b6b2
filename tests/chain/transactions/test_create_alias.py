"""Type 10, create alias: what its rules without state, and its JSON, refuse."""

from __future__ import annotations

from typing import Any

import pytest

from tests.chain.transactions.cases import ABSENT, outcome, signed

LETTERS = "-.0123456789@_abcdefghijklmnopqrstuvwxyz"

CASES: list[tuple[dict[str, Any], str]] = [
    ({}, "ok"),
    ({"version": 2}, "ok"),
    ({"version": 1}, "ok"),
    ({"fee": ABSENT}, "InsufficientFee insufficient fee"),
    ({"fee": 0}, "InsufficientFee insufficient fee"),
    ({"fee": -1}, "InsufficientFee insufficient fee"),
    ({"fee": 2**63}, "JsonFieldErrors obj.fee: error.expected.long"),
    ({"timestamp": ABSENT}, "ok"),
    ({"senderPublicKey": ABSENT}, "ValueRuleError invalid.senderPublicKey"),
    ({"proofs": ABSENT}, "ok"),
    (
        {"alias": "abc"},
        "AliasError Alias 'abc' length should be between 4 and 30",
    ),
    ({"alias": "abc", "fee": 0}, "InsufficientFee insufficient fee"),
    (
        {"alias": "x" * 31, "version": 1},
        f"AliasError Alias '{'x' * 31}' length should be between 4 and 30",
    ),
    (
        {"alias": "Name"},
        f"AliasError Alias should contain only following characters: {LETTERS}",
    ),
    ({"alias": ABSENT}, "JsonFieldErrors obj.alias: error.path.missing"),
]


@pytest.mark.parametrize(("members", "expected"), CASES)
def test_refusals(members: dict[str, Any], expected: str) -> None:
    assert outcome(signed(10, members)) == expected
