"""The way of orders from a worker to the matcher and back, over real unix sockets."""

from __future__ import annotations

import asyncio
import logging
import random
import tempfile
from collections.abc import AsyncIterator, Callable, Sequence
from pathlib import Path
from typing import Any

import msgspec
import pytest
import pytest_asyncio
import uvloop
from hypothesis import given, settings
from hypothesis import strategies as st

from soliton.chain import orders, typed_data
from soliton.chain.orders import Order
from soliton.chain.values import AssetId
from soliton.crypto import secp256k1
from soliton.errors import EnvironmentProblem
from soliton.matcher.rest.answers import JSON, Answer
from soliton.matcher.rest.order_channel import (
    GROUP,
    ORDERS,
    UNKNOWN,
    OrderChannel,
    RefusalFields,
    order_server,
    submitted,
)
from soliton.web.channel import MAX_FRAME_BYTES, ChannelServer, connect
from tests.amounts import examples
from tests.chain.strategies import chain_ids
from tests.chain.transactions.further import order_values
from tests.matcher.fakes import ALICE, BOB, DOLLAR, GOLD, buy, sell

LoopFactory = Callable[[], asyncio.AbstractEventLoop]
any_order = chain_ids.flatmap(order_values)
SENT = [buy(ALICE, 10**8, 10**8 + number) for number in range(3 * GROUP + 2)]


async def eventually(condition: Callable[[], bool]) -> None:
    """Wait until a condition holds."""
    async with asyncio.timeout(60):
        while not condition():  # noqa: ASYNC110 - whatever it is that changes
            await asyncio.sleep(0.001)


async def end_of(worker: OrderChannel) -> None:
    """Wait until nobody takes its orders any more."""
    await asyncio.wait_for(worker.lost.wait(), 60)


class Desk:
    """Where orders are placed: each is taken at once, or waits for what the test says."""

    def __init__(self) -> None:
        self.seen: list[tuple[Order, bool | None]] = []
        self.placed: list[Order] = []
        self.refusals: dict[bytes, Answer] = {}
        self.waits = False
        self.waiting: dict[bytes, asyncio.Future[None]] = {}

    async def place(self, order: Order, is_signed: bool | None) -> Answer | None:
        self.seen.append((order, is_signed))
        if self.waits:
            self.waiting[order.id] = asyncio.get_running_loop().create_future()
            await self.waiting[order.id]
        refusal = self.refusals.get(order.id)
        if refusal is None:
            self.placed.append(order)
        return refusal

    def decide(self, order: Order) -> None:
        """The end of an order's wait."""
        self.waiting[order.id].set_result(None)


class Told:
    """What became of orders, by their ids, in the order in which it was told."""

    def __init__(self) -> None:
        self.all: list[tuple[bytes, Answer | None]] = []

    def hand(self, worker: OrderChannel, order: Order, is_signed: bool | None = True) -> None:
        def take(refusal: RefusalFields | None) -> None:
            self.all.append((order.id, None if refusal is None else Answer(*refusal)))

        worker.submit(submitted(order, is_signed), take)

    async def until(self, count: int) -> None:
        """Wait until so many were told."""
        await eventually(lambda: len(self.all) >= count)
        assert len(self.all) == count


@pytest.fixture
def path(tmp_path: Path) -> str:
    return str(tmp_path / "orders")


@pytest.fixture
def desk() -> Desk:
    return Desk()


@pytest_asyncio.fixture
async def gate(desk: Desk, path: str) -> AsyncIterator[ChannelServer[Any, Any]]:
    opened = order_server(desk.place)
    await opened.open(path)
    yield opened
    opened.close()


@pytest_asyncio.fixture
async def worker(gate: ChannelServer[Any, Any], path: str) -> AsyncIterator[OrderChannel]:
    connected = await connect(ORDERS, path)
    yield connected
    connected.close()
    await end_of(connected)


# --- orders ---------------------------------------------------------------------------------------


