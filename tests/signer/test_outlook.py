"""What approvers see of what waits: sums, windows, the node's forecast; and who is told of it."""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Final

import pytest

from soliton.crypto import base58
from soliton.signer import webhook
from soliton.signer.settings import WebhookSettings
from soliton.signer.webhook import MAX_QUEUE, Webhook, WebhookProblem
from tests.signer.fakes import FakeNode, answer
from tests.signer.kept import (
    APPROVED,
    BOT,
    COLD_ADDRESS,
    HOT_ADDRESS,
    NOW,
    TRANSFER,
    Place,
    as_caller,
    checked,
)

GOLD: Final = base58.encode(b"\5" * 32)
RULES: Final = f"""
[decimals]
"{GOLD}" = 2
""" + APPROVED.replace(
    "amounts = { WAVES = 100 }", f'amounts = {{ WAVES = 100, "{GOLD}" = 1_000 }}'
).replace(
    'windows = [{ amounts = "WAVES", most = 150, within = "1d" }]',
    "windows = [\n"
    '  { amounts = "WAVES", most = 150, within = "1d" },\n'
    f'  {{ amounts = "{GOLD}", most = 2_000, within = "90s", per = "key" }},\n'
    '  { fees = "WAVES", most = 1_000_000, within = "2h", per = "caller" },\n'
    '  { signatures = true, most = 9, within = "15m" },\n'
    "]",
)
PACKAGE: Final = [
    {"transaction": {**TRANSFER, "amount": 40}},
    {"transaction": {**TRANSFER, "amount": 60}},
    {"transaction": {**TRANSFER, "amount": 250, "assetId": GOLD}},
]


async def asked(client: Any, path: str = "/sign", **more: Any) -> dict[str, Any]:
    body = {"key": "hot", **(more or {"package": PACKAGE})}
    response = await client.post(path, json=body, headers=BOT)
    assert response.status_code == 202, response.text
    shown: dict[str, Any] = response.json()
    return shown


async def approved(client: Any, pending: str, *names: str) -> dict[str, Any]:
    shown: dict[str, Any] = {}
    for name in names:
        response = await client.post(f"/pending/{pending}/approve", headers=as_caller(name))
        assert response.status_code == 200, response.text
        shown = response.json()
    return shown


async def seen(client: Any, pending: str, rest: str = "") -> Any:
    return (await client.get(f"/pending/{pending}{rest}", headers=as_caller("alice"))).json()


async def test_sums_and_windows_of_a_package(tmp_path: Path) -> None:
    async with Place(tmp_path, RULES).serving() as client:
        first = await asked(client, package=PACKAGE[:1])
        await approved(client, first["pending"], "alice", "bob")
        shown = await seen(client, (await asked(client))["pending"])
        assert shown["approvers"] == ["alice", "bob", "carol"] and shown["needed"] == 2
        assert [(each["asset"], each["amount"], each["fee"]) for each in shown["totals"]] == [
            ("WAVES", 100, 300_000), (GOLD, 250, 0),
        ]  # fmt: skip
        assert [each["told"] for each in shown["totals"]] == [
            "0.000001 WAVES and 0.003 WAVES of fees", f"2.5 {GOLD}",
        ]  # fmt: skip
        line = RULES.splitlines().index("[[rule]]") + 1
        assert shown["decided"] == [{"rule": "large", "line": line}] * 3
        windows = {(each["what"], each["before"], each["after"], each["most"], each["per"])
                   for each in shown["windows"]}  # fmt: skip
        assert windows == {
            ("amounts", 40, 140, 150, "rule"),
            ("amounts", 0, 250, 2_000, "key"),
            ("fees", 100_000, 400_000, 1_000_000, "caller"),
            ("signatures", 1, 4, 9, "rule"),
        }
        assert {each["told"] for each in shown["windows"]} >= {
            "within 1 d: 0.0000004 WAVES before, 0.0000014 WAVES after, 0.0000015 WAVES at most",
            (
                "within 2 h by this caller: 0.001 WAVES of fees before, 0.004 WAVES after, "
                "0.01 WAVES at most"
            ),
            "within 15 min: 1 signature before, 4 signatures after, 9 signatures at most",
        }
        # Looking counts nothing.
        assert (await seen(client, shown["pending"]))["windows"] == shown["windows"]


