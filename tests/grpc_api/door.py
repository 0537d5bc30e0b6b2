"""The serving process of a chain, asked from outside: its port, its memory, and a client of good
will beside those of ill.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import grpc
import pytest

from soliton.chain.transactions import data
from soliton.chain.values import DataEntry
from soliton.cli.grpc_server import GrpcService
from soliton.cli.secrecy import VARIABLE as CORE_DUMPS
from soliton.grpc_api.proto.blocks_api_pb2 import BlockRequest
from tests.api.chain import PrivateChain
from tests.grpc_api.picky import HEIGHT
from tests.grpc_api.test_process import a_chain

LONG_BYTES = 30_000
LONG_ENTRIES = 4
LONG_FEE = 4_000_000
BLOCK = "/waves.node.grpc.BlocksApi/GetBlock"
LONG = BlockRequest(height=2, include_transactions=True).SerializeToString()
"""Asks for a block of more than 120,000 bytes."""
WATCH = "/grpc.health.v1.Health/Watch"
"""An answer that has no end."""
REFLECTION = "/grpc.reflection.v1.ServerReflection/ServerReflectionInfo"
"""Asks any number of times."""
MOST_SECONDS = 10.0
PAUSE_SECONDS = 0.05


class Door:
    """The process."""

    def __init__(self, service: GrpcService) -> None:
        port, updates_port = service.settings.port, service.settings.updates_port
        assert port is not None
        self.port = port
        self.updates_port = updates_port or 0
        [process_id] = service.process_ids()
        self._place = Path("/proc", str(process_id))

    def most_memory(self) -> int:
        """The most bytes that it has had since this was asked before."""
        lines = (self._place / "status").read_text().splitlines()
        [found] = [line.split()[1] for line in lines if line.startswith("VmHWM:")]
        (self._place / "clear_refs").write_text("5")
        return int(found) * 1_024

    def descriptors(self) -> int:
        """How many it has open."""
        return len(list((self._place / "fd").iterdir()))

    def settles(self, most: int) -> bool:
        """Whether it soon has no more descriptors than that."""
        end = time.monotonic() + 2 * MOST_SECONDS
        while self.descriptors() > most and time.monotonic() < end:
            time.sleep(PAUSE_SECONDS)
        return self.descriptors() <= most


@contextmanager
def door_of(directory: Path, **options: object) -> Iterator[Door]:
    """Serve a chain with a long block; the node runs on a thread, the test on its own."""
    chain = a_chain(directory, updates_port=0, **options)
    entries = [DataEntry(f"k{each}", bytes(LONG_BYTES)) for each in range(LONG_ENTRIES)]
    for each in entries:
        chain.send(chain.sign(data.TYPE, data.Data((each,)), 2, fee=LONG_FEE))
    chain.mine()
    assert len(chain.node.chain.block_at(2).transactions) == len(entries)
    started: list[Door] = []
    is_there, is_over = threading.Event(), threading.Event()
    thread = threading.Thread(
        target=asyncio.run, args=(_run(chain, started, is_there, is_over),), daemon=True
    )
    # Only root looks into a process that keeps its secrets.
    with pytest.MonkeyPatch.context() as environment:
        environment.setenv(CORE_DUMPS, "allow")
        thread.start()
        try:
            assert is_there.wait(60), "it does not begin"
            yield started[0]
        finally:
            is_over.set()
            thread.join(60)


async def _run(
    chain: PrivateChain, started: list[Door], is_there: threading.Event, is_over: threading.Event
) -> None:
    service = GrpcService(chain.node)
    await service.start()
    try:
        started.append(Door(service))
        is_there.set()
        await asyncio.to_thread(is_over.wait)
    finally:
        await service.stop()
        chain.node.close()


class Beside:
    """A client that asks what it may, all the time, and is to be answered each time."""

    def __init__(self, port: int) -> None:
        self.slowest = 0.0
        self.answered = 0
        self.troubles: list[str] = []
        self._port = port
        self._is_over = threading.Event()
        self._thread = threading.Thread(target=self._ask, daemon=True)

    def _ask(self) -> None:
        with grpc.insecure_channel(f"127.0.0.1:{self._port}") as channel:
            call = channel.unary_unary(HEIGHT)
            while not self._is_over.is_set():
                began = time.monotonic()
                try:
                    assert call(b"", timeout=MOST_SECONDS) == b"\x08\x02"
                    self.answered += 1
                except grpc.RpcError as error:
                    self.troubles.append(str(error))
                self.slowest = max(self.slowest, time.monotonic() - began)
                time.sleep(PAUSE_SECONDS)

    def __enter__(self) -> Beside:  # noqa: PYI034 - nobody derives from it
        self._thread.start()
        while not self.answered and not self.troubles:
            time.sleep(PAUSE_SECONDS)
        return self

    def __exit__(self, kind: object, *_: object) -> None:
        self._is_over.set()
        self._thread.join(2 * MOST_SECONDS)
        if kind is None:
            assert self.answered and not self.troubles, self.troubles[:3]