def wallet_order(version: int = 4) -> Order:
    """One that an Ethereum wallet has signed."""
    plain = buy(ALICE, 10**8, 10**8, version=version)
    r, s, recovery = secp256k1.sign(bytes(31) + b"\7", typed_data.order_hash(plain))
    signature = r.to_bytes(32, "big") + s.to_bytes(32, "big") + bytes((27 + recovery,))
    return orders.build(msgspec.structs.replace(plain, eip712_signature=signature))


def assert_same(arrived: Order, sent: Order) -> None:
    """Every field is equal, and of the same kind: an enumeration equals a number."""
    for name in Order.__struct_fields__:
        one, other = getattr(arrived, name), getattr(sent, name)
        assert (one, type(one)) == (other, type(other)), name


async def carried(sent: Sequence[tuple[Order, bool | None]]) -> list[tuple[Order, bool | None]]:
    """What arrives, in the order in which it does."""
    desk, told = Desk(), Told()
    with tempfile.TemporaryDirectory() as directory:
        gate = order_server(desk.place)
        await gate.open(f"{directory}/orders")
        worker = await connect(ORDERS, f"{directory}/orders")
        for order, is_signed in sent:
            told.hand(worker, order, is_signed)
        await told.until(len(sent))
        gate.close()
        await end_of(worker)
    assert {refusal for _, refusal in told.all} == {None}
    return desk.seen


@settings(max_examples=examples(50))
@given(st.lists(st.tuples(any_order, st.none() | st.booleans()), min_size=1, max_size=12))
def test_orders_arrive_as_they_are(sent: list[tuple[Order, bool | None]]) -> None:
    arrived = asyncio.run(carried(sent))
    assert [is_signed for _, is_signed in arrived] == [is_signed for _, is_signed in sent]
    for (order, _), (other, _) in zip(arrived, sent, strict=True):
        assert_same(order, other)


def replaced(order: Order, **changes: object) -> Order:
    return orders.build(msgspec.structs.replace(order, **changes))


async def test_orders_of_every_kind() -> None:
    newest = buy(ALICE, 10**8, 10**8, version=4)
    several = tuple(bytes((number,)) * (8 * number) for number in range(9))
    kinds = [
        *(sell(BOB, 10**8, 10**8, version=version) for version in (1, 2, 3, 4)),
        replaced(buy(ALICE, 10**8, 10**8), matcher_fee_asset=DOLLAR),
        replaced(newest, attachment=bytes(1_024), matcher_fee_asset=GOLD),
        replaced(newest, attachment=b""),
        msgspec.structs.replace(newest, proofs=several),
        msgspec.structs.replace(newest, proofs=()),
        replaced(newest, amount=2**63 - 1, price=-(2**63), timestamp=-1, expiration=0),
        wallet_order(),
        replaced(newest, eip712_signature=bytes(129)),
        replaced(newest, amount_asset=None, price_asset=None),
    ]
    assert len(kinds[-3].sender_public_key) == 64 and kinds[-2].sender_public_key == b""
    arrived = await carried([(order, None) for order in kinds])
    for (order, _), sent in zip(arrived, kinds, strict=True):
        assert_same(order, sent)


async def test_what_comes_again_and_again_is_kept_once() -> None:
    sent = [replaced(order, matcher_fee_asset=AssetId(bytes(GOLD))) for order in SENT[:2]]
    (first, _), (second, _) = await carried([(order, True) for order in sent])
    for name in ("sender_public_key", "matcher_public_key", "amount_asset", "matcher_fee_asset"):
        assert getattr(first, name) is getattr(second, name)


# --- outcomes -------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(3))
async def test_outcomes_find_their_orders(desk: Desk, worker: OrderChannel, seed: int) -> None:
    told, shuffled, desk.waits = Told(), list(SENT), True
    desk.refusals = {order.id: Answer(order.id, 400) for order in SENT[::3]}
    for order in SENT:
        told.hand(worker, order)
    await eventually(lambda: len(desk.seen) == len(SENT))
    assert [order for order, _ in desk.seen] == SENT
    random.Random(seed).shuffle(shuffled)
    for order in shuffled:
        desk.decide(order)
        if seed:
            await asyncio.sleep(0)
    await told.until(len(SENT))
    assert told.all == [(order.id, desk.refusals.get(order.id)) for order in shuffled]


