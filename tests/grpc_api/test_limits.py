"""What one client may take: calls at a time, and how long it may leave what it is sent."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
from grpc import aio

from soliton.chain.addresses import from_public_key
from soliton.chain.transactions import data
from soliton.chain.values import DataEntry
from soliton.grpc_api.clients import CallState, Clients
from soliton.grpc_api.errors import Refused
from soliton.grpc_api.link import FindUnconfirmed, Unconfirmed
from soliton.grpc_api.node_side import NodeSide
from soliton.grpc_api.proto.accounts_api_pb2 import DataRequest
from soliton.grpc_api.proto.blockchain_updates_pb2 import (
    GetBlockUpdatesRangeRequest,
    SubscribeRequest,
)
from soliton.grpc_api.views import Views
from soliton.node.blockchain import Blockchain
from soliton.node.grpc_settings import GrpcLimits, GrpcSettings
from soliton.storage.errors import DamagedStore
from soliton.web.shared_counters import LONG, ClientCounts, join, share
from tests.api.chain import RICH, PrivateChain
from tests.grpc_api.serving import Client, eventually, served
from tests.node import chains

UPDATES = "/waves.events.grpc.BlockchainUpdatesApi"
HEIGHT = "/waves.node.grpc.BlocksApi/GetCurrentHeight"
DATA = "/waves.node.grpc.AccountsApi/GetDataEntries"
FROM_START = SubscribeRequest(from_height=1).SerializeToString()
FOR_EVER = GetBlockUpdatesRangeRequest(from_height=1).SerializeToString()


@pytest.fixture
def chain(tmp_path: Path) -> Iterator[PrivateChain]:
    made = PrivateChain(tmp_path)
    yield made
    made.node.close()


def limit(chain: PrivateChain, **limits: Any) -> None:
    settings = GrpcSettings(limits=GrpcLimits(**limits))
    chain.node.settings = msgspec.structs.replace(chain.node.settings, grpc=settings)


async def test_streams_of_one_address(chain: PrivateChain) -> None:
    limit(chain, streams_per_client=2, local_clients=True)
    async with served(chain.node) as client:
        two = [client.stream(f"{UPDATES}/Subscribe", FROM_START) for _ in range(2)]
        await eventually(lambda: all(each.found for each in two))
        third = await client.call(f"{UPDATES}/Subscribe", FROM_START, stream=True)
        words = "too many streams of one address at a time: at most 2"
        assert (third.code, third.details) == ("RESOURCE_EXHAUSTED", words)
        # Requests are counted on their own, and who has gone counts no more.
        assert (await client.call(HEIGHT, b"", stream=False)).code == "OK"
        await two[0].close()
        for _ in range(500):
            again = await client.call(f"{UPDATES}/Subscribe", FROM_START, stream=True, expected=1)
            if again.code == "OPEN":
                return
        raise AssertionError("it is still counted")


def test_two_processes_do_not_both_take_the_last_place(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, limits = share(tmp_path / "counters", 2), GrpcLimits(streams_per_client=1)
    one, other = Clients(limits, first), Clients(limits, join(tmp_path / "counters", 2, 1))
    read, meanwhile = ClientCounts.of, [other]

    def reading(counts: ClientCounts, client: str) -> int:
        found = read(counts, client)
        if meanwhile:
            begin(meanwhile.pop())
        return found

    def begin(clients: Clients) -> None:
        with contextlib.suppress(Refused):
            clients.count(CallState(clients), "10.0.0.1", stream=True)

    monkeypatch.setattr(ClientCounts, "of", reading)
    begin(one)
    assert not meanwhile and first.counts(LONG).total() == 1


async def test_requests_of_one_address(chain: PrivateChain) -> None:
    limit(chain, requests_per_client=1, local_clients=True)
    async with served(chain.node) as client:
        await eventually(lambda: under_way(client) == 0)
        waits = client.channel.unary_unary(f"{UPDATES}/GetBlockUpdatesRange")(FOR_EVER)
        await eventually(lambda: under_way(client) == 1)
        found = await client.call(HEIGHT, b"", stream=False)
        words = "too many requests of one address at a time: at most 1"
        assert (found.code, found.details) == ("RESOURCE_EXHAUSTED", words)
        waits.cancel()
        await eventually(lambda: under_way(client) == 0)
        assert (await client.call(HEIGHT, b"", stream=False)).code == "OK"


def under_way(client: Client) -> int:
    assert client.served_by is not None
    return len(client.served_by.clients._calls)


async def test_clients_on_this_machine_are_not_counted(chain: PrivateChain) -> None:
    limit(chain, streams_per_client=1)
    async with served(chain.node) as client:
        many = [client.stream(f"{UPDATES}/Subscribe", FROM_START) for _ in range(5)]
        await eventually(lambda: all(each.found for each in many))


def write(chain: PrivateChain, count: int) -> None:
    """So many large entries."""
    for number in range(count):
        payload = data.Data((DataEntry(f"key{number:02}", b"x" * 30_000),))
        chain.send(chain.sign(data.TYPE, payload, 2, fee=10_000_000))
    chain.mine()


async def test_who_reads_nothing_is_given_up(chain: PrivateChain) -> None:
    """A stream that nobody reads holds a moment of the store only for so long."""
    limit(chain, read_ms=1)
    write(chain, 100)
    request = DataRequest(address=chains.address_of(RICH)).SerializeToString()
    async with served(chain.node) as client:
        assert client.served_by is not None
        # It takes no more than that before somebody reads.
        window = (("grpc.http2.bdp_probe", 0), ("grpc.http2.lookahead_bytes", 65_536))
        channel = aio.insecure_channel(f"127.0.0.1:{client.port}", options=window)
        made: Any = channel.unary_stream(DATA)(request)
        assert await made.read()
        clients = client.served_by.clients
        await eventually(lambda: any(each.size for each in clients._calls))

        await eventually(lambda: bool(clients.abort_idle()))
        # Others are served; the one who reads at last hears that there is no more.
        assert (await client.call(HEIGHT, b"", stream=False)).code == "OK"
        rest: list[bytes] = []
        with pytest.raises(aio.AioRpcError):
            await read_all(made, rest)
        assert len(rest) < 99
        assert (await made.code()).name == "RESOURCE_EXHAUSTED"
        await eventually(lambda: not clients._calls)
        view = client.served_by._views._current
        assert view is None or view.users == 1, "that of the updates"
        await channel.close()


async def read_all(made: Any, found: list[bytes]) -> None:
    while more := await made.read():
        found.append(more)


async def test_who_reads_slowly_is_not(chain: PrivateChain) -> None:
    write(chain, 10)
    request = DataRequest(address=chains.address_of(RICH)).SerializeToString()
    async with served(chain.node) as client:
        assert client.served_by is not None
        made: Any = client.channel.unary_stream(DATA)(request)
        count = 0
        while await made.read():
            count += 1
            client.served_by.clients.abort_idle()
            await asyncio.sleep(0.01)
        assert count == 10


async def test_the_transactions_of_an_account_are_found_without_looking_at_all(
    chain: PrivateChain,
) -> None:
    # A pool holds 100,000, and the node does nothing else meanwhile.
    sent = [chain.send(chain.data(number=number)) for number in range(3)]
    side, question = NodeSide(chain.node), FindUnconfirmed(bytes(chains.address_of(RICH)), [])
    from_public_key.cache_clear()
    answer = side.respond(question)
    side.close()
    assert answer == Unconfirmed([each.id for each in sent])
    assert from_public_key.cache_info().currsize == 0, "nobody's address was made"


def test_a_view_of_a_damaged_chain_leaves_no_snapshot_open(
    chain: PrivateChain, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The database would wait for it before it grows or closes."""

    def damaged(_: Blockchain) -> None:
        raise DamagedStore("approvals of features cannot be read")

    store = chain.node.store
    monkeypatch.setattr(Blockchain, "_read_approvals", damaged)
    with pytest.raises(DamagedStore):
        Views(chain.node.network, store, follows=False).current()
    assert len(store.database.snapshots) == 0
