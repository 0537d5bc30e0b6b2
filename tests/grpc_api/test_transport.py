"""Calls on our own HTTP/2: what is answered at once and what waits, how many connections there may
be, how calls and connections end.
"""

from __future__ import annotations

import asyncio
import gc
import subprocess
import sys
import time
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from grpc import Compression, aio

from soliton.grpc_api import server
from soliton.grpc_api.calls import Call
from soliton.grpc_api.clients import Clients
from soliton.grpc_api.errors import Code, Refused
from soliton.grpc_api.peers import Peer
from soliton.grpc_api.proto import blocks_api_pb2 as pb
from soliton.node.grpc_settings import GrpcLimits
from soliton.web.http2.connection import Http2Connection
from soliton.web.http2.machine import Machine
from soliton.web.http2.server import Http2Server
from soliton.web.http2.streams import Stream
from tests.grpc_api.raw import connect
from tests.grpc_api.serving import Called, Client, eventually

BLOCKS = "/waves.node.grpc.BlocksApi"
SERVICE = pb.DESCRIPTOR.services_by_name["BlocksApi"]
PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + bytes((0, 0, 0, 4, 0, 0, 0, 0, 0))
GO_AWAY, ENHANCE_YOUR_CALM = 7, 11


class Functions:
    """The calls of one service, each of a kind of its own."""

    def __init__(self) -> None:
        self.waits = asyncio.Event()
        self.ended: list[str] = []
        self.begun = 0
        self.turns = self.turns_within = 0
        """Of the event loop, and those while a stream was made."""

    def at_once(self, request: pb.BlockRequest, metadata: server.Metadata) -> bytes:
        if request.height < 0:
            raise Refused(Code.NOT_FOUND, "nowhere", (("error-code", "7"),))
        return request.SerializeToString() + metadata.get("suffix", "").encode()

    async def later(self, _request: object) -> bytes:
        self.begun += 1
        try:
            await self.waits.wait()
        except asyncio.CancelledError:
            self.ended.append("cancelled")
            raise
        return b"later"

    async def messages(self, request: pb.BlockRangeRequest) -> AsyncIterator[bytes]:
        began = self.turns
        try:
            for each in range(request.to_height):
                if request.from_height:
                    time.sleep(0.001)  # noqa: ASYNC251 - it works
                yield b"%d" % each * 1_000
        finally:
            self.turns_within = self.turns - began
            self.ended.append("messages")

    def methods(self) -> dict[str, object]:
        return {
            "GetBlock": self.at_once,
            "GetBlockRange": self.messages,
            "GetCurrentHeight": self.later,
        }


class Served:
    """A port of these functions, and a client of it."""

    def __init__(self, functions: Functions, at: Http2Server, channel: aio.Channel) -> None:
        self.functions, self.server = functions, at
        self.client, self.channel, self.port = Client(channel), channel, at.port

    async def block(self, height: int = 1, **named: Any) -> Called:
        request = pb.BlockRequest(height=height).SerializeToString()
        return await self.client.call(f"{BLOCKS}/GetBlock", request, stream=False, **named)


@asynccontextmanager
async def serving(**limits: Any) -> AsyncIterator[Served]:
    functions, clients = Functions(), Clients(GrpcLimits(**limits))
    views: Any = None
    parts = [(SERVICE, functions.methods())]
    made = await server.listen("127.0.0.1", 0, parts, views, clients, ping_seconds=300)
    try:
        async with aio.insecure_channel(f"127.0.0.1:{made.port}") as channel:
            yield Served(functions, made, channel)
    finally:
        await made.stop(0)
        assert not clients._calls and clients._unread == clients._receiving == 0
        assert clients._receiving_bytes == 0
        assert clients._requests.total() == clients._streams.total() == 0


async def test_answers_at_once_and_refusals() -> None:
    async with serving() as served:
        assert (await served.block(5, metadata=(("suffix", "!"),))).responses == [b"\x10\x05!"]
        found = await served.block(-1)
        assert (found.code, found.details, found.trailers) == (
            "NOT_FOUND",
            "nowhere",
            {"error-code": "7"},
        )


