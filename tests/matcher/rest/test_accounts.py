"""What accounts and the operator may see: history, orders, balances; the service about itself."""

from __future__ import annotations

import asyncio
import gc
import re
from typing import Any

import msgspec
import pytest

from soliton import __version__
from soliton.crypto import base58
from soliton.crypto.keys import KeyPair
from soliton.matcher.journal.errors import JournalUnavailable
from soliton.matcher.records import Unsettled
from soliton.matcher.rest.history import TRANSACTION_SLICE
from soliton.matcher.settings import RestApi
from tests.matcher.fakes import (
    ALICE,
    BOB,
    CHAIN_ID,
    GOLD,
    GOLD_WAVES,
    KEY,
    MATCHER,
    NOW,
    Api,
    FakeCore,
    buy,
    sell,
    signature_headers,
    text_address,
)
from tests.matcher.kit import exchange_of
from tests.vectors import REPOSITORY

NAME = base58.encode(GOLD)
BOOK = f"/matcher/orderbook/{NAME}/WAVES"


def public_key(keys: KeyPair) -> str:
    return base58.encode(keys.public_key)


async def traded() -> tuple[Api, dict[str, str]]:
    """Alice has an order that was partly filled, an untouched one, and one that was filled."""
    api = Api()
    orders = {
        "partly": buy(ALICE, 3 * 10**8, 2 * 10**8, timestamp=NOW + 1),
        "untouched": buy(ALICE, 10**8, 10**8, timestamp=NOW + 2),
        "filled": buy(ALICE, 10**8, 4 * 10**8, timestamp=NOW + 3),
    }
    for order in orders.values():
        await api.place(order)
    await api.place(sell(BOB, 2 * 10**8, 2 * 10**8))
    return api, {name: base58.encode(order.id) for name, order in orders.items()}


async def test_the_status_of_an_order_is_public() -> None:
    api, ids = await traded()
    told = {name: (await api(f"GET {BOOK}/{ids[name]}")).json() for name in ids}
    assert told == {
        "partly": {"status": "PartiallyFilled", "filledAmount": 10**8, "filledFee": 100_000},
        "untouched": {"status": "Accepted"},
        "filled": {"status": "Filled", "filledAmount": 10**8, "filledFee": 300_000},
    }
    unknown = await api(f"GET {BOOK}/{base58.encode(bytes(32))}")
    assert unknown.json() == {"status": "NotFound", "message": "The limit order is not found"}
    assert (await api(f"GET {BOOK}/0")).json()["error"] == 9437185


@pytest.mark.parametrize(
    ("query", "wanted"),
    [
        ("", ["untouched", "partly", "filled"]),
        ("?activeOnly=true", ["untouched", "partly"]),
        ("?closedOnly=true", ["filled"]),
        ("?activeOnly=false&closedOnly=false", ["untouched", "partly", "filled"]),
        ("?activeOnly=true&closedOnly=true", []),
        ("?activeOnly=true&closedOnly=false", ["untouched", "partly"]),
        ("?activeOnly=&closedOnly=true", ["filled"]),
        ("?closedOnly=true&closedOnly=false", ["filled"]),
    ],
)
async def test_history(query: str, wanted: list[str]) -> None:
    api, ids = await traded()
    names = {order_id: name for name, order_id in ids.items()}
    headers = signature_headers(ALICE)
    for path in (
        f"/matcher/orderbook/{public_key(ALICE)}{query}",
        f"{BOOK}/publicKey/{public_key(ALICE)}{query}",
    ):
        found = (await api(f"GET {path}", None, headers)).json()
        assert [names[item["id"]] for item in found] == wanted
    by_key = (await api.keyed(f"GET /matcher/orders/{text_address(ALICE)}{query}")).json()
    only_active = ["untouched", "partly"]
    assert [names[item["id"]] for item in by_key] == (wanted if query else only_active)


