"""The chain in a Kafka topic: exactly once, by transactions of the broker.

The topic has one partition and the lines of ``ndjson``: a block, what it has grown by, or which of
what came before no longer counts. Beside it stands a topic with positions, which is written in the
same transactions: who opens it reads there where the export is. A second export to the same topic
takes over, and the broker refuses the first from then on.

What lives here: records, transactions, finding the position. What does not: lines (``ndjson``).
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import ssl
from collections.abc import Callable, Coroutine, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeVar

import msgspec

from soliton.export.errors import AnotherExport, DatabaseAway, DatabaseProblem, WrongChain
from soliton.export.ndjson import encode_json, step_lines
from soliton.export.steps import Position, Step, Stored
from soliton.export.trail import MAX_KEPT, Trail
from soliton.storage.topics import MultiplePartitions, create_topics

if TYPE_CHECKING:
    from aiokafka import AIOKafkaProducer

POSITIONS: Final = ".positions"
"""What the name of the topic of positions ends with."""
RECORD_BYTES: Final = 512 * 1024
"""Transactions of a block that are put into one record, about; brokers take 1 MiB."""
_CLIENT_BYTES: Final = 1_000_000
_SECONDS: Final = 30
_READ_MS: Final = 500
_READ_COUNT: Final = 2_000
_PARTITION: Final = 0

_log = logging.getLogger(__name__)
T = TypeVar("T")


class Broker(NamedTuple):
    """Where the topic is: ``servers`` are host:port with commas between; ``protocol`` as Kafka
    calls it; a ``user`` has a password; a topic that has to be made gets so many ``replicas``.
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
        """What all clients of the library are told."""
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
    """A position: a line without what it tells of transactions but their ids."""

    event: str
    height: int
    id: str
    count: int
    key: str | None = None
    ids: list[str] = []


_decode: Final = msgspec.json.Decoder(_Line).decode


class KafkaTopic:
    """A topic that is written."""

    def __init__(self, broker: Broker) -> None:
        """See ``open``."""
        self._broker = broker
        self._runner = asyncio.Runner()
        self._producer: AIOKafkaProducer | None = None
        self._trail = Trail()

    @classmethod
    def open(cls, broker: Broker) -> KafkaTopic:
        """Connect, making the topics where they are missing, and find the position.

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
        """Let go of the broker."""
        producer, self._producer = self._producer, None
        if producer is not None:
            with contextlib.suppress(DatabaseAway, DatabaseProblem, AnotherExport):
                self._run(producer.stop())
        self._runner.close()

    def idle(self) -> None:
        """There is nothing to be made anew."""

    def position(self) -> Position:
        """Where the topic is."""
        return self._trail.position()

    def ids(self, top: int, count: int) -> list[Stored]:
        """The last rows up to a height, the highest first."""
        return self._trail.ids(top, count)

    def write(self, step: Step, before: Position) -> Position:
        """Write the records of a step, all or none; raises ``DatabaseAway``."""
        del before
        self._run(self._write(step))
        return self.position()

    def _run(self, work: Coroutine[Any, Any, T]) -> T:
        with _errors(self._broker):
            return self._runner.run(work)

    # --- writing ----------------------------------------------------------------------------------

    async def _write(self, step: Step) -> None:
        producer, topic = self._producer, self._broker.topic
        assert producer is not None
        async with asyncio.timeout(_SECONDS * 2), producer.transaction():
            sent = []
            for whole in step_lines(step, self._trail):
                key = str(whole["height"]).encode()
                for line in _parts(whole):
                    value = encode_json(line)
                    sent.append(await producer.send(topic, value, key=key, partition=_PARTITION))
                    place = _decode(encode_json(_place(line)))
                    value = encode_json(place)
                    sent.append(
                        await producer.send(topic + POSITIONS, value, key=key, partition=_PARTITION)
                    )
                    # Should the transaction fail, the export opens the topic anew.
                    self._follow(place)
            await asyncio.gather(*sent)

    def _follow(self, line: _Line) -> None:
        """Move on with a position."""
        if line.event == "rollback":
            self._trail.back(line.id, line.count)
        else:
            self._trail.append(line.height, line.id, line.count, line.key, line.ids)

    # --- opening ----------------------------------------------------------------------------------

    async def _begin(self) -> None:
        from aiokafka import AIOKafkaProducer

        await self._prepare()
        # One of an earlier run that is still open ends with this.
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
        """Make the topics unless they are there; raises ``WrongChain`` for those of others."""
        names = [self._broker.topic, self._broker.topic + POSITIONS]
        try:
            await create_topics(self._broker.options(), names, self._broker.replicas)
        except MultiplePartitions as error:
            raise WrongChain(str(error)) from error

    async def _read(self) -> None:
        """Find where the export is, in the last of the positions."""
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
            # Behind each transaction stands a mark of the broker.
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
            raise WrongChain(f"the topic {name} has something else than positions") from error
        with contextlib.suppress(IndexError):
            # A way back to what is older than all that was read is none.
            self._follow(line)


def _place(line: dict[str, Any]) -> dict[str, object]:
    """What the position needs of a line."""
    place = {name: line[name] for name in ("event", "height", "id", "count")}
    if "transactions" in line:
        place |= {"key": line["key"], "ids": [each["id"] for each in line["transactions"]]}
    return place


def _parts(line: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """A line as several, if it is long: first the block, then what it has grown by."""
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
    """Errors of the library as ours."""
    from aiokafka.errors import (
        AuthenticationFailedError,
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
    except (KafkaError, OSError, TimeoutError) as error:
        words = str(error) or type(error).__name__
        raise DatabaseAway(f"Kafka at {broker.servers}: {words}") from error


def opener(broker: Broker) -> Callable[[], KafkaTopic]:
    """What opens the topic again after trouble."""
    logging.getLogger("aiokafka").setLevel(logging.CRITICAL)
    return lambda: KafkaTopic.open(broker)
