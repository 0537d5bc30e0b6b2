"""The journal on a real broker: terms, standing by, taking over, restarts of the broker."""

from __future__ import annotations

import asyncio
import itertools
import secrets
from collections.abc import AsyncIterator, Callable, Sequence
from pathlib import Path

import pytest

from soliton.matcher.journal import Journal, Record
from soliton.matcher.journal.candidate import KafkaSettings, Role
from soliton.matcher.journal.errors import JournalGap, LeadershipLost, UnequalRules, WrongJournal
from soliton.matcher.journal.kafka import KafkaJournal, _Term
from soliton.matcher.journal.leadership import Beat, Command, decode, encode
from soliton.matcher.journal.topic import BrokerProblem, Security, Topic, TopicAddress
from tests.amounts import only_long
from tests.matcher.kafka.broker import PASSWORD, USER, Broker, running, unavailable

pytestmark = pytest.mark.slow

IDENTITY = bytes(range(32))
LEASE = 1.2
RULES = bytes(range(100, 132))

Opener = Callable[..., KafkaJournal]


@pytest.fixture
async def opened(broker: Broker) -> AsyncIterator[Opener]:
    """Journals of several matchers on one new topic; closed at the end."""
    topic = f"commands-{secrets.token_hex(4)}"
    journals: list[KafkaJournal] = []

    def make(
        name: str,
        role: Role = Role.AUTO,
        *,
        lease: float = LEASE,
        rules: bytes = RULES,
        delivery: float = 15.0,
    ) -> KafkaJournal:
        ticks = itertools.count(1_000)
        address = TopicAddress(broker.servers, topic, delivery_seconds=delivery)
        settings = KafkaSettings(address, name, role, lease, rules)
        journals.append(KafkaJournal(settings, IDENTITY, lambda: next(ticks)))
        return journals[-1]

    yield make
    for journal in journals:
        await journal.close()


async def lead(journal: Journal, start: int = 0) -> list[Record]:
    """Follow until the journal leads: what was read on the way."""
    async with asyncio.timeout(30):
        return [record async for batch in journal.follow(start) for record in batch]


async def read(journal: Journal, start: int = 0) -> list[Record]:
    return [record async for batch in journal.records(start) for record in batch]


async def test_alone(opened: Opener) -> None:
    journal = opened("a")
    with pytest.raises(LeadershipLost):
        await journal.append([b"early"])
    assert await lead(journal) == []
    assert journal._term is not None
    answers = await asyncio.gather(
        *(journal.append([b"%d-%d" % (call, i) for i in range(call % 4)]) for call in range(100))
    )
    positions = [position for answer in answers for position in answer]
    many = await journal.append([b"y" * 500] * 10_000)
    records = await read(journal)
    assert [(r.offset, r.timestamp) for r in records] == [tuple(p) for p in positions + many]
    assert [r.payload for r in records[:2]] == [b"1-0", b"2-0"]
    assert journal.last_offset == records[-1].offset
    middle = positions[50].offset
    assert (await read(journal, middle + 1)) == records[51:]
    with pytest.raises(JournalGap):
        await read(journal, records[-1].offset + 50_000)


async def test_a_standby_keeps_up_and_follows_a_resignation(opened: Opener) -> None:
    master, standby = opened("a"), opened("b", lease=60)
    await lead(master)
    taken = asyncio.create_task(lead(standby))
    written = [p for n in range(20) for p in await master.append([b"%d" % n])]
    await master.close()
    records = await taken
    assert [r.offset for r in records] == [p.offset for p in written]
    assert standby._term is not None
    (position,) = await standby.append([b"on"])
    assert position.offset > written[-1].offset
    assert position.timestamp >= written[-1].timestamp


