"""Answers about a chain that the reference node made, beside that node's own about the same."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from fractions import Fraction
from math import floor
from pathlib import Path
from typing import Any, Final

import httpx
import msgspec
import psycopg
import pytest

from tests.amounts import times
from tests.node import recorded
from tests.vectors import report

Row = dict[str, Any]
LONG: Final = {"Accept": "application/json; money-format=long"}
KINDS: Final = {
    1: "genesis",
    3: "issue",
    4: "transfer",
    5: "reissue",
    6: "burn",
    7: "exchange",
    8: "lease",
    9: "lease-cancel",
    10: "alias",
    11: "mass-transfer",
    12: "data",
    13: "set-script",
    14: "sponsorship",
    15: "set-asset-script",
    16: "invoke-script",
    17: "update-asset-info",
    18: "ethereum-like",
}
SAME: Final = (
    *("type", "id", "height", "sender", "senderPublicKey", "proofs", "version", "fee"),
    *("applicationStatus", "amount", "name", "description", "quantity", "decimals", "price"),
    *("reissuable", "attachment", "buyMatcherFee", "sellMatcherFee", "leaseId", "alias", "script"),
    *("minSponsoredAssetFee", "bytes", "assetId", "data"),
)
"""Members that both have under the same name, with the same value where money is long."""
OF_EACH_TYPE: Final = times(20, 1_000_000)
"""Transactions that are asked for in a second way."""


def exact(body: bytes) -> Any:
    return msgspec.json.Decoder(float_hook=Decimal).decode(body)


@pytest.fixture(scope="module")
def told(folder: Path) -> list[Row]:
    rows = recorded.lines(folder / "transactions-info.jsonl.gz")
    return [row["body"] for row in rows if row["status"] == 200]


@pytest.fixture(scope="module")
def decimals(folder: Path) -> dict[str | None, int]:
    found: dict[str | None, int] = {None: 8, "WAVES": 8}
    for row in recorded.lines(folder / "state-assets.jsonl.gz"):
        if row["status"] == 200 and row["path"].startswith("/assets/details/"):
            found[row["body"]["assetId"]] = row["body"]["decimals"]
    return found


def moment(milliseconds: int) -> str:
    time = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(milliseconds=milliseconds)
    return f"{time:%Y-%m-%dT%H:%M:%S}.{milliseconds % 1000:03d}Z"


async def test_each_transaction_by_id(client: httpx.AsyncClient, told: list[Row]) -> None:
    counts: Counter[int] = Counter()
    for expected in told:
        kind = KINDS[expected["type"]]
        answer = await client.get(f"/transactions/{kind}/{expected['id']}", headers=LONG)
        assert answer.status_code == 200, expected
        assert answer.headers["content-type"].endswith("; money-format=long")
        body = exact(answer.content)
        assert body["__type"] == "transaction"
        check(body["data"], expected)
        if counts[expected["type"]] < OF_EACH_TYPE:
            anywhere = await client.get(f"/transactions/all/{expected['id']}", headers=LONG)
            assert anywhere.content == answer.content
        counts[expected["type"]] += 1
    assert set(counts) == set(KINDS)
    report.ran("golden/waves-r data service", sum(counts.values()))


def check(found: Row, expected: Row) -> None:
    assert found["timestamp"] == moment(expected["timestamp"])
    for name in SAME:
        if name not in expected or name not in found:
            # Where the node has no proofs, or a member that only some versions have.
            assert name not in found or name in ("proofs", "version", "assetId", "script"), name
            continue
        told = expected[name]
        if name == "assetId":
            told = told or "WAVES"
        if name == "data":
            told = [
                entry if "type" in entry else {"key": entry["key"], "type": None} for entry in told
            ]
        assert found[name] == told, (name, expected)
    if "recipient" in expected:
        assert found["recipient"] == expected["recipient"].rpartition(":")[2]
    if "dApp" in expected:
        assert found["dApp"] == expected["dApp"].rpartition(":")[2]
        call = expected.get("call") or {"function": "default", "args": []}
        assert found["call"] == call
        assert found["payment"] == [
            {"amount": each["amount"], "assetId": each["assetId"] or "WAVES"}
            for each in expected["payment"]
        ]
    if "transfers" in expected:
        assert found["transfers"] == [
            {"recipient": each["recipient"].rpartition(":")[2], "amount": each["amount"]}
            for each in expected["transfers"]
        ]
    for name in ("order1", "order2"):
        if name in expected:
            check_order(found[name], expected[name])


def check_order(found: Row, expected: Row) -> None:
    for name, value in found.items():
        if name in ("timestamp", "expiration"):
            assert value == moment(expected[name])
        elif name == "assetPair":
            assert value == {key: each or "WAVES" for key, each in expected[name].items()}
        else:
            assert value == expected[name], name


async def test_money_is_divided_by_the_decimals_of_its_asset(
    client: httpx.AsyncClient, told: list[Row], decimals: dict[str | None, int]
) -> None:
    counts: Counter[int] = Counter()
    for expected in told:
        counts[expected["type"]] += 1
        if counts[expected["type"]] > OF_EACH_TYPE:
            continue
        found = exact((await client.get(f"/transactions/all/{expected['id']}")).content)["data"]
        fee = expected.get("feeAssetId") if expected["type"] in (4, 16) else None
        assert Decimal(found["fee"]).scaleb(decimals[fee]) == expected["fee"]
        if expected["type"] in (4, 6):
            places = decimals[expected["assetId"]]
            assert Decimal(found["amount"]).scaleb(places) == expected["amount"]
        if expected["type"] == 7:
            pair = expected["order1"]["assetPair"]
            amount, price = decimals[pair["amountAsset"]], decimals[pair["priceAsset"]]
            places = 8 if expected["version"] == 3 else 8 + price - amount
            assert Decimal(found["price"]).scaleb(places) == expected["price"]
            assert Decimal(found["amount"]).scaleb(amount) == expected["amount"]


async def test_pages_have_every_transaction_once(
    client: httpx.AsyncClient, told: list[Row]
) -> None:
    ids = [each["id"] for each in told]
    for sort in ("asc", "desc"):
        for kind, expected in (
            ("all", set(ids)),
            ("transfer", {each["id"] for each in told if each["type"] == 4}),
        ):
            found: list[str] = []
            after, is_last = "", False
            while not is_last:
                query = {"limit": "7", "sort": sort} | ({"after": after} if after else {})
                body = (await client.get(f"/transactions/{kind}", params=query)).json()
                found += [each["data"]["id"] for each in body["data"]]
                is_last, after = body["isLastPage"], body["lastCursor"]
                assert len(body["data"]) <= 7
            assert len(found) == len(set(found))
            assert set(found) == expected


async def test_filters_find_what_fits(client: httpx.AsyncClient, told: list[Row]) -> None:
    transfers = [each for each in told if each["type"] == 4]
    sender = Counter(each["sender"] for each in transfers).most_common(1)[0][0]
    recipient = Counter(each["recipient"] for each in transfers).most_common(1)[0][0]
    exchange = next(each for each in told if each["type"] == 7)
    entry = next(each for each in told if each["type"] == 12 and each["data"])
    key = entry["data"][0]
    height = sorted(each["height"] for each in transfers)[len(transfers) // 2]
    middle = next(each["timestamp"] for each in transfers if each["height"] == height)
    cases: list[tuple[str, Row, set[str]]] = [
        ("transfer", {"sender": sender}, {t["id"] for t in transfers if t["sender"] == sender}),
        ("transfer", {"senders": f"{sender},x"},
         {t["id"] for t in transfers if t["sender"] == sender}),
        ("transfer", {"recipient": recipient},
         {t["id"] for t in transfers if t["recipient"] == recipient}),
        ("transfer", {"timeStart": str(middle)},
         {t["id"] for t in transfers if t["timestamp"] >= middle}),
        ("transfer", {"timeEnd": moment(middle)},
         {t["id"] for t in transfers if t["timestamp"] <= middle}),
        ("transfer", {"assetId": "WAVES"}, {t["id"] for t in transfers if not t["assetId"]}),
        ("exchange", {"orderId": exchange["order2"]["id"]},
         {t["id"] for t in told if t["type"] == 7
          and exchange["order2"]["id"] in (t["order1"]["id"], t["order2"]["id"])}),
        ("exchange", {"matcher": exchange["sender"], "sender": exchange["order1"]["sender"]},
         {t["id"] for t in told if t["type"] == 7 and t["sender"] == exchange["sender"]
          and exchange["order1"]["sender"] in (t["order1"]["sender"], t["order2"]["sender"])}),
        ("data", {"key": key["key"], "type": key["type"]},
         {t["id"] for t in told if t["type"] == 12 and any(
             (e["key"], e.get("type")) == (key["key"], key["type"]) for e in t["data"])}),
        ("invoke-script", {"function": "default"},
         {t["id"] for t in told if t["type"] == 16
          and (t.get("call") or {"function": "default"})["function"] == "default"}),
        ("ethereum-like", {"type": "transfer"},
         {t["id"] for t in told if t["type"] == 18 and t["payload"]["type"] == "transfer"}),
        ("all", {"sender": sender}, {t["id"] for t in told if t.get("sender") == sender}),
    ]  # fmt: skip
    await check_filters(client, cases)


async def check_filters(
    client: httpx.AsyncClient, cases: Iterable[tuple[str, Row, set[str]]]
) -> None:
    """All pages of each, asked for in both ways, have exactly what is expected."""
    for kind, query, expected in cases:
        found: set[str] = set()
        after, is_last = None, False
        while not is_last:
            page = query | ({} if after is None else {"after": after})
            body = (await client.get(f"/transactions/{kind}", params=page)).json()
            found |= {each["data"]["id"] for each in body["data"]}
            is_last, after = body["isLastPage"], body.get("lastCursor")
        assert found == expected, (kind, query)
        posted = (await client.post(f"/transactions/{kind}", json=query)).json()
        assert posted == (await client.get(f"/transactions/{kind}", params=query)).json()


async def test_times_and_many_senders(
    client: httpx.AsyncClient, told: list[Row], recorded_dsn: str
) -> None:
    transfers = [each for each in told if each["type"] == 4]
    height = sorted(each["height"] for each in transfers)[len(transfers) // 2]
    middle = next(each["timestamp"] for each in transfers if each["height"] == height)
    senders = sorted({each["sender"] for each in transfers})
    assert len(senders) > 1
    with psycopg.connect(recorded_dsn) as connection:
        row = connection.execute("SELECT time_stamp FROM blocks WHERE height = %s", (height,))
        block_time = round(row.fetchall()[0][0].timestamp() * 1_000)
    cases: list[tuple[str, Row, set[str]]] = [
        ("transfer", {"senders": ",".join(senders), "sort": "asc"},
         {t["id"] for t in transfers if t["sender"] in senders}),
        ("transfer", {"senders": ",".join(senders), "timeStart": str(middle)},
         {t["id"] for t in transfers if t["sender"] in senders and t["timestamp"] >= middle}),
        ("all", {"senders": f"{senders[0]},{senders[1]},{senders[0]}"},
         {t["id"] for t in told if t.get("sender") in senders[:2]}),
        ("all", {"blockTimeStart": moment(block_time)},
         {t["id"] for t in told if t["height"] >= height}),
        ("transfer", {"blockTimeStart": str(block_time + 1)},
         {t["id"] for t in transfers if t["height"] > height}),
        ("transfer", {"blockTimeEnd": str(block_time)},
         {t["id"] for t in transfers if t["height"] <= height}),
        ("all", {"blockTimeEnd": str(block_time - 1), "sort": "asc"},
         {t["id"] for t in told if t["height"] < height}),
        ("transfer", {"timeStart": str(middle), "timeEnd": str(middle)},
         {t["id"] for t in transfers if t["timestamp"] == middle}),
    ]  # fmt: skip
    await check_filters(client, cases)


async def test_candles_and_pairs_are_what_was_traded(
    client: httpx.AsyncClient, told: list[Row], decimals: dict[str | None, int]
) -> None:
    trades = [t for t in told if t["type"] == 7 and t["applicationStatus"] == "succeeded"]
    markets: dict[tuple[str, str, str], list[tuple[Fraction, Fraction, int]]] = defaultdict(list)
    for trade in sorted(trades, key=lambda t: t["height"]):
        pair = trade["order1"]["assetPair"]
        amount, price = decimals[pair["amountAsset"]], decimals[pair["priceAsset"]]
        places = 8 if trade["version"] == 3 else 8 + price - amount
        market = (pair["amountAsset"] or "WAVES", pair["priceAsset"] or "WAVES", trade["sender"])
        size = Fraction(trade["amount"], 10**amount)
        markets[market].append((Fraction(trade["price"], 10**places), size, trade["timestamp"]))
    assert len(markets) > 3
    for (amount_id, price_id, matcher), found in markets.items():
        first, last = min(t for *_, t in found), max(t for *_, t in found)
        query: dict[str, str | int] = {
            "timeStart": first - 86_400_000,
            "timeEnd": last,
            "interval": "1d",
            "matcher": matcher,
        }
        answer = await client.get(f"/candles/{amount_id}/{price_id}", params=query)
        rows = [each["data"] for each in exact(answer.content)["data"]]
        assert sum(row["txsCount"] for row in rows) == len(found)
        traded = [row for row in rows if row["txsCount"]]
        assert max(Fraction(row["high"]) for row in traded) == max(p for p, *_ in found)
        assert min(Fraction(row["low"]) for row in traded) == min(p for p, *_ in found)
        assert sum(Fraction(row["volume"]) for row in traded) == sum(v for _, v, _ in found)
        quote = sum(p * v for p, v, _ in found)
        assert sum(Fraction(row["quoteVolume"]) for row in traded) == quote
        body = exact(
            (
                await client.get(f"/pairs/{amount_id}/{price_id}", params={"matcher": matcher})
            ).content
        )
        data = body["data"]
        assert (body["amountAsset"], body["priceAsset"]) == (amount_id, price_id)
        assert data["txsCount"] == len(found)
        assert Fraction(data["high"]) == max(p for p, *_ in found)
        assert Fraction(data["volume"]) == sum(v for _, v, _ in found)
        assert Fraction(data["quoteVolume"]) == quote
        places = 8 + decimals[price_id] - decimals[amount_id]
        average = quote / sum(v for _, v, _ in found) * 10**places
        assert Fraction(data["weightedAveragePrice"]) * 10**places == floor(average)
        if amount_id == "WAVES":
            assert data["volumeWaves"] == data["volume"]
        elif price_id == "WAVES":
            assert data["volumeWaves"] == data["quoteVolume"]
        many = exact((await client.get(f"/matchers/{matcher}/pairs")).content)
        assert body in many["data"]


async def test_many_aliases_come_in_pages(
    client: httpx.AsyncClient, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    owners = {
        row["body"]["address"]
        for row in recorded.lines(folder / "state-aliases.jsonl.gz")
        if row["path"].startswith("/alias/by-alias/") and row["status"] == 200
    }
    query: dict[str, Any] = {"addresses": sorted(owners)}
    whole = (await client.get("/aliases", params=query)).json()
    assert whole["isLastPage"] and len(whole["data"]) > 1
    monkeypatch.setattr("soliton.data_service.assets.MAX_ALIASES", 1)
    found, is_last = [], False
    while not is_last:
        body = (await client.get("/aliases", params=query)).json()
        assert len(body["data"]) == 1
        found += body["data"]
        is_last, query["after"] = body["isLastPage"], body["lastCursor"]
    assert found == whole["data"]


async def test_assets_and_aliases(client: httpx.AsyncClient, folder: Path) -> None:
    for row in recorded.lines(folder / "state-assets.jsonl.gz"):
        if row["status"] != 200 or not row["path"].startswith("/assets/details/"):
            continue
        expected = row["body"]
        found = (await client.get(f"/assets/{expected['assetId']}")).json()
        assert found == {
            "__type": "asset",
            "data": {
                "ticker": None,
                "id": expected["assetId"],
                "name": expected["name"],
                "precision": expected["decimals"],
                "description": expected["description"],
                "height": expected["issueHeight"],
                "timestamp": moment(expected["issueTimestamp"]),
                "sender": expected["issuer"],
                "quantity": expected["quantity"],
                "reissuable": expected["reissuable"],
                "hasScript": expected["scripted"],
                "minSponsoredFee": expected["minSponsoredAssetFee"],
            },
        }
        search = (await client.get("/assets", params={"search": expected["name"]})).json()
        if len(search["data"]) < 100:
            assert expected["assetId"] in {each["data"]["id"] for each in search["data"]}
    for row in recorded.lines(folder / "state-aliases.jsonl.gz"):
        name = row["path"].rpartition("/")[2].rpartition(":")[2]
        if row["path"].startswith("/alias/by-alias/") and row["status"] == 200:
            answer = (await client.get(f"/aliases/{name}")).json()
            assert answer["data"] == {"alias": name, "address": row["body"]["address"]}
            listed = await client.get("/aliases", params={"address": row["body"]["address"]})
            assert answer in listed.json()["data"]