async def test_an_item_of_the_history() -> None:
    api, ids = await traded()
    wanted = {
        "id": ids["partly"],
        "type": "buy",
        "orderType": "limit",
        "amount": 3 * 10**8,
        "filled": 10**8,
        "price": 2 * 10**8,
        "fee": 300_000,
        "filledFee": 100_000,
        "feeAsset": "WAVES",
        "timestamp": NOW + 1,
        "status": "PartiallyFilled",
        "assetPair": {"amountAsset": NAME, "priceAsset": "WAVES"},
        "avgWeighedPrice": 2 * 10**8,
        "version": 3,
        "totalExecutedPriceAssets": 2 * 10**8,
    }
    headers = signature_headers(ALICE)
    reply = await api(f"GET /matcher/orderbook/{public_key(ALICE)}/{ids['partly']}", None, headers)
    assert reply.json() == {"success": True, **wanted}
    reply = await api.keyed(f"GET /matcher/orders/{text_address(ALICE)}/{ids['partly']}")
    assert reply.json() == {"success": True, **wanted}
    # Somebody else's order is not found, whoever asks.
    headers = signature_headers(BOB)
    reply = await api(f"GET /matcher/orderbook/{public_key(BOB)}/{ids['partly']}", None, headers)
    assert (reply.status, reply.json()["error"]) == (404, 9437193)
    reply = await api.keyed(f"GET /matcher/orders/{text_address(BOB)}/{ids['partly']}")
    assert (reply.status, reply.json()["status"]) == (404, "InfoNotFound")


async def test_numbers_as_strings() -> None:
    api, _ = await traded()
    headers = signature_headers(ALICE)
    headers["Accept"] = "application/json;large-significand-format=string"
    reply = await api(f"GET /matcher/orderbook/{public_key(ALICE)}", None, headers)
    assert reply.headers[b"content-type"] == b"application/json; large-significand-format=string"
    item = reply.json()[0]
    assert item["amount"] == str(10**8) and item["fee"] == "300000" and item["filled"] == 0
    # Envelopes and order books have numbers all the same.
    reply = await api(f"GET {BOOK}", None, {"Accept": headers["Accept"]})
    assert isinstance(reply.json()["bids"][0]["price"], int)


@pytest.mark.parametrize(
    ("path", "status"),
    [
        (f"/matcher/orderbook/{public_key(ALICE)}", 404),
        (f"/matcher/balance/reserved/{public_key(ALICE)}", 403),
        (f"/matcher/orders/{text_address(ALICE)}", 403),
        ("/matcher/debug/status", 403),
        (f"{BOOK}/publicKey/{public_key(ALICE)}", 404),
    ],
)
async def test_nothing_is_shown_to_strangers(path: str, status: int) -> None:
    api, _ = await traded()
    assert (await api(f"GET {path}")).status == status
    wrong = {"X-API-Key": "another", "api_key": "one more"}
    assert (await api(f"GET {path}", None, wrong)).status == status


async def test_the_key_can_be_in_the_old_header_and_narrow_a_call() -> None:
    api, _ = await traded()
    path = f"GET /matcher/orders/{text_address(ALICE)}"
    assert (await api(path, None, {"api_key": KEY})).status == 200
    for keys, status in ((ALICE, 200), (BOB, 403)):
        headers = {"X-API-Key": KEY, "X-User-Public-Key": public_key(keys)}
        assert (await api(path, None, headers)).status == status
        reserved = f"GET /matcher/balance/reserved/{public_key(ALICE)}"
        assert (await api(reserved, None, headers)).status == status


async def test_without_configured_keys_nobody_has_one() -> None:
    api = Api(FakeCore(rest_api=RestApi()))
    reply = await api.keyed("GET /matcher/debug/status")
    assert (reply.status, reply.json()["error"]) == (500, 106954769)


async def test_the_operator_is_shown_what_is_not_settled() -> None:
    lost = Unsettled(
        pair=GOLD_WAVES,
        amount=5,
        buy_order_id=bytes(32),
        sell_order_id=bytes(31) + b"a",
        transaction_id=None,
        timestamp=NOW,
        given_up=True,
        message="no transaction can be made of it",
    )
    core = FakeCore()
    core.lost = [lost, msgspec.structs.replace(lost, transaction_id=b"t" * 32, given_up=False)]
    api = Api(core)
    assert (await api("GET /matcher/debug/unsettled")).status == 403
    first, second = (await api.keyed("GET /matcher/debug/unsettled")).json()
    assert (first["status"], first["amount"], first["transactionId"]) == ("GivenUp", 5, None)
    assert first["message"] == "no transaction can be made of it"
    assert (second["status"], second["transactionId"]) == ("Waiting", base58.encode(b"t" * 32))
    assert (second["amountAsset"], second["priceAsset"]) == (base58.encode(GOLD), "WAVES")
    lines = (await api("GET /metrics")).body.decode().splitlines()
    for name in ("unsettled", "given_up"):
        assert f"soliton_matcher_executions_{name} 1" in lines


async def test_balances() -> None:
    api, _ = await traded()
    reply = await api(f"GET {BOOK}/tradableBalance/{text_address(ALICE)}")
    assert reply.json() == {NAME: 10**9}
    path = f"GET /matcher/balance/reserved/{public_key(ALICE)}"
    reply = await api(path, None, signature_headers(ALICE))
    # 2 at 2 and 1 at 1, with what remains of the fees.
    assert reply.json() == {"WAVES": 5 * 10**8 + 200_000 + 300_000}
    reply = await api(f"GET {BOOK}/tradableBalance/3M")
    assert (reply.status, reply.json()["error"]) == (400, 4194304)


