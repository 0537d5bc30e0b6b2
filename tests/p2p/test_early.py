"""Blocks whose time has not come: miners' clocks differ, and nobody did wrong."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from soliton.chain.blocks import Block
from soliton.consensus.header_check import MAX_TIME_DRIFT_MS
from soliton.p2p.core import MAX_DEFERRED
from soliton.p2p.jobs import EARLY_MS
from soliton.wire import messages
from tests.node import forging
from tests.p2p.test_signed_first import Stranger
from tests.p2p.world import Peer, make, network, peers, until


class Clock:
    """A clock that a test moves on."""

    def __init__(self, peer: Peer) -> None:
        self.time = peer.node.clock()
        peer.node.clock = lambda: self.time
        peer.service.jobs.receiver._clock = lambda: self.time


@asynccontextmanager
async def world(directory: Path) -> AsyncIterator[tuple[Peer, Peer, Clock, Stranger]]:
    """A node, the maker of its blocks, the node's clock, and who brings them."""
    chain = network()
    async with peers(directory, 1, chain) as (node,):
        maker = make(directory / "maker", 3, chain)
        try:
            clock, stranger = Clock(node), Stranger(node)
            async with stranger.talking():
                yield node, maker, clock, stranger
        finally:
            maker.service.jobs.stop()
            maker.node.close()


def early_block(maker: Peer, clock: Clock, by: int) -> Block:
    """A block whose time is so many ms later than a node may take it."""
    later = clock.time + MAX_TIME_DRIFT_MS - 1 + by
    maker.node.clock = lambda: later
    maker.node.broadcast(maker.transfer())
    block = maker.node.mine(maker.owner)
    assert block.header.timestamp == later
    return block


def came(node: Peer) -> int:
    return node.service.core.traffic.messages_in["ProtobufBlock"]


@pytest.mark.parametrize("asked", [True, False], ids=["extension", "unasked"])
def test_an_early_block_is_taken_when_its_time_has_come(tmp_path: Path, asked: bool) -> None:
    async def run() -> None:
        async with world(tmp_path) as (node, maker, clock, stranger):
            common = maker.node.chain.last_block
            block = early_block(maker, clock, by=300)
            if asked:
                stranger.claim([common, block])
            else:
                stranger.say(messages.ProtobufBlock(block.data))
            await until(lambda: len(node.service.core._deferred) == 1, "that it waits")
            assert node.node.chain.height == 1
            # Its own clock decides, whenever it is looked at.
            clock.time += 300
            await until(lambda: node.node.chain.height == 2, "the block")
            assert node.node.chain.last_block.id == block.id
            assert node.service.core.connected == 1
            assert (node.service.suspended(), node.service.blacklisted()) == ({}, {})

    asyncio.run(run())


def test_a_block_from_far_in_the_future_is_let_go(tmp_path: Path) -> None:
    async def run() -> None:
        async with world(tmp_path) as (node, maker, clock, stranger):
            block = early_block(maker, clock, by=EARLY_MS + 1)
            stranger.say(messages.ProtobufBlock(block.data))
            await until(lambda: came(node) == 1, "what was sent")
            await until(lambda: not node.service.jobs.is_working, "the end of the work")
            assert node.service.core._deferred == []
            assert node.node.chain.height == 1

    asyncio.run(run())


def test_no_more_early_blocks_wait_than_the_limit(tmp_path: Path) -> None:
    async def run() -> None:
        async with world(tmp_path) as (node, maker, clock, stranger):
            for number in range(MAX_DEFERRED + 4):
                block = early_block(maker, clock, by=EARLY_MS - number)
                stranger.say(messages.ProtobufBlock(block.data))
                forging.roll_back(maker.node, 1, keep=False)
                count = number + 1
                await until(lambda: came(node) == count)  # noqa: B023 - waited for here
                await until(lambda: not node.service.jobs.is_working)
            assert len(node.service.core._deferred) == MAX_DEFERRED

    asyncio.run(run())


def test_a_chain_with_the_base_target_of_the_settings_stops_the_node(tmp_path: Path) -> None:
    async def run() -> None:
        chain = network()
        most = {"synchronization__max_base_target": 2}
        async with peers(tmp_path, 1, chain, **most) as (node,):
            maker = make(tmp_path / "maker", 3, chain)
            try:
                maker.node.mine(maker.owner, empty=True)
                stranger = Stranger(node)
                async with stranger.talking():
                    stranger.say(messages.ProtobufBlock(maker.node.chain.last_block.data))
                    await until(lambda: node.node.is_stopping, "the end")
                    assert node.node.chain.height == 1
            finally:
                maker.service.jobs.stop()
                maker.node.close()

    asyncio.run(run())
