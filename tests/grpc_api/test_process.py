"""gRPC of a real node in a real process: starting, sending, being killed, ending."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import msgspec
import pytest
from grpc import aio

from soliton.chain.transactions import codec, data
from soliton.chain.values import DataEntry
from soliton.cli.grpc_server import GrpcService
from soliton.grpc_api.proto import (
    blockchain_updates_pb2,
    blocks_api_pb2,
    health_pb2,
    reflection_alpha_pb2,
    reflection_pb2,
    transactions_api_pb2,
    waves_blockchain_api_pb2,
)
from soliton.grpc_api.services import MATCHER_KEEP_ALIVE_MS
from soliton.node.grpc_settings import GrpcLimits, GrpcSettings
from soliton.web.server import PortTaken
from tests.api.chain import PrivateChain
from tests.grpc_api.serving import Called, Client, Stream

STATUSES = "/waves.node.grpc.TransactionsApi/GetStatuses"
HEIGHT = "/waves.node.grpc.BlocksApi/GetCurrentHeight"
SUBSCRIBE = "/waves.events.grpc.BlockchainUpdatesApi/Subscribe"
FROM_START = blockchain_updates_pb2.SubscribeRequest(from_height=1).SerializeToString()


def a_chain(directory: Path, **grpc: object) -> PrivateChain:
    chain = PrivateChain(directory)
    values: dict[str, object] = {"port": 0, "updates_host": "127.0.0.1"} | grpc
    settings = GrpcSettings(**values)  # type: ignore[arg-type]
    chain.node.settings = msgspec.structs.replace(chain.node.settings, grpc=settings)
    return chain


@asynccontextmanager
async def process_of(chain: PrivateChain) -> AsyncIterator[tuple[GrpcService, Client]]:
    service = GrpcService(chain.node)
    await service.start()
    try:
        async with aio.insecure_channel(f"127.0.0.1:{service.settings.port}") as channel:
            yield service, Client(channel)
    finally:
        await service.stop()
        chain.node.close()


async def called(client: Client, path: str) -> Called:
    return await client.call(path, b"", stream=False)


async def eventually(holds: Callable[[], Awaitable[bool]]) -> None:
    for _ in range(1_200):
        if await holds():
            return
        await asyncio.sleep(0.05)
    raise AssertionError("it never was so")


async def height(client: Client) -> bytes:
    return (await client.call(HEIGHT, b"", stream=False)).responses[0]


async def test_a_process_follows_sends_is_replaced_and_ends(tmp_path: Path) -> None:
    chain = a_chain(tmp_path)
    async with process_of(chain) as (service, client):
        assert await height(client) == b"\x08\x01"
        chain.mine()
        assert await height(client) == b"\x08\x02"
        transaction = chain.transfer()
        sent = codec.encode_protobuf(transaction)
        path = "/waves.node.grpc.TransactionsApi/Broadcast"
        assert (await client.call(path, sent, stream=False)).responses == [sent]
        assert transaction.id in chain.node.pool
        request = transactions_api_pb2.TransactionsByIdRequest(transaction_ids=[transaction.id])
        told = await client.call(STATUSES, request.SerializeToString(), stream=True)
        status = transactions_api_pb2.TransactionStatus.FromString(told.responses[0])
        assert status.status == transactions_api_pb2.TransactionStatus.UNCONFIRMED
        chain.mine()
        told = await client.call(STATUSES, request.SerializeToString(), stream=True)
        status = transactions_api_pb2.TransactionStatus.FromString(told.responses[0])
        assert (status.status, status.height) == (2, 3)
        before = service.process_ids()
        os.kill(before[0], signal.SIGKILL)

        async def is_back() -> bool:
            now = service.process_ids()
            return bool(now) and now != before and (await called(client, HEIGHT)).code == "OK"

        await eventually(is_back)
        after = service.process_ids()
    for process_id in {*before, *after}:
        with pytest.raises(ProcessLookupError):
            os.kill(process_id, 0)


async def test_the_matcher_s_port_of_a_process(tmp_path: Path) -> None:
    chain = a_chain(tmp_path, port=None, matcher_port=0)
    service = GrpcService(chain.node)
    await service.start()
    try:
        where = f"127.0.0.1:{service.settings.matcher_port}"
        # As often as the Scala matcher asks whether the connection lives, with no call under way.
        often = (("grpc.keepalive_time_ms", 500), ("grpc.keepalive_permit_without_calls", 1))
        async with aio.insecure_channel(where, options=often) as channel:
            client = Client(channel)
            events = client.stream(f"{MATCHER}/GetUtxEvents", b"")

            async def pool() -> list[bytes]:
                return [each.id for each in held(events)]

            waits = chain.send(chain.transfer())

            async def is_told() -> bool:
                return await pool() == [waits.id]

            await eventually(is_told)
            chain.mine()

            async def is_empty() -> bool:
                return not await pool()

            await eventually(is_empty)
            info = await client.call(f"{MATCHER}/GetCurrentBlockInfo", b"", stream=False)
            assert info.responses[0].endswith(chain.node.chain.last_block.id)
            await client.close()
    finally:
        await service.stop()
        chain.node.close()


PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + bytes((0, 0, 0, 4, 0, 0, 0, 0, 0))
PING = bytes((0, 0, 8, 6, 0, 0, 0, 0, 0)) + b"soliton!"
PING_KIND, GO_AWAY_KIND = 6, 7


async def answers_to_pings(port: int, seconds: float) -> list[int]:
    """What HTTP/2 answers to six pings so far apart with no call under way: kinds of frames."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(PREFACE)
    found: list[int] = []
    try:
        for _ in range(6):
            await asyncio.sleep(seconds)
            writer.write(PING)
            kind = 0
            while kind not in (PING_KIND, GO_AWAY_KIND):
                head = await reader.readexactly(9)
                kind = head[3]
                await reader.readexactly(int.from_bytes(head[:3], "big"))
            found.append(kind)
            if kind == GO_AWAY_KIND:
                break
    finally:
        writer.close()
    return found


