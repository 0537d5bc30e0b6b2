"""What the service refuses and how, formats, and that no value becomes a statement.

The words are those of the reference (wavesplatform/data-service).
"""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import httpx
import pytest

from soliton.data_service import transactions
from soliton.data_service.app import DataService, DataServiceSettings
from soliton.data_service.formats import Format
from soliton.data_service.parameters import MAX_LIMIT
from soliton.data_service.pool import Pool
from soliton.data_service.transactions import Transactions
from soliton.web.server import serve
from tests.export.postgres import Server

UNKNOWN = "3MQ3wm31EXpD2vUxP7wqQuEMn1fRX2cadL3"
BAD = [
    ("/transactions/transfer?limit=101", "Max limit 100 exceeded"),
    ("/transactions/transfer?limit=abc", "limit has to be a number"),
    ("/transactions/transfer?limit=-1", "limit has to be a number"),
    ("/transactions/transfer?sort=up", "Invalid sort value"),
    ("/transactions/transfer?after=%21", "Cursor deserialization is failed"),
    ("/transactions/transfer?after=YWJj", "Cursor deserialization is failed"),
    ("/transactions/transfer?after=LSs1Ojphc2M=", "Cursor deserialization is failed"),
    ("/assets?search=x&after=AA==", "Cursor deserialization is failed"),
    ("/transactions/transfer?timeStart=-%2B5", "Date is not valid"),
    ("/candles/WAVES/x?timeStart=0001-01-01T00:00%2B14:00&interval=1d", "Date is not valid"),
    ("/transactions/transfer?timeStart=soon", "Date is not valid"),
    ("/transactions/data?type=integer&value=x", "Invalid data value"),
    ("/assets", "There is neither ticker nor search query"),
    ("/aliases?address=a&queries=b",
     "Request contains a conflict between exclusive peers [address, addresses, queries]"),
    ("/aliases", "Neither `address` nor `addresses` nor `queries` were not provided"),
    ("/aliases?address=a&showBroken=perhaps", "Invalid boolean value"),
    ("/candles/WAVES/x?interval=1m", "timeStart is required"),
    ("/candles/WAVES/x?timeStart=1", "interval is required"),
    ("/candles/WAVES/x?timeStart=1&interval=7m", "Interval must be one of the allowed"),
    ("/candles/WAVES/x?timeStart=1&interval=1m",
     "N of candles is more then allowed of 1440. Try to decrease requested period of time."),
    ("/matchers/m/candles/WAVES/WAVES?interval=1m", "timeStart is undefined"),
    ("/matchers/m/pairs/WAVES/nothing", "Assets do not exist in the blockchain"),
    ("/matchers/m/rates?pairs=WAVES", "Pairs are incorrect or are not set"),
    ("/matchers/m/rates?pairs=WAVES/nothing",
     "Some of the assets of specified pairs do not exist in the blockchain"),
]  # fmt: skip
NOT_FOUND = (
    *("/transactions/transfer/x", "/assets/x", "/aliases/x", "/pairs/a/b", "/nothing"),
    *("/assets/a/b", "/transactions/nothing", "/candles/a/b?timeStart=1&timeEnd=2&interval=1m"),
)  # fmt: skip
HOSTILE = (
    "'",
    "'; DROP TABLE txs; --",
    "%s",
    "%(value)s",
    "\\",
    "$1",
    "\U0001f30a",
    "a" * 1_000,
    "\U00020000" * 600,
)


@pytest.mark.parametrize(("path", "message"), BAD)
async def test_bad_requests(client: httpx.AsyncClient, path: str, message: str) -> None:
    answer = await client.get(path)
    assert answer.status_code == 400
    body = answer.json()
    assert body["message"] == "Bad Request"
    assert body["meta"][0]["message"] == message


@pytest.mark.parametrize("path", NOT_FOUND)
async def test_what_is_not_there(client: httpx.AsyncClient, path: str) -> None:
    answer = await client.get(path)
    assert (answer.status_code, answer.json()) == (404, {"message": "Not Found"})


