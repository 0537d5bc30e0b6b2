"""``/events`` as a WebSocket of a node whose interface other processes serve."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest
from websockets.asyncio.client import connect
from websockets.exceptions import InvalidStatus

from tests.e2e.programs import call, devnet, signed_transfer

pytestmark = pytest.mark.slow


def test_workers_hand_events_on() -> None:
    with devnet("--workers", 2) as node:
        asyncio.run(listen(node.node_url))


async def listen(url: str) -> None:
    """Hear of a transaction on one connection, and go on behind its block on another."""
    target = url.replace("http", "ws", 1) + "/events"
    sender, *_, recipient = call(f"{url}/addresses").json()
    async with asyncio.timeout(60), connect(target, proxy=None) as client:
        assert json.loads(await client.recv())["event"] == "synced"
        body = signed_transfer(url, sender, recipient, 12_345)
        call(f"{url}/transactions/broadcast", body)
        event: dict[str, Any] = {}
        seen: dict[str, str] = {}
        while event.get("event") != "transaction":
            event = json.loads(await client.recv())
            seen[event["event"]] = event["id"]
        assert event["data"]["transaction"]["id"] == body["id"]
    before = seen.get("block") or seen["microblock"]
    behind = f"{target}?lastEventId={before}"
    async with asyncio.timeout(60), connect(behind, proxy=None) as client:
        again = json.loads(await client.recv())
        assert (again["event"], again["data"]["transaction"]["id"]) == ("transaction", body["id"])
    with pytest.raises(InvalidStatus) as refused:
        await connect(f"{target}?lastEventId=1", proxy=None)
    assert refused.value.response.status_code == 410
