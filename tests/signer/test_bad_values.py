"""Values that cannot be read: every route of the document, every parameter and member."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest

from tests.bad_values import Asked, bad_requests, undeclared
from tests.signer.fakes import FakeNode
from tests.signer.kept import BOT, COLD_ADDRESS, PASSWORD, TRANSFER, Place, as_caller

BODIES: dict[str, dict[str, Any]] = {
    "sign": {"key": "hot", "id": "an-id", "transaction": TRANSFER, "proofAt": 0},
    "signAndBroadcast": {"key": "hot", "transaction": TRANSFER, "confirmations": 0, "timeout": 1},
    "unlockKeys": {"password": PASSWORD, "seconds": 60, "keys": ["hot"]},
    "lockKeys": {"keys": ["hot"]},
    "reloadPolicy": {"policyHash": "00"},
    "proveTurn": {"key": "hot", "message": "AAAA"},
    "signBlock": {"key": "hot", "height": 5, "block": "AAAA"},
    "signMicroblock": {"key": "hot", "height": 5, "total": "AAAA", "microblock": "AAAA"},
}
QUERIES = [
    ("/audit?limit=abc", "limit", "'abc'", "a whole number from 1 to 200"),
    ("/audit?limit=0", "limit", "'0'", "a whole number from 1 to 200"),
    ("/audit?limit=201", "limit", "'201'", "a whole number from 1 to 200"),
    ("/audit?before=-1", "before", "'-1'", "a whole number from 0 to"),
    ("/audit?limt=5", "query", "before and limit", ""),
    ("/keys?limit=5", "query", "it has none", ""),
    ("/pending/x?limit=5", "query", "it has none", ""),
    ("/health?deep=1", "query", "it has none", ""),
]


@pytest.mark.parametrize(("target", "name", "value", "allowed"), QUERIES)
async def test_a_message_has_name_value_and_what_is_allowed(
    tmp_path: Path, target: str, name: str, value: str, allowed: str
) -> None:
    async with Place(tmp_path).serving() as client:
        answer = await client.get(target, headers=BOT)
    told = answer.json()
    assert (answer.status_code, told["error"], told["path"]) == (400, 7002, name)
    assert value in told["message"] and allowed in told["message"]


async def test_no_answer_quotes_a_query_that_may_be_a_secret(tmp_path: Path) -> None:
    async with Place(tmp_path).serving() as client:
        for target in ("/data?correct horse=battery", "/sign?correct horse", "/keys?a=correct"):
            answer = await client.post(target, json={}, headers=BOT)
            assert "correct" not in answer.text


async def test_every_status_is_in_the_document(tmp_path: Path) -> None:
    node = FakeNode()
    found = []
    async with Place(tmp_path).serving(node) as client:
        document = (await client.get("/openapi.json")).json()
        for item in document["paths"].values():
            for operation in item.values():
                content = operation.get("requestBody", {}).get("content", {})
                if operation["operationId"] in BODIES:
                    content["application/json"]["example"] = BODIES[operation["operationId"]]
        examples = {"id": "FGp3BXBtz9CeZR6bpSuqGF", "recipient": COLD_ADDRESS}
        for headers in ({}, BOT, as_caller("alice")):
            for asked in bad_requests(document, examples):
                problem = await _problem(client, asked, headers)
                found += [problem] if problem is not None else []
    assert not found, "\n".join(found[:40])


async def _problem(client: Any, asked: Asked, headers: dict[str, str]) -> str | None:
    body = asked.body
    if not isinstance(body, bytes):
        body = b"" if body is None else msgspec.json.encode(body)
    answer = await client.request(asked.method, asked.target, content=body, headers=headers)
    problem = undeclared(asked, answer.status_code)
    if problem is not None or answer.status_code != 400 or not asked.wrong:
        return problem
    told = answer.json()
    named = asked.wrong if asked.wrong != "nosuchthing" else "query"
    if told["error"] == 7002 and named not in told.get("path", "") + told["message"]:
        return f"{asked.method} {asked.target} {asked.wrong}: not named: {told}"
    return None
