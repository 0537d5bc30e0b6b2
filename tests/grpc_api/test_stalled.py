"""Clients that do not send, do not read, or read a byte at a time: what they hold has a limit, and
an end. They come through the port, frame by frame; time goes by as a test says.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import msgspec
import pytest

from soliton.chain.transactions import data
from soliton.chain.values import DataEntry
from soliton.grpc_api import clients, pool_events, updates, views
from soliton.grpc_api.clients import Clients
from soliton.grpc_api.following import Event, Kind
from soliton.grpc_api.proto.accounts_api_pb2 import BalancesRequest, DataRequest
from soliton.grpc_api.proto.blockchain_updates_pb2 import (
    GetBlockUpdatesRangeRequest,
    SubscribeRequest,
)
from soliton.grpc_api.proto.blocks_api_pb2 import BlockRangeRequest
from soliton.grpc_api.proto.reflection_pb2 import ServerReflectionRequest
from soliton.grpc_api.proto.transactions_api_pb2 import TransactionsByIdRequest
from soliton.node.grpc_settings import GrpcLimits, GrpcSettings
from soliton.storage.database import MAX_SNAPSHOTS
from tests.api.chain import RICH, PrivateChain
from tests.grpc_api.raw import Raw, connect
from tests.grpc_api.serving import Client, eventually, served
from tests.grpc_api.test_limits import DATA, HEIGHT, UPDATES, write
from tests.node import chains

SUBSCRIBE = f"{UPDATES}/Subscribe"
RANGE = f"{UPDATES}/GetBlockUpdatesRange"
BALANCES = "/waves.node.grpc.AccountsApi/GetBalances"
STATUSES = "/waves.node.grpc.TransactionsApi/GetStatuses"
BLOCKS = "/waves.node.grpc.BlocksApi/GetBlockRange"
WATCH = "/grpc.health.v1.Health/Watch"
REFLECTION = "/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo"
ENTRIES = DataRequest(address=chains.address_of(RICH)).SerializeToString()
ALL_BLOCKS = BlockRangeRequest(
    from_height=1, to_height=100, include_transactions=True
).SerializeToString()
FROM_START = SubscribeRequest(from_height=1).SerializeToString()
FIRST = GetBlockUpdatesRangeRequest(from_height=1, to_height=1).SerializeToString()
FOR_TWO = GetBlockUpdatesRangeRequest(from_height=1, to_height=2).SerializeToString()
FOR_EVER = GetBlockUpdatesRangeRequest(from_height=1).SerializeToString()
NOT_READ = b"the answer is not read"
ENHANCE_YOUR_CALM = 11
SERVING = b"\x08\x01"
READ_SECONDS = 100.0
MOST_BYTES = 450_000


class Clock:
    """Time that passes when it is told to."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


class Stalled:
    """A served chain, and a client of it that reads nothing."""

    def __init__(self, client: Client, raw: Raw) -> None:
        assert client.served_by is not None
        self.client, self.raw = client, raw
        self.services = client.served_by
        self.clients: Clients = self.services.clients
        self.clock = Clock()
        self.clients.clock = self.clock
        self.others: list[Raw] = []

    @property
    def count(self) -> int:
        """Calls under way."""
        return len(self.clients._calls)

    @property
    def waiting(self) -> int:
        """Those that wait for their clients with a message."""
        return sum(bool(each.size) for each in self.clients._calls)

    async def connect(self) -> Raw:
        """A connection more of the same kind."""
        self.others.append(await connect(self.client.port))
        return self.others[-1]

    async def close(self) -> None:
        """Hang up everywhere."""
        for each in (self.raw, *self.others):
            await each.close()

    async def pass_by(self, seconds: float) -> None:
        """Let so much time go by, in which the process looks around as often as it does."""
        for _ in range(4):
            self.clock.now += seconds / 4
            self.services.abort_idle()
            # Tasks that were ended end, and others find out.
            await asyncio.sleep(0.02)

    async def is_served(self) -> None:
        """Others are."""
        assert (await self.client.call(HEIGHT, b"", stream=False)).code == "OK"


@pytest.fixture
def chain(tmp_path: Path) -> Iterator[PrivateChain]:
    made = PrivateChain(tmp_path)
    limits = GrpcLimits(
        read_ms=int(READ_SECONDS * 1_000),
        streams_per_client=3,
        requests_per_client=2,
        local_clients=True,
    )
    settings = GrpcSettings(limits=limits)
    made.node.settings = msgspec.structs.replace(made.node.settings, grpc=settings)
    yield made
    made.node.close()


