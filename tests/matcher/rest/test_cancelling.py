"""Cancelling over HTTP: signed bodies, signed headers, the operator's key, and who may not."""

from __future__ import annotations

from typing import Any

import pytest

from soliton.crypto import base58
from soliton.crypto.keys import KeyPair
from soliton.matcher.settings import RestApi
from soliton.matching.model import OrderStatus
from tests.matcher.fakes import (
    ALICE,
    BOB,
    GOLD,
    KEY,
    NOW,
    Api,
    FakeCore,
    buy,
    cancel_body,
    sell,
    signature_headers,
    text_address,
)

PAIR = f"{base58.encode(GOLD)}/WAVES"
MINUTES = 300_000
HOUR = 3_600_000


def public_key(keys: KeyPair) -> str:
    return base58.encode(keys.public_key)


def status_of(api: Api, order_id: bytes) -> OrderStatus:
    info = api.core.queries.order_info(order_id)
    assert info is not None
    return info.status


@pytest.mark.parametrize("path", [f"/matcher/orderbook/{PAIR}/cancel", "/matcher/orderbook/cancel"])
async def test_one_order_is_cancelled(path: str) -> None:
    api, order = Api(), buy(ALICE, 10**8, 2 * 10**8)
    await api.place(order)
    reply = await api(f"POST {path}", cancel_body(ALICE, order.id))
    name = base58.encode(order.id)
    assert reply.json() == {"orderId": name, "success": True, "status": "OrderCanceled"}
    again = await api(f"POST {path}", cancel_body(ALICE, order.id))
    told = again.json()
    assert (again.status, told["error"], told["status"]) == (400, 9437194, "OrderCancelRejected")
    assert told["success"] is False and "result" not in told


@pytest.mark.parametrize(
    ("body", "fields"),
    [
        ({}, ["/sender", "/signature"]),
        (
            {"sender": 1, "orderId": 2, "timestamp": "3"},
            [
                *("/orderId", "/sender", "/signature", "/timestamp"),
            ],
        ),
        ([], [""]),
        (b"{", []),
    ],
)
async def test_a_malformed_request_names_its_members(body: Any, fields: list[str]) -> None:
    told = (await Api()("POST /matcher/orderbook/cancel", body)).json()
    assert (told["error"], told.get("params", {}).get("invalidFields", [])) == (1048577, fields)


async def test_malformed_ids_are_named_by_their_places() -> None:
    """As ``JsPath`` of play-json writes them."""
    api, line = Api(), f"POST /matcher/orders/{text_address(ALICE)}/cancel"
    for body, fields in (
        ([base58.encode(bytes(32)), "0", 1, [""]], ["(1)", "(2)", "(3)"]),
        ({"ids": []}, [""]),
    ):
        told = (await api.keyed(line, body)).json()
        assert (told["error"], told["params"]["invalidFields"]) == (1048577, fields)


async def test_all_orders_are_cancelled_and_the_items_are_a_list_in_a_list() -> None:
    api = Api()
    first, second = buy(ALICE, 10**8, 2 * 10**8), buy(ALICE, 10**8, 3 * 10**8)
    other = buy(BOB, 10**8, 2 * 10**8)
    for order in (first, second, other):
        await api.place(order)
    reply = await api("POST /matcher/orderbook/cancel", cancel_body(ALICE, timestamp=NOW))
    told = reply.json()
    assert told["status"] == "BatchCancelCompleted" and len(told["message"]) == 1
    names = {item["orderId"] for item in told["message"][0]}
    assert names == {base58.encode(first.id), base58.encode(second.id)}
    assert status_of(api, other.id) is OrderStatus.ACCEPTED


@pytest.mark.parametrize(
    ("body", "status", "error"),
    [
        ({}, 400, 1048577),
        (b"", 400, 1048577),
        (b"{", 400, 1048577),
        ({**cancel_body(ALICE, bytes(32)), "sender": "111"}, 400, 1048577),
        ({**cancel_body(ALICE, bytes(32)), "signature": "0"}, 400, 1048577),
        ({**cancel_body(ALICE, bytes(32)), "signature": "1"}, 400, 1051904),
        ({**cancel_body(ALICE, bytes(32)), "sender": public_key(BOB)}, 400, 1051904),
        ({**cancel_body(ALICE, bytes(32)), "timestamp": NOW}, 400, 1048580),
        ({k: v for k, v in cancel_body(ALICE, bytes(32)).items() if k != "orderId"}, 400, 1048580),
        (cancel_body(ALICE, timestamp=-1 + 2**63), 400, 1051904),
        ({**cancel_body(ALICE, timestamp=NOW), "timestamp": 2**63}, 400, 1048577),
        (cancel_body(ALICE, bytes(32)), 404, 9437193),
    ],
)
async def test_bad_requests_to_cancel(body: Any, status: int, error: int) -> None:
    reply = await Api()("POST /matcher/orderbook/cancel", body)
    assert (reply.status, reply.json()["error"]) == (status, error)


