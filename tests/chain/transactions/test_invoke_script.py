"""Type 16, invoke script: what its rules without state, and its JSON, refuse."""

from __future__ import annotations

from typing import Any

import pytest

from tests.chain.transactions.cases import ABSENT, ASSET, FOREIGN, outcome, signed

NUMBER = {"type": "integer", "value": 1}


def nested(depth: int) -> dict[str, Any]:
    """A list in a list in a list …"""
    return {"type": "list", "value": [nested(depth - 1)] if depth else []}


CASES: list[tuple[dict[str, Any], str]] = [
    ({}, "ok"),
    ({"version": 1}, "ok"),
    ({"version": ABSENT}, "ok"),
    ({"payment": ABSENT, "call": ABSENT}, "ok"),
    ({"call": {"function": "default", "args": []}}, "ok"),
    ({"dApp": "alias:T:somebody", "feeAssetId": ASSET}, "ok"),
    ({"payment": [{"amount": 5}]}, "ok"),
    ({"fee": 0}, "InsufficientFee insufficient fee"),
    ({"fee": -1}, "InsufficientFee insufficient fee"),
    ({"fee": 2**63}, "JsonFieldErrors obj.fee: error.expected.long"),
    ({"fee": ABSENT}, "JsonFieldErrors obj.fee: error.path.missing"),
    ({"timestamp": ABSENT}, "JsonFieldErrors obj.timestamp: error.path.missing"),
    ({"senderPublicKey": ABSENT}, "JsonFieldErrors obj.senderPublicKey: error.path.missing"),
    ({"proofs": ABSENT}, "JsonFieldErrors obj.proofs: error.path.missing"),
    (
        {"dApp": FOREIGN},
        "ValueRuleError Address or alias from other network",
    ),
    ({"call.args": [NUMBER] * 22}, "ok"),
    ({"call.args": [NUMBER] * 23}, "ValueRuleError InvokeScript can't have more than 22 arguments"),
    ({"call.function": "f" * 255}, "ok"),
    (
        {"call.function": "f" * 256},
        "ValueRuleError Callable function name size = 256 bytes must be less than 255",
    ),
    (
        {"payment": [{"amount": 0, "assetId": None}]},
        "NonPositiveAmount non-positive amount: 0 of Waves",
    ),
    (
        {"payment": [{"amount": 1}, {"amount": -1, "assetId": ASSET}], "version": 1},
        f"NonPositiveAmount non-positive amount: -1 of {ASSET}",
    ),
    ({"payment": [{}]}, "JsonFieldErrors obj.payment[0].amount: error.path.missing"),
    ({"call.args": [{"type": "string", "value": "x" * 5_072}]}, "ok"),
    (
        {"call.args": [{"type": "string", "value": "x" * 5_073}]},
        "ValueRuleError InvokeScriptTransaction bytes length = 5121 exceeds limit = 5120",
    ),
    ({"call.args": [{"type": "string", "value": "x" * 4_942}], "version": 1}, "ok"),
    (
        {"call.args": [{"type": "string", "value": "x" * 4_943}], "version": 1},
        "ValueRuleError InvokeScriptTransaction bytes length = 5121 exceeds limit = 5120",
    ),
    (
        {"call.args": [{"type": "list", "value": [NUMBER, {"type": "boolean", "value": False}]}]},
        "ok",
    ),
    ({"call.args": [{"type": "binary", "value": "base64:AQ=="}]}, "ok"),
    ({"call": {}}, "JsonFieldErrors obj.call: Undefined call function name"),
    ({"call": 5}, "JsonFieldErrors obj.call: Undefined call function name"),
    ({"call": {"function": 1}}, "JsonFieldErrors obj.call: Unexpected call function name format"),
    ({"call.args": {}}, "JsonFieldErrors obj.call: Unexpected args format"),
    ({"call.args": [5]}, "JsonFieldErrors obj.call: type is missing"),
    ({"call.args": [{"type": "x"}]}, "JsonFieldErrors obj.call: type is missing"),
    (
        {"call.args": [{"type": "integer", "value": True}]},
        "JsonFieldErrors obj.call: value is missing or not an integer",
    ),
    (
        {"call.args": [{"type": "boolean", "value": 1}]},
        "JsonFieldErrors obj.call: value is missing or not an boolean",
    ),
    (
        {"call.args": [{"type": "string"}]},
        "JsonFieldErrors obj.call: value is missing or not an string",
    ),
    (
        {"call.args": [{"type": "binary"}]},
        "JsonFieldErrors obj.call: value is missing or not an base64 encoded string",
    ),
    (
        {"call.args": [{"type": "list", "value": 5}]},
        "JsonFieldErrors obj.call: value is missing or not a list",
    ),
    ({"call.args": [nested(20)]}, "JsonFieldErrors obj.call: value is missing or not a list"),
]


@pytest.mark.parametrize(("members", "expected"), CASES)
def test_refusals(members: dict[str, Any], expected: str) -> None:
    assert outcome(signed(16, members)) == expected
