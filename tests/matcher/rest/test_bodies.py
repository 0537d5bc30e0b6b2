"""Bodies that are no JSON, on every route that reads one: it is the client who is at fault."""

from __future__ import annotations

import logging
import re

import pytest

from soliton.crypto import base58
from tests.matcher.fakes import ALICE, GOLD, KEY, Api, signature_headers, text_address

WITH_BODY = f"""
PUT /matcher/settings/rates/{base58.encode(GOLD)}
POST /matcher/orderbook/{base58.encode(GOLD)}/WAVES/calculateFee
POST /matcher/orderbook
POST /matcher/orderbook/market
POST /matcher/orderbook/{base58.encode(GOLD)}/WAVES/cancel
POST /matcher/orderbook/cancel
POST /matcher/orderbook/{base58.encode(GOLD)}/WAVES/delete
POST /matcher/orders/{text_address(ALICE)}/cancel
POST /matcher/debug/print
DELETE /ws/v0/connections
"""
NO_JSON = [
    b"",
    b"{",
    b"[" * 50_000,
    b'"\xff"',
    b'{"\xc3":1}',
    b'["\xed\xa0\x80"]',
    b'{"amount":"\xff"}',
    b'"\\ud800"',
]


@pytest.mark.parametrize("line", WITH_BODY.strip().splitlines())
async def test_the_client_is_told(line: str, caplog: pytest.LogCaptureFixture) -> None:
    api, headers = Api(), {"X-API-Key": KEY, **signature_headers(ALICE)}
    headers["X-User-Public-Key"] = base58.encode(ALICE.public_key)
    for body in NO_JSON:
        reply = await api(line, body, headers)
        assert (reply.status, reply.json()["error"]) == (400, 1048577), body[:20]
    assert not [each for each in caplog.records if each.levelno >= logging.ERROR]


async def test_there_are_no_others() -> None:
    lines = WITH_BODY.strip().splitlines()
    for route in Api().app.routes:
        pattern = f"{route.method} " + re.sub(r"\{\w+\}", "[^/]+", route.path)
        if route.body is not None:
            assert any(re.fullmatch(pattern, line) for line in lines), pattern