@pytest.fixture
async def stalled(chain: PrivateChain) -> AsyncIterator[Stalled]:
    async with served(chain.node) as client:
        made = Stalled(client, await connect(client.port))
        try:
            await eventually(lambda: made.count == 0)
            yield made
        finally:
            await made.close()


@pytest.mark.parametrize(
    ("path", "request_data"),
    [(SUBSCRIBE, FROM_START), (BLOCKS, ALL_BLOCKS), (DATA, ENTRIES), (RANGE, FIRST), (HEIGHT, b"")],
)
async def test_what_is_not_read_ends(
    chain: PrivateChain, stalled: Stalled, path: str, request_data: bytes
) -> None:
    write(chain, 5)
    stream = stalled.raw.call(path, request_data)
    await eventually(lambda: stalled.waiting == 1)
    await stalled.pass_by(READ_SECONDS * 0.9)
    assert stalled.count == 1 and not stalled.raw.ended
    await stalled.pass_by(READ_SECONDS * 0.2)
    # It hears why, when it reads again; nothing of a message had been sent.
    await eventually(lambda: stalled.raw.ended == {stream})
    assert NOT_READ in stalled.raw.heads[stream] and not stalled.raw.reset
    await eventually(lambda: stalled.count == 0)
    assert stalled.clients._unread == 0 and stalled.raw.data[stream] == 0
    view = stalled.services._views._current
    assert view is None or view.users == 1, "that of the updates"
    await stalled.is_served()


async def test_what_is_read_to_the_middle_of_a_message_is_reset(
    chain: PrivateChain, stalled: Stalled
) -> None:
    """No status can stand there: HTTP/2 says it, and clients call that RESOURCE_EXHAUSTED."""
    write(chain, 5)
    stream = stalled.raw.call(DATA, ENTRIES)
    await eventually(lambda: stalled.waiting == 1)
    stalled.raw.allow(stream, 100)
    await eventually(lambda: stalled.raw.data[stream] == 100)
    await stalled.pass_by(READ_SECONDS * 1.1)
    await eventually(lambda: stalled.raw.codes == {stream: ENHANCE_YOUR_CALM})
    assert stalled.count == 0 and stalled.clients._unread == 0


@pytest.mark.parametrize(("path", "most"), [(DATA, 3), (RANGE, 2)])
async def test_what_is_not_read_counts(
    chain: PrivateChain, stalled: Stalled, path: str, most: int
) -> None:
    write(chain, 5)
    asked = {DATA: ENTRIES, RANGE: FIRST}[path]
    first = {stalled.raw.call(path, asked) for _ in range(most)}
    await eventually(lambda: stalled.waiting == most)
    refused = {stalled.raw.call(path, asked)}
    await eventually(lambda: stalled.raw.ended == refused)
    await stalled.pass_by(READ_SECONDS * 1.1)
    await eventually(lambda: stalled.raw.ended == first | refused)
    again = stalled.raw.call(path, asked)
    await eventually(lambda: stalled.waiting == 1)
    assert again not in stalled.raw.ended


async def test_what_has_ended_is_no_longer_in_memory(chain: PrivateChain, stalled: Stalled) -> None:
    """Answers of a megabyte and more, given up one after the other."""
    write(chain, 40)
    chain.mine()

    async def rounds(count: int) -> None:
        for _ in range(count):
            stalled.raw.call(RANGE, FOR_TWO)
            await eventually(lambda: stalled.waiting == 1)
            assert stalled.clients._unread > 500_000
            await stalled.pass_by(READ_SECONDS * 1.1)
            await eventually(lambda: stalled.count == 0)

    await rounds(5)
    before = memory()
    await rounds(20)
    assert memory() - before < 10_000_000


