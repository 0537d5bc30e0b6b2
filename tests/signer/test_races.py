"""What comes at the same time: ids, approvals and refusals, and the log that goes on in a new file.

What lives here: orders of arrival that a slow disk or node makes possible. What does not: shared
writes of the log (``test_shared_writes``), ends of the process (``test_crashes``).
"""

from __future__ import annotations

import asyncio
import os
import time
from pathlib import Path
from typing import Any

import httpx
import pytest

from soliton.signer.app import Limits
from soliton.signer.records import Event
from tests.signer.fakes import FakeNode, answer
from tests.signer.kept import (
    APPROVED,
    BOT,
    KEYS,
    LIMITED,
    PASSWORD,
    TRANSFER,
    Place,
    as_caller,
    entries,
)
from tests.web.memory import MemoryHttp, Wire

SIMULATED = LIMITED.replace("windows", "simulate = true\nwindows")


def body(number: int = 0, **more: Any) -> dict[str, Any]:
    return {"key": "hot", "transaction": {**TRANSFER, "amount": 100 + number}, **more}


@pytest.fixture
def slow_disk(monkeypatch: pytest.MonkeyPatch) -> None:
    """A disk that takes so long that requests come meanwhile."""

    def sync(_file: int) -> None:
        time.sleep(0.01)

    monkeypatch.setattr(os, "fdatasync", sync)
    monkeypatch.setattr(os, "fsync", sync)


# --- a file of the log that is full ---------------------------------------------------------------


