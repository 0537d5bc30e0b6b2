"""Type 7, exchange: what its rules without state, and its JSON, refuse; whose transaction it is."""

from __future__ import annotations

from typing import Any

import pytest

from soliton.chain.errors import FormatError, OrderInvalid
from soliton.chain.orders import MAX_AMOUNT
from soliton.chain.transactions import codec, json_reader
from soliton.crypto import base58
from tests.chain.transactions.cases import ABSENT, ASSET, KEY, OTHER_KEY, T, order, outcome, signed

AMOUNT_ERROR = "amount should be in interval (0; 1000000000000000000]"
PRICE_ERROR = "price should be in interval (0; 1000000000000000000]"
LIFETIME = 30 * 86_400_000
ATTACHMENT_WORDS = "non-empty attachment field is allowed only for version >= V4"
ALL_V1 = {"order1.version": 1, "order2.version": 1}
ATTACHED = {"version": 4, "attachment": ASSET}
SIGNED_BY_WALLET = {"eip712Signature": "0x" + "01" * 65, "senderPublicKey": ABSENT, "proofs": []}

CASES: list[tuple[dict[str, Any], str]] = [
    ({}, "ok"),
    ({"version": 2}, "ok"),
    ({"version": 1, **ALL_V1}, "ok"),
    ({"version": 2, **ALL_V1}, "ok"),
    ({"version": 2, "order1.version": 2, "order2.version": 1}, "ok"),
    ({"order1": order("buy", **ATTACHED)}, "ok"),
    ({"order1": order("buy", version=4, priceMode="assetDecimals")}, "ok"),
    ({"order1": order("buy", version=4, matcherFeeAssetId=ASSET)}, "ok"),
    ({"order1": order("buy", version=4, **SIGNED_BY_WALLET)}, "ok"),
    ({"order1": order("sell"), "order2": order("buy")}, "ok"),
    ({"fee": ABSENT}, "InsufficientFee insufficient fee"),
    ({"fee": 0, "amount": 0}, "InsufficientFee insufficient fee"),
    ({"fee": MAX_AMOUNT + 1}, "ValueRuleError fee too large"),
    ({"senderPublicKey": ABSENT}, "ValueRuleError invalid.senderPublicKey"),
    ({"timestamp": ABSENT}, "ok"),
    ({"amount": 0}, f"ValueRuleError {AMOUNT_ERROR}"),
    ({"amount": MAX_AMOUNT}, "ok"),
    ({"amount": MAX_AMOUNT + 1}, f"ValueRuleError {AMOUNT_ERROR}"),
    ({"price": 0}, f"ValueRuleError {PRICE_ERROR}"),
    ({"price": MAX_AMOUNT + 1}, f"ValueRuleError {PRICE_ERROR}"),
    ({"sellMatcherFee": MAX_AMOUNT + 1}, "ValueRuleError sellMatcherFee too large"),
    (
        {"sellMatcherFee": MAX_AMOUNT + 1, "buyMatcherFee": MAX_AMOUNT + 1},
        "ValueRuleError sellMatcherFee too large",
    ),
    ({"buyMatcherFee": MAX_AMOUNT + 1}, "ValueRuleError buyMatcherFee too large"),
    ({"buyMatcherFee": -1}, "ok"),
    (
        {"version": 2, "order1": order("sell"), "order2": order("buy")},
        "ValueRuleError order1 should have OrderType.BUY",
    ),
    ({"order2": order("buy")}, "ValueRuleError sellOrder should has OrderType.SELL"),
    ({"order1": order("sell")}, "ValueRuleError buyOrder should has OrderType.BUY"),
    (
        {"order1.matcherPublicKey": OTHER_KEY},
        "ValueRuleError buyOrder.matcher should be the same as sellOrder.matcher",
    ),
    (
        {"order1.assetPair.priceAsset": KEY},
        "ValueRuleError Both orders should have same AssetPair",
    ),
    (
        {"order1.assetPair.amountAsset": "WAVES", "order2.assetPair.amountAsset": ""},
        "OrderInvalid Order validation error: Invalid AssetPair",
    ),
    (
        {"order1.timestamp": 0},
        "OrderInvalid Order validation error: timestamp should be > 0",
    ),
    ({"order2.expiration": 1_000 + LIFETIME}, "ok"),
    (
        {"order2.expiration": 1_001 + LIFETIME},
        "OrderInvalid Order validation error: expiration should be earlier than 30 days",
    ),
    ({"order1.expiration": 1_000}, "ok"),
    (
        {"order1.expiration": 999},
        "OrderInvalid Order validation error: expiration should be > currentTime",
    ),
    (
        {"order1.version": 5},
        "OrderInvalid Order validation error: invalid version",
    ),
    (
        {"order1": order("buy", **SIGNED_BY_WALLET)},
        "OrderInvalid Order validation error: eip712Signature available only in V4",
    ),
    (
        {"order1": order("buy", **{**SIGNED_BY_WALLET, "eip712Signature": "0x01"}, version=4)},
        "OrderInvalid Order validation error: eip712Signature should be of length 65 or 129",
    ),
    (
        {"order1.priceMode": "fixedDecimals"},
        "OrderInvalid Order validation error: price mode should be default for V3",
    ),
    (
        {"order1.proofs": [ASSET] * 9},
        "OrderInvalid Order validation error: Too many proofs (9), only 8 allowed",
    ),
    (
        {"order1.proofs": [base58.encode(bytes(65))]},
        "OrderInvalid Order validation error: Too large proof (65), must be max 64 bytes",
    ),
    (
        {"order1.attachment": ASSET},
        f"OrderInvalid Order validation error: {ATTACHMENT_WORDS}",
    ),
    (
        {"order1": order("buy", version=4, attachment="")},
        "OrderInvalid Order validation error: attachment size should be > 0",
    ),
    (
        {"version": 1, "order1.version": 1},
        "ValueRuleError can only contain orders of version 1",
    ),
    (
        {"version": 2, "order1.version": 4},
        "ValueRuleError can only contain orders of version < 4",
    ),
    ({"order1.amount": 0}, f"JsonFieldErrors obj.order1: {AMOUNT_ERROR}"),
    ({"order1.price": 0}, "JsonFieldErrors obj.order1: price should be > 0"),
    ({"order1.price": 2**63 - 1}, "ok"),
    (
        {"order1.matcherFee": MAX_AMOUNT},
        "JsonFieldErrors obj.order1: matcher fee should be in interval (0; 1000000000000000000)",
    ),
    ({"order1.matcherFee": MAX_AMOUNT - 1}, "ok"),
    ({"order1": 5}, "JsonFieldErrors obj.order1: Order object expected: 5"),
    ({"order1": ABSENT}, "JsonFieldErrors obj.order1: error.path.missing"),
    (
        {"order1.senderPublicKey": ABSENT},
        "ValueRuleError Either senderPublicKey or eip712Signature should be provided",
    ),
    (
        {"order1.senderPublicKey": ABSENT, "order1.version": 2},
        "JsonFieldErrors obj.order1.senderPublicKey: error.path.missing",
    ),
    ({"order1.orderType": "hold"}, "JsonFieldErrors obj.order1.orderType: Unexpected OrderType"),
    (
        {"order1.priceMode": "mine"},
        "JsonFieldErrors obj.order1.priceMode: Unexpected order price mode: mine",
    ),
    (
        {"order1.assetPair": 5},
        "JsonFieldErrors obj.order1.assetPair: error.expected.jsobject",
    ),
    (
        {"order1.matcherPublicKey": "2"},
        "JsonFieldErrors obj.order1.matcherPublicKey: error.incorrectAccount",
    ),
    ({"order1.version": 0}, "JsonFieldErrors obj.order1: Invalid version: 0"),
    (
        {"order1.eip712Signature": "0xzz"},
        "JsonFieldErrors obj.order1.eip712Signature: invalid hexadecimal digits",
    ),
]


