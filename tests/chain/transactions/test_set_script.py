"""Type 13, set script: what its rules without state, and its JSON, refuse."""

from __future__ import annotations

from typing import Any

import pytest

from tests.chain.transactions.cases import ABSENT, DAPP, outcome, signed

CASES: list[tuple[dict[str, Any], str]] = [
    ({}, "ok"),
    ({"version": 1}, "ok"),
    ({"script": None}, "ok"),
    ({"script": None, "version": 1}, "ok"),
    ({"script": ""}, "ok"),
    ({"script": ABSENT}, "ok"),
    ({"script": DAPP}, "ok"),
    ({"fee": 0}, "InsufficientFee insufficient fee"),
    ({"fee": -1}, "InsufficientFee insufficient fee"),
    ({"fee": 2**63}, "JsonFieldErrors obj.fee: error.expected.long"),
    ({"fee": ABSENT}, "JsonFieldErrors obj.fee: error.path.missing"),
    ({"timestamp": ABSENT}, "JsonFieldErrors obj.timestamp: error.path.missing"),
    ({"senderPublicKey": ABSENT}, "JsonFieldErrors obj.senderPublicKey: error.path.missing"),
    ({"proofs": ABSENT}, "JsonFieldErrors obj.proofs: error.path.missing"),
    (
        {"script": "base64:"},
        "ValueRuleError ScriptParseError(Can't parse empty script bytes)",
    ),
    (
        {"script": "A!=="},
        "ValueRuleError ScriptParseError(Unable to decode base64: Illegal base64 character 21)",
    ),
    ({"script": 5}, "JsonFieldErrors obj.script: error.expected.jsstring"),
]


@pytest.mark.parametrize(("members", "expected"), CASES)
def test_refusals(members: dict[str, Any], expected: str) -> None:
    assert outcome(signed(13, members)) == expected