@pytest.mark.usefixtures("slow_disk")
async def test_a_new_file_remembers_the_ids_that_were_on_their_way(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("soliton.signer.journal.SEGMENT_BYTES", 1)
    place = Place(tmp_path)
    bodies = [body(number, id=f"id-{number}") for number in range(8)]
    async with place.serving() as client:
        first = await asyncio.gather(*(client.post("/sign", json=it, headers=BOT) for it in bodies))
    assert {each.status_code for each in first} == {200}
    async with place.serving() as client:
        for it, before in zip(bodies, first, strict=True):
            again = await client.post("/sign", json=it, headers=BOT)
            assert again.content == before.content, it["id"]


@pytest.mark.usefixtures("slow_disk")
async def test_a_new_file_remembers_what_waited_and_was_decided_on_its_way(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("soliton.signer.journal.SEGMENT_BYTES", 1)
    place = Place(tmp_path, APPROVED.replace("150", "100_000").replace("= 100 }", "= 1_000 }"))

    async def states(client: Any) -> dict[str, tuple[str, list[str]]]:
        shown = (await client.get("/pending", headers=BOT)).json()["pending"]
        return {each["pending"]: (each["state"], sorted(each["approved"])) for each in shown}

    async with place.serving() as client:
        asked = await asyncio.gather(
            *(client.post("/sign", json=body(number), headers=BOT) for number in range(8))
        )
        names = [each.json()["pending"] for each in asked]
    async with place.serving() as client:
        assert await states(client) == dict.fromkeys(names, ("waiting", []))
        decided = await asyncio.gather(
            *(
                client.post(f"/pending/{name}/approve", headers=as_caller(who))
                for name in names[:6]
                for who in ("alice", "bob")
            ),
            *(
                client.post(f"/pending/{name}/refuse", headers=as_caller("carol"))
                for name in names[6:]
            ),
        )
        assert {each.status_code for each in decided} == {200}
        before = await states(client)
        assert [before[name][0] for name in names] == ["signed"] * 6 + ["refused"] * 2
    async with place.serving() as client:
        assert await states(client) == before


# --- one id ---------------------------------------------------------------------------------------


async def test_one_id_at_once_asks_once_for_approval(tmp_path: Path) -> None:
    place = Place(tmp_path, APPROVED)
    async with place.serving() as client:
        many = await asyncio.gather(
            *(
                client.post(path, json=body(id="once"), headers=BOT)
                for _ in range(4)
                for path in ("/sign", "/sign-and-broadcast")
            )
        )
        pending = (await client.get("/pending", headers=BOT)).json()["pending"]
    assert {each.status_code for each in many} <= {202, 409}
    assert len(pending) == 1
    assert [each.event for each in entries(place)].count(Event.ASK) == 1


async def test_one_id_at_once_is_signed_once_behind_the_node(tmp_path: Path) -> None:
    node = FakeNode(answer(200, json_={"valid": True}))
    place = Place(tmp_path, SIMULATED)
    async with place.serving(node) as client:
        many = await asyncio.gather(
            *(client.post("/sign", json=body(id="once"), headers=BOT) for _ in range(8))
        )
    assert {each.status_code for each in many} <= {200, 409}
    assert [each.event for each in entries(place)].count(Event.SIGN) == 1


async def test_what_finds_no_room_counts_nothing(tmp_path: Path) -> None:
    go = asyncio.Event()

    async def slow(_body: bytes, _writer: asyncio.StreamWriter) -> bytes:
        await go.wait()
        return answer(200, json_={"valid": True})

    node = FakeNode(slow)
    rules = SIMULATED.replace("most = 150", "most = 200")
    place = Place(tmp_path, rules)
    async with place.serving(node, limits=Limits(requests_at_once=1)) as client:
        first = asyncio.create_task(client.post("/sign", json=body(), headers=BOT))
        while not node.seen:  # noqa: ASYNC110 - the signer's own pace
            await asyncio.sleep(0.01)
        for _ in range(3):
            busy = await client.post("/sign", json=body(), headers=BOT)
            assert busy.status_code == 503
        go.set()
        assert (await first).status_code == 200
        second = await client.post("/sign", json=body(), headers=BOT)
        assert second.status_code == 200, second.text


# --- approvals ------------------------------------------------------------------------------------


@pytest.mark.usefixtures("slow_disk")
async def test_one_approver_counts_once_from_two_connections(tmp_path: Path) -> None:
    place = Place(tmp_path, APPROVED)
    async with place.serving() as client:
        shown = (await client.post("/sign", json=body(), headers=BOT)).json()
        path = f"/pending/{shown['pending']}"
        both = await asyncio.gather(
            *(client.post(f"{path}/approve", headers=as_caller("alice")) for _ in range(3))
        )
        for each in both:
            assert (each.status_code, each.json()["state"]) == (200, "waiting"), each.text
            assert each.json()["approved"] == ["alice"]


async def test_a_refusal_that_was_first_is_final(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It comes while the line of the last approval has just been written."""
    place = Place(tmp_path, APPROVED)
    app = place.app()
    assert app._keys is not None
    loop, wire = asyncio.get_running_loop(), Wire(app)

    def ask(path: str, who: str, value: bytes = b"") -> bytes:
        head = f"POST {path} HTTP/1.1\r\nHost: localhost\r\nX-API-Key: {KEYS[who]}\r\n"
        return f"{head}Content-Length: {len(value)}\r\n\r\n".encode() + value

    transport = MemoryHttp(app)
    async with httpx.AsyncClient(transport=transport, base_url="http://signer.test") as client:
        await client.post("/keys/unlock", json={"password": PASSWORD}, headers=BOT)
        shown = (await client.post("/sign", json=body(), headers=BOT)).json()
        path = f"/pending/{shown['pending']}"
        await client.post(f"{path}/approve", headers=as_caller("alice"))
        refuses = [True]

        def sync(_file: int) -> None:
            if refuses:
                refuses.clear()
                loop.call_soon_threadsafe(wire.send, ask(f"{path}/refuse", "carol"))

        monkeypatch.setattr(os, "fdatasync", sync)
        await client.post(f"{path}/approve", headers=as_caller("bob"))
        refused = await asyncio.wait_for(wire.answer(), 60)
        state = (await client.get(path, headers=BOT)).json()["state"]
    app.close()
    events = [each.event for each in entries(place)]
    if Event.REJECT in events:
        assert (refused.status, state) == (200, "refused")
        assert Event.SIGN not in events
    else:
        assert (refused.status, state) == (409, "signed")