async def test_all_balances_of_an_account() -> None:
    api, _ = await traded()
    path = f"GET /api/v1/balances/{public_key(ALICE)}"
    told = {
        "WAVES": {"tradable": "9994.995", "reserved": "5.005"},
        NAME: {"tradable": "100", "reserved": "0"},
    }
    assert (await api(path, None, signature_headers(ALICE))).json() == told
    assert (await api.keyed(path)).json() == told
    assert (await api(path)).status == 403
    assert (await api(path, None, signature_headers(BOB))).status == 400


async def test_thousands_of_transactions_of_an_order_hold_nobody_up(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    api = Api()
    found = [exchange_of(number, NOW) for number in range(3)] * 200
    monkeypatch.setattr(api.core, "transactions_of", lambda _: iter(found))
    listing = asyncio.create_task(api(f"GET /matcher/transactions/{base58.encode(bytes(32))}"))
    turns = 0
    while not listing.done():
        turns += 1
        await asyncio.sleep(0)
    assert len(listing.result().json()) == 600
    assert turns > 600 // TRANSACTION_SLICE


async def test_the_old_way_to_delete_from_the_history() -> None:
    api, ids = await traded()
    reply = await api(f"POST {BOOK}/delete", {"orderId": ids["filled"]})
    assert reply.json()["status"] == "OrderDeleted"
    reply = await api(f"POST {BOOK}/delete", {"timestamp": 1})
    assert (reply.status, reply.json()["error"]) == (501, 515)
    assert (await api(f"GET {BOOK}/delete")).status == 405


# --- about the matcher ----------------------------------------------------------------------------


async def test_key_and_settings() -> None:
    api = Api()
    assert (await api("GET /matcher")).json() == public_key(MATCHER)
    assert (await api("GET /matcher/settings")).json() == {
        "success": True,
        "status": "SimpleResponse",
        "matcherPublicKey": public_key(MATCHER),
        "matcherVersion": __version__,
        "priceAssets": ["WAVES"],
        "rates": {"WAVES": 1},
        "orderFee": {"dynamic": {"baseFee": 300_000}},
        "orderVersions": [1, 2, 3, 4],
        "networkByte": CHAIN_ID,
        "tickers": {},
    }


async def test_a_rate_whose_digits_break_off_is_not_taken() -> None:
    api, path = Api(), f"/matcher/settings/rates/{NAME}"
    reply = await api(f"PUT {path}", b"12", {"X-API-Key": KEY}, breaks_off=True)
    assert reply.body == b"", "nobody is there to hear of it"
    assert (await api("GET /matcher/settings/rates")).json() == {"WAVES": 1}
    reply = await api(f"PUT {path}", b"123", {"X-API-Key": KEY})
    assert reply.status == 201


async def test_rates() -> None:
    api, path = Api(), f"/matcher/settings/rates/{NAME}"
    assert (await api(f"PUT {path}", 0.5)).status == 403
    reply = await api.keyed(f"PUT {path}", 0.5)
    assert (reply.status, reply.json()["message"]) == (
        *(201, f"The rate 0.5 for the asset {NAME} added"),
    )
    reply = await api.keyed(f"PUT {path}", 2)
    words = f"The rate for the asset {NAME} updated, old value = 0.5, new value = 2.0"
    assert (reply.status, reply.json()["message"]) == (200, words)
    assert (await api("GET /matcher/settings/rates")).json() == {"WAVES": 1, NAME: 2}
    assert (await api.keyed(f"DELETE {path}")).json()["message"].endswith("old value = 2.0")
    reply = await api.keyed(f"DELETE {path}")
    assert (reply.status, reply.json()["error"], reply.json()["status"]) == (
        *(404, 20971529, "RateError"),
    )


async def test_rates_in_words_have_the_form_of_java() -> None:
    api, path = Api(), f"/matcher/settings/rates/{NAME}"
    told = (await api.keyed(f"PUT {path}", 1e-8)).json()["message"]
    assert told == f"The rate 1.0E-8 for the asset {NAME} added"
    told = (await api.keyed(f"PUT {path}", 2 * 10**9)).json()["message"]
    assert told.endswith("updated, old value = 1.0E-8, new value = 2.0E9")
    told = (await api.keyed(f"DELETE {path}")).json()["message"]
    assert told.endswith("deleted, old value = 2.0E9")


@pytest.mark.parametrize(
    ("asset", "body", "status", "error"),
    [
        (NAME, 0, 400, 20971535),
        (NAME, -1.5, 400, 20971535),
        (NAME, b"1e999", 400, 20971535),
        (NAME, "1", 400, 1048577),
        (NAME, True, 400, 1048577),
        (NAME, b"", 400, 1048577),
        ("WAVES", 1, 400, 20971531),
        ("0", 1, 400, 11534337),
        (base58.encode(bytes(32)), 1, 404, 11534345),
    ],
)
async def test_rates_that_are_none(asset: str, body: Any, status: int, error: int) -> None:
    reply = await Api().keyed(f"PUT /matcher/settings/rates/{asset}", body)
    assert (reply.status, reply.json()["error"]) == (status, error)


async def test_the_fee_of_an_order_to_come() -> None:
    wanted = {"orderType": "buy", "amount": 10**8, "price": 10**8}
    reply = await Api()(f"POST {BOOK}/calculateFee", wanted)
    assert reply.json() == {
        "base": {"feeAssetId": "WAVES", "matcherFee": 300_000},
        "discount": {"feeAssetId": NAME, "matcherFee": 100_000},
    }
    for body in ({}, {**wanted, "amount": 2**63}, {**wanted, "orderType": "keep"}):
        reply = await Api()(f"POST {BOOK}/calculateFee", body)
        assert (reply.status, reply.json()["error"]) == (400, 1048577)


async def test_what_the_operator_may_look_at() -> None:
    api, _ = await traded()
    base = "GET /matcher/debug/"
    assert (await api.keyed(f"{base}status")).json() == {
        "service": "Working",
        "blockchain": {"status": "Working", "height": 7, "finalizedHeight": 5},
    }
    assert (await api.keyed(f"{base}currentOffset")).json() == 3
    assert (await api.keyed(f"{base}lastOffset")).json() == 3
    assert (await api.keyed(f"{base}oldestSnapshotOffset")).json() == 1
    offsets = (await api.keyed(f"{base}allSnapshotOffsets")).json()
    assert offsets == {f"{NAME}-WAVES": 3}
    state = (await api.keyed(f"{base}address/{text_address(ALICE)}")).json()
    assert state["reserved"] == {"WAVES": 500_500_000}
    check = await api(f"{base}address/{text_address(ALICE)}/check")
    assert check.json() == {"matcher": False, "blockchain": False}
    saved = await api.keyed("POST /matcher/debug/saveSnapshots")
    assert saved.json()["message"] == "Saving started"
    await asyncio.sleep(0)
    assert api.core.saved == 1
    printed = await api.keyed("POST /matcher/debug/print", {"message": "hello"})
    assert printed.json()["message"] == "Message logged"


async def test_a_snapshot_that_cannot_be_written_is_told(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    api = Api()

    async def failing() -> None:
        raise JournalUnavailable("cannot write a snapshot: no space left")

    monkeypatch.setattr(api.core, "save", failing)
    reply = await api.keyed("POST /matcher/debug/saveSnapshots")
    assert reply.json()["message"] == "Saving started"
    await asyncio.sleep(0.01)
    gc.collect()
    assert "no snapshot: cannot write a snapshot: no space left" in caplog.text
    assert "Traceback" not in caplog.text


async def test_the_configuration_has_all_of_the_interface_but_its_keys() -> None:
    page = (REPOSITORY / "docs" / "reference" / "matcher-settings.md").read_text()
    section = page.partition("## Interface")[2].partition("\n## ")[0]
    documented = set(re.findall(r"^\| `([a-z-]+(?:\.[a-z-]+)*)`", section, re.MULTILINE))
    reply = await Api().keyed("GET /matcher/debug/config")

    def told(key: str) -> bool:
        value = msgspec.json.decode(reply.body)["waves"]["dex"]
        for part in key.split("."):
            value = value.get(part, {})
        return bool(value != {})

    keys = {
        "rest-api.api-key-hashes", "web-sockets.external-client-handler.jwt-public-key",
    }  # fmt: skip
    assert {key for key in documented if not told(key)} == keys


async def test_the_configuration_has_no_secrets() -> None:
    reply = await Api().keyed("GET /matcher/debug/config")
    assert reply.headers[b"content-type"] == b"application/hocon"
    told = msgspec.json.decode(reply.body)["waves"]["dex"]
    assert told["order-db"] == {"max-orders": 100}
    for secret in (b"seed", b"api-key-hashes", b"private", b"account-storage", b"password"):
        assert secret not in reply.body