@pytest.mark.parametrize("text", HOSTILE)
async def test_values_are_only_values(client: httpx.AsyncClient, text: str) -> None:
    """The reference pastes some of these into its statements."""
    empty: dict[str, Any] = {"__type": "list", "isLastPage": True, "data": []}
    for kind, name in (
        *(("transfer", "recipient"), ("mass-transfer", "recipient"), ("lease-cancel", "recipient")),
        *(("invoke-script", "dapp"), ("exchange", "orderId"), ("exchange", "sender")),
        *(("exchange", "senders"), ("transfer", "sender"), ("data", "key"), ("issue", "script")),
    ):
        answer = await client.get(f"/transactions/{kind}", params={name: text})
        assert (answer.status_code, answer.json()) == (200, empty), (kind, name)
    assert (await client.get("/assets", params={"search": text})).status_code == 200
    assert (await client.get("/pairs", params={"search_by_asset": text})).json() == empty
    found = await client.get("/transactions/all", params={"ids": text.replace(",", "")})
    assert found.json()["data"] == [{"__type": "transaction", "data": None}]


async def test_characters_that_no_text_has(client: httpx.AsyncClient) -> None:
    for path in ("/transactions/transfer?sender=%00", "/assets?search=%00", "/assets?ids=%00"):
        assert (await client.get(path)).status_code == 400
    assert (await client.get("/assets/%00")).status_code == 404
    assert (await client.get("/transactions/transfer?sender=%ff")).status_code == 400


async def test_bodies_that_are_none(client: httpx.AsyncClient) -> None:
    for content in (b"[", b"[]", b'"x"', b'{"ids":[{}]}', b"\xff", b'{"ids":' + b"[" * 9_000):
        answer = await client.post("/assets", content=content)
        assert (answer.status_code, answer.json()["message"]) == (400, "Bad Request"), content


async def test_lists_by_ids_keep_order_and_doubles(client: httpx.AsyncClient) -> None:
    expected = ["WAVES", None, "WAVES"]
    for answer in (
        await client.get("/assets", params={"ids": ["WAVES", "x", "WAVES"]}),
        await client.get("/assets", params={"ids": "WAVES,x,WAVES"}),
        await client.post("/assets", json={"ids": ["WAVES", "x", "WAVES"]}),
    ):
        body = answer.json()
        assert [each["data"] and each["data"]["id"] for each in body["data"]] == expected
        assert set(body) == {"__type", "data"}
    assert (await client.get("/assets?ids=")).json()["data"] == []


async def test_an_empty_market_has_empty_candles(client: httpx.AsyncClient) -> None:
    query = {"timeStart": "2026-11-02T00:00:01Z", "timeEnd": "2026-11-23", "interval": "1w"}
    body = (await client.get("/candles/WAVES/x", params=query)).json()
    assert body["isLastPage"] is False
    # Weeks begin on Mondays.
    assert [each["data"]["time"] for each in body["data"]] == [
        f"2026-11-{day:02d}T00:00:00.000Z" for day in (9, 16, 23)
    ]
    assert body["data"][0]["data"] == {
        **dict.fromkeys(("maxHeight", "open", "high", "low", "close", "volume", "quoteVolume")),
        "weightedAveragePrice": None,
        "time": "2026-11-09T00:00:00.000Z",
        "timeClose": "2026-11-15T23:59:59.999Z",
        "txsCount": 0,
    }


async def test_a_request_keeps_its_id(client: httpx.AsyncClient) -> None:
    given = await client.get("/version", headers={"X-Request-Id": "mine"})
    assert given.headers["x-request-id"] == "mine"
    assert (await client.get("/version")).headers["x-request-id"]


