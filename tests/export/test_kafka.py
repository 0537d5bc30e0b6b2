"""The chain in a Kafka topic: each record once, whoever is killed. Against a real broker."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import json
import random
from collections.abc import Iterator
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition
from aiokafka.admin import AIOKafkaAdminClient
from aiokafka.errors import UnknownTopicOrPartitionError

from soliton.crypto import base58
from soliton.export import kafka
from soliton.export.errors import DatabaseAway, DatabaseProblem
from soliton.export.follower import Follower
from soliton.export.kafka import Broker as Place
from soliton.export.kafka import KafkaTopic
from soliton.node.chain_writer import ChainWriter
from tests.e2e.programs import run, started
from tests.export.following import OwnChain, catch_up
from tests.matcher.kafka.broker import Broker
from tests.node.chains import DEVNET, mine, open_chain
from tests.node.scenario import ALL_VERSIONS, Scenario
from tests.node.test_own_chain import add_microblock
from tests.ports import free_port

pytestmark = pytest.mark.slow
_names = count(1)


@pytest.fixture
def place(broker: Broker) -> Place:
    return Place(broker.servers, f"chain-{next(_names)}")


@pytest.fixture(autouse=True)
def nothing_is_left(caplog: pytest.LogCaptureFixture) -> Iterator[None]:
    """No exception that nobody has asked for, which Python would write into the log."""
    yield
    gc.collect()
    told = [
        each.message
        for each in [*caplog.get_records("call"), *caplog.records]
        if each.name == "asyncio"
    ]
    assert told == []


def records(place: Place) -> list[dict[str, Any]]:
    """What a consumer reads that only takes what was committed.

    The broker answers a commit before it has marked the records as committed: this waits for it.
    """

    async def read() -> list[dict[str, Any]]:
        where = TopicPartition(place.topic, 0)
        end = await last_offset(where)
        consumer = AIOKafkaConsumer(
            bootstrap_servers=place.servers,
            isolation_level="read_committed",
            enable_auto_commit=False,
        )
        await consumer.start()
        found: list[dict[str, Any]] = []
        try:
            consumer.assign([where])
            await consumer.seek_to_beginning(where)
            while await consumer.position(where) < end:
                for batch in (await consumer.getmany(timeout_ms=200)).values():
                    found += [json.loads(each.value or b"") for each in batch]
        finally:
            await consumer.stop()
        return found

    async def last_offset(where: TopicPartition) -> int:
        consumer = AIOKafkaConsumer(bootstrap_servers=place.servers)
        await consumer.start()
        try:
            return int((await consumer.end_offsets([where]))[where])
        finally:
            await consumer.stop()

    async def read_in_time() -> list[dict[str, Any]]:
        async with asyncio.timeout(60):
            return await read()

    return asyncio.run(read_in_time())


def folded(lines: list[dict[str, Any]]) -> list[tuple[int, str, list[str]]]:
    """The blocks that count; a record that came twice would not fit."""
    blocks: list[tuple[int, str, list[str]]] = []
    for line in lines:
        height, name = line["height"], line["id"]
        if line["event"] == "rollback":
            blocks = [each for each in blocks if each[0] <= height]
            blocks[-1] = (height, name, blocks[-1][2][: line["count"]])
            continue
        names = [each["id"] for each in line["transactions"]]
        if blocks and blocks[-1][0] == height:
            names = blocks.pop()[2] + names
        assert height == (blocks[-1][0] if blocks else 0) + 1
        assert len(names) == line["count"]
        blocks.append((height, name, names))
    return blocks


def expected(chain: ChainWriter) -> list[tuple[int, str, list[str]]]:
    return [
        (
            height,
            base58.encode(chain.meta(height).id),
            [base58.encode(each.id) for each in chain.block_at(height).transactions],
        )
        for height in range(1, chain.height + 1)
    ]


def test_topics_that_the_broker_does_not_know_at_once(
    tmp_path: Path, place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    describe = AIOKafkaAdminClient.describe_topics
    asked = count(1)

    async def too_early(admin: AIOKafkaAdminClient, names: list[str]) -> Any:
        found = await describe(admin, names)
        if next(asked) <= 2:
            found[-1]["error_code"] = UnknownTopicOrPartitionError.errno
        return found

    monkeypatch.setattr(AIOKafkaAdminClient, "describe_topics", too_early)
    chain = open_chain(tmp_path)
    mine(chain)
    topic = KafkaTopic.open(place)
    catch_up(Follower(OwnChain(chain), topic))
    topic.close()
    assert folded(records(place)) == expected(chain)


def test_any_way_leads_to_the_chain(
    tmp_path: Path, place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Steps of the chain and of the export, transactions that break off, others that take over."""
    monkeypatch.setattr(kafka, "RECORD_BYTES", 2_000)
    chance = random.Random(7)
    chain = open_chain(tmp_path)
    topic = KafkaTopic.open(place)
    follower = Follower(OwnChain(chain), topic)
    for number in range(2):
        for batch in Scenario(chain, ALL_VERSIONS, number).batches():
            in_key_block = chance.randint(0, len(batch))
            mine(chain, batch[:in_key_block])
            for transaction in batch[in_key_block:]:
                add_microblock(chain, transaction)
                if chance.random() < 0.5:
                    follower.step()
            if chance.random() < 0.15:
                mine(chain)
                with monkeypatch.context() as broken:
                    broken.setattr(kafka, "_place", broken_off)
                    with pytest.raises(DatabaseAway, match="in the middle"):
                        catch_up(follower)
                before = topic
                topic = KafkaTopic.open(place)
                follower = Follower(OwnChain(chain), topic)
                before.close()
        chain.rollback(max(1, chain.height - chance.choice((2, 5, 15))))
    catch_up(follower)
    topic.close()
    assert folded(records(place)) == expected(chain)
    chain.store.close()