async def test_a_silent_master_is_deposed_and_its_late_writes_are_void(opened: Opener) -> None:
    master, standby = opened("a"), opened("b")
    await lead(master)
    await master.append([b"one"])
    # The master hangs: no beats, but its connection lives, and its bytes will come late.
    assert master._term is not None and master._leading_task is not None
    master._leading_task.cancel()
    await asyncio.wait([master._leading_task])
    late = await Topic.connect(master._settings.address)
    records = await lead(standby)
    assert [r.payload for r in records] == [b"one"]
    await late.write([encode(Command(1, 9, b"too late"))])
    await standby.append([b"two"])
    await late.write([encode(Command(1, 9, b"far too late"))])
    await standby.append([b"three"])
    await late.close()
    assert [r.payload for r in await read(standby)] == [b"one", b"two", b"three"]


async def test_configuration_deposes_a_master_under_load(opened: Opener) -> None:
    first = opened("a")
    await lead(first)
    accepted: list[tuple[int, bytes]] = []
    refused: list[bytes] = []

    async def place(worker: int) -> None:
        for number in itertools.count():
            payload = b"%d:%d" % (worker, number)
            try:
                (position,) = await first.append([payload])
            except LeadershipLost:
                refused.append(payload)
                return
            accepted.append((position.offset, payload))

    load = [asyncio.create_task(place(worker)) for worker in range(8)]
    await asyncio.sleep(0.3)
    second = opened("b", Role.MASTER)
    seen = await lead(second)
    await asyncio.wait_for(first.term_ended(), 60)
    await asyncio.gather(*load)
    assert first._term is None and len(refused) == 8
    await second.append([b"second"])
    everything = {r.offset: r.payload for r in await read(second)}
    assert {offset: everything.get(offset) for offset, _ in accepted} == dict(accepted)
    assert len(set(everything.values())) == len(everything)
    assert [r.offset for r in seen] == [o for o in sorted(everything) if everything[o] != b"second"]


async def test_a_matcher_takes_its_own_place_again_at_once(opened: Opener) -> None:
    before = opened("a", lease=60)
    await lead(before)
    await before.append([b"one"])
    again = opened("a", lease=60)
    assert [r.payload for r in await lead(again)] == [b"one"]
    with pytest.raises(LeadershipLost):
        await before.append([b"two"])
    await again.append([b"three"])
    # And the one that was deposed follows, and does not take the place back.
    beginning = before.last_offset + 1
    follower = asyncio.create_task(lead(before, beginning))
    await asyncio.sleep(0.3)
    assert not follower.done() and again._term is not None
    follower.cancel()
    await asyncio.wait([follower])
    assert [r.payload for r in await read(again, beginning)] == [b"three"]


