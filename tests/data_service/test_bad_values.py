"""Values that cannot be read: every route of the document, every parameter and member."""

from __future__ import annotations

from typing import Any

import httpx
import msgspec
import pytest

from soliton.data_service.openapi import document
from tests.bad_values import bad_requests, undeclared

WRONG = [
    ("/transactions/transfer?limit=abc", "limit", "abc", "0 to 100"),
    ("/transactions/transfer?sort=up", "sort", "up", "asc or desc"),
    ("/transactions/transfer?after=%21", "after", "!", "lastCursor"),
    ("/transactions/transfer?timeStart=soon", "timeStart", "soon", "milliseconds"),
    ("/transactions/data?type=x", "type", "x", "one of "),
    ("/transactions/data?type=integer&value=x", "value", "x", "type integer"),
    ("/aliases?address=a&showBroken=perhaps", "showBroken", "perhaps", "true or false"),
    ("/candles/WAVES/x?interval=1m", "timeStart", None, "a date"),
    ("/matchers/m/rates?pairs=WAVES", "pairs", "WAVES", "amount/price"),
]


@pytest.mark.parametrize(("target", "name", "value", "allowed"), WRONG)
async def test_an_error_has_name_value_and_what_is_allowed(
    client: httpx.AsyncClient, target: str, name: str, value: str | None, allowed: str
) -> None:
    answer = await client.get(target)
    (told,) = answer.json()["meta"]
    assert (answer.status_code, told["name"], told["value"]) == (400, name, value)
    assert allowed in told["allowed"]


async def test_headers_and_members_of_a_body(client: httpx.AsyncClient) -> None:
    answer = await client.get("/assets", headers={"Accept": "application/json; money-format=big"})
    assert answer.json()["meta"][0]["name"] == "Accept"
    answer = await client.post("/assets", json={"ids": [{"a": 1}]})
    (told,) = answer.json()["meta"]
    assert (told["name"], told["value"]) == ("ids", '{"a":1}')


async def test_every_status_is_in_the_document(client: httpx.AsyncClient) -> None:
    found = []
    for asked in bad_requests(_with_examples(), {"amount": "WAVES", "price": "WAVES"}):
        body = asked.body
        if not isinstance(body, bytes):
            body = b"" if body is None else msgspec.json.encode(body)
        answer = await client.request(asked.method, asked.target, content=body)
        problem = undeclared(asked, answer.status_code)
        if problem is None and answer.status_code == 400 and asked.wrong:
            meta = answer.json()["meta"][0]
            about = {meta.get("name"), *meta.get("names", ()), *NEEDED.get(meta["message"], ())}
            if asked.wrong not in about and not about & set(_others(asked.target)):
                problem = f"{asked.method} {asked.target} {asked.wrong}: not named: {meta}"
        found += [problem] if problem is not None else []
    assert not found, "\n".join(found[:40])


NEEDED = {
    "There is neither ticker nor search query": ("limit", "after", "nosuchthing"),
    "Neither `address` nor `addresses` nor `queries` were not provided": (
        *("showBroken", "after", "nosuchthing"),
    ),
    "Assets do not exist in the blockchain": ("amount", "price", "matcher"),
    "Some of the assets of specified pairs do not exist in the blockchain": ("pairs", "matcher"),
}
"""The reference's messages about what is missing, and the parameters that this test asks with."""


def _others(target: str) -> tuple[str, ...]:
    """Required parameters that a request of this test lacks."""
    if "candle" in target:
        return ("timeStart", "interval")
    return ("pairs",) if "rates" in target else ("type",) if "data?value" in target else ()


def _with_examples() -> dict[str, Any]:
    """The document; bodies have an example, and a kind of transactions stands for all."""
    found: dict[str, Any] = document()
    kept = ("/transactions/all", "/transactions/transfer", "/transactions/data")
    found["paths"] = {
        path: item
        for path, item in found["paths"].items()
        if not path.startswith("/transactions/") or path.startswith(kept)
    }
    for item in found["paths"].values():
        for operation in item.values():
            for content in operation.get("requestBody", {}).get("content", {}).values():
                names = content["schema"]["properties"]
                content["example"] = dict.fromkeys(names)
    return found