async def test_who_asks_often_whether_the_connection_lives(tmp_path: Path) -> None:
    # The Scala matcher asks both ports every ten seconds, and is sent away by the server's default.
    chain = a_chain(tmp_path, port=None, matcher_port=0, updates_port=0, keep_alive_ms=300)
    service = GrpcService(chain.node)
    await service.start()
    try:
        for port, least in (
            (service.settings.matcher_port, MATCHER_KEEP_ALIVE_MS),
            (service.settings.updates_port, 300),
        ):
            assert port is not None
            assert await answers_to_pings(port, least / 1_000 + 0.1) == [PING_KIND] * 6
            assert GO_AWAY_KIND in await answers_to_pings(port, 0.01)
    finally:
        await service.stop()
        chain.node.close()


MATCHER = "/waves.dex.grpc.integration.WavesBlockchainApi"


def held(events: Stream) -> list[waves_blockchain_api_pb2.UtxTransaction]:
    """What of the pool a client holds."""
    found: dict[bytes, waves_blockchain_api_pb2.UtxTransaction] = {}
    for each in map(waves_blockchain_api_pb2.UtxEvent.FromString, events.found):
        found |= {one.id: one for one in each.switch.transactions}
        found |= {one.transaction.id: one.transaction for one in each.update.added}
        for gone in each.update.removed:
            del found[gone.transaction.id]
    return list(found.values())


FOLLOWER = """
import sys
from pathlib import Path
from soliton.storage.store import Store
store = Store(Path(sys.argv[1]), sys.argv[2], durable=False, exclusive=False)
held = store.snapshot()
print(held.height, flush=True)
input()
store.follow()
print(held.height, store.height, store.snapshot().height, flush=True)
"""


def test_a_store_grows_while_others_hold_a_moment_of_it(tmp_path: Path) -> None:
    chain = PrivateChain(tmp_path)
    store = chain.node.store
    command = [sys.executable, "-c", FOLLOWER, str(store.database.directory), "devnet"]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, encoding="utf-8"
    ) as follower:
        assert follower.stdout is not None
        assert follower.stdout.readline() == "1\n"
        for _ in range(17):
            for _ in range(8):
                payload = data.Data((DataEntry("key", os.urandom(30_000)),))
                chain.send(chain.sign(data.TYPE, payload, 2, fee=10_000_000))
            chain.mine()
        try:
            told, _ = follower.communicate("go on\n", timeout=60)
        finally:
            follower.kill()
    top = chain.node.chain.height
    assert told == f"1 {top} {top}\n"
    chain.node.close()