async def test_it_does_so_from_a_snapshot_too(
    opened: Opener, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Who begins behind the claim knows the master's name from its beats."""
    before = opened("a", lease=0.3)
    await lead(before)
    (first,) = await before.append([b"one"])
    beaten, write = asyncio.Event(), before._write

    async def noted(term: _Term, values: Sequence[bytes]) -> range:
        offsets = await write(term, values)
        if isinstance(decode(values[0]), Beat):
            beaten.set()
        return offsets

    monkeypatch.setattr(before, "_write", noted)
    await asyncio.wait_for(beaten.wait(), 30)
    (second,) = await before.append([b"two"])
    assert before._leading_task is not None
    # It ends without a word: a beat between the claim and what was read before would void it.
    before._leading_task.cancel()
    await asyncio.wait([before._leading_task])
    await asyncio.wait(before._closing)
    again = opened("a", lease=600)
    assert [r.payload for r in await lead(again, first.offset + 1)] == [b"two"]
    (third,) = await again.append([b"three"])
    assert third.offset > second.offset


async def test_who_stands_by_does_not_lead(opened: Opener) -> None:
    standby = opened("b", Role.STANDBY)
    task = asyncio.create_task(lead(standby))
    await asyncio.sleep(LEASE * 1.5)
    assert not task.done() and standby._term is None
    task.cancel()
    await asyncio.wait([task])


async def delete_before(journal: KafkaJournal, offset: int) -> None:
    """What a broker does with entries that are older than its settings want."""
    from aiokafka import TopicPartition
    from aiokafka.admin import AIOKafkaAdminClient, RecordsToDelete

    admin = AIOKafkaAdminClient(**journal._settings.address.options())
    await admin.start()
    partition = TopicPartition(journal._settings.address.topic, 0)
    await admin.delete_records({partition: RecordsToDelete(before_offset=offset)})
    await admin.close()


async def test_old_commands_may_be_gone(opened: Opener) -> None:
    journal = opened("a")
    await lead(journal)
    positions = await journal.append([b"%d" % n for n in range(50)])
    # The entry before stays: it tells the term.
    await delete_before(journal, positions[29].offset)
    assert [r.payload for r in await read(journal, positions[30].offset)][:1] == [b"30"]
    with pytest.raises(JournalGap):
        await read(journal, 0)
    await journal.close()
    later = opened("a")
    assert [r.payload for r in await lead(later, positions[45].offset)] == [
        b"45", b"46", b"47", b"48", b"49"
    ]  # fmt: skip
    (position,) = await later.append([b"50"])
    assert position.offset > positions[-1].offset


async def test_a_topic_of_somebody_else(opened: Opener, broker: Broker) -> None:
    journal = opened("a")
    await lead(journal)
    await journal.append([b"x"])
    settings = KafkaSettings(journal._settings.address, "b", lease_seconds=LEASE)
    other = KafkaJournal(settings, b"o" * 32, lambda: 0)
    with pytest.raises(WrongJournal):
        await lead(other)
    await other.close()


async def test_whoever_has_other_rules_than_the_master_stops(opened: Opener) -> None:
    master, other = opened("a"), opened("b", lease=60, rules=bytes(32))
    await lead(master)
    await master.append([b"one"])
    with pytest.raises(UnequalRules, match="a leads on this topic"):
        await lead(other)
    # The master of another time may have had others.
    await master.close()
    later = opened("b", rules=bytes(32))
    assert [record.payload for record in await lead(later)] == [b"one"]


async def test_whoever_is_deposed_by_other_rules_stops(opened: Opener) -> None:
    before = opened("a")
    await lead(before)
    await lead(opened("b", Role.MASTER, rules=bytes(32)))
    await asyncio.wait_for(before.term_ended(), 60)
    with pytest.raises(UnequalRules):
        await lead(before)


async def test_a_broker_that_hangs_is_waited_for_until_the_delivery_timeout(
    opened: Opener, broker: Broker
) -> None:
    """What was sent is uncertain; what waited behind it never goes out, and stays refused."""
    delivery = 4.0
    journal = opened("a", delivery=delivery)
    await lead(journal)
    (first,) = await journal.append([b"before"])
    loop = asyncio.get_running_loop()

    async def refusal(payload: bytes) -> tuple[float, LeadershipLost]:
        began = loop.time()
        with pytest.raises(LeadershipLost) as told:
            await journal.append([payload])
        return loop.time() - began, told.value

    broker.pause()
    try:
        sent = asyncio.create_task(refusal(b"sent"))
        await asyncio.sleep(0.5)
        waiting = asyncio.create_task(refusal(b"waiting"))
        answers = await asyncio.gather(sent, waiting)
    finally:
        broker.go_on()
    assert [problem.nothing_stored for _, problem in answers] == [False, True]
    # The machine is shared: what matters is that the broker has said nothing at all until then.
    assert max(seconds for seconds, _ in answers) < 3 * delivery
    await lead(journal, first.offset + 1)
    await journal.append([b"after"])
    payloads = [record.payload for record in await read(journal)]
    assert [each for each in payloads if each != b"sent"] == [b"before", b"after"]
    assert payloads.count(b"sent") <= 1


async def test_a_write_at_an_unknown_place_ends_the_term(
    opened: Opener, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The broker says of a repeated write only that it has it: the topic tells the rest."""
    journal = opened("a")
    await lead(journal)
    assert journal._topic is not None
    producer = journal._topic._producer
    assert producer is not None
    send = producer.send_batch

    async def forgetful(*arguments: object, **named: object) -> asyncio.Future[object]:
        answer = await (await send(*arguments, **named))
        future: asyncio.Future[object] = asyncio.get_running_loop().create_future()
        future.set_result(answer._replace(offset=-1))
        return future

    with monkeypatch.context() as patch:
        patch.setattr(producer, "send_batch", forgetful)
        with pytest.raises(LeadershipLost):
            await journal.append([b"stored"])
    await asyncio.wait_for(journal.term_ended(), 60)
    assert [record.payload for record in await lead(journal)] == [b"stored"]
    await journal.append([b"next"])
    assert [record.payload for record in await read(journal)] == [b"stored", b"next"]


async def test_a_broker_that_asks_who_it_is(broker: Broker) -> None:
    def address(password: str) -> TopicAddress:
        security = Security("SASL_PLAINTEXT", "PLAIN", USER, password)
        return TopicAddress(broker.guarded, "guarded", security=security)

    journal = KafkaJournal(KafkaSettings(address(PASSWORD), "a"), IDENTITY, lambda: 5)
    await lead(journal)
    await journal.append([b"x"])
    assert [record.payload for record in await read(journal)] == [b"x"]
    await journal.close()
    with pytest.raises(BrokerProblem):
        await Topic.connect(address("wrong"))


async def test_no_broker() -> None:
    with pytest.raises(BrokerProblem):
        await Topic.connect(TopicAddress("127.0.0.1:1", "nothing"))
    address = TopicAddress("127.0.0.1:1", "nothing")
    journal = KafkaJournal(KafkaSettings(address, "a"), IDENTITY, lambda: 0)
    task = asyncio.create_task(lead(journal))
    await asyncio.sleep(0.3)
    assert not task.done()
    task.cancel()
    await asyncio.wait([task])
    await journal.close()


@only_long
async def test_the_broker_is_restarted_under_load(tmp_path: Path) -> None:
    """Killed, and hanging for a while. What is accepted stays, in order, once."""
    if (reason := unavailable()) is not None:
        pytest.skip(reason)
    with running(tmp_path) as broker:
        address = TopicAddress(broker.servers, "restarted", delivery_seconds=30)
        journal = KafkaJournal(
            KafkaSettings(address, "a", lease_seconds=LEASE), IDENTITY, lambda: 5
        )
        accepted: list[tuple[int, bytes]] = []
        sent = itertools.count()
        followed: dict[int, bytes] = {}
        stopping = asyncio.Event()

        async def serve() -> None:
            last = -1
            while not stopping.is_set():
                async for batch in journal.follow(last + 1):
                    followed.update((record.offset, record.payload) for record in batch)
                    last = batch[-1].offset
                try:
                    while not stopping.is_set():
                        payload = b"%d" % next(sent)
                        (position,) = await journal.append([payload])
                        accepted.append((position.offset, payload))
                        last = position.offset
                except LeadershipLost:
                    continue

        service = asyncio.create_task(serve())
        for fault in (broker.kill, None):
            await asyncio.sleep(1)
            if fault is None:
                broker.pause()
                await asyncio.sleep(2)
                broker.go_on()
            else:
                await asyncio.to_thread(fault)
                await asyncio.to_thread(broker.start)
            before = len(accepted)
            for _ in range(600):
                if len(accepted) >= before + 20:
                    break
                await asyncio.sleep(0.1)
        stopping.set()
        await asyncio.wait_for(service, 60)
        everything = await read(journal)
        await journal.close()
    payloads = [record.payload for record in everything]
    assert len(set(payloads)) == len(payloads)
    found = {record.offset: record.payload for record in everything}
    assert [pair for pair in accepted if found.get(pair[0]) != pair[1]] == []
    assert followed.items() <= found.items()
    assert len(accepted) > 60