@pytest.mark.parametrize(("members", "expected"), CASES)
def test_refusals(members: dict[str, Any], expected: str) -> None:
    assert outcome(signed(7, members)) == expected


def test_the_sender_is_the_matcher_whatever_is_claimed() -> None:
    obj = signed(7, {"senderPublicKey": OTHER_KEY})
    transaction = json_reader.read_signed(obj, T)
    assert base58.encode(transaction.sender_public_key) == KEY
    assert codec.decode_protobuf(codec.encode_protobuf(transaction), T) == transaction


def test_an_invalid_order_comes_with_its_refusal() -> None:
    obj = signed(7, {"order2.timestamp": 0})
    with pytest.raises(OrderInvalid) as caught:
        json_reader.read_signed(obj, T)
    assert caught.value.reason == "timestamp should be > 0"


def test_orders_of_version_1_are_marked_in_version_2() -> None:
    mixed = json_reader.read_signed(signed(7, {"version": 2, "order2.version": 1}), T)
    data = codec.encode(mixed)
    assert codec.decode_legacy(data, T) == mixed
    first = mixed.payload.order1
    assert data[:3] == b"\0\7\2"
    # The length, without the mark; then the order, which begins with its own version or the mark.
    length = int.from_bytes(data[3:7], "big")
    assert data[7] == first.version == 3
    second = 7 + length
    length = int.from_bytes(data[second : second + 4], "big")
    assert data[second + 4] == 1
    key = mixed.payload.order2.sender_public_key
    assert data[second + 5 : second + 37] == key
    assert data[second + 5 + length : second + 13 + length] == mixed.payload.price.to_bytes(
        8, "big"
    )


def test_a_length_that_is_not_an_orders_is_refused() -> None:
    made = json_reader.read_signed(signed(7, {"version": 1, **ALL_V1}), T)
    data = codec.encode(made)
    length = int.from_bytes(data[1:5], "big")
    for wrong in (length - 1, length + 1, -1, 2**31 - 1):
        with pytest.raises(FormatError):
            codec.decode_legacy(data[:1] + wrong.to_bytes(4, "big", signed=True) + data[5:], T)
