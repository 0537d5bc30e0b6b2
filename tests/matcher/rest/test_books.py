"""Order books over HTTP: depth in both forms, status, markets, redirects, the operator's part."""

from __future__ import annotations

from typing import Any

import pytest

from soliton.crypto import base58
from soliton.matcher.records import ServiceStatus
from soliton.matcher.rest.answers import NOT_FOUND
from soliton.matcher.rest.http_gate import HttpGate
from soliton.matching.pairs import AssetPair
from soliton.matching.placement import Restrictions
from soliton.web.answers import Awaited, Whole
from soliton.web.request import Request
from tests.matcher.fakes import (
    ALICE,
    BOB,
    DOLLAR,
    GOLD,
    GOLD_WAVES,
    MATCHER,
    NOW,
    NOWHERE,
    Api,
    buy,
    sell,
    signature_headers,
)

NAME = base58.encode(GOLD)
BOOK = f"/matcher/orderbook/{NAME}/WAVES"
REVERSED = f"/matcher/orderbook/WAVES/{NAME}"
UNKNOWN = f"/matcher/orderbook/{base58.encode(NOWHERE)}/WAVES"


async def busy() -> Api:
    """A book with fifteen bids and two asks."""
    api = Api()
    for price in range(1, 16):
        await api.place(buy(ALICE, 10**8, price * 10**6))
    await api.place(sell(BOB, 2 * 10**8, 3 * 10**8))
    await api.place(sell(BOB, 10**7, 2 * 10**8))
    return api


async def test_depth() -> None:
    api = await busy()
    told = (await api(f"GET {BOOK}?depth=1")).json()
    assert told["timestamp"] == NOW
    assert told["pair"] == {"amountAsset": NAME, "priceAsset": "WAVES"}
    assert told["asks"] == [
        {"price": 2 * 10**8, "amount": 10**7},
        {"price": 3 * 10**8, "amount": 2 * 10**8},
    ]
    # A depth is rounded up to the next one that is served: 10 and 100.
    assert [len((await api(f"GET {BOOK}?depth={n}")).json()["bids"]) for n in (0, 10, 11, 999)] == [
        *(10, 10, 15, 15)
    ]
    assert len((await api(f"GET {BOOK}")).json()["bids"]) == 15
    assert told["bids"][0] == {"price": 15 * 10**6, "amount": 10**8}


def at_once(app: HttpGate, query: bytes, headers: dict[bytes, bytes]) -> Whole | None:
    """The answer, if it needs no waiting."""
    found = app.respond(Request("GET", BOOK, query, headers))
    if isinstance(found, Whole):
        return found
    assert isinstance(found, Awaited)
    found.work.close()
    return None


async def test_an_answer_is_kept_until_the_book_changes() -> None:
    api = await busy()
    app = api.app.gate

    def kept(query: bytes = b"", headers: dict[bytes, bytes] | None = None) -> Whole | None:
        return at_once(app, query, headers or {})

    assert kept() is None
    first = await api(f"GET {BOOK}")
    again = kept()
    assert again is not None and again.body == first.body
    assert first.headers.items() >= dict(again.headers).items()
    assert kept(b"depth=10") is None
    assert kept(headers={b"timestamp": b"1"}) is None
    api.core.status = ServiceStatus.STOPPING
    assert kept() is None
    api.core.status = ServiceStatus.WORKING
    await api.place(buy(ALICE, 10**8, 10**8))
    assert kept() is None
    assert (await api(f"GET {BOOK}")).json()["bids"][0]["price"] == 10**8


async def test_as_many_spellings_as_anybody_likes_are_not_kept() -> None:
    api = await busy()
    for number in range(40):
        await api(f"GET {BOOK}?depth={number}")
    found = [at_once(api.app.gate, b"depth=%d" % number, {}) for number in range(40)]
    assert sum(each is not None for each in found) == 16


async def test_an_empty_book() -> None:
    told = (await Api()(f"GET {BOOK}")).json()
    assert (told["bids"], told["asks"], told["timestamp"]) == ([], [], NOW)