async def test_packed_requests() -> None:
    async with serving() as served:
        call = served.channel.unary_unary(f"{BLOCKS}/GetBlock")
        request = pb.BlockRequest(block_id=bytes(100_000)).SerializeToString()
        assert await call(request, compression=Compression.Gzip) == request
        with pytest.raises(aio.AioRpcError) as error:
            await call(request, compression=Compression.Deflate)
        assert error.value.code().name == "UNIMPLEMENTED"


async def test_a_stream_that_is_read_at_once_leaves_others_their_turns() -> None:
    async with serving() as served:

        async def count() -> None:
            while True:
                await asyncio.sleep(0)
                served.functions.turns += 1

        counting = asyncio.create_task(count())
        request = pb.BlockRangeRequest(from_height=1, to_height=100).SerializeToString()
        found = await served.client.call(f"{BLOCKS}/GetBlockRange", request, stream=True)
        counting.cancel()
        assert len(found.responses) == 100
        # Each of them takes a millisecond.
        assert served.functions.turns_within >= 10


async def test_deadlines_end_what_takes_time() -> None:
    async with serving() as served:
        call = served.channel.unary_unary(f"{BLOCKS}/GetCurrentHeight")
        with pytest.raises(aio.AioRpcError) as error:
            await call(b"", timeout=1.0)
        assert error.value.code().name == "DEADLINE_EXCEEDED"
        await eventually(lambda: served.functions.ended == ["cancelled"])


async def test_the_deadline_of_who_does_not_look_at_the_clock() -> None:
    async with serving() as served:
        raw = await connect(served.port, 1_000)
        stream = raw.call(f"{BLOCKS}/GetCurrentHeight", b"", timeout="50m")
        await eventually(lambda: raw.ended == {stream})
        assert b"grpc-status\x014" in raw.heads[stream]
        await eventually(lambda: served.functions.ended == ["cancelled"])
        await raw.close()


async def test_who_leaves_ends_its_calls() -> None:
    async with serving() as served:
        waiting = served.channel.unary_unary(f"{BLOCKS}/GetCurrentHeight")(b"")
        await eventually(lambda: served.functions.begun == 1)
        waiting.cancel()
        await eventually(lambda: served.functions.ended == ["cancelled"])
        raw = await connect(served.port)
        raw.call(f"{BLOCKS}/GetCurrentHeight", b"")
        request = pb.BlockRangeRequest(to_height=10).SerializeToString()
        raw.call(f"{BLOCKS}/GetBlockRange", request)
        await eventually(lambda: served.functions.begun == 2)
        await raw.close()
        await eventually(lambda: sorted(served.functions.ended) == ["cancelled"] * 2 + ["messages"])


def _left() -> Counter[type]:
    """Connections, streams and calls in memory."""
    kinds = (Http2Connection, Machine, Peer, Stream, Call)
    return Counter(type(each) for each in gc.get_objects() if type(each) in kinds)


@pytest.fixture
def uncollected() -> Iterator[None]:
    """Only what nobody refers to is freed."""
    gc.collect()
    gc.disable()
    yield
    gc.enable()


@pytest.mark.usefixtures("uncollected")
async def test_what_has_ended_leaves_memory_without_a_search_for_cycles() -> None:
    """Such a search halts everything, the longer the more it finds."""
    async with serving() as served:
        # The client's own connection stays.
        assert (await served.block()).code == "OK"
        before = _left()
        raw = await connect(served.port, 1_000)
        request = pb.BlockRequest(height=3).SerializeToString()
        refused = {raw.call(f"{BLOCKS}/Nothing", request) for _ in range(10)}
        streams = {raw.call(f"{BLOCKS}/GetBlock", request) for _ in range(100)}
        await eventually(lambda: raw.ended == streams | refused)
        assert _left()[Call] == before[Call]
        raw.call(f"{BLOCKS}/GetCurrentHeight", b"")
        raw.call(f"{BLOCKS}/GetBlockRange", pb.BlockRangeRequest(to_height=10).SerializeToString())
        raw.call(f"{BLOCKS}/GetBlock", None)
        await eventually(lambda: served.functions.begun == 1)
        await raw.close()
        await eventually(lambda: len(served.functions.ended) == 2)
        await eventually(lambda: _left() == before)


