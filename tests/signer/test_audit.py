"""The audit log beside the process that writes it: its last lines, its check; and which pages of
other origins may ask.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

import pytest

from soliton.signer import audit, journal
from tests.signer.kept import APPROVED, BOT, PASSWORD, TRANSFER, Place, as_caller, entries

ORIGIN: Final = "https://dapp.example"


async def signed(client: Any, amount: int = 5) -> Any:
    body = {"key": "hot", "transaction": {**TRANSFER, "amount": amount}}
    return await client.post("/sign", json=body, headers=BOT)


async def test_the_last_lines_come_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # Many files, and pieces shorter than a line.
    monkeypatch.setattr(journal, "SEGMENT_BYTES", 2_000)
    monkeypatch.setattr(audit, "_CHUNK", 64)
    place = Place(tmp_path)
    async with place.serving() as client:
        for amount in range(1, 13):
            assert (await signed(client, amount)).status_code == 200
        await signed(client, 0)
        found: list[dict[str, Any]] = []
        while True:
            before = f"&before={found[-1]['number']}" if found else ""
            told = (await client.get(f"/audit?limit=5{before}", headers=BOT)).json()
            if not told["lines"]:
                break
            found += told["lines"]
        assert told["head"]["number"] >= found[0]["number"] and told["verified"] is None
        for wrong in ("limit=x", "limit=201", "before=-1", "before=9999999999999999999"):
            assert (await client.get(f"/audit?{wrong}", headers=BOT)).status_code == 400
    assert len(journal.segments(place.state)) > 2
    written = [each for each in entries(place) if each.event.value != "checkpoint"]
    assert [each["number"] for each in found] == [each.number for each in reversed(written)]
    assert [each["told"] for each in found] == [list(each.sentences) for each in reversed(written)]
    ruled = {"sign", "refuse"}
    assert {each["rule"] for each in found if each["event"] in ruled} <= {"all", ""}
    assert all(each["lines"] == [2] for each in found if each["event"] == "sign")


async def test_a_page_of_the_past_goes_through_no_newer_lines(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(audit, "_CHUNK", 2_048)
    monkeypatch.setattr(journal, "SEGMENT_BYTES", 60_000)
    number_of, seen = audit._number, list[bytes]()

    def counted(line: bytes) -> int | None:
        seen.append(line)
        return number_of(line)

    monkeypatch.setattr(audit, "_number", counted)
    place = Place(tmp_path)
    async with place.serving() as client:
        for amount in range(1, 301):
            assert (await signed(client, amount)).status_code == 200
        assert len(journal.segments(place.state)) > 1
        for before in (301, 150, 20):
            seen.clear()
            told = (await client.get(f"/audit?limit=5&before={before}", headers=BOT)).json()
            numbers = [each["number"] for each in told["lines"]]
            assert numbers == list(range(before - 1, before - 6, -1))
            assert len(seen) < 60


async def test_a_refusal_has_the_line_that_decided(tmp_path: Path) -> None:
    async with Place(tmp_path, APPROVED).serving() as client:
        assert (await signed(client, 101)).status_code == 403
        (last, *_) = (await client.get("/audit", headers=BOT)).json()["lines"]
    line = next(at for at, text in enumerate(APPROVED.splitlines(), 1) if text[:7] == "amounts")
    assert (last["event"], last["rule"], last["lines"]) == ("refuse", "large", [line])


async def test_the_whole_log_is_checked(tmp_path: Path) -> None:
    place = Place(tmp_path)
    async with place.serving() as client:
        await signed(client)
        told = (await client.post("/audit/verify", headers=BOT)).json()
        head = (await client.get("/audit", headers=BOT)).json()
        assert told["sound"] is True and told == head["verified"]
        assert (told["lines"], told["head"]) == (head["head"]["number"], head["head"]["hash"])
        assert (told["first"], told["signatures"]) == (1, 1)
        (file,) = place.state.glob("audit-*.jsonl")
        kept = file.read_bytes()
        file.write_bytes(kept.replace(b'"caller":"bot"', b'"caller":"eve"', 1))
        told = (await client.post("/audit/verify", headers=BOT)).json()
        assert told["sound"] is False and f"{file.name}" in told["message"]
        # What is sound in itself and lacks the last line is not what was written.
        file.write_bytes(kept[: kept.rindex(b"\n", 0, -1) + 1])
        told = (await client.post("/audit/verify", headers=BOT)).json()
        assert told["sound"] is False and "has written" in told["message"]


async def test_who_asks(tmp_path: Path) -> None:
    async with Place(tmp_path).serving() as client:
        told = (await client.get("/caller", headers=as_caller("alice"))).json()
        assert told == {"name": "alice", "may": ["approve", "list"], "rate": 0}
        shown = (await client.get("/policy", headers=BOT)).json()
        assert shown["source"] == (tmp_path / "policy.toml").read_text()


async def test_pages_of_listed_origins_may_ask(tmp_path: Path) -> None:
    allow = "access-control-allow-origin"
    place = Place(tmp_path)
    async with place.serving(origins=(ORIGIN,)) as client:
        wants = {"Access-Control-Request-Private-Network": "true"}
        answer = await client.options("/sign", headers={"Origin": ORIGIN, **wants})
        assert (answer.status_code, answer.headers[allow]) == (204, ORIGIN)
        assert "X-API-Key" in answer.headers["access-control-allow-headers"]
        assert answer.headers["access-control-max-age"] == "600"
        assert answer.headers["access-control-allow-private-network"] == "true"
        assert "access-control-allow-credentials" not in answer.headers
        body = {"key": "hot", "transaction": TRANSFER}
        for path, more in (
            ("/sign", body),
            ("/sign", {"key": "none"}),
            ("/keys/unlock", {"password": PASSWORD}),
        ):
            headers = {**BOT, "Origin": ORIGIN}
            answer = await client.post(path, json=more, headers=headers)
            assert answer.headers[allow] == ORIGIN, path
        for other in ("https://dapp.example.evil.example", "http://dapp.example", "null"):
            for method in ("OPTIONS", "GET"):
                headers = {**BOT, "Origin": other}
                answer = await client.request(method, "/keys", headers=headers)
                assert allow not in answer.headers and "Origin" in answer.headers["vary"]
