"""Type 15, set asset script: what its rules without state, and its JSON, refuse."""

from __future__ import annotations

from typing import Any

import pytest

from tests.chain.transactions.cases import ABSENT, DAPP, SHORT_ID, SHORT_ID_WORDS, outcome, signed

CASES: list[tuple[dict[str, Any], str]] = [
    ({}, "ok"),
    ({"version": 1}, "ok"),
    ({"script": None}, "ValueRuleError Cannot set empty script"),
    ({"script": ""}, "ValueRuleError Cannot set empty script"),
    ({"script": None, "fee": 0}, "InsufficientFee insufficient fee"),
    (
        {"script": DAPP},
        "ValueRuleError Asset can only be assigned with Expression script, not Contract",
    ),
    ({"fee": 0}, "InsufficientFee insufficient fee"),
    ({"fee": -1}, "InsufficientFee insufficient fee"),
    ({"fee": 2**63}, "JsonFieldErrors obj.fee: error.expected.long"),
    ({"fee": ABSENT}, "JsonFieldErrors obj.fee: error.path.missing"),
    ({"timestamp": ABSENT}, "JsonFieldErrors obj.timestamp: error.path.missing"),
    ({"senderPublicKey": ABSENT}, "JsonFieldErrors obj.senderPublicKey: error.path.missing"),
    ({"proofs": ABSENT}, "JsonFieldErrors obj.proofs: error.path.missing"),
    ({"assetId": ABSENT}, "JsonFieldErrors obj.assetId: error.path.missing"),
    ({"assetId": "0"}, "JsonFieldErrors obj.assetId: Expected base58-encoded assetId"),
    ({"assetId": SHORT_ID}, SHORT_ID_WORDS),
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
    assert outcome(signed(15, members)) == expected