async def test_reflection_health_and_what_is_not_there(tmp_path: Path) -> None:
    async with process_of(a_chain(tmp_path)) as (_, client):
        request = health_pb2.HealthCheckRequest(service="waves.node.grpc.AssetsApi")
        found = await client.call(
            "/grpc.health.v1.Health/Check", request.SerializeToString(), stream=False
        )
        answer = health_pb2.HealthCheckResponse.FromString(found.responses[0])
        assert answer.status == health_pb2.HealthCheckResponse.SERVING
        for version, messages in (("v1alpha", reflection_alpha_pb2), ("v1", reflection_pb2)):
            path = f"/grpc.reflection.{version}.ServerReflection/ServerReflectionInfo"
            question = messages.ServerReflectionRequest(list_services="").SerializeToString()
            asked = client.channel.stream_stream(path)(iter([question]))
            answers = [each async for each in asked]
            listed = messages.ServerReflectionResponse.FromString(answers[0])
            names = {each.name for each in listed.list_services_response.service}
            assert "waves.node.grpc.BlocksApi" in names
        # Without a request: it could come too late for a call that has ended.
        asked = client.channel.stream_stream("/grpc.reflection.v2.ServerReflection/Info")()
        with pytest.raises(aio.AioRpcError, match="UNIMPLEMENTED"):
            await asked.read()
        found = await client.call("/waves.node.grpc.BlocksApi/GetNothing", b"", stream=False)
        words = "Method not found: waves.node.grpc.BlocksApi/GetNothing"
        assert (found.code, found.details) == ("UNIMPLEMENTED", words)


async def test_long_requests_and_what_is_no_message(tmp_path: Path) -> None:
    async with process_of(a_chain(tmp_path)) as (_, client):
        request = blocks_api_pb2.BlockRequest(block_id=bytes(4 * 1024 * 1024 + 1))
        path = "/waves.node.grpc.BlocksApi/GetBlock"
        found = await client.call(path, request.SerializeToString(), stream=False)
        assert found.code == "RESOURCE_EXHAUSTED"
        found = await client.call(path, b"\xff", stream=False)
        assert (found.code, found.details) == ("UNKNOWN", "Application error processing RPC")
        assert await height(client) == b"\x08\x01"


async def test_a_port_that_others_have(tmp_path: Path) -> None:
    async with process_of(a_chain(tmp_path / "a")) as (service, _):
        other = a_chain(tmp_path / "b", port=None, updates_port=service.settings.port)
        with pytest.raises(PortTaken):
            GrpcService(other.node)
        other.node.close()


def test_a_node_without_grpc_imports_none_of_it(tmp_path: Path) -> None:
    program = (
        "import sys; import soliton.cli.run, soliton.devnet.main, soliton.cli.main\n"
        "from soliton.node.settings import load_settings\n"
        "load_settings(network='devnet')\n"
        "beside = ('soliton.grpc_api', 'soliton.web.http2')\n"
        "sys.exit(any(name.startswith(beside) for name in sys.modules))"
    )
    assert subprocess.run([sys.executable, "-c", program], timeout=120, check=False).returncode == 0


async def test_processes_count_a_clients_streams_together(tmp_path: Path) -> None:
    """As many as one client may have, however many processes its connections lead to."""
    limits = GrpcLimits(streams_per_client=3, local_clients=True)
    chain = a_chain(tmp_path, updates_port=0, workers=2, limits=limits)
    async with process_of(chain) as (service, _):
        where = f"127.0.0.1:{service.settings.updates_port}"
        # Connections of their own: the system leads some to each of the processes.
        apart = (("grpc.use_local_subchannel_pool", 1),)
        channels = [aio.insecure_channel(where, options=apart) for _ in range(24)]
        streams: list[Stream] = []

        async def open_streams() -> bool:
            streams.extend(Stream(each.unary_stream(SUBSCRIBE)(FROM_START)) for each in channels)

            async def all_told() -> bool:
                return all(each.done or each.found for each in streams)

            await eventually(all_told)
            count = sum(not each.done for each in streams)
            assert count <= limits.streams_per_client
            # Of those that come at once, two processes may each refuse the one for the last place.
            return count == limits.streams_per_client

        try:
            await eventually(open_streams)
            refused = {each.code for each in streams if each.done}
            assert refused == {"RESOURCE_EXHAUSTED"}
            # What a process had that was killed counts no more.
            for process_id in service.process_ids():
                os.kill(process_id, signal.SIGKILL)

            async def none_left() -> bool:
                return all(each.done for each in streams)

            await eventually(none_left)
            await eventually(open_streams)
        finally:
            for each in streams:
                await each.close()
            for channel in channels:
                await channel.close()