async def test_many_calls_in_one_packet_have_their_turns() -> None:
    """All are answered, others in between, and nothing more is read meanwhile."""
    async with serving() as served:
        raw = await connect(served.port, 1_000)
        request = pb.BlockRequest(height=3).SerializeToString()
        streams = {raw.call(f"{BLOCKS}/GetBlock", request) for _ in range(1_200)}
        assert (await served.block()).code == "OK"
        await eventually(lambda: raw.ended == streams)
        assert {raw.data[each] for each in streams} == {7}
        await raw.close()


async def test_a_stream_is_made_as_it_is_read() -> None:
    async with serving() as served:
        request = pb.BlockRangeRequest(to_height=500).SerializeToString()
        raw = await connect(served.port, 100)
        stream = raw.call(f"{BLOCKS}/GetBlockRange", request)
        for count in (100, 200, 1_200):
            await eventually(lambda most=count: raw.data[stream] == most)  # type: ignore[misc]
            raw.allow(stream, 100 if count == 100 else 1_000)
        assert not served.functions.ended
        raw.allow(stream, 10_000_000)
        await eventually(lambda: raw.ended == {stream})
        sizes = [5 + 1_000 * len(str(each)) for each in range(500)]
        assert raw.data[stream] == sum(sizes)
        await raw.close()


async def test_calls_under_way_when_the_server_stops() -> None:
    async with serving() as served:
        waiting = asyncio.ensure_future(
            served.client.call(f"{BLOCKS}/GetCurrentHeight", b"", stream=False)
        )
        await eventually(lambda: served.functions.begun == 1)
        stopping = asyncio.create_task(served.server.stop(30))
        await asyncio.sleep(0.05)
        served.functions.waits.set()
        assert (await waiting).responses == [b"later"]
        # It does not wait for who is not there.
        await asyncio.wait_for(stopping, 60)


async def test_calls_that_do_not_end_when_the_server_stops() -> None:
    async with serving() as served:
        waiting = asyncio.ensure_future(
            served.client.call(f"{BLOCKS}/GetCurrentHeight", b"", stream=False)
        )
        await eventually(lambda: served.functions.begun == 1)
        await served.server.stop(0.1)
        assert (await waiting).code == "UNAVAILABLE"
        await eventually(lambda: served.functions.ended == ["cancelled"])


@pytest.mark.parametrize("local", [True, False])
async def test_connections_of_one_address(monkeypatch: pytest.MonkeyPatch, local: bool) -> None:
    monkeypatch.setattr(server, "MAX_CONNECTIONS_PER_CLIENT", 2)
    async with serving(local_clients=local) as served:
        found = [await asyncio.open_connection("127.0.0.1", served.port) for _ in range(3)]
        last = b""
        for reader, writer in found:
            writer.write(PREFACE)
            last = await reader.readexactly(9 + 18 + 13 + 9)
        if local:
            # The third one is told why.
            words = last[40:] + await found[2][0].read()
            assert words[3] == GO_AWAY and words[16] == ENHANCE_YOUR_CALM
            assert words[17:] == b"too many connections of one address"
            found[0][1].close()
            await eventually(lambda: len(served.server.shared.connections) == 1)
            assert (await served.block()).code == "OK"
        else:
            assert last[40 + 3] == 4
        for _, writer in found:
            writer.close()


SAME = """
from google.protobuf import descriptor_pb2
import {0} as module
made = descriptor_pb2.FileDescriptorProto()
module.DESCRIPTOR.CopyToProto(made)
for each in ("name", "options"):
    made.ClearField(each)
print(made.SerializeToString(deterministic=True).hex())
"""


@pytest.mark.parametrize(
    ("own", "published"),
    [
        ("health_pb2", "grpc_health.v1.health_pb2"),
        ("reflection_alpha_pb2", "grpc_reflection.v1alpha.reflection_pb2"),
    ],
)
def test_our_schemas_are_the_published_ones(own: str, published: str) -> None:
    """In processes of their own: one has room for one schema of a name."""
    found = []
    for module in (f"soliton.grpc_api.proto.{own}", published):
        command = [sys.executable, "-c", SAME.format(module)]
        found.append(subprocess.run(command, capture_output=True, check=True, timeout=60).stdout)
    assert found[0] == found[1] and found[0]
