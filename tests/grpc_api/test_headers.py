"""What subscribers may ask for beside a request: more room, history first, an answer at once."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from soliton.chain.transactions import data
from soliton.chain.values import DataEntry
from soliton.grpc_api import updates
from soliton.grpc_api.proto.blockchain_updates_pb2 import (
    GetBlockUpdatesRangeRequest,
    GetBlockUpdatesRangeResponse,
    SubscribeEvent,
    SubscribeRequest,
)
from soliton.node.key_blocks import mine_key_block
from tests.api.chain import RICH, PrivateChain
from tests.grpc_api.serving import Client, eventually, served
from tests.node import forging

SERVICE = f"/{updates.SERVICE.full_name}"
HISTORY = 30
LATER = 12
QUEUE = 5
Beside = tuple[tuple[str, str], ...]


@pytest.fixture
def chain(tmp_path: Path) -> Iterator[PrivateChain]:
    made = PrivateChain(tmp_path)
    yield made
    made.node.close()


def large_blocks(chain: PrivateChain, count: int) -> None:
    """Blocks of which a connection takes only a few before somebody reads."""
    for number in range(count):
        payload = data.Data((DataEntry("key", bytes((number,)) * 30_000),))
        for _ in range(4):
            chain.send(chain.sign(data.TYPE, payload, 2, fee=10_000_000))
        chain.mine()


async def late_reader(chain: PrivateChain, client: Client, beside: Beside) -> list[int]:
    """What a subscriber gets who reads one update, and the rest when many more have come."""
    request = SubscribeRequest(from_height=1).SerializeToString()
    made: Any = client.channel.unary_stream(f"{SERVICE}/Subscribe")(request, metadata=beside)
    found = [SubscribeEvent.FromString(await made.read()).update.height]
    for _ in range(LATER):
        chain.mine()
    assert client.served_by is not None
    follower = client.served_by._updates.follower
    await eventually(lambda: follower.place.height == chain.node.chain.height)
    while found[-1] < chain.node.chain.height:
        more = await asyncio.wait_for(made.read(), 60)
        if not more:
            assert (await made.code()).name == "OK"
            break
        found.append(SubscribeEvent.FromString(more).update.height)
    made.cancel()
    return found


@pytest.mark.parametrize(
    ("beside", "is_whole"),
    [
        ((), False),
        (((updates.QUEUE_HEADER, "4"),), False),
        (((updates.QUEUE_HEADER, "no number"),), False),
        (((updates.QUEUE_HEADER, "1000"),), True),
        (((updates.CATCH_UP_HEADER, "yes"),), True),
    ],
)
async def test_room_for_what_waits(
    chain: PrivateChain, monkeypatch: pytest.MonkeyPatch, beside: Beside, is_whole: bool
) -> None:
    monkeypatch.setattr(updates, "MAX_QUEUE", QUEUE)
    large_blocks(chain, HISTORY)
    top = chain.node.chain.height
    async with served(chain.node) as client:
        found = await late_reader(chain, client, beside)
    assert found == list(range(1, (top + LATER if is_whole else top) + 1))


async def test_an_answer_at_once(chain: PrivateChain) -> None:
    chain.mine()
    mine_key_block(chain.node, RICH)
    chain.send(chain.transfer())
    forging.mine_micro(chain.node, RICH)
    at_once = ((updates.AT_ONCE_HEADER, "1"),)
    path, stream = f"{SERVICE}/GetBlockUpdatesRange", f"{SERVICE}/Subscribe"
    async with served(chain.node) as client:
        whole = [1, 2, 3, 3]
        for last, heights in ((0, whole), (3, whole), (2, [1, 2]), (99, whole)):
            request = GetBlockUpdatesRangeRequest(from_height=1, to_height=last).SerializeToString()
            found = await client.call(path, request, stream=False, metadata=at_once)
            answer = GetBlockUpdatesRangeResponse.FromString(found.responses[0])
            assert [each.height for each in answer.updates] == heights
            request = SubscribeRequest(from_height=1, to_height=last).SerializeToString()
            told = await client.call(stream, request, stream=True, metadata=at_once)
            assert told.code == "OK"
            events = [SubscribeEvent.FromString(each).update for each in told.responses]
            assert [each.height for each in events] == heights
        # Without it both wait for the block above.
        request = GetBlockUpdatesRangeRequest(from_height=1, to_height=3).SerializeToString()
        waits = client.channel.unary_unary(path)(request)
        opened = await client.call(stream, request, stream=True, expected=4)
        assert (opened.code, len(opened.responses)) == ("OPEN", 4)
        assert not waits.done()
        chain.mine()
        assert len(GetBlockUpdatesRangeResponse.FromString(await waits).updates) == 4