async def test_what_the_rules_would_refuse_now_is_said(tmp_path: Path) -> None:
    async with Place(tmp_path, RULES).serving() as client:
        first, second = [(await asked(client))["pending"] for _ in range(2)]
        await approved(client, first, "alice", "bob")
        shown = await seen(client, second)
        assert shown["refusal"]["condition"] == "windows" and "windows" not in shown
        assert "100 more" not in shown["refusal"]["message"]
        assert shown["refusal"]["line"] == RULES.splitlines().index("windows = [") + 1
        assert "windows" not in await seen(client, first)


def simulating(node: FakeNode, *, balance: int = 1_000) -> None:
    """Let a node say that a transfer of coins takes them away; of assets it knows nothing."""

    async def says(body: bytes, _writer: asyncio.StreamWriter) -> bytes:
        head = node.seen[-1]
        if head.startswith(b"POST /transactions/simulate?unconfirmed=false "):
            wanted = json.loads(body)
            if wanted.get("assetId"):
                return answer(200, json_={"valid": False, "error": {"message": "no such asset"}})
            row = {"address": HOT_ADDRESS, "asset": None, "balance": balance - wanted["amount"]}
            entry = {"key": "k\x1b[2J", "type": "integer", "value": 5}
            data = {"address": COLD_ADDRESS, "data": [entry]}
            changes = {"balances": [row], "accountData": [data], "newLeases": [{}]}
            return answer(200, json_={"valid": True, "height": 7, "changes": changes})
        if head.startswith(b"GET /addresses/balance/"):
            return answer(200, json_={"balance": balance})
        return answer(200, content=body)

    node.says = says


async def test_the_node_says_what_it_would_do(tmp_path: Path) -> None:
    node = FakeNode()
    simulating(node)
    async with Place(tmp_path, RULES).serving(node) as client:
        pending = (await asked(client))["pending"]
        first, second, third = (await seen(client, pending, "/simulation"))["simulated"]
        assert first["balances"] == [
            {"address": HOT_ADDRESS, "asset": "WAVES", "before": 1_000, "after": 960,
             "told": f"{HOT_ADDRESS}: 0.00001 WAVES before, 0.0000096 WAVES after "
                     "(-0.0000004 WAVES)"},
        ]  # fmt: skip
        assert first["told"][1:] == [
            f"{COLD_ADDRESS}: the entry 'k\\x1b[2J' becomes 5", "leases that begin: 1",
        ]  # fmt: skip
        assert second["changes"]["balances"][0]["balance"] == 940
        assert third == {"valid": False, "balances": [], "told": ["it would fail: no such asset"]}
        node.says = answer(404, json_={"error": 1})
        refused = await client.get(f"/pending/{pending}/simulation", headers=as_caller("alice"))
        assert (refused.status_code, refused.json()["error"]) == (502, 7015)
        stranger = await client.get(f"/pending/{pending}/simulation", headers=as_caller("idle"))
        assert stranger.status_code == 403


async def test_what_was_to_be_sent_is_sent_when_the_last_approval_has_come(tmp_path: Path) -> None:
    node = FakeNode()
    one: dict[str, Any] = {"transaction": TRANSFER}
    async with Place(tmp_path, RULES).serving(node) as client:
        kept = (await asked(client, **one))["pending"]
        assert "broadcast" not in await approved(client, kept, "alice", "bob")
        assert node.broadcast == []
        sent = (await asked(client, "/sign-and-broadcast", **one))["pending"]
        assert (await approved(client, sent, "alice", "bob"))["broadcast"] == {"accepted": 1}
        told = (await client.get(f"/pending/{sent}", headers=BOT)).json()
        checked(told["signed"])
        assert node.broadcast == [told["signed"]]
        node.says = answer(400, json_={"error": 112, "message": "negative waves balance"})
        body: dict[str, Any] = {"id": "once", **one}
        lost = (await asked(client, "/sign-and-broadcast", **body))["pending"]
        shown = await approved(client, lost, "alice", "bob")
        assert (shown["state"], shown["broadcast"]["error"]) == ("signed", 112)
        node.says = None
        again = await client.post("/sign-and-broadcast", json={"key": "hot", **body}, headers=BOT)
        assert again.status_code == 200 and node.broadcast[-1] == again.json()["signed"]


# --- the webhook ----------------------------------------------------------------------------------

SECRET: Final = b"a secret of both sides"