def memory() -> int:
    """The bytes that this process has."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")


async def test_a_request_that_does_not_come(stalled: Stalled) -> None:
    streams = [stalled.raw.call(path, None) for path in (HEIGHT, SUBSCRIBE, WATCH, REFLECTION)]
    await eventually(lambda: stalled.count == 4)
    await stalled.pass_by(clients.REQUEST_SECONDS * 0.9)
    assert stalled.count == 4 and not stalled.raw.reset
    await stalled.pass_by(clients.REQUEST_SECONDS * 0.2)
    # Who reflects may ask as late as it likes: that is a stream, and counted as one.
    await eventually(lambda: stalled.raw.reset == set(streams[:3]))
    assert stalled.count == 1


async def test_requests_that_do_not_come_make_room_for_others(
    stalled: Stalled, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(clients, "MAX_RECEIVING", 10)
    for most in (5, 10, 10, 10, 10):
        raw = await stalled.connect()
        for _ in range(5):
            raw.call(HEIGHT, None)
        await eventually(lambda most=most: stalled.count == most)  # type: ignore[misc]
        await asyncio.sleep(0.05)
    await stalled.is_served()
    await eventually(lambda: [len(each.reset) for each in stalled.others[:3]] == [5, 5, 5])
    assert not stalled.others[4].reset


async def test_a_byte_at_a_time_is_too_slow_for_who_holds_a_moment(
    chain: PrivateChain, stalled: Stalled
) -> None:
    """Entries of a few bytes each, one of which is read before each look."""
    for number in range(3):
        entries = tuple(DataEntry(f"key{number}{each:03}", each) for each in range(90))
        chain.send(chain.sign(data.TYPE, data.Data(entries), 2, fee=10_000_000))
    chain.mine()
    stream = stalled.raw.call(DATA, ENTRIES)
    await eventually(lambda: stalled.waiting == 1)
    moved = 0
    for _ in range(20):
        stalled.raw.allow(stream, 50)
        before = stalled.raw.data[stream]
        await eventually(lambda least=before: stalled.raw.data[stream] > least)  # type: ignore[misc]
        moved += 1
        await stalled.pass_by(READ_SECONDS * 0.3)
        if not stalled.waiting:
            break
    assert moved < 8, "it is read all the time, and yet given up"
    view = stalled.services._views._current
    assert view is None or view.users == 1, "that of the updates"


async def test_moments_of_those_who_do_not_read_make_room(
    chain: PrivateChain, stalled: Stalled, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each stream holds a moment of its own, and there are few."""
    allow(stalled, monkeypatch)
    write(chain, 3)
    calls = stalled.clients._calls
    for _ in range(2 * MAX_SNAPSHOTS):
        before = set(calls)
        (await stalled.connect()).call(DATA, ENTRIES)
        await eventually(
            lambda known=before: any(each.size for each in calls.keys() - known)  # type: ignore[misc]
        )
        chain.mine()
        stalled.clock.now += 1
        await stalled.is_served()
    assert len(stalled.services._views._open) <= views.MAX_VIEWS + 1
    # As many as there is room for go on.
    assert abs(stalled.waiting - views.MAX_VIEWS) <= 2


def allow(stalled: Stalled, monkeypatch: pytest.MonkeyPatch) -> None:
    """More calls of this machine than the other tests have."""
    limits = GrpcLimits(read_ms=stalled.clients.limits.read_ms)
    monkeypatch.setattr(stalled.clients, "limits", limits)


