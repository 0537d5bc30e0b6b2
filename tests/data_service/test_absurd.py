"""Requests that make no sense: each gets an answer that the document has, none an error of ours."""

from __future__ import annotations

import json
import random
from typing import Any
from urllib.parse import unquote

import httpx
import pytest

from soliton.data_service.candles import SECONDS
from soliton.data_service.kinds import BY_PATH
from tests.amounts import times

COUNT = times(200, 20_000)
VALUES = (
    *("", "0", "-1", "1.5", "1e400", "NaN", "Infinity", "0x10", "9223372036854775807"),
    *("9223372036854775808", "-9223372036854775809", "99999999999999999999", "1e3", "TRUE", "desc"),
    *("8640000000000000", "-8640000000000001", "253402300799999", "-62135596800000", "2020-01-01"),
    *("9999-12-31T23:59:59.999Z", "10000-01-01", "0000-00-00", "0001-01-01", "-271821-04-20"),
    *("+275760-09-13T00:00:00.000Z", "%2B275760-09-13T00:00:00.000Z", "-1-1-1", "%D9%A0", "%00"),
    *(
        "a%00b",
        "%ff",
        "%ed%a0%80",
        "%F0%9F%98%80",
        "*",
        "%25",
        "_",
        "%27",
        "%5C",
        "';--",
        "a" * 3000,
    ),
    *("WAVES", "WAVES/WAVES", "/", "a/b/c", ",", ",,,,", "1,2,3", "integer", "binary", "string"),
    *(
        "boolean",
        "base64:",
        "base64:!!",
        "[]",
        "{}",
        "null",
        "%20",
        "%0a",
        "OjpkZXNj",
        "MTo6ZGVzYw==",
    ),
    *("LTE6OmFzYw==", "OTk5OTk5OTk5OTk5OTk5OTk5OTk5OTo6ZGVzYw==", *SECONDS),
)
NAMES = (
    *("ids", "ticker", "search", "limit", "after", "sort", "sender", "senders", "timeStart"),
    *("timeEnd", "blockTimeStart", "blockTimeEnd", "recipient", "assetId", "amountAsset", "dapp"),
    *("priceAsset", "matcher", "orderId", "script", "key", "type", "value", "function", "pairs"),
    *("search_by_asset", "search_by_assets", "match_exactly", "aliases", "address", "addresses"),
    *("queries", "showBroken", "interval", "timestamp", "unknown"),
)
MARKETS = ("/candles", "/last_candle", "/matchers/m/candles", "/matchers/m/last_candle", "/pairs")
PATHS = (
    *("/assets", "/aliases", "/pairs", "/matchers/m/pairs", "/matchers/m/rates", "/assets/%00"),
    *("/aliases/%ff", "/transactions/all", "/transactions/all/x"),
    *(f"{each}/WAVES/WAVES" for each in MARKETS),
    *(f"/transactions/{each}" for each in BY_PATH),
)
ODD: tuple[Any, ...] = ({"a": "b"}, 1e308, -1, None, True, 10**30, [[[]]], "\0", ["a", ["b"]])
BODIES = (
    "[",
    "[]",
    "null",
    "1",
    '{"ids":' + "[" * 5_000,
    '{"limit":1e999}',
    '{"a":NaN}',
    "\xff",
    "",
)


class Chance:
    """Requests by chance."""

    def __init__(self, seed: int) -> None:
        self._chance = random.Random(seed)

    def request(self, client: httpx.AsyncClient) -> httpx.Request:
        """One."""
        chance, path = self._chance, self._chance.choice(PATHS)
        given = [self._parameter() for _ in range(chance.choice((1, 1, 2, 3)))]
        if "candle" in path and chance.random() < 0.8:
            given += [("timeStart", chance.choice(VALUES)), ("interval", chance.choice([*SECONDS]))]
        accept = chance.choice(
            ("*/*", "large-significand-format=string", "money-format=long", ";;=")
        )
        headers = {"Accept": accept}
        if chance.random() < 0.7:
            query = "&".join(f"{name}={value}" for name, value in given)
            return client.build_request("GET", f"{path}?{query}", headers=headers)
        values = {
            name: chance.choice((unquote(value, errors="replace"), [value, value], *ODD))
            for name, value in given
        }
        body = chance.choice(BODIES) if chance.random() < 0.1 else json.dumps(values)
        return client.build_request("POST", path, content=body.encode("latin-1"), headers=headers)

    def _parameter(self) -> tuple[str, str]:
        return self._chance.choice(NAMES), self._chance.choice(VALUES)


@pytest.mark.slow
async def test_absurd_requests(client: httpx.AsyncClient) -> None:
    chance = Chance(1)
    for _ in range(COUNT):
        request = chance.request(client)
        answer = await client.send(request)
        told = (request.method, str(request.url)[:500], request.content[:500], answer.text[:200])
        assert answer.status_code in (200, 400, 404), told


@pytest.mark.parametrize("interval", SECONDS)
@pytest.mark.parametrize("time", ["253402300799999", "-62135596800000"])
async def test_candles_at_the_ends_of_time(
    client: httpx.AsyncClient, interval: str, time: str
) -> None:
    query = {"timeStart": time, "timeEnd": time, "interval": interval}
    answer = await client.get("/candles/WAVES/x", params=query)
    assert answer.status_code in (200, 404)
    assert (await client.get("/last_candle/WAVES/x", params=query)).status_code == 404
