"""Values that cannot be read: every route of the document, every parameter and member."""

from __future__ import annotations

from typing import Any

import pytest

from soliton.crypto import base58
from tests.bad_values import bad_requests, undeclared
from tests.matcher.fakes import ALICE, GOLD, KEY, Api, signature_headers, text_address

NAME = base58.encode(GOLD)
EXAMPLES = {
    "amount": NAME,
    "price": "WAVES",
    "asset": NAME,
    "address": text_address(ALICE),
    "publicKey": base58.encode(ALICE.public_key),
}
PRICES = f"{NAME}/WAVES"
WRONG = [
    (f"/api/v1/trades/{PRICES}?limit=1001", "limit", "'1001'", "a whole number from 0 to 1000"),
    (f"/api/v1/trades/{PRICES}?limit=", "limit", "''", "a whole number from 0 to 1000"),
    (f"/api/v1/trades/{PRICES}?since=-1", "since", "'-1'", "a whole number from 0 to"),
    (f"/api/v1/candles/{PRICES}?interval=7m", "interval", "'7m'", "one of 1m, 5m, 15m"),
    (f"/api/v1/candles/{PRICES}?until=soon", "until", "'soon'", "a whole number from 0 to"),
    ("/api/v1/tickers/0OIl/WAVES", "amount", "'0OIl'", "WAVES, or 32 bytes in base58"),
    (f"/api/v1/tickers/{NAME}/abc", "price", "'abc'", "WAVES, or 32 bytes in base58"),
    ("/api/v1/balances/abc", "publicKey", "'abc'", "32 or 64 bytes in base58"),
    (f"/api/v1/trades/{PRICES}?limt=5", "limt", "limit, since", ""),
    ("/api/v1/tickers?limit=5", "limit", "there are none", ""),
    ("/matcher/debug/unsettled?limit=5", "limit", "there are none", ""),
]


@pytest.mark.parametrize(("target", "name", "value", "allowed"), WRONG)
async def test_a_message_has_name_value_and_what_is_allowed(
    target: str, name: str, value: str, allowed: str
) -> None:
    reply = await Api().keyed(f"GET {target}")
    told = reply.json()
    assert (reply.status, told["error"], told["params"]["name"]) == (400, 1048576, name)
    assert value in told["message"] and allowed in told["message"]


@pytest.mark.parametrize(
    ("header", "value", "allowed"),
    [("Timestamp", "soon", "a whole number"), ("Signature", "0OIl", "64 bytes in base58")],
)
async def test_headers_of_a_signature(header: str, value: str, allowed: str) -> None:
    headers = signature_headers(ALICE) | {header: value}
    reply = await Api()(f"GET /api/v1/balances/{EXAMPLES['publicKey']}", headers=headers)
    told = reply.json()
    assert (reply.status, told["params"]["name"]) == (400, header)
    assert repr(value) in told["message"] and allowed in told["message"]


async def test_every_status_is_in_the_document() -> None:
    api = Api()
    document: Any = (await api("GET /api-docs/openapi.json")).json()
    own = {route.name for route in api.app.routes if route.own}
    found = []
    for headers in ({}, {"X-API-Key": KEY}, signature_headers(ALICE)):
        for asked in bad_requests(document, EXAMPLES):
            reply = await api(f"{asked.method} {asked.target}", asked.body, headers)
            problem = undeclared(asked, reply.status)
            if problem is None and reply.status == 400 and asked.wrong:
                is_own = asked.operation["operationId"] in own
                if is_own and asked.wrong not in str(reply.json().get("params")):
                    problem = f"{asked.target}: {asked.wrong} is not named: {reply.body!r}"
            found += [problem] if problem is not None else []
    assert not found, "\n".join(found[:40])