async def test_depth_as_text() -> None:
    api = await busy()
    told = (await api(f"GET /api/v1/orderbook/{NAME}/WAVES?depth=10")).json()
    assert told["asks"] == [["2.00000000", "0.10000000"], ["3.00000000", "2.00000000"]]
    assert told["bids"][0] == ["0.15000000", "1.00000000"]
    assert "pair" not in told
    for depth, served in ((-5, 10), (0, 10), (11, 15)):
        told = (await api(f"GET /api/v1/orderbook/{NAME}/WAVES?depth={depth}")).json()
        assert len(told["bids"]) == served, depth
    for query in ("", "?depth=", "?depth=100&depth=5"):
        assert len((await api(f"GET /api/v1/orderbook/{NAME}/WAVES{query}")).json()["bids"]) == 15
    reply = await api(f"GET /api/v1/orderbook/WAVES/{NAME}")
    assert (reply.status, reply.json()["error"]) == (400, 9440771)


async def test_text_of_assets_with_other_decimals() -> None:
    api, pair = Api(), AssetPair(GOLD, DOLLAR)
    if pair.amount_asset < (pair.price_asset or b""):  # type: ignore[operator]
        pair = pair.reversed()
    # A price has 8 + price decimals - amount decimals digits behind the point.
    await api.place(buy(ALICE, 10**8, 123, pair=pair))
    first, second = (base58.encode(asset or b"") for asset in (pair.amount_asset, pair.price_asset))
    told = (await api(f"GET /api/v1/orderbook/{first}/{second}")).json()
    gold_first = pair.amount_asset == GOLD
    assert told["bids"] == [["1.23", "1.00000000"] if gold_first else ["0.00000000", "1000000.00"]]


@pytest.mark.parametrize(
    ("depth", "reason"),
    [
        ("x", "Depth value 'x' must be an Integer"),
        ("", "Depth value '' must be an Integer"),
        ("99999999999", "Depth value '99999999999' must be an Integer"),
        ("-1", "Depth value '-1' must be non-negative"),
    ],
)
async def test_depths_that_are_none(depth: str, reason: str) -> None:
    reply = await Api()(f"GET {BOOK}?depth={depth}")
    told = reply.json()
    assert (reply.status, told["error"], told["status"]) == (400, 1076224, "InvalidDepth")
    assert told["message"] == f"Provided depth is not correct, reason: {reason}"
    assert told["result"] is None and told["params"] == {"reason": reason}


@pytest.mark.parametrize("suffix", ["", "?depth=10", "/status", "/info"])
async def test_a_reversed_pair_is_elsewhere(suffix: str) -> None:
    reply = await Api()(f"GET {REVERSED}{suffix}")
    assert reply.status == 301
    assert reply.headers[b"location"] == f"{BOOK}{suffix}".encode()


@pytest.mark.parametrize(
    ("path", "status", "error", "word"),
    [
        (UNKNOWN, 404, 11534345, "InfoNotFound"),
        (f"{UNKNOWN}/status", 404, 11534345, "InfoNotFound"),
        ("/matcher/orderbook/WAVES/WAVES", 400, 9440776, "InfoNotFound"),
        ("/matcher/orderbook/0/WAVES/status", 400, 11534337, "InvalidAsset"),
        (f"/matcher/orderbook/{'1' * 45}/WAVES/status", 400, 11534337, "InvalidAsset"),
    ],
)
async def test_pairs_that_are_none(path: str, status: int, error: int, word: str) -> None:
    reply = await Api()(f"GET {path}")
    told = reply.json()
    assert (reply.status, told["error"], told["status"]) == (status, error, word)


async def test_the_signature_decides_between_book_and_order() -> None:
    """Both paths have two segments; a signed request is about an order, even a malformed one."""
    api, headers = Api(), signature_headers(ALICE)
    # Without a signature too, the segments are first taken for a key and an id.
    assert (await api("GET /matcher/orderbook/0/WAVES")).json()["error"] == 3148801
    assert (await api("GET /matcher/orderbook/WAVES/0")).json()["error"] == 9437185
    reply = await api(f"GET {BOOK}", None, headers)
    assert (reply.status, reply.json()["error"]) == (400, 1051904)


