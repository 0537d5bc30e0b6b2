"""The process that serves gRPC and a consumer's are killed again and again: it comes back from its
own file, and holds what the node holds.
"""

from __future__ import annotations

import asyncio
import os
import random
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from soliton.chain.transactions import transfer
from soliton.cli.grpc_server import GrpcService
from tests.amounts import if_long, times
from tests.api.chain import PrivateChain
from tests.grpc_api import resuming
from tests.grpc_api.serving import MAX_TRIES, PAUSE_SECONDS
from tests.grpc_api.test_process import a_chain
from tests.grpc_api.test_random_chains import COIN, PEOPLE, Life
from tests.node.chains import address_of
from tests.vectors import REPOSITORY

KILLS = times(4, 50)
STEPS = 12
LONGEST_SECONDS = 0.6


class Process:
    """The consumer as a program."""

    def __init__(self, service: GrpcService, file: Path) -> None:
        where = service.settings
        self.file = file
        self._command = [
            *(sys.executable, "-m", "tests.grpc_api.resuming"),
            *(str(where.port), str(where.updates_port), str(file)),
        ]
        self._errors = file.with_suffix(".txt").open("ab")
        self.start()

    def start(self) -> None:
        self.process = subprocess.Popen(self._command, cwd=REPOSITORY, stderr=self._errors)

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()

    def close(self) -> None:
        self.kill()
        self._errors.close()

    async def caught_up(self, chain: PrivateChain) -> None:
        """Wait until it is where the node is, and holds what that holds."""
        for _ in range(MAX_TRIES):
            told = self.file.with_suffix(".txt").read_text()
            assert self.process.poll() is None, told
            held = resuming.load(self.file).consumer
            if held.chain and held.chain[-1][1] == chain.node.chain.last_block.id:
                held.compare(chain.node)
                return
            await asyncio.sleep(PAUSE_SECONDS)
        raise AssertionError("it never came")


@pytest.mark.slow
@pytest.mark.parametrize("killed", ["both", if_long("server"), if_long("consumer")])
async def test_a_consumer_comes_back_after_each_kill(tmp_path: Path, killed: str) -> None:
    chain, chance = a_chain(tmp_path, updates_port=0), random.Random(5)
    life = Life(chain, 3)
    for each in PEOPLE[1:]:
        payload = transfer.Transfer(address_of(each), None, 10_000 * COIN, b"")
        chain.send(chain.sign(transfer.TYPE, payload, 3))
    chain.mine()
    service = GrpcService(chain.node)
    await service.start()
    consumer, caught_up = Process(service, tmp_path / "held"), 0
    try:
        await consumer.caught_up(chain)
        for _ in range(KILLS):
            await live(life)
            # In the middle of whatever it is about.
            await asyncio.sleep(chance.random() * LONGEST_SECONDS)
            [process_id] = await processes(service, 0)
            if killed != "consumer":
                os.kill(process_id, signal.SIGKILL)
            if killed != "server":
                consumer.kill()
                await live(life)
                consumer.start()
            await live(life)
            if killed != "consumer":
                await processes(service, process_id)
            if chance.random() < 0.7:
                await consumer.caught_up(chain)
                caught_up += 1
        await consumer.caught_up(chain)
        assert resuming.load(consumer.file).times > caught_up
    finally:
        consumer.close()
        await service.stop()
        chain.node.close()


async def live(life: Life) -> None:
    """Let some things happen, with others in between."""
    for _ in range(STEPS):
        life.step()
        await asyncio.sleep(0)


async def processes(service: GrpcService, gone: int) -> list[int]:
    """Those that serve, when there are some and one of them is gone."""
    for _ in range(MAX_TRIES):
        found = service.process_ids()
        if found and gone not in found:
            return found
        await asyncio.sleep(PAUSE_SECONDS)
    raise AssertionError("nobody serves")
