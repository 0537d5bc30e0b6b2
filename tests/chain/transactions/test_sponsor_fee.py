"""Type 14, sponsor fee: what its rules without state, and its JSON, refuse."""

from __future__ import annotations

from typing import Any

import pytest

from tests.chain.transactions.cases import ABSENT, SHORT_ID, SHORT_ID_WORDS, outcome, signed

CASES: list[tuple[dict[str, Any], str]] = [
    ({}, "ok"),
    ({"version": 1}, "ok"),
    ({"minSponsoredAssetFee": None}, "ok"),
    ({"minSponsoredAssetFee": 0}, "ok"),
    ({"minSponsoredAssetFee": 0, "version": 1}, "ok"),
    ({"minSponsoredAssetFee": -1}, "NegativeMinFee negative fee per: -1 per asset"),
    ({"minSponsoredAssetFee": -1, "fee": 0}, "InsufficientFee insufficient fee"),
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
]


@pytest.mark.parametrize(("members", "expected"), CASES)
def test_refusals(members: dict[str, Any], expected: str) -> None:
    assert outcome(signed(14, members)) == expected
