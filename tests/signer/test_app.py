"""The service as clients see it: answers, errors, limits, and that the seed stays inside."""

from __future__ import annotations

import asyncio
import json
import logging
import re
from collections.abc import AsyncIterator

import pytest
from openapi_spec_validator import OpenAPIV31SpecValidator

from soliton.chain.transactions import json_reader
from soliton.crypto.curve25519 import verify
from soliton.errors import InputError
from soliton.signer.app import Limits, SignerSettings, build_app
from soliton.signer.errors import FAULTS
from tests.signer.fakes import NETWORK, NOW, SEED, Answer, FakeNode, answer, body_of, signer
from tests.vectors import REPOSITORY

BODY = body_of(1, True, "hello", [1, 2, 3, 4])


async def test_the_answer_is_the_signed_transaction_that_was_broadcast() -> None:
    node = FakeNode()
    async with signer(node) as client:
        response = await client.post("/data", content=BODY)
    assert response.status_code == 200
    assert response.headers["content-type"] == "application/json"
    signed = response.json()
    members = ["type", "version", "senderPublicKey", "fee", "timestamp", "proofs", "id", "data"]
    assert list(signed) == members
    assert (signed["type"], signed["version"], signed["fee"]) == (12, 1, 3_000_000)
    assert signed["timestamp"] == NOW
    assert [list(entry.items()) for entry in signed["data"]] == [
        [("type", "integer"), ("key", "k0"), ("value", 1)],
        [("type", "boolean"), ("key", "k1"), ("value", True)],
        [("type", "string"), ("key", "k2"), ("value", "hello")],
        [("type", "binary"), ("key", "k3"), ("value", "base64:AQIDBA==")],
    ]
    assert node.broadcast == [signed]
    transaction = json_reader.read_signed(signed, 84)
    assert verify(transaction.sender_public_key, transaction.body, transaction.proofs[0])


async def test_every_request_makes_its_own_transaction() -> None:
    async with signer(FakeNode()) as client:
        answers = [(await client.post("/data", content=BODY)).json() for _ in range(3)]
    assert [signed["timestamp"] for signed in answers] == [NOW, NOW + 1, NOW + 2]
    assert len({signed["id"] for signed in answers}) == 3


async def late(_body: bytes, _writer: asyncio.StreamWriter) -> bytes:
    await asyncio.sleep(30)
    return b""


async def endless(_body: bytes, writer: asyncio.StreamWriter) -> bytes:
    writer.write(b"HTTP/1.1 200 OK\r\n\r\n")
    while True:
        writer.write(b" " * 65_536)
        await writer.drain()


NODE_ANSWERS: list[tuple[Answer, int, int]] = [
    # the node's answer; status, number
    (b"", 502, 7013),
    (SEED.encode() + b"\r\n\r\n", 502, 7013),
    (b"HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\n{", 504, 7014),
    (late, 504, 7014),
    (answer(200, content=b"<html>"), 502, 7015),
    (answer(200, json_=[1]), 502, 7015),
    (answer(200, json_={"id": "another"}), 502, 7015),
    (answer(200, content=b"[" * 5_000), 502, 7015),
    (endless, 502, 7015),
    (answer(404, content=b"not found"), 502, 7015),
    (answer(500, json_={"error": 0, "message": "Error is unknown"}), 502, 7015),
    (answer(503, content=b"busy"), 502, 7015),
    (answer(302), 502, 7015),
    (answer(400, json_={"error": "112", "message": "x"}), 502, 7015),
]


