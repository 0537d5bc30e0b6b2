"""Type 3, issue: what its rules without state, and its JSON, refuse."""

from __future__ import annotations

from typing import Any

import pytest

from tests.chain.transactions.cases import ABSENT, DAPP, EXPRESSION, MAX, outcome, signed

CASES: list[tuple[dict[str, Any], str]] = [
    ({}, "ok"),
    ({"version": 2}, "ok"),
    ({"version": 1}, "ok"),
    ({"version": ABSENT, "script": EXPRESSION}, "ok"),
    ({"fee": 0}, "InsufficientFee insufficient fee"),
    ({"fee": -1}, "InsufficientFee insufficient fee"),
    ({"fee": 2**63}, "JsonFieldErrors obj.fee: error.expected.long"),
    ({"fee": ABSENT}, "JsonFieldErrors obj.fee: error.path.missing"),
    ({"timestamp": ABSENT}, "ok"),
    ({"senderPublicKey": ABSENT}, "ValueRuleError invalid.senderPublicKey"),
    ({"proofs": ABSENT}, "ok"),
    (
        {"quantity": 0, "fee": 0},
        "InsufficientFee insufficient fee",
    ),
    ({"quantity": 0}, "NonPositiveAmount non-positive amount: 0 of assets"),
    ({"quantity": -1}, "NonPositiveAmount non-positive amount: -1 of assets"),
    ({"quantity": MAX}, "ok"),
    ({"quantity": "1"}, "JsonFieldErrors obj.quantity: error.expected.jsnumber"),
    ({"decimals": 8}, "ok"),
    (
        {"decimals": 9},
        "InvalidDecimals invalid decimals value: 9, decimals should be in interval [0; 8]",
    ),
    (
        {"decimals": -1, "version": 1},
        "InvalidDecimals invalid decimals value: -1, decimals should be in interval [0; 8]",
    ),
    ({"decimals": 128}, "JsonFieldErrors obj.decimals: error.expected.byte"),
    ({"name": "nam"}, "InvalidName invalid name"),
    ({"name": "n" * 16}, "ok"),
    ({"name": "n" * 17}, "InvalidName invalid name"),
    ({"name": "äöü€"}, "ok"),
    ({"name": "€€€€€€"}, "InvalidName invalid name"),
    ({"name": 1}, "JsonFieldErrors obj.name: error.expected.jsstring"),
    ({"name": ABSENT}, "JsonFieldErrors obj.name: error.path.missing"),
    ({"description": "d" * 1_000}, "ok"),
    (
        {"description": "d" * 1_001},
        "TooBigCount Too big sequence requested: max limit is 1000 entries",
    ),
    ({"reissuable": 1}, "JsonFieldErrors obj.reissuable: error.expected.jsboolean"),
    ({"script": EXPRESSION}, "ok"),
    ({"script": EXPRESSION, "version": 2}, "ok"),
    ({"script": EXPRESSION, "version": 1}, "ValueRuleError Script not supported"),
    (
        {"script": DAPP},
        "ValueRuleError Asset can only be assigned with Expression script, not Contract",
    ),
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
    assert outcome(signed(3, members)) == expected
