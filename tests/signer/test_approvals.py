"""Approvals of others, and what is asked of the node: a signer that keeps keys and does not decide
alone.
"""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any, Final

import pytest

from soliton.crypto import base58
from soliton.signer.records import Event
from tests.signer.fakes import FakeNode, answer
from tests.signer.kept import (
    APPROVED,
    BOT,
    COLD_ADDRESS,
    HOT_ADDRESS,
    PASSWORD,
    TRANSFER,
    Place,
    as_caller,
    callers,
    checked,
    entries,
)

# --- approvals ------------------------------------------------------------------------------------


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path, APPROVED)


async def asked(client: Any, amount: int = 100, **more: Any) -> Any:
    body = {"key": "hot", "transaction": {**TRANSFER, "amount": amount}, **more}
    response = await client.post("/sign", json=body, headers=BOT)
    assert response.status_code == 202, response.text
    return response.json()


async def test_two_of_three_approve(place: Place) -> None:
    async with place.serving() as client:
        shown = await asked(client)
        assert (shown["state"], shown["needed"], shown["approved"]) == ("waiting", 2, [])
        assert shown["told"] == [
            f"transfer (version 3) of 0.000001 WAVES to {COLD_ADDRESS} for a fee of 0.001 WAVES"
        ]
        path = f"/pending/{shown['pending']}"
        for_alice = (await client.get("/pending", headers=as_caller("alice"))).json()["pending"]
        assert [each["pending"] for each in for_alice] == [shown["pending"]]
        first = await client.post(f"{path}/approve", headers=as_caller("alice"))
        again = await client.post(f"{path}/approve", headers=as_caller("alice"))
        for each in (first, again):
            assert (each.json()["state"], each.json()["approved"]) == ("waiting", ["alice"])
        last = (await client.post(f"{path}/approve", headers=as_caller("bob"))).json()
        # Who approves is not given what was signed; who asked is.
        assert last["state"] == "signed" and "signed" not in last
        told = (await client.get(path, headers=BOT)).json()
        checked(told["signed"])
        late = await client.post(f"{path}/refuse", headers=as_caller("carol"))
        assert (late.status_code, late.json()["state"]) == (409, "signed")
    events = [each.event for each in entries(place)]
    assert events[-4:] == [Event.ASK, Event.APPROVE, Event.APPROVE, Event.SIGN]


async def test_one_refuses(place: Place) -> None:
    async with place.serving() as client:
        path = f"/pending/{(await asked(client))['pending']}"
        response = await client.post(f"{path}/refuse", headers=as_caller("carol"))
        assert (response.json()["state"], response.json()["refusedBy"]) == ("refused", "carol")
        for name in ("alice", "bob"):
            assert (
                await client.post(f"{path}/approve", headers=as_caller(name))
            ).status_code == 409
    assert Event.SIGN not in [each.event for each in entries(place)]


async def test_what_waits_outlives_a_restart_and_the_windows_count_when_it_is_signed(
    place: Place,
) -> None:
    async with place.serving() as client:
        paths = [f"/pending/{(await asked(client))['pending']}" for _ in range(2)]
        for path in paths:
            await client.post(f"{path}/approve", headers=as_caller("alice"))
    async with place.serving(unlocked=False) as client:
        locked = await client.post(f"{paths[0]}/approve", headers=as_caller("bob"))
        assert (locked.status_code, locked.json()["error"]) == (409, 7025)
        await client.post("/keys/unlock", json={"password": PASSWORD}, headers=BOT)
        signed = await client.post(f"{paths[0]}/approve", headers=as_caller("bob"))
        assert signed.json()["state"] == "signed"
        too_much = await client.post(f"{paths[1]}/approve", headers=as_caller("bob"))
        assert (too_much.status_code, too_much.json()["condition"]) == (403, "windows")
        checked((await client.get(paths[0], headers=BOT)).json()["signed"])