async def test_a_refusal_comes_whole(desk: Desk, worker: OrderChannel) -> None:
    told = Told()
    refusals = [
        Answer(b"", 400),
        Answer(b"\xff" * 100_000, 503, b"text/plain; charset=UTF-8", ((b"retry-after", b"1"),)),
        Answer(b"{}", 404, JSON, ((b"a", b""), (b"a", b"\xe9"))),
    ]
    desk.refusals = dict(zip((order.id for order in SENT), refusals, strict=False))
    for order in SENT[:4]:
        told.hand(worker, order)
    await told.until(4)
    assert [refusal for _, refusal in told.all] == [*refusals, None]


async def test_workers_have_numbers_of_their_own(
    desk: Desk, worker: OrderChannel, gate: ChannelServer[Any, Any], path: str
) -> None:
    another, desk.waits = await connect(ORDERS, path), True
    first, second = Told(), Told()
    desk.refusals[SENT[1].id] = Answer(b"no", 400)
    first.hand(worker, SENT[0])
    second.hand(another, SENT[1])
    await eventually(lambda: len(desk.seen) == 2)
    desk.decide(SENT[1])
    await second.until(1)
    assert first.all == []
    desk.decide(SENT[0])
    await first.until(1)
    assert first.all == [(SENT[0].id, None)]
    assert second.all == [(SENT[1].id, Answer(b"no", 400))]
    another.close()
    await end_of(another)


# --- frames ---------------------------------------------------------------------------------------