@pytest.mark.parametrize(
    ("value", "number", "text"),
    [
        # Seen of the reference (BigNumber's toString, and its own stringify).
        (Decimal("0.00000001"), "0.00000001", '"1e-8"'),
        (Decimal("0.00000012"), "0.00000012", '"1.2e-7"'),
        (Decimal("0.000001"), "0.000001", '"0.000001"'),
        (Decimal(10) ** 20, "1" + "0" * 20, '"1' + "0" * 20 + '"'),
        (Decimal(10) ** 21, "1" + "0" * 21, '"1e+21"'),
        (Decimal("1.50"), "1.5", '"1.5"'),
        (Decimal(-12), "-12", '"-12"'),
        (Decimal(0), "0", '"0"'),
    ],
)
def test_large_numbers(value: Decimal, number: str, text: str) -> None:
    assert bytes(Format().number(value)).decode() == number
    assert bytes(Format(strings=True).number(value)).decode() == text


@pytest.mark.parametrize(
    ("accept", "message"),
    [
        ("application/json; large-significand-format=text", "Invalid Large significand format"),
        ("application/json; money-format=short", "Invalid Money Format"),
    ],
)
async def test_formats_that_are_none(client: httpx.AsyncClient, accept: str, message: str) -> None:
    answer = await client.get("/assets/WAVES", headers={"Accept": accept})
    assert answer.json()["meta"][0]["message"] == message


async def test_without_a_database(postgres: Server) -> None:
    pool = Pool(postgres.dsn("nothing_of_this_name"), 2)
    running = await serve(DataService(pool, DataServiceSettings()), "127.0.0.1", 0)
    async with httpx.AsyncClient(timeout=60) as client:
        answer = await client.get(f"http://{running.host}:{running.port}/assets/WAVES")
    await running.stop()
    await pool.close()
    assert (answer.status_code, answer.json()) == (500, {"message": "Internal Server Error"})


async def test_a_question_that_takes_too_long(recorded_dsn: str) -> None:
    from soliton.data_service.errors import QueryTimeout

    pool = Pool(recorded_dsn, 2, 0.05)
    with pytest.raises(QueryTimeout):
        await pool.fetch("SELECT pg_sleep(60)")
    assert await pool.fetch("SELECT 1 AS one") == [{"one": 1}]
    await pool.close()


async def test_one_answer_has_a_length_that_it_may_have(
    client: httpx.AsyncClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    page = (await client.get("/transactions/all?limit=100")).json()["data"]
    ids = [each["data"]["id"] for each in page]
    each_once = await client.post("/transactions/all", json={"ids": ids})
    assert each_once.json()["data"] == page
    size = len(each_once.content)
    # As much as that, but not once more.
    monkeypatch.setattr(transactions, "MAX_ANSWER_BYTES", size)
    assert (await client.post("/transactions/all", json={"ids": ids})).status_code == 200
    for many in (ids * 2, ids[:1] * 5_000):
        refused = await client.post("/transactions/all", json={"ids": many})
        assert refused.status_code == 400
        [meta] = refused.json()["meta"]
        assert meta["message"] == "Response is too long, request fewer ids"


async def test_no_more_than_a_page_is_in_memory(
    client: httpx.AsyncClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    # 5,000 data transactions at their largest were gigabytes.
    page = (await client.get("/transactions/all?limit=100")).json()["data"]
    older = await client.get(
        "/transactions/all", params={"limit": 100, "timeEnd": page[-1]["data"]["timestamp"]}
    )
    ids = list(dict.fromkeys(each["data"]["id"] for each in (*page, *older.json()["data"])))
    assert len(ids) > MAX_LIMIT
    shown = Transactions._shown
    lengths = []

    async def counted(self: Transactions, rows: Any, shape: Format) -> Any:
        lengths.append(len(rows))
        return await shown(self, rows, shape)

    monkeypatch.setattr(Transactions, "_shown", counted)
    answer = await client.post("/transactions/all", json={"ids": ids})
    assert [each["data"]["id"] for each in answer.json()["data"]] == ids
    assert sum(lengths) == len(ids) and max(lengths) == MAX_LIMIT
