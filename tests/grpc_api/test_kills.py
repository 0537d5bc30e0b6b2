"""The process that serves gRPC is killed again and again; a consumer comes back, misses nothing."""

from __future__ import annotations

import asyncio
import copy
import os
import signal
from pathlib import Path

import pytest
from grpc import aio

from soliton.chain.transactions import transfer
from soliton.cli.grpc_server import GrpcService
from soliton.grpc_api.proto.blockchain_updates_pb2 import SubscribeEvent, SubscribeRequest
from soliton.grpc_api.proto.blocks_api_pb2 import BlockRequest, BlockWithHeight
from tests.api.chain import PrivateChain
from tests.grpc_api.consumer import Consumer
from tests.grpc_api.serving import MOST_TRIES, PAUSE_SECONDS, Client
from tests.grpc_api.test_process import a_chain
from tests.grpc_api.test_random_chains import COIN, PEOPLE, Life
from tests.grpc_api.test_recorded_updates import SERVICE
from tests.node.chains import address_of

KILLS = 50 if os.environ.get("SOLITON_TESTS") == "long" else 4
STEPS = 12
BLOCK = "/waves.node.grpc.BlocksApi/GetBlock"


class Gone(Exception):
    """Nobody answers now."""


class Resuming:
    """A consumer that remembers what it held before each of the last blocks."""

    def __init__(self, service: GrpcService) -> None:
        where = service.settings
        self.nodes = aio.insecure_channel(f"127.0.0.1:{where.port}")
        self.updates = aio.insecure_channel(f"127.0.0.1:{where.updates_port}")
        self.consumer = Consumer()
        self.before: dict[int, tuple[bytes, Consumer]] = {}
        self.times = 0

    async def run(self) -> None:
        """Follow for ever, whatever happens to the connection."""
        while True:
            try:
                await self._follow(await self._height())
            except (aio.AioRpcError, Gone):
                await asyncio.sleep(PAUSE_SECONDS)

    async def _height(self) -> int:
        """The last block that it can begin with: the one below is as it was."""
        client = Client(self.nodes)
        for height in sorted(self.before, reverse=True):
            reference, held = self.before[height]
            request = BlockRequest(block_id=reference).SerializeToString()
            found = await client.call(BLOCK, request, stream=False)
            if found.code == "UNAVAILABLE":
                raise Gone
            if found.responses:
                assert BlockWithHeight.FromString(found.responses[0]).height == height - 1
                self.consumer = copy.deepcopy(held)
                return height
        self.consumer = Consumer()
        return 1

    async def _follow(self, height: int) -> None:
        self.times += 1
        request = SubscribeRequest(from_height=height).SerializeToString()
        async for data in self.updates.unary_stream(f"/{SERVICE}/Subscribe")(request):
            update = SubscribeEvent.FromString(data).update
            if update.append.HasField("block") and update.height > 1:
                reference = update.append.block.block.header.reference
                self.before[update.height] = reference, copy.deepcopy(self.consumer)
            self.consumer.take(update)


@pytest.mark.slow
async def test_a_consumer_comes_back_after_each_kill(tmp_path: Path) -> None:
    chain = a_chain(tmp_path, updates_port=0)
    life = Life(chain, 3)
    for each in PEOPLE[1:]:
        payload = transfer.Transfer(address_of(each), None, 10_000 * COIN, b"")
        chain.send(chain.sign(transfer.TYPE, payload, 3))
    chain.mine()
    service = GrpcService(chain.node)
    await service.start()
    resuming = Resuming(service)
    running = asyncio.create_task(resuming.run())
    try:
        for _ in range(KILLS):
            await live(life)
            [process_id] = await processes(service, 0)
            os.kill(process_id, signal.SIGKILL)
            await live(life)
            await processes(service, process_id)
            await caught_up(resuming, chain)
            resuming.consumer.compare(chain.node)
        assert resuming.times > KILLS
    finally:
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)
        await resuming.nodes.close()
        await resuming.updates.close()
        await service.stop()
        chain.node.close()


async def live(life: Life) -> None:
    """Let some things happen, with others in between."""
    for _ in range(STEPS):
        life.step()
        await asyncio.sleep(0)


async def processes(service: GrpcService, gone: int) -> list[int]:
    """Those that serve, when there are some and one of them is gone."""
    for _ in range(MOST_TRIES):
        found = service.process_ids()
        if found and gone not in found:
            return found
        await asyncio.sleep(PAUSE_SECONDS)
    raise AssertionError("nobody serves")


async def caught_up(resuming: Resuming, chain: PrivateChain) -> None:
    """Wait until the consumer is where the node is."""
    for _ in range(MOST_TRIES):
        told = resuming.consumer.chain
        if told and told[-1][1] == chain.node.chain.last_block.id:
            return
        await asyncio.sleep(PAUSE_SECONDS)
    raise AssertionError("it never came")