class Wire:
    """One end of the way as it is: bytes."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader = reader
        self.writer = writer

    async def frame(self) -> list[list[object]]:
        """The next frame."""
        async with asyncio.timeout(60):
            length = int.from_bytes(await self.reader.readexactly(4), "big")
            data = await self.reader.readexactly(length)
        items: list[list[object]] = msgspec.msgpack.decode(data)
        return items

    async def is_ended(self) -> bool:
        """Whether the other side hangs up, having said nothing more."""
        async with asyncio.timeout(60):
            try:
                return await self.reader.read() == b""
            except ConnectionResetError:
                return True


def frame(items: object) -> bytes:
    data = msgspec.msgpack.encode(items)
    return len(data).to_bytes(4, "big") + data


def handed(number: int, order: Order) -> list[object]:
    return [number, [True, list(msgspec.structs.astuple(order))]]


@pytest_asyncio.fixture
async def raw(gate: ChannelServer[Any, Any], path: str) -> AsyncIterator[Wire]:
    """A worker that writes what the test says."""
    reader, writer = await asyncio.open_unix_connection(path)
    yield Wire(reader, writer)
    writer.close()


@pytest_asyncio.fixture
async def far(path: str) -> AsyncIterator[asyncio.Queue[Wire]]:
    """Matchers that write what the test says, one for each connection."""
    wires: asyncio.Queue[Wire] = asyncio.Queue()
    opened: list[Wire] = []

    def took(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        opened.append(Wire(reader, writer))
        wires.put_nowait(opened[-1])

    server = await asyncio.start_unix_server(took, path)
    yield wires
    for wire in opened:
        wire.writer.close()
    server.close()


async def test_what_comes_in_one_turn_goes_in_groups(path: str, far: asyncio.Queue[Wire]) -> None:
    worker, told = await connect(ORDERS, path), Told()
    wire = await far.get()
    for order in SENT:
        told.hand(worker, order)
    frames = [await wire.frame() for _ in range(4)]
    assert [len(each) for each in frames] == [GROUP, GROUP, GROUP, 2]
    assert [item[0] for each in frames for item in each] == list(range(1, len(SENT) + 1))
    for order in SENT[:GROUP]:
        told.hand(worker, order)
    told.hand(worker, SENT[-1])
    assert [len(await wire.frame()) for _ in range(2)] == [GROUP, 1]
    worker.close()
    await end_of(worker)


async def test_one_byte_at_a_time(raw: Wire, desk: Desk) -> None:
    sent = frame([handed(7, SENT[0])]) + frame([]) + frame([handed(9, SENT[1])])
    for number in range(len(sent)):
        raw.writer.write(sent[number : number + 1])
        await asyncio.sleep(0)
    assert await raw.frame() == [[7, None]]
    assert await raw.frame() == [[9, None]]
    assert desk.placed == SENT[:2]


def spoiled(place: int, value: object) -> list[object]:
    """An order with something else in one place."""
    number, is_signed, row = 5, True, list(msgspec.structs.astuple(SENT[1]))
    row[place] = value
    return [number, [is_signed, row]]


BAD_FRAMES = {
    "too long": (MAX_FRAME_BYTES + 1).to_bytes(4, "big") + b"the rest",
    "nothing": b"\0\0\0\0",
    "no msgpack": b"\0\0\0\1\xc1",
    "an end too early": b"\0\0\0\1\x91",
    "something behind": b"\0\0\0\2\x90\x90",
    "no list": frame(7),
    "no orders": frame(["order"]),
    "no number": frame([["5", *handed(5, SENT[1])[1:]]]),
    "a field too few": frame([[5, [True, list(msgspec.structs.astuple(SENT[1]))[:-1]]]]),
    "no side": frame([spoiled(6, 2)]),
    "no price mode": frame([spoiled(13, 3)]),
    "no asset": frame([spoiled(4, "WAVES")]),
    "no proofs": frame([spoiled(15, None)]),
}


@pytest.mark.parametrize("data", BAD_FRAMES.values(), ids=BAD_FRAMES)
async def test_who_is_not_understood_is_cut_off_alone(
    raw: Wire, worker: OrderChannel, desk: Desk, data: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    told, desk.waits = Told(), True
    told.hand(worker, SENT[2])
    await eventually(lambda: len(desk.seen) == 1)
    raw.writer.write(frame([handed(1, SENT[0])]) + data + frame([handed(2, SENT[3])]))
    assert await raw.is_ended()
    (record,) = caplog.records
    assert record.levelno == logging.ERROR and "is not understood" in record.message
    await eventually(lambda: len(desk.seen) == 2)
    # What came before was understood, and is placed although nobody hears of it.
    desk.decide(SENT[0])
    desk.decide(SENT[2])
    await told.until(1)
    desk.waits = False
    told.hand(worker, SENT[4])
    await told.until(2)
    assert [refusal for _, refusal in told.all] == [None, None]
    assert desk.placed == [SENT[0], SENT[2], SENT[4]]


@pytest.mark.parametrize(
    "data",
    [
        (MAX_FRAME_BYTES + 1).to_bytes(4, "big"),
        b"\0\0\0\1\xc1",
        frame([[2, [b"", "400", b"", []]]]),
        frame([[99, None]]),
    ],
    ids=["too long", "no msgpack", "no outcome", "no such order"],
)
async def test_a_matcher_that_is_not_understood_says_nothing(
    path: str, far: asyncio.Queue[Wire], data: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    worker, told = await connect(ORDERS, path), Told()
    wire = await far.get()
    for order in SENT[:3]:
        told.hand(worker, order)
    await wire.frame()
    wire.writer.write(frame([[1, None]]) + data)
    await told.until(3)
    assert worker.lost.is_set()
    assert [refusal for _, refusal in told.all] == [None, UNKNOWN, UNKNOWN]
    assert await wire.is_ended()
    assert [record.levelno for record in caplog.records] == [logging.ERROR]


# --- the end --------------------------------------------------------------------------------------


async def test_without_the_matcher_nobody_knows(
    desk: Desk, gate: ChannelServer[Any, Any], worker: OrderChannel
) -> None:
    told, desk.waits = Told(), True
    for order in SENT:
        told.hand(worker, order)
    await eventually(lambda: len(desk.seen) == len(SENT))
    told.hand(worker, SENT[0])
    gate.close()
    await end_of(worker)
    assert sorted(told.all) == sorted((order.id, UNKNOWN) for order in [*SENT, SENT[0]])
    told.hand(worker, SENT[1])
    assert len(told.all) == len(SENT) + 1, "it was told by the call itself"
    await told.until(len(SENT) + 2)
    assert told.all[-1] == (SENT[1].id, UNKNOWN)


async def test_a_worker_that_ends_hands_over_no_more(desk: Desk, worker: OrderChannel) -> None:
    told, desk.waits = Told(), True
    told.hand(worker, SENT[0])
    await eventually(lambda: len(desk.seen) == 1)
    worker.close()
    told.hand(worker, SENT[1])
    await told.until(2)
    assert told.all == [(order.id, UNKNOWN) for order in SENT[:2]]
    desk.decide(SENT[0])
    await eventually(lambda: desk.placed == SENT[:1])


@pytest.mark.parametrize("loop_factory", [asyncio.new_event_loop, uvloop.new_event_loop])
@pytest.mark.parametrize("count", [3, GROUP, 2 * GROUP + 1])
def test_an_end_in_the_same_turn_is_no_fault(
    path: str, loop_factory: LoopFactory, count: int, caplog: pytest.LogCaptureFixture
) -> None:
    """The loop that programs run in refuses to write to what is closing."""

    async def main() -> list[tuple[bytes, Answer | None]]:
        desk, told = Desk(), Told()
        gate = order_server(desk.place)
        await gate.open(path)
        first, second = await connect(ORDERS, path), await connect(ORDERS, path)
        first.close()
        for order in SENT[:count]:
            told.hand(first, order)
        await end_of(first)
        for order in SENT[:count]:
            told.hand(second, order)
        await eventually(lambda: SENT[count - 1] in desk.placed)
        # Its outcomes are to be sent at the end of this turn.
        gate.close()
        await end_of(second)
        await asyncio.sleep(0)
        assert len(told.all) == 2 * count
        return told.all

    with asyncio.Runner(loop_factory=loop_factory) as runner:
        assert {refusal for _, refusal in runner.run(main())} <= {None, UNKNOWN}
    assert caplog.records == []


async def test_what_a_worker_has_handed_over_is_placed_without_it(
    desk: Desk, raw: Wire, worker: OrderChannel
) -> None:
    """It was killed, say: what the system has of its words is heard."""
    desk.waits = True
    raw.writer.write(frame([handed(number, order) for number, order in enumerate(SENT)]))
    raw.writer.write(frame([handed(99, SENT[0])])[:-1])
    raw.writer.transport.abort()
    await eventually(lambda: len(desk.seen) == len(SENT))
    for order in SENT:
        desk.decide(order)
    await eventually(lambda: desk.placed == SENT)
    told, desk.waits = Told(), False
    told.hand(worker, SENT[0])
    await told.until(1)


async def test_the_end_of_the_gate_ends_the_checks(
    desk: Desk, gate: ChannelServer[Any, Any], worker: OrderChannel, raw: Wire
) -> None:
    """Also those for workers that are gone: the matcher closes what they look at."""
    told, desk.waits = Told(), True
    raw.writer.write(frame([handed(1, SENT[1])]))
    told.hand(worker, SENT[0])
    await eventually(lambda: len(desk.seen) == 2)
    raw.writer.transport.abort()
    gate.close()
    await told.until(1)
    assert told.all == [(SENT[0].id, UNKNOWN)]
    assert all(desk.waiting[order.id].cancelled() for order in SENT[:2])


async def test_where_there_is_no_way(path: str, gate: ChannelServer[Any, Any], desk: Desk) -> None:
    with pytest.raises(EnvironmentProblem, match="cannot connect"):
        await connect(ORDERS, path + "x")
    with pytest.raises(EnvironmentProblem, match="cannot listen"):
        await order_server(desk.place).open(str(Path(path).parent / "nowhere" / "orders"))