@pytest.mark.parametrize(("said", "status", "code"), NODE_ANSWERS)
async def test_trouble_with_the_node(
    said: Answer, status: int, code: int, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    node = FakeNode(said)
    async with signer(node, limits=Limits(node_seconds=0.2)) as client:
        response = await client.post("/data", content=BODY)
        assert (response.status_code, response.json()["error"]) == (status, code)
        # Where the transaction may have arrived, the client learns what to look for.
        assert response.json().get("id") == node.broadcast[0]["id"]
        ready = await client.get("/ready")
        if status != 502 or code != 7015:
            assert ready.status_code == 503 and ready.json()["ready"] is False
    assert SEED not in caplog.text + response.text


async def test_what_the_node_refuses_is_passed_on() -> None:
    reason = "State check failed. Reason: negative waves balance"
    refused = {"error": 112, "message": reason, "transaction": {"type": 12}}
    async with signer(FakeNode(answer(400, json_=refused))) as client:
        response = await client.post("/data", content=BODY)
    assert response.status_code == 400
    assert response.json() == {"error": 112, "message": reason, "source": "node"}
    details = {"3Mw...": "negative waves balance"}
    refused = {"error": 402, "message": "Accounts balance errors", "details": details}
    async with signer(FakeNode(answer(400, json_=refused))) as client:
        response = await client.post("/data", content=BODY)
    assert response.json() == {**refused, "source": "node"}


BAD_VALUES: list[object] = [2**63, 1.5, 1.0, None, {}, [256], [SEED], [None], "x" * 40_000]
BAD_BODIES = [
    b"",
    b"no JSON " + SEED.encode(),
    b'{"seed": "' + SEED.encode(),
    json.dumps({"seed": SEED}).encode(),
    json.dumps({"seed": SEED, "data": []}).encode(),
    json.dumps({"seed": [SEED], "data": [{"key": "a", "value": 1}]}).encode(),
    json.dumps({"seed": SEED, "data": SEED}).encode(),
    json.dumps({SEED: 1, "seed": SEED, "data": [{"key": "a", "value": 1}]}).encode(),
    json.dumps(
        {"seed": SEED, "data": [{"key": "a", "value": 1}, {"key": "a", "value": 2}]}
    ).encode(),
    *(body_of(value) for value in BAD_VALUES),
    body_of(*range(101)),
    b'{"seed": "' + SEED.encode() + b'\xff"}',
    b"x" * (1024 * 1024 + 1),
]


@pytest.mark.parametrize("body", BAD_BODIES, ids=range(len(BAD_BODIES)))
async def test_nothing_is_broadcast_and_the_seed_stays_inside(
    body: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    node = FakeNode()
    async with signer(node) as client:
        response = await client.post("/data", content=body)
    assert response.status_code in (400, 413, 422)
    assert {"error", "message"} <= set(response.json())
    assert node.seen == []
    assert SEED not in caplog.text + response.text


async def test_the_seed_is_not_sent_or_logged_when_all_goes_well(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.DEBUG)
    node = FakeNode()
    async with signer(node) as client:
        response = await client.post("/data", content=BODY)
        await client.get("/ready")
    assert response.status_code == 200
    assert "broadcast data transaction" in caplog.text
    assert SEED not in caplog.text + response.text
    assert len(node.seen) == 2 and not any(SEED.encode() in seen for seen in node.seen)


async def test_a_fault_of_our_own_says_nothing_of_the_request(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)

    def broken(body: bytes, _limit: int) -> None:
        raise RuntimeError(body.decode())

    monkeypatch.setattr("soliton.signer.app.read_request", broken)
    async with signer(FakeNode()) as client:
        response = await client.post("/data", content=BODY)
    assert (response.status_code, response.json()["error"]) == (500, 7016)
    assert "RuntimeError at" in caplog.text
    assert SEED not in caplog.text + response.text


async def test_large_bodies_are_cut_off_early() -> None:
    read = 0

    async def chunks() -> AsyncIterator[bytes]:
        nonlocal read
        for _ in range(64):
            read += 1
            yield b" " * 65_536

    async with signer(FakeNode()) as client:
        response = await client.post("/data", content=chunks())
        assert (response.status_code, response.json()["error"]) == (413, 7008)
        assert read <= 18
        claimed = {"content-length": "9" * 18}
        response = await client.post("/data", content=b"", headers=claimed)
        assert response.status_code == 413


async def test_slow_bodies_are_cut_off() -> None:
    async def chunks() -> AsyncIterator[bytes]:
        yield b"{"
        await asyncio.sleep(10)

    async with signer(FakeNode(), limits=Limits(body_seconds=0.05)) as client:
        response = await client.post("/data", content=chunks())
    assert (response.status_code, response.json()["error"]) == (408, 7009)


async def test_too_many_requests_at_once() -> None:
    release, node_has_both = asyncio.Event(), asyncio.Event()

    async def wait(body: bytes, _writer: asyncio.StreamWriter) -> bytes:
        if len(node.broadcast) == 2:
            node_has_both.set()
        await release.wait()
        return answer(200, content=body)

    node = FakeNode(wait)
    async with signer(node, limits=Limits(requests_at_once=2)) as client:
        held = [asyncio.create_task(client.post("/data", content=BODY)) for _ in range(2)]
        await node_has_both.wait()
        refused = await client.post("/data", content=BODY)
        assert (refused.status_code, refused.json()["error"]) == (503, 7012)
        assert refused.headers["retry-after"] == "1"
        release.set()
        assert [(await task).status_code for task in held] == [200, 200]
        assert (await client.post("/data", content=BODY)).status_code == 200


async def test_browsers_may_call() -> None:
    preflight = {
        "origin": "https://demo.example",
        "access-control-request-method": "POST",
        "access-control-request-headers": "content-type",
    }
    origin = {"origin": "https://demo.example"}
    async with signer(FakeNode()) as client:
        response = await client.options("/data", headers=preflight)
        assert response.status_code == 200
        assert "POST" in response.headers["access-control-allow-methods"]
        assert "Content-Type" in response.headers["access-control-allow-headers"]
        # As long as it was with the library that answered before: a page asks once in that time.
        assert response.headers["access-control-max-age"] == "600"
        answers = [response]
        answers += [
            await client.post("/data", content=body, headers=origin)
            for body in (BODY, b"", b"x" * 2_000_000)
        ]
        answers.append(await client.get("/nowhere", headers=origin))
        assert [each.status_code for each in answers] == [200, 200, 400, 413, 404]
        for response in answers:
            assert response.headers["access-control-allow-origin"] == origin["origin"]
            assert response.headers["access-control-allow-credentials"] == "true"
            assert response.headers["vary"] == "Origin"
        assert "access-control-max-age" not in answers[1].headers
    async with signer(FakeNode(), cors=False) as client:
        response = await client.post("/data", content=BODY, headers=origin)
        assert "access-control-allow-origin" not in response.headers


async def test_paths_and_methods_that_are_not_there() -> None:
    async with signer(FakeNode()) as client:
        for method, path, status, code in (
            ("GET", "/nothing", 404, 7010),
            ("GET", "/data", 405, 7011),
            ("POST", "/", 405, 7011),
        ):
            response = await client.request(method, path)
            assert (response.status_code, response.json()["error"]) == (status, code)


async def test_health_and_readiness() -> None:
    async with signer(FakeNode()) as client:
        health, ready = await client.get("/health"), await client.get("/ready")
    assert health.json() == {"status": "ok", "network": "zbs-testnet"}
    assert ready.json() == {"ready": True, "height": 77}


async def test_the_page_needs_nothing_from_elsewhere() -> None:
    async with signer(FakeNode()) as client:
        page = await client.get("/")
        paths = set(re.findall(r'(?:href|src)="(pages/[^"]+)"', page.text))
        parts = [await client.get(f"/{path}") for path in sorted(paths)]
        missing = await client.get("/pages/../app.py"), await client.get("/pages/nothing.js")
    names = {path.rpartition("/")[2] for path in paths}
    assert names == {"begin.js"}
    assert [each.status_code for each in missing] == [404, 404]
    assert page.headers["content-type"] == "text/html; charset=UTF-8"
    assert "default-src 'none'" in page.headers["content-security-policy"]
    assert all(part.status_code == 200 for part in parts)
    assert "//" not in re.sub(r'data-node="[^"]*"', "", page.text)
    assert "{{" not in page.text
    assert "proofs of concept only" in page.text
    assert all(f"<td>{fault.code}</td>" in page.text for fault in FAULTS)


async def test_the_document_tells_of_every_status_and_its_example_works() -> None:
    async with signer(FakeNode()) as client:
        document = (await client.get("/openapi.json")).json()
        operation = document["paths"]["/data"]["post"]
        example = operation["requestBody"]["content"]["application/json"]["example"]
        response = await client.post("/data", json=example)
    assert response.status_code == 200
    assert not [error.message for error in OpenAPIV31SpecValidator(document).iter_errors()]
    schema = document["components"]["schemas"]["DataTransaction"]
    assert list(schema["properties"]) == list(response.json())
    statuses = {fault.status for fault in FAULTS} - {404, 405}
    assert set(operation["responses"]) == {"200", *map(str, statuses)}


def test_the_reference_tells_of_every_error() -> None:
    text = (REPOSITORY / "docs" / "reference" / "signer.md").read_text(encoding="utf-8")
    rows = [f"| {fault.code} | {fault.status} | {fault.meaning} |" for fault in FAULTS]
    assert [row for row in rows if row not in text] == []


@pytest.mark.parametrize("url", ["", "node:6869", "ftp://node", "http://", "http:///x"])
def test_node_addresses_are_checked(url: str) -> None:
    with pytest.raises(InputError, match="node address"):
        build_app(SignerSettings(url, NETWORK))
