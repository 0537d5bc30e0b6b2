"""Market data, metrics, and the pages with their documentation."""

from __future__ import annotations

import re
from typing import Any

import pytest
from openapi_spec_validator import OpenAPIV31SpecValidator

from soliton.crypto import base58
from soliton.matcher.rest.routes import Auth
from soliton.pages.files import version
from tests.matcher.fakes import ALICE, BOB, GOLD, NOW, Api, buy, sell

NAME = base58.encode(GOLD)
MINUTE = 60_000


async def traded() -> Api:
    """Three executions, the last two in the next minute."""
    api = Api()
    await api.place(sell(BOB, 10 * 10**8, 2 * 10**8))
    await api.place(buy(ALICE, 10**8, 2 * 10**8))
    api.core.time += MINUTE
    await api.place(buy(ALICE, 2 * 10**8, 2 * 10**8))
    await api.place(buy(ALICE, 10**8, 19 * 10**7))
    await api.place(sell(BOB, 5 * 10**7, 10**8))
    return api


async def test_trades() -> None:
    api = await traded()
    path = f"GET /api/v1/trades/{NAME}/WAVES"
    found = (await api(path)).json()
    told = [(t["price"], t["amount"], t["side"], t["timestamp"]) for t in found]
    assert told == [
        ("2", "1", "buy", NOW),
        ("2", "2", "buy", NOW + MINUTE),
        ("1.9", "0.5", "sell", NOW + MINUTE),
    ]
    assert (await api(f"{path}?limit=1")).json() == found[2:]
    assert (await api(f"{path}?limit=1&since={NOW + 1}")).json() == found[1:2]
    assert (await api(f"{path}?limit=0")).json() == []
    assert [t["id"] for t in found] == ["1-1", "2-1", "4-1"]
    for query in ("limit=1001", "limit=x", "since=-1"):
        reply = await api(f"{path}?{query}")
        assert (reply.status, reply.json()["error"]) == (400, 1048576)


async def test_tickers() -> None:
    api = await traded()
    ticker = (await api(f"GET /api/v1/tickers/{NAME}/WAVES")).json()
    assert ticker == {
        "symbol": f"{NAME}-WAVES",
        "amountAsset": NAME,
        "priceAsset": "WAVES",
        "timestamp": NOW + MINUTE,
        "bid": "1.9",
        "bidAmount": "0.5",
        "ask": "2",
        "askAmount": "7",
        "open": "2",
        "high": "2",
        "low": "1.9",
        "last": "1.9",
        "volume": "3.5",
        "priceVolume": "6.95",
        "trades": 3,
    }
    assert (await api("GET /api/v1/tickers")).json() == [ticker]


async def test_candles_before_and_after_they_were_asked_for() -> None:
    api = await traded()
    path = f"GET /api/v1/candles/{NAME}/WAVES?interval=1m"
    start = NOW - NOW % MINUTE
    found = (await api(path)).json()
    assert found == [
        [start, "2", "2", "2", "2", "1", "2", 1],
        [start + MINUTE, "2", "2", "1.9", "1.9", "2.5", "4.95", 2],
    ]
    await api.place(sell(BOB, 4 * 10**7, 10**8))
    assert (await api(path)).json()[1][-3:] == ["2.9", "5.71", 3]
    assert (await api(f"{path}&limit=1")).json()[0][0] == start + MINUTE
    assert (await api(f"{path}&since={start}&limit=1")).json()[0][0] == start
    assert (await api(f"{path}&until={start}")).json()[0][0] == start
    assert (await api(path.replace("1m", "7m"))).json()["error"] == 1048576


async def test_metrics() -> None:
    api = await traded()
    reply = await api("GET /metrics")
    assert reply.headers[b"content-type"].startswith(b"text/plain; version=0.0.4")
    lines = reply.body.decode().splitlines()
    assert "soliton_matcher_up 1" in lines
    assert "soliton_matcher_executions_total 3" in lines
    assert "soliton_matcher_orders_resting 2" in lines
    named = [line.split()[2] for line in lines if line.startswith("# TYPE")]
    assert len(named) == len(set(named)) == 25


# --- documentation --------------------------------------------------------------------------------


async def test_every_route_is_documented() -> None:
    api = Api()
    told = (await api("GET /api-docs/openapi.json")).json()
    assert told == (await api("GET /api-docs/swagger.json")).json()
    assert told["openapi"] == "3.1.0"
    assert not [error.message for error in OpenAPIV31SpecValidator(told).iter_errors()]
    documented = {
        (method.upper(), path) for path, methods in told["paths"].items() for method in methods
    }
    declared = {(route.method, route.path) for route in api.app.routes if route.documented}
    assert documented == declared
    assert len(declared) > 40
    names = [
        operation["operationId"] for path in told["paths"].values() for operation in path.values()
    ]
    assert len(names) == len(set(names))
    for route in api.app.routes:
        if route.documented:
            operation: Any = told["paths"][route.path][route.method.lower()]
            assert operation["summary"] and operation["responses"]
            assert bool(operation["security"]) is (
                route.auth not in (Auth.PUBLIC, Auth.SIGNED_BODY)
            )
            parameters = {p["name"] for p in operation.get("parameters", []) if p["in"] == "path"}
            assert parameters == set(re.findall(r"{(\w+)}", route.path))


@pytest.mark.parametrize(
    ("path", "content_type"),
    [
        ("/", b"text/html; charset=UTF-8"),
        ("/pages/style.css", b"text/css; charset=UTF-8"),
        ("/pages/exchange.js", b"text/javascript; charset=UTF-8"),
        (f"/pages/{version()}/exchange.js", b"text/javascript; charset=UTF-8"),
        ("/api-docs/index.html", b"text/html; charset=UTF-8"),
        ("/api-docs/start.js", b"text/javascript; charset=UTF-8"),
        ("/api-docs/swagger-ui.css", b"text/css; charset=UTF-8"),
    ],
)
async def test_pages(path: str, content_type: bytes) -> None:
    reply = await Api()(f"GET {path}")
    assert (reply.status, reply.headers[b"content-type"]) == (200, content_type)
    assert reply.body and b"{{" not in reply.body


async def test_the_documentation_is_found() -> None:
    for path in ("/swagger", "/api-docs", "/api-docs/"):
        reply = await Api()(f"GET {path}")
        assert (reply.status, reply.headers[b"location"]) == (308, b"/api-docs/index.html")
    assert (await Api()("GET /api-docs/../secret")).status == 404
    assert (await Api()("GET /api-docs/else.js")).status == 404