async def test_what_waits_to_be_read_has_a_limit_in_bytes(
    chain: PrivateChain, stalled: Stalled, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(chain, 2)
    chain.mine()
    monkeypatch.setattr(clients, "MAX_UNREAD_BYTES", 130_000)
    streams: list[int] = []
    for count in (1, 2, 3):
        streams.append(stalled.raw.call(DATA, ENTRIES))
        await eventually(lambda most=count: stalled.waiting == most)  # type: ignore[misc]
        stalled.clock.now += 1
    assert not stalled.raw.ended
    # Answers count as well; who has waited longest goes first.
    stalled.raw.call(RANGE, FOR_TWO)
    await eventually(lambda: streams[0] in stalled.raw.ended)
    assert b"others need the room" in stalled.raw.heads[streams[0]]
    await eventually(lambda: stalled.clients._unread <= 130_000)
    assert stalled.waiting


async def test_long_requests_under_way_have_a_limit(
    chain: PrivateChain, stalled: Stalled, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each takes several times its bytes in memory, as long as its answer is not read."""
    write(chain, 2)
    allow(stalled, monkeypatch)
    monkeypatch.setattr(clients, "MAX_REQUESTS_BYTES", 800_000)
    asked = BalancesRequest(address=chains.address_of(RICH), assets=[bytes(32)] * 5_000)
    data = asked.SerializeToString()
    short = stalled.raw.call(DATA, ENTRIES)
    streams = []
    for count in (2, 3, 3, 3):
        streams.append(stalled.raw.call(BALANCES, None))
        stalled.raw.add(streams[-1], data, ended=True)
        await eventually(lambda most=count: stalled.waiting == most)  # type: ignore[misc]
    # The first ones have left, and those whose requests are short stay.
    await eventually(lambda: stalled.raw.ended == set(streams[:2]))
    assert b"others need the room" in stalled.raw.heads[streams[0]]
    assert short not in stalled.raw.ended
    await stalled.pass_by(READ_SECONDS * 1.1)
    await eventually(lambda: stalled.count == 0)
    assert stalled.clients._request_bytes == 0


async def test_a_list_with_more_items_than_ids_have_room(stalled: Stalled) -> None:
    """Two million empty ids fit into a request, and would take a hundred megabytes."""
    ids = TransactionsByIdRequest(transaction_ids=[b""] * 130_000).SerializeToString()
    found = await stalled.client.call(STATUSES, ids, stream=True)
    assert (found.code, found.responses) == ("RESOURCE_EXHAUSTED", [])
    ids = TransactionsByIdRequest(transaction_ids=[bytes(32)] * 3_000).SerializeToString()
    assert len((await stalled.client.call(STATUSES, ids, stream=True)).responses) == 3_000


async def test_calls_of_health_and_reflection_count(stalled: Stalled) -> None:
    not_read = {stalled.raw.call(path, b"") for path in (WATCH, REFLECTION)}
    await eventually(lambda: stalled.waiting == 2)
    # Who watches and does not read holds up nobody else who does.
    watching = stalled.client.stream(WATCH, b"")
    await eventually(lambda: watching.found == [SERVING])
    more = stalled.raw.call(SUBSCRIBE, FROM_START)
    await eventually(lambda: stalled.raw.ended == {more})
    await stalled.pass_by(READ_SECONDS * 1.1)
    await eventually(lambda: stalled.raw.ended == not_read | {more})
    # Who has read waits for what may come.
    assert stalled.count == 1 and not watching.done


async def test_long_answers_to_many_questions_are_counted_once(stalled: Stalled) -> None:
    """Where the next answer begins to wait while the one before it is sent."""
    raw = await stalled.connect()
    stream = raw.call(REFLECTION, None)
    raw.allow(stream, 1 << 29)
    # A short question with an answer of several frames.
    name = "waves.dex.grpc.integration.WavesBlockchainApi"
    question = ServerReflectionRequest(file_containing_symbol=name).SerializeToString()
    raw.add(stream, *[question] * 100)
    await eventually(lambda: raw.data[stream] > 100 * 20_000)
    await eventually(lambda: not stalled.waiting)
    assert stalled.clients._unread == 0


async def test_ranges_have_a_limit_together(
    chain: PrivateChain, stalled: Stalled, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ranges that wait for what comes; who came first has to leave."""
    write(chain, 3)
    allow(stalled, monkeypatch)
    monkeypatch.setattr(updates, "MAX_RANGES_BYTES", MOST_BYTES)
    waiting = [asyncio.create_task(stalled.client.call(RANGE, FOR_EVER, stream=False))]
    found = stalled.services._updates
    await eventually(lambda: found._gathered > MOST_BYTES / 3)
    held = found._gathered
    assert held < MOST_BYTES / 2, "two have room"
    waiting.append(asyncio.create_task(stalled.client.call(RANGE, FOR_EVER, stream=False)))
    await eventually(lambda: found._gathered == 2 * held)
    waiting.append(asyncio.create_task(stalled.client.call(RANGE, FOR_EVER, stream=False)))
    first = await waiting[0]
    assert first.code == "RESOURCE_EXHAUSTED" and "began later" in first.details
    await eventually(lambda: found._gathered == 2 * held)
    for each in waiting[1:]:
        each.cancel()
    await asyncio.gather(*waiting[1:], return_exceptions=True)
    await eventually(lambda: found._gathered == 0)


async def test_a_queue_of_updates_has_a_limit_in_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(updates, "MAX_QUEUE_BYTES", 10)
    subscriber = updates.Subscriber(100)

    def push(name: bytes, kind: Kind = Kind.BLOCK) -> None:
        subscriber.push(Event(kind, 1, name, b"12345"))

    push(b"a")
    # What is read, or taken back before, gives room.
    assert (await subscriber.next()).name == b"a"
    push(b"b")
    push(b"c")
    push(b"c", Kind.BLOCK_ROLLBACK)
    push(b"d")
    assert [(await subscriber.next()).name for _ in range(2)] == [b"b", b"d"]
    for name in (b"e", b"f", b"g"):
        push(name)
    with pytest.raises(updates.Ended):
        await subscriber.next()


def test_a_queue_of_the_pool_has_a_limit_in_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pool_events, "MAX_QUEUE_BYTES", 10)
    subscriber = pool_events._Subscriber()
    subscriber.push(b"12345")
    subscriber.push(b"67890")
    assert subscriber.pop() == b"12345"
    subscriber.push(b"abcde")
    assert not subscriber.is_behind and list(subscriber.waiting) == [b"67890", b"abcde"]
    subscriber.push(b"f")
    assert subscriber.is_behind and not subscriber.waiting
    # It is told all of the pool again, and what comes behind that.
    subscriber.is_behind = False
    subscriber.push(b"1234567890")
    assert subscriber.pop() == b"1234567890"