async def test_the_time_to_approve_ends(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    now = [5_000_000]
    monkeypatch.setattr("soliton.signer.boot_clock.boot_ms", lambda: now[0])
    monkeypatch.setattr(
        "soliton.signer.boot_clock.BootClock.__init__.__defaults__",
        (lambda: now[0], lambda: "boot"),
        raising=False,
    )
    async with place.serving() as client:
        path = f"/pending/{(await asked(client))['pending']}"
        now[0] += 3_600_000
        response = await client.post(f"{path}/approve", headers=as_caller("alice"))
        assert (response.status_code, response.json()["state"]) == (409, "expired")


async def test_the_same_id_is_the_same_request(place: Place) -> None:
    async with place.serving() as client:
        first = await asked(client, id="order-1")
        assert (await asked(client, id="order-1"))["pending"] == first["pending"]
        path = f"/pending/{first['pending']}"
        for name in ("alice", "bob"):
            await client.post(f"{path}/approve", headers=as_caller(name))
        body = {"key": "hot", "transaction": {**TRANSFER, "amount": 100}, "id": "order-1"}
        response = await client.post("/sign", json=body, headers=BOT)
        assert response.status_code == 200
        assert response.json()["signed"] == (await client.get(path, headers=BOT)).json()["signed"]


async def test_nobody_else_sees_or_approves(place: Place) -> None:
    async with place.serving(callers=(*callers()[:3], *callers()[4:])) as client:
        path = f"/pending/{(await asked(client))['pending']}"
        for name in ("idle", "carol"):
            response = await client.post(f"{path}/approve", headers=as_caller(name))
            assert (response.status_code, response.json()["error"]) == (403, 7020)
        response = await client.get("/pending/nothing", headers=as_caller("alice"))
        assert (response.status_code, response.json()["error"]) == (404, 7030)


# --- the node -------------------------------------------------------------------------------------


@pytest.mark.parametrize("status", [408, 425, 429, 500, 502, 503, 504])
async def test_what_a_node_has_taken_is_not_called_refused(tmp_path: Path, status: int) -> None:
    """A proxy before the node, or a limit of the node, answers in its place."""
    node = FakeNode()
    where = "unconfirmed"

    async def says(_body: bytes, _writer: asyncio.StreamWriter) -> bytes:
        if node.seen[-1].startswith(b"GET /transactions/status"):
            rows = [{"id": node.broadcast[-1]["id"], "status": where}]
            return answer(200, json_=rows)
        return answer(status, json_={"error": 1, "message": "later"})

    node.says = says
    async with Place(tmp_path).serving(node) as client:
        body = {"key": "hot", "id": "once", "transaction": TRANSFER}
        response = await client.post("/sign-and-broadcast", json=body, headers=BOT)
        assert response.status_code == 200, response.text
        where = "not_found"
        response = await client.post("/sign-and-broadcast", json=body, headers=BOT)
        assert response.status_code == 502
        told = response.json()
        assert told["id"] == node.broadcast[0]["id"] and "may have arrived" in told["message"]
        assert node.broadcast[0] == node.broadcast[1]


async def test_a_second_broadcast_finds_the_first(tmp_path: Path) -> None:
    node = FakeNode()

    async def says(body: bytes, _writer: asyncio.StreamWriter) -> bytes:
        if node.seen[-1].startswith(b"GET /transactions/status"):
            rows = [{"id": node.broadcast[-1]["id"], "status": "confirmed"}]
            return answer(200, json_=rows)
        if len(node.broadcast) == 1:
            return answer(200, content=body)
        words = f"Transaction {node.broadcast[0]['id']} is already in the state on a height of 3"
        return answer(400, json_={"error": 112, "message": words})

    node.says = says
    async with Place(tmp_path).serving(node) as client:
        body = {"key": "hot", "id": "once", "transaction": TRANSFER}
        first, second = [
            await client.post("/sign-and-broadcast", json=body, headers=BOT) for _ in range(2)
        ]
        assert first.status_code == second.status_code == 200, second.text
        assert first.json() == second.json()


async def test_sign_and_broadcast_waits(tmp_path: Path) -> None:
    node = FakeNode()
    asks = 0

    async def says(body: bytes, _writer: asyncio.StreamWriter) -> bytes:
        nonlocal asks
        head = node.seen[-1]
        if head.startswith(b"POST /transactions/broadcast "):
            return answer(200, content=body)
        if head.startswith(b"GET /blocks/height "):
            return answer(200, json_={"height": 10})
        asks += 1
        if asks < 3:
            return answer(404, json_={"error": 311, "message": "no"})
        known = {"id": node.broadcast[0]["id"], "height": 9, "applicationStatus": "succeeded"}
        if asks < 4:
            known["id"] = "of another transaction"
        return answer(200, json_=known)

    node.says = says
    async with Place(tmp_path).serving(node) as client:
        body = {"key": "hot", "transaction": TRANSFER, "confirmations": 2}
        response = await client.post("/sign-and-broadcast", json=body, headers=BOT)
        told = response.json()
        assert response.status_code == 200, told
        checked(told["signed"])
        assert node.broadcast == [told["signed"]]
        assert told["confirmed"] == [
            {
                "id": told["signed"]["id"],
                "height": 9,
                "confirmations": 2,
                "applicationStatus": "succeeded",
            }
        ]
        body |= {"confirmations": 3, "timeout": 0}
        response = await client.post("/sign-and-broadcast", json=body, headers=BOT)
        assert (response.status_code, response.json()["error"]) == (504, 7034)
        order = {"key": "hot", "cancelOrder": {"orderId": base58.encode(b"\7" * 32)}}
        response = await client.post("/sign-and-broadcast", json=order, headers=BOT)
        assert response.status_code == 400


@pytest.mark.parametrize("knows", [True, False])
async def test_sign_and_broadcast_waits_for_a_final_block(tmp_path: Path, knows: bool) -> None:
    node = FakeNode()
    heights = {"finalized": iter((8, 8, 9)), "top": iter((108, 108, 109, 109, 109))}

    async def says(body: bytes, _writer: asyncio.StreamWriter) -> bytes:
        head = node.seen[-1]
        if head.startswith(b"POST /transactions/broadcast "):
            return answer(200, content=body)
        if head.startswith(b"GET /blocks/height/finalized "):
            if not knows:
                # An older node reads the last part as the id of a block.
                return answer(400, json_={"error": 199, "message": "invalid block id"})
            return answer(200, json_={"height": next(heights["finalized"])})
        if head.startswith(b"GET /blocks/height "):
            return answer(200, json_={"height": 111 if knows else next(heights["top"])})
        known = {"id": node.broadcast[0]["id"], "height": 9, "applicationStatus": "succeeded"}
        return answer(200, json_=known)

    node.says = says
    async with Place(tmp_path).serving(node) as client:
        body = {"key": "hot", "transaction": TRANSFER, "confirmations": "finalized", "timeout": 0}
        response = await client.post("/sign-and-broadcast", json=body, headers=BOT)
        told = response.json()
        assert (response.status_code, told["error"]) == (504, 7034), told
        assert "1 of 1 are not final yet" in told["message"]
        node.broadcast.clear()
        response = await client.post(
            "/sign-and-broadcast", json=body | {"timeout": 60}, headers=BOT
        )
        told = response.json()
        assert response.status_code == 200, told
        [found] = told["confirmed"]
        assert (found["height"], found["finalized"]) == (9, True)
        none: tuple[object, ...] = ("final", "Finalized", 101, -1, 1.5, [], True)
        for wrong in none:
            response = await client.post(
                "/sign-and-broadcast", json=body | {"confirmations": wrong}, headers=BOT
            )
            assert (response.status_code, response.json()["error"]) == (400, 7002), wrong
            assert "or finalized" in response.json()["message"]


async def test_what_the_node_refuses_can_be_sent_again(tmp_path: Path) -> None:
    refused = {"error": 112, "message": "negative waves balance"}
    node = FakeNode(answer(400, json_=refused))
    async with Place(tmp_path).serving(node) as client:
        body = {"key": "hot", "package": [{"transaction": TRANSFER}] * 2, "id": "pay-1"}
        response = await client.post("/sign-and-broadcast", json=body, headers=BOT)
        told = response.json()
        assert (response.status_code, told["error"], told["accepted"]) == (400, 112, 0)
        node.says = None
        again = await client.post("/sign-and-broadcast", json=body, headers=BOT)
        assert again.json()["signed"] == told["signed"]
    assert [each["id"] for each in node.broadcast[1:]] == [each["id"] for each in told["signed"]]


SIMULATED: Final = f"""
[[rule]]
name = "tried"
signs = ["transfer"]
keys = ["hot"]
callers = ["bot"]
recipients = ["alias:friend={COLD_ADDRESS}"]
amounts = {{ WAVES = 5 }}
fees = {{ WAVES = 100_000 }}
windows = [{{ amounts = "WAVES", most = 5, within = "1d" }}]
simulate = true
"""


async def test_the_node_is_asked_first(tmp_path: Path) -> None:
    node = FakeNode()
    alias, simulation = (
        {"address": HOT_ADDRESS},
        (200, {"valid": False, "error": {"message": "no"}}),
    )

    async def says(_body: bytes, _writer: asyncio.StreamWriter) -> bytes:
        if node.seen[-1].startswith(b"GET /alias/by-alias/friend "):
            return answer(200, json_=alias)
        status, said = simulation
        return answer(status, json_=said)

    node.says = says
    body = {"key": "hot", "transaction": {**TRANSFER, "recipient": "alias:R:friend"}}
    async with Place(tmp_path, SIMULATED).serving(node) as client:

        async def sign() -> tuple[int, int]:
            response = await client.post("/sign", json=body, headers=BOT)
            return response.status_code, response.json().get("error", 0)

        assert await sign() == (403, 7028)
        alias = {"address": COLD_ADDRESS}
        assert await sign() == (422, 7033)
        simulation = (404, {"error": 1})
        assert await sign() == (502, 7015)
        simulation = (200, {"valid": True})
        # Nothing of the refusals has counted.
        assert await sign() == (200, 0)
        assert await sign() == (403, 7028)
    sent = [each for each in node.seen if each.startswith(b"POST /transactions/simulate ")]
    assert json.loads(sent[0].partition(b"\r\n\r\n")[2])["proofs"] == []
