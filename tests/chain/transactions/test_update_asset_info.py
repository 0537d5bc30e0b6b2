"""Type 17, update asset info: what its rules without state, and its JSON, refuse."""

from __future__ import annotations

from typing import Any

import pytest

from tests.chain.transactions.cases import ABSENT, ASSET, SHORT_ID, SHORT_ID_WORDS, outcome, signed

CASES: list[tuple[dict[str, Any], str]] = [
    ({}, "ok"),
    ({"feeAssetId": ASSET}, "ok"),
    ({"version": ABSENT}, "JsonFieldErrors obj.version: error.path.missing"),
    ({"chainId": ABSENT}, "JsonFieldErrors obj.chainId: error.path.missing"),
    ({"chainId": 87}, "WrongChainId Wrong chain-id. Expected - 84, provided - 87"),
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
]


@pytest.mark.parametrize(("members", "expected"), CASES)
def test_refusals(members: dict[str, Any], expected: str) -> None:
    assert outcome(signed(17, members)) == expected
