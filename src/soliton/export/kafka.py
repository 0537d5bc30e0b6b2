"""The chain in a Kafka topic, exactly once, with the broker's transactions.

The topic has one partition with the lines of ``ndjson``: a block, what it has grown by, or a
rollback. A second topic with positions is written in the same transactions; an export that starts
reads it to resume. A second export to the same topic takes over: the broker then rejects the first.

What lives here: records, transactions, finding the position. What does not: lines (``ndjson``).
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import ssl
from collections.abc import Coroutine, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeVar

import msgspec

from soliton.export.errors import AnotherExport, DatabaseAway, DatabaseProblem, WrongChain
from soliton.export.ndjson import encode_json, step_lines
from soliton.export.steps import Position, Step, Stored
from soliton.export.trail import MAX_KEPT, Trail
from soliton.storage.topics import MultiplePartitions, create_topics, ignore_lost_errors

if TYPE_CHECKING:
    from aiokafka import AIOKafkaProducer

POSITIONS: Final = ".positions"
"""Suffix of the topic of positions."""
RECORD_BYTES: Final = 512 * 1024
"""Approximate limit on the transactions in a record; brokers accept 1 MiB."""
_CLIENT_BYTES: Final = 1_000_000
_SECONDS: Final = 30
_END_SECONDS: Final = 5
"""The time to end a transaction or the connections: for a broker that is away the library waits
without end.
"""
_READ_MS: Final = 500
_READ_COUNT: Final = 2_000
_PARTITION: Final = 0

_log = logging.getLogger(__name__)
T = TypeVar("T")


class Broker(NamedTuple):
    """The topic's broker: ``servers`` are host:port separated by commas; ``protocol`` is Kafka's
    security protocol; ``replicas`` is for a topic that has to be created.
    """

    servers: str
    topic: str
    protocol: str = "PLAINTEXT"
    mechanism: str = "PLAIN"
    user: str = ""
    password: str = ""
    ca_file: Path | None = None
    replicas: int = 1

    def options(self) -> dict[str, Any]:
        """Return the options of the library's clients."""
        options: dict[str, Any] = {
            "bootstrap_servers": self.servers,
            "security_protocol": self.protocol,
            "request_timeout_ms": _SECONDS * 1_000,
        }
        if self.protocol.endswith("SSL"):
            options["ssl_context"] = ssl.create_default_context(cafile=self.ca_file)
        if self.protocol.startswith("SASL"):
            options |= {
                "sasl_mechanism": self.mechanism,
                "sasl_plain_username": self.user,
                "sasl_plain_password": self.password,
            }
        return options


class _Line(msgspec.Struct):
    """A position: a line with only the ids of its transactions."""

    event: str
    height: int
    id: str
    count: int
    key: str | None = None
    ids: list[str] = []


_decode: Final = msgspec.json.Decoder(_Line).decode