async def test_status() -> None:
    api = Api()
    empty = (await api(f"GET {BOOK}/status")).json()
    assert empty == {"success": True, "status": "SimpleResponse"}
    await api.place(sell(BOB, 2 * 10**8, 3 * 10**8))
    await api.place(buy(ALICE, 10**8, 4 * 10**8))
    await api.place(buy(ALICE, 10**8, 2 * 10**8))
    assert (await api(f"GET {BOOK}/status")).json() == {
        "success": True,
        "status": "SimpleResponse",
        "lastPrice": 3 * 10**8,
        "lastAmount": 10**8,
        "lastSide": "buy",
        "bid": 2 * 10**8,
        "bidAmount": 10**8,
        "ask": 3 * 10**8,
        "askAmount": 10**8,
    }


async def test_info_and_markets() -> None:
    api = await busy()
    api.core.limits[GOLD_WAVES] = Restrictions()
    info: dict[str, Any] = {
        "matchingRules": {"tickSize": "0.00000001"},
        "restrictions": {
            "stepAmount": "0.00000001",
            "minAmount": "0.00000001",
            "maxAmount": "1000000000",
            "stepPrice": "0.00000001",
            "minPrice": "0.00000001",
            "maxPrice": "1000000",
        },
    }
    told = (await api(f"GET {BOOK}/info")).json()
    assert told == {"success": True, "status": "SimpleResponse", **info}
    for path in ("/matcher/orderbook", "/matcher/orderbook/"):
        told = (await api(f"GET {path}")).json()
        assert told["matcherPublicKey"] == base58.encode(MATCHER.public_key)
        assert told["markets"] == [
            {
                "amountAsset": NAME,
                "amountAssetName": "Gold",
                "amountAssetInfo": {"decimals": 8},
                "priceAsset": "WAVES",
                "priceAssetName": "WAVES",
                "priceAssetInfo": {"decimals": 8},
                "created": NOW,
                **info,
            }
        ]


async def test_the_operator_empties_and_deletes_books() -> None:
    api = await busy()
    for line in (f"DELETE {BOOK}", f"POST {BOOK}/cancelAll"):
        assert (await api(line)).json()["error"] == 106954752
    reply = await api.keyed(f"POST {BOOK}/cancelAll")
    assert (reply.status, reply.json()["message"]) == (202, "Canceling all orders in order book")
    assert (await api(f"GET {BOOK}")).json()["bids"] == []
    told = (await api.keyed(f"DELETE {BOOK}")).json()
    assert (told["error"], told["status"]) == (11534356, "InfoNotFound")
    api.core.denied.add(GOLD_WAVES)
    reply = await api.keyed(f"DELETE {BOOK}")
    assert (reply.status, reply.json()["message"]) == (202, "Deleting order book")
    reply = await api.keyed(f"DELETE {BOOK}")
    told = reply.json()
    assert (reply.status, told["error"]) == (503, 8388609)
    assert told["status"] == "OrderBookUnavailable"


async def test_nothing_is_shown_before_the_books_are_back() -> None:
    api = await busy()
    for status, error, word in (
        (ServiceStatus.STARTING, 13, "DuringStart"),
        (ServiceStatus.STOPPING, 14, "DuringShutdown"),
    ):
        api.core.status = status
        told = (await api(f"GET {BOOK}")).json()
        assert (told["error"], told["status"]) == (error, word)


@pytest.mark.parametrize(
    "line",
    [
        *("GET /nowhere", "GET /matcher/nowhere", "POST /matcher", "PUT /matcher/orderbook"),
        f"GET /matcher/orderbook/{NAME}",
        "GET /" + "a/" * 100,
    ],
)
async def test_unknown_paths(line: str) -> None:
    reply = await Api()(line)
    if NAME in line:  # a public key without a signature
        assert reply.status == 404
    assert (reply.status, reply.body) == (404, NOT_FOUND.body)


async def test_preflight() -> None:
    reply = await Api()("OPTIONS /matcher/orderbook")
    assert reply.status == 200
    assert reply.headers[b"access-control-allow-methods"] == b"OPTIONS, POST, PUT, GET, DELETE"
    assert b"Timestamp" in reply.headers[b"access-control-allow-headers"]