class Receiver(FakeNode):
    """A service that is told; it keeps what is genuine."""

    def __init__(self, *statuses: int) -> None:
        super().__init__()
        self.statuses = list(statuses)
        self.told: list[dict[str, Any]] = []
        self.tries = 0
        self.news = asyncio.Event()
        self.says = self._says

    async def _says(self, body: bytes, _writer: asyncio.StreamWriter) -> bytes:
        head, _, _ = self.seen[-1].partition(b"\r\n\r\n")
        assert head.startswith(b"POST /told?by=signer HTTP/1.1\r\n")
        lines = (line.split(": ", 1) for line in head.decode().lower().split("\r\n")[1:])
        headers = dict(lines)
        stamp = headers["x-soliton-timestamp"]
        made = hmac.new(SECRET, stamp.encode() + b"." + body, hashlib.sha256).hexdigest()
        assert headers["x-soliton-signature"] == f"sha256={made}"
        self.tries += 1
        status = self.statuses.pop(0) if self.statuses else 200
        if status == 200:
            self.told.append(json.loads(body))
            self.news.set()
        return answer(status)

    async def wait_for(self, count: int) -> None:
        async with asyncio.timeout(60):
            while len(self.told) < count:
                self.news.clear()
                await self.news.wait()


@asynccontextmanager
async def telling(place: Place, receiver: Receiver) -> AsyncIterator[tuple[Any, Any]]:
    """A signer with a webhook, and its client."""
    secret = place.directory / "secret"
    secret.write_bytes(SECRET + b"\n")
    settings = WebhookSettings(f"{receiver.url}/told?by=signer", secret)
    async with place.serving(webhook=settings) as client:
        yield client, settings


async def test_a_service_is_told_what_waits_and_what_became_of_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(webhook, "PAUSES", (0.01, 0.01))
    receiver, place = Receiver(500, 302), Place(tmp_path, RULES)
    async with receiver.serving():
        async with telling(place, receiver) as (client, _):
            pending = (await asked(client))["pending"]
            await receiver.wait_for(1)
            (told,) = receiver.told
            assert (told["pending"], told["state"], receiver.tries) == (pending, "waiting", 3)
            assert told["approvers"] == ["alice", "bob", "carol"] and len(told["told"]) == 3
            assert [each["amount"] for each in told["totals"]] == [100, 250]
            assert "signed" not in told and "asked" not in told
            await approved(client, pending, "alice", "bob")
            await receiver.wait_for(2)
            other = (await asked(client, transaction=TRANSFER))["pending"]
            await client.post(f"/pending/{other}/refuse", headers=as_caller("carol"))
            await receiver.wait_for(4)
        states = [(each["pending"], each["state"]) for each in receiver.told]
        assert states == [
            (pending, "waiting"), (pending, "signed"), (other, "waiting"), (other, "refused"),
        ]  # fmt: skip


async def test_what_still_waits_is_told_again_after_a_start(tmp_path: Path) -> None:
    receiver, place = Receiver(), Place(tmp_path, RULES)
    async with place.serving() as client:
        pending = (await asked(client))["pending"]
    secret = tmp_path / "secret"
    secret.write_bytes(SECRET)
    settings = WebhookSettings(f"{receiver.url}/told?by=signer", secret)
    async with receiver.serving():
        app = place.app(webhook=settings)
        app.begin()
        await receiver.wait_for(1)
        app.close()
    assert [(each["pending"], each["state"]) for each in receiver.told] == [(pending, "waiting")]


async def test_a_service_that_takes_nothing_costs_a_bounded_queue(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(webhook, "PAUSES", (0.0, 0.0))
    receiver = Receiver(*[500] * 3)
    secret = tmp_path / "secret"
    secret.write_bytes(SECRET)
    async with receiver.serving():
        hook = Webhook(WebhookSettings(f"{receiver.url}/told?by=signer", secret), lambda: NOW)
        for number in range(MAX_QUEUE + 5):
            hook.notify({"number": number})
        await receiver.wait_for(MAX_QUEUE - 1)
        hook.close()
    # The oldest five gave way; the next one was tried three times, and given up.
    assert [each["number"] for each in receiver.told] == list(range(6, MAX_QUEUE + 5))
    assert receiver.tries == MAX_QUEUE + 2


@pytest.mark.parametrize("secret", [None, b"", b"too short \n", b"x" * 5_000])
def test_a_secret_that_is_none_stops_the_start(tmp_path: Path, secret: bytes | None) -> None:
    path = tmp_path / "secret"
    if secret is not None:
        path.write_bytes(secret)
    with pytest.raises(WebhookProblem):
        Webhook(WebhookSettings("http://receiver.test/", path), lambda: NOW)