class KafkaTopic:
    """An open topic, as a sink."""

    def __init__(self, broker: Broker) -> None:
        """See ``open``."""
        self._broker = broker
        self._runner = asyncio.Runner()
        self._producer: AIOKafkaProducer | None = None
        self._trail = Trail()

    @classmethod
    def open(cls, broker: Broker) -> KafkaTopic:
        """Connect, create missing topics, and find the position.

        Raises ``DatabaseAway``, ``DatabaseProblem`` or ``WrongChain``.
        """
        made = cls(broker)
        try:
            made._run(made._begin())
        except BaseException:
            made.close()
            raise
        return made

    def close(self) -> None:
        """Disconnect from the broker."""
        producer, self._producer = self._producer, None
        if producer is not None:
            with contextlib.suppress(DatabaseAway, DatabaseProblem, AnotherExport):
                self._run(_stop(producer))
        self._runner.close()

    def idle(self) -> None:
        """Nothing to do."""

    def position(self) -> Position:
        """See ``Sink``."""
        return self._trail.position()

    def ids(self, top: int, count: int) -> list[Stored]:
        """See ``Sink``."""
        return self._trail.ids(top, count)

    def write(self, step: Step, before: Position) -> Position:
        """Write the records of a step in one transaction; raises ``DatabaseAway``."""
        del before
        self._run(self._write(step))
        return self.position()

    def _run(self, work: Coroutine[Any, Any, T]) -> T:
        with _errors(self._broker):
            return self._runner.run(work)

    # --- writing ----------------------------------------------------------------------------------

    async def _write(self, step: Step) -> None:
        from aiokafka.errors import IllegalOperation

        producer = self._producer
        assert producer is not None
        sent: list[asyncio.Future[Any]] = []
        try:
            async with asyncio.timeout(_SECONDS * 2):
                await producer.begin_transaction()
                try:
                    await self._send(producer, step, sent)
                except IllegalOperation:
                    # The transaction has ended in between: records sent before have the cause.
                    await asyncio.gather(*sent)
                    raise
                await asyncio.gather(*sent)
        except BaseException:
            await _abort(producer)
            raise
        async with asyncio.timeout(_SECONDS * 2):
            await producer.commit_transaction()

    async def _send(
        self, producer: AIOKafkaProducer, step: Step, sent: list[asyncio.Future[Any]]
    ) -> None:
        """Send the records of a step; ``sent`` receives what the broker answers to each."""
        topic = self._broker.topic
        for whole in step_lines(step, self._trail):
            key = str(whole["height"]).encode()
            for line in _parts(whole):
                place = _decode(encode_json(_place(line)))
                for name, value in ((topic, line), (topic + POSITIONS, place)):
                    answer = await producer.send(
                        name, encode_json(value), key=key, partition=_PARTITION
                    )
                    sent.append(answer)
                # If the transaction fails, the export opens the topic again.
                self._follow(place)

    def _follow(self, line: _Line) -> None:
        """Move the position past a line."""
        if line.event == "rollback":
            self._trail.back(line.id, line.count)
        else:
            self._trail.append(line.height, line.id, line.count, line.key, line.ids)

    # --- opening ----------------------------------------------------------------------------------

    async def _begin(self) -> None:
        from aiokafka import AIOKafkaProducer

        logging.getLogger("aiokafka").setLevel(logging.CRITICAL)
        ignore_lost_errors(asyncio.get_running_loop())
        await self._prepare()
        # This aborts an open transaction of an earlier run.
        self._producer = AIOKafkaProducer(
            **self._broker.options(),
            transactional_id=f"soliton-{self._broker.topic}",
            transaction_timeout_ms=_SECONDS * 2 * 1_000,
            acks="all",
            max_batch_size=_CLIENT_BYTES,
            max_request_size=_CLIENT_BYTES * 4,
        )
        await self._producer.start()
        await self._read()

    async def _prepare(self) -> None:
        """Create missing topics; raises ``WrongChain`` for unsuitable ones."""
        names = [self._broker.topic, self._broker.topic + POSITIONS]
        try:
            await create_topics(self._broker.options(), names, self._broker.replicas)
        except MultiplePartitions as error:
            raise WrongChain(str(error)) from error

    async def _read(self) -> None:
        """Find the position, from the last records of the topic of positions."""
        from aiokafka import AIOKafkaConsumer, TopicPartition

        place = TopicPartition(self._broker.topic + POSITIONS, _PARTITION)
        consumer = AIOKafkaConsumer(
            **self._broker.options(),
            enable_auto_commit=False,
            isolation_level="read_committed",
        )
        await consumer.start()
        try:
            consumer.assign([place])
            end = (await consumer.end_offsets([place]))[place]
            begin = (await consumer.beginning_offsets([place]))[place]
            # Each transaction is followed by a control record of the broker.
            consumer.seek(place, max(begin, end - 2 * MAX_KEPT))
            while await consumer.position(place) < end:
                found = await consumer.getmany(timeout_ms=_READ_MS, max_records=_READ_COUNT)
                for record in found.get(place, ()):
                    self._follow_known(record.value or b"")
        finally:
            await consumer.stop()

    def _follow_known(self, value: bytes) -> None:
        try:
            line = _decode(value)
        except msgspec.DecodeError as error:
            name = self._broker.topic + POSITIONS
            raise WrongChain(f"the topic {name} has records other than positions") from error
        with contextlib.suppress(IndexError):
            # A rollback to a row before those that were read has no effect.
            self._follow(line)


async def _abort(producer: AIOKafkaProducer) -> None:
    """End a transaction, so that readers need not wait for its end, unless the broker is away:
    then the next export to the topic ends it.
    """
    from aiokafka.errors import IllegalOperation, KafkaError

    # The library asserts that there is something to abort.
    with contextlib.suppress(KafkaError, IllegalOperation, TimeoutError, AssertionError):
        async with asyncio.timeout(_END_SECONDS):
            await producer.abort_transaction()


async def _stop(producer: AIOKafkaProducer) -> None:
    try:
        async with asyncio.timeout(_END_SECONDS):
            await producer.stop()
    except BaseException:
        # A broker that is away does not answer: the library keeps its connections then.
        async with asyncio.timeout(_END_SECONDS):
            await producer.client.close()
        raise


def _place(line: dict[str, Any]) -> dict[str, object]:
    """Return the position of a line."""
    place = {name: line[name] for name in ("event", "height", "id", "count")}
    if "transactions" in line:
        place |= {"key": line["key"], "ids": [each["id"] for each in line["transactions"]]}
    return place


def _parts(line: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Split a long line: first the block, then what it has grown by."""
    transactions = line.get("transactions")
    if not transactions:
        yield line
        return
    count = line["count"] - len(transactions)
    part: list[object] = []
    size = 0
    for each in transactions:
        length = len(encode_json(each))
        if part and size + length > RECORD_BYTES:
            yield line | {"count": count, "transactions": part}
            part, size = [], 0
        part.append(each)
        size += length
        count += 1
    yield line | {"count": count, "transactions": part}


@contextlib.contextmanager
def _errors(broker: Broker) -> Iterator[None]:
    """Convert the library's exceptions."""
    from aiokafka.errors import (
        AuthenticationFailedError,
        IllegalOperation,
        InvalidProducerEpoch,
        KafkaError,
        MessageSizeTooLargeError,
        ProducerFenced,
        TopicAuthorizationFailedError,
    )

    try:
        yield
    except (ProducerFenced, InvalidProducerEpoch) as error:
        raise DatabaseProblem(
            f"another export writes to the topic {broker.topic} now: this one ends"
        ) from error
    except (
        AuthenticationFailedError,
        TopicAuthorizationFailedError,
        MessageSizeTooLargeError,
    ) as error:
        raise DatabaseProblem(f"Kafka at {broker.servers}: {error}") from error
    except (KafkaError, IllegalOperation, OSError, TimeoutError) as error:
        text = str(error) or type(error).__name__
        raise DatabaseAway(f"Kafka at {broker.servers}: {text}") from error
