"""A gRPC server in the process of a test, on a chain of the test, and a client that takes bytes."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from typing import Any

import msgspec
from grpc import StatusCode, aio

from soliton.grpc_api import services
from soliton.grpc_api.link import NodeRequest, NodeResponse
from soliton.grpc_api.node_side import NodeSide
from soliton.grpc_api.views import Views
from soliton.node.node import Node

MOST_SECONDS = 60.0
PAUSE_SECONDS = 0.01
MAX_TRIES = 6_000
MOMENT_SECONDS = 0.05
"""More messages than expected would come at once; if they come later, the test misses them."""


class Direct:
    """The way to a node in the same process."""

    def __init__(self, side: NodeSide) -> None:
        self._side = side

    async def ask(self, question: NodeRequest) -> NodeResponse:
        answer = self._side.respond(question)
        return await answer if isinstance(answer, Coroutine) else answer


class Called(msgspec.Struct):
    """What became of a call."""

    code: str
    details: str
    trailers: dict[str, str]
    responses: list[bytes]


async def eventually(holds: Callable[[], bool]) -> None:
    """Wait until it is so."""
    for _ in range(MAX_TRIES):
        if holds():
            return
        await asyncio.sleep(PAUSE_SECONDS)
    raise AssertionError("it never was so")


class Stream:
    """A stream that is open: what has come, and how it ended."""

    def __init__(self, made: Any) -> None:
        self.found: list[bytes] = []
        self.code = ""
        self._made = made
        self._task = asyncio.create_task(self._read())

    async def _read(self) -> None:
        try:
            async for each in self._made:
                self.found.append(each)
            self.code = "OK"
        except aio.AioRpcError as error:
            self.code = error.code().name

    @property
    def done(self) -> bool:
        """Whether it has ended."""
        return self._task.done()

    def take(self) -> list[bytes]:
        """What has come since the last time."""
        taken, self.found = self.found, []
        return taken

    async def close(self) -> None:
        """Read no more."""
        self._made.cancel()
        await asyncio.gather(self._task, return_exceptions=True)


class Client:
    """Calls by name, with bytes."""

    def stream(
        self, path: str, request: bytes, metadata: tuple[tuple[str, str], ...] = ()
    ) -> Stream:
        """A call that answers with a stream, read as long as the client lives."""
        made = Stream(self.channel.unary_stream(path)(request, metadata=metadata))
        self._streams.append(made)
        return made

    def __init__(self, channel: aio.Channel, served_by: services.Services | None = None) -> None:
        self.channel = channel
        self.served_by = served_by
        self.port = 0
        self._streams: list[Stream] = []

    async def close(self) -> None:
        """Let go of what is still open."""
        for each in self._streams:
            await each.close()

    async def call(
        self,
        path: str,
        request: bytes,
        *,
        stream: bool,
        expected: int | None = None,
        metadata: tuple[tuple[str, str], ...] = (),
    ) -> Called:
        """Call. What does not end is left a moment after so many messages were ``expected``."""
        made: Any
        found: list[bytes] = []
        if stream:
            made = self.channel.unary_stream(path)(request, metadata=metadata)
        else:
            made = self.channel.unary_unary(path)(request, metadata=metadata)

        async def read() -> None:
            if not stream:
                found.append(await made)
                return
            async for each in made:
                found.append(each)  # noqa: PERF401 - what came counts, also of an open stream

        reading = asyncio.ensure_future(read())
        try:
            if expected is not None:
                for _ in range(MAX_TRIES):
                    if len(found) >= expected or reading.done():
                        break
                    await asyncio.sleep(PAUSE_SECONDS)
                await asyncio.wait((reading,), timeout=MOMENT_SECONDS)
                if not reading.done():
                    made.cancel()
                    await asyncio.gather(reading, return_exceptions=True)
                    return Called("OPEN", "", {}, found)
            await asyncio.wait_for(reading, MOST_SECONDS)
        except aio.AioRpcError as error:
            trailers = {key: str(value) for key, value in error.trailing_metadata() or ()}
            return Called(error.code().name, error.details() or "", trailers, found)
        return Called(StatusCode.OK.name, "", {}, found)


@asynccontextmanager
async def served(node: Node) -> AsyncIterator[Client]:
    """All services of a node in this process, and a client of them."""
    side = NodeSide(node)
    views = Views(node.network, node.store, follows=False)
    parts = services.Services(node.settings, views, Direct(side))
    await parts.follow()
    port = await parts.listen(
        "127.0.0.1", 0, (*parts.node_parts(), *parts.updates_parts(), *parts.matcher_parts())
    )
    options = (("grpc.max_receive_message_length", -1),)
    try:
        async with aio.insecure_channel(f"127.0.0.1:{port}", options=options) as channel:
            client = Client(channel, parts)
            client.port = port
            try:
                yield client
            finally:
                await client.close()
    finally:
        await parts.stop(0)
        views.close()
        side.close()