async def test_nobody_cancels_the_order_of_another_account() -> None:
    api, order = Api(), buy(ALICE, 10**8, 2 * 10**8)
    await api.place(order)
    reply = await api("POST /matcher/orderbook/cancel", cancel_body(BOB, order.id))
    assert (reply.status, reply.json()["error"]) == (404, 9437193)
    # A signature of one's own, with somebody else's address in the path.
    headers = {**signature_headers(BOB), "X-User-Public-Key": public_key(BOB)}
    path = f"POST /matcher/orders/{text_address(ALICE)}/cancel"
    reply = await api(path, [base58.encode(order.id)], headers)
    assert (reply.status, reply.json()["error"]) == (403, 3148801)
    assert status_of(api, order.id) is OrderStatus.ACCEPTED
    # Somebody else's key in the header, with a signature of one's own.
    headers["X-User-Public-Key"] = public_key(ALICE)
    reply = await api(path, [base58.encode(order.id)], headers)
    assert (reply.status, reply.json()["error"]) == (400, 1051904)
    assert status_of(api, order.id) is OrderStatus.ACCEPTED


async def test_a_batch_by_its_owner_keeps_the_order_of_ids() -> None:
    api = Api()
    first, second = buy(ALICE, 10**8, 2 * 10**8), buy(ALICE, 10**8, 3 * 10**8)
    foreign = buy(BOB, 10**8, 2 * 10**8)
    for order in (first, second, foreign):
        await api.place(order)
    headers = {**signature_headers(ALICE), "X-User-Public-Key": public_key(ALICE)}
    ids = [base58.encode(order.id) for order in (second, foreign, first, second)]
    reply = await api(f"POST /matcher/orders/{text_address(ALICE)}/cancel", ids, headers)
    items = reply.json()["message"][0]
    assert [item.get("orderId") for item in items] == [ids[0], None, ids[2]]
    assert items[1]["error"] == 9437193 and items[1]["status"] == "OrderCancelRejected"
    assert status_of(api, foreign.id) is OrderStatus.ACCEPTED


async def test_the_operator_cancels_for_others() -> None:
    api, first = Api(), buy(ALICE, 10**8, 2 * 10**8)
    second = buy(ALICE, 10**8, 3 * 10**8)
    await api.place(first)
    await api.place(second)
    name = base58.encode(first.id)
    path = f"POST /matcher/orders/cancel/{name}"
    assert (await api(path)).json()["error"] == 106954752
    wrong = {"X-API-Key": KEY, "X-User-Public-Key": public_key(BOB)}
    assert (await api(path, None, wrong)).json()["error"] == 9437193
    assert (await api.keyed(path)).json()["orderId"] == name
    path = f"POST /matcher/orders/{text_address(ALICE)}/cancel"
    assert (await api(path, [], wrong)).json()["error"] == 3148801
    reply = await api.keyed(path, [base58.encode(second.id)])
    assert reply.json()["message"][0][0]["success"] is True
    unknown = base58.encode(bytes(32))
    assert (await api.keyed(f"POST /matcher/orders/cancel/{unknown}")).status == 404


# --- signatures expire ----------------------------------------------------------------------------

SIGNED = f"GET /matcher/orderbook/{public_key(ALICE)}"


@pytest.mark.parametrize(
    ("age", "status"), [(0, 200), (HOUR, 200), (HOUR + 1, 400), (-HOUR, 200), (-HOUR - 1, 400)]
)
async def test_signatures_hold_for_an_hour_around_their_time(age: int, status: int) -> None:
    api = Api()
    reply = await api(SIGNED, None, signature_headers(ALICE, NOW - age))
    assert reply.status == status
    if status != 200:
        assert reply.json()["error"] == 1051904
        assert reply.json()["status"] == "InvalidSignature"


async def test_the_window_is_a_setting() -> None:
    api = Api(FakeCore(rest_api=RestApi(signature_window_ms=1_000)))
    assert (await api(SIGNED, None, signature_headers(ALICE, NOW - 1_000))).status == 200
    assert (await api(SIGNED, None, signature_headers(ALICE, NOW - 1_001))).status == 400


@pytest.mark.parametrize("timestamp", ["", "x", "1.5", "-1", "9" * 19, "9" * 30, "١"])
async def test_a_timestamp_that_is_no_number(timestamp: str) -> None:
    headers = signature_headers(ALICE) | {"Timestamp": timestamp}
    reply = await Api()(SIGNED, None, headers)
    assert (reply.status, reply.json()["error"]) == (400, 1051904)


async def test_filled_and_market_orders() -> None:
    api, maker, taker = Api(), sell(BOB, 10**8, 10**8), buy(ALICE, 10**8, 10**8)
    await api.place(maker)
    await api.place(taker)
    reply = await api("POST /matcher/orderbook/cancel", cancel_body(ALICE, taker.id))
    assert (reply.status, reply.json()["error"]) == (400, 9437191)


@pytest.mark.parametrize(
    ("age", "status"), [(0, 200), (MINUTES, 200), (MINUTES + 1, 400), (-MINUTES - 1, 400)]
)
async def test_a_signature_of_history_cancels_for_minutes_only(age: int, status: int) -> None:
    """The bytes under both are the same, in the reference's formats."""
    api, headers = Api(), signature_headers(ALICE, NOW - age)
    assert (await api(SIGNED, None, headers)).status == 200
    body = {
        "sender": base58.encode(ALICE.public_key),
        "timestamp": NOW - age,
        "signature": headers["Signature"],
    }
    assert (await api("POST /matcher/orderbook/cancel", body)).status == status
