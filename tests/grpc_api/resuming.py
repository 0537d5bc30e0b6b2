"""A consumer of updates as a program: it keeps what it holds in a file, and goes on from there.

``python -m tests.grpc_api.resuming PORT UPDATES_PORT FILE``. It may be killed at any moment: its
file is replaced as a whole after each update. There is what was held before each of the last
blocks; it begins with the last one of them whose parent is still on the chain.

What lives here: following, and the file. What does not: what an update means (``consumer``).
"""

from __future__ import annotations

import asyncio
import copy
import pickle
import sys
from pathlib import Path

from grpc import aio

from soliton.grpc_api.proto.blockchain_updates_pb2 import SubscribeEvent, SubscribeRequest
from soliton.grpc_api.proto.blocks_api_pb2 import BlockRequest, BlockWithHeight
from tests.grpc_api.consumer import Consumer
from tests.grpc_api.serving import PAUSE_SECONDS, Client
from tests.grpc_api.test_recorded_updates import SERVICE

BLOCK = "/waves.node.grpc.BlocksApi/GetBlock"
KEPT_BLOCKS = 30
_SHORT = (("grpc.initial_reconnect_backoff_ms", 50), ("grpc.max_reconnect_backoff_ms", 200))


class Gone(Exception):
    """Nobody answers now."""


class CallState:
    """What it knows: the state, and what it was before each of the last blocks."""

    def __init__(self) -> None:
        self.consumer = Consumer()
        self.before: dict[int, tuple[bytes, Consumer]] = {}
        self.times = 0
        """It began to follow so often."""

    def note(self, height: int, reference: bytes) -> None:
        """A block comes on top of what it holds."""
        self.before[height] = reference, copy.deepcopy(self.consumer)
        for each in sorted(self.before)[:-KEPT_BLOCKS]:
            del self.before[each]


def load(file: Path) -> CallState:
    """What the file has; nothing, where there is none yet."""
    if not file.exists():
        return CallState()
    found = pickle.loads(file.read_bytes())
    assert isinstance(found, CallState)
    return found


class Resuming:
    """Follows a node for ever."""

    def __init__(self, port: int, updates_port: int, file: Path) -> None:
        self._nodes = aio.insecure_channel(f"127.0.0.1:{port}", options=_SHORT)
        self._updates = aio.insecure_channel(f"127.0.0.1:{updates_port}", options=_SHORT)
        self._file = file
        self._held = load(file)

    async def run(self) -> None:
        """Whatever happens to the connection."""
        while True:
            try:
                await self._follow(await self._height())
            except (aio.AioRpcError, Gone):
                await asyncio.sleep(PAUSE_SECONDS)

    async def _height(self) -> int:
        """The last block that it can begin with: the one below is as it was."""
        client, held = Client(self._nodes), self._held
        for height in sorted(held.before, reverse=True):
            reference, consumer = held.before[height]
            request = BlockRequest(block_id=reference).SerializeToString()
            found = await client.call(BLOCK, request, stream=False)
            if found.code == "UNAVAILABLE":
                raise Gone
            if found.responses:
                assert BlockWithHeight.FromString(found.responses[0]).height == height - 1
                held.consumer = copy.deepcopy(consumer)
                # The node may have gone back to there, and say nothing more.
                self._keep()
                return height
        held.consumer = Consumer()
        return 1

    async def _follow(self, height: int) -> None:
        held = self._held
        held.times += 1
        request = SubscribeRequest(from_height=height).SerializeToString()
        async for data in self._updates.unary_stream(f"/{SERVICE}/Subscribe")(request):
            update = SubscribeEvent.FromString(data).update
            if update.append.HasField("block") and update.height > 1:
                held.note(update.height, update.append.block.block.header.reference)
            held.consumer.take(update)
            self._keep()

    def _keep(self) -> None:
        unfinished = self._file.with_suffix(".part")
        unfinished.write_bytes(pickle.dumps(self._held))
        unfinished.replace(self._file)


async def main() -> None:
    """The program."""
    port, updates_port, file = sys.argv[1:]
    await Resuming(int(port), int(updates_port), Path(file)).run()


if __name__ == "__main__":
    # What it keeps is of this module by its name, and not of the program's.
    from tests.grpc_api import resuming

    asyncio.run(resuming.main())
