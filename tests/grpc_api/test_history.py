"""Blocks of the past, for a subscriber that reads them slowly while the chain goes another way."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path

import pytest

from soliton.grpc_api.errors import Refused
from soliton.grpc_api.following import Event
from soliton.grpc_api.proto.blockchain_updates_pb2 import SubscribeEvent, SubscribeRequest
from soliton.grpc_api.updates import BATCH
from soliton.grpc_api.views import View
from tests.api.chain import PrivateChain
from tests.grpc_api.serving import eventually, served
from tests.node import forging

FROM_START = SubscribeRequest(from_height=1).SerializeToString()


@pytest.fixture
def chain(tmp_path: Path) -> Iterator[PrivateChain]:
    made = PrivateChain(tmp_path)
    yield made
    made.node.close()


async def test_what_is_replaced_before_it_was_read(chain: PrivateChain) -> None:
    """The stream ends: what it would go on with stands on other blocks than it has sent."""
    for _ in range(BATCH + 10):
        chain.mine()
    height, node = chain.node.chain.height, chain.node
    async with served(node) as client:
        assert client.served_by is not None
        updates = client.served_by._updates
        stream = aiter(updates.subscribe(SubscribeRequest(from_height=1), {}))
        found = [await anext(stream)]
        forging.roll_back(node, height - 4, keep=False)
        chain.tick(1_000)
        for _ in range(4):
            chain.mine()
        top = node.chain.last_block.id
        await eventually(lambda: updates.follower.place.forms[-1].id == top)
        with contextlib.suppress(Refused):
            while len(found) < height + 3:
                found.append(await anext(stream))
    # All that were below the last one, and nothing of what was there before.
    assert len(found) == height - 1
    ids = [b""]
    for each in found:
        update = SubscribeEvent.FromString(each).update
        reference = update.append.block.block.header.reference
        assert update.HasField("append") and ids[-1] in (b"", reference)
        ids.append(update.id)


async def test_what_cannot_be_told_holds_no_moment_of_the_store(chain: PrivateChain) -> None:
    """Pages of a moment that somebody holds cannot be used again."""
    chain.mine()
    async with served(chain.node) as client:
        assert client.served_by is not None
        follower, views = client.served_by._updates.follower, client.served_by._views
        stream = client.stream("/waves.events.grpc.BlockchainUpdatesApi/Subscribe", FROM_START)
        await eventually(lambda: len(stream.found) > 1)
        held: list[View] = []
        take, hear = views.acquire, follower._notify

        def taken() -> View:
            held.append(take())
            return held[-1]

        async def fails(_event: Event) -> None:
            follower._notify = hear
            raise RuntimeError

        views.acquire, follower._notify = taken, fails  # type: ignore[method-assign]
        chain.mine()
        await eventually(lambda: stream.done)
        chain.mine()
        top = chain.node.chain.last_block.id
        await eventually(lambda: follower.place.forms[-1].id == top)
        assert len(held) > 2
        assert [each.users for each in held if each is not follower._view] == [0] * (len(held) - 1)