def broken_off(_line: object) -> object:
    raise OSError("broken off in the middle of a transaction")


@pytest.mark.parametrize("waiting", [False, True], ids=["for all", "for each"])
def test_the_newer_of_two_writes(
    tmp_path: Path, place: Place, monkeypatch: pytest.MonkeyPatch, waiting: bool
) -> None:
    """The older one hears of it after its records, or while it sends them: the broker is fast."""
    chain = open_chain(tmp_path)
    for _ in range(3):
        mine(chain)
    with (
        contextlib.closing(KafkaTopic.open(place)) as older,
        contextlib.closing(KafkaTopic.open(place)) as newer,
    ):
        with monkeypatch.context() as patch:
            if waiting:
                patch.setattr(AIOKafkaProducer, "send", answered)
            with pytest.raises(DatabaseProblem, match="another export writes to the topic"):
                Follower(OwnChain(chain), older).step()
        catch_up(Follower(OwnChain(chain), newer))
    assert folded(records(place)) == expected(chain)
    chain.store.close()


_send = AIOKafkaProducer.send


async def answered(producer: AIOKafkaProducer, *record: Any, **named: Any) -> Any:
    """Send a record, and return when the broker has answered."""
    answer = await _send(producer, *record, **named)
    await asyncio.wait([answer])
    return answer


def test_a_broker_that_goes_away_is_told(
    tmp_path: Path, place: Place, broker: Broker, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The export must not wait for it without end, and without a word."""
    chain = open_chain(tmp_path)
    topic = KafkaTopic.open(place)
    follower = Follower(OwnChain(chain), topic)
    catch_up(follower)
    mine(chain)
    # Only now: a busy machine may need longer than this for what has to come off.
    monkeypatch.setattr(kafka, "_SECONDS", 1)
    monkeypatch.setattr(kafka, "_END_SECONDS", 0.2)
    broker.pause()
    try:
        with pytest.raises(DatabaseAway, match="Kafka at"):
            catch_up(follower)
        topic.close()
    finally:
        broker.go_on()
    monkeypatch.undo()
    again = KafkaTopic.open(place)
    catch_up(Follower(OwnChain(chain), again))
    again.close()
    assert folded(records(place)) == expected(chain)
    chain.store.close()


def test_a_broker_that_is_not_there() -> None:
    with pytest.raises(DatabaseAway, match="Kafka at"):
        KafkaTopic.open(Place(f"127.0.0.1:{free_port()}", "chain"))


def test_the_command_is_killed_and_goes_on(tmp_path: Path, place: Place) -> None:
    chain = open_chain(tmp_path / "data")
    for number in range(4):
        for batch in Scenario(chain, ALL_VERSIONS, number).batches():
            mine(chain, batch)
        for _ in range(150):
            mine(chain)
    found = expected(chain)
    chain.store.close()
    arguments = (
        *("export", "kafka", "--brokers", place.servers, "--topic", place.topic),
        *("--data-dir", tmp_path, "--network", DEVNET.name),
    )
    for _ in range(2):
        # After the first step, or after all of them.
        with started(*arguments, until="height ") as program:
            program.kill()
    done = run(*arguments, "--once")
    assert done.returncode == 0, done.stdout + done.stderr
    assert folded(records(place)) == found
