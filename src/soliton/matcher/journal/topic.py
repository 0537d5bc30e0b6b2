"""A Kafka topic with one partition, used as a log: append to its end, read from an offset.

What lives here: the use of the client library, and translating its errors. What does not: creating
the topic (``storage.topics``), the meaning of entries (``leadership``), when to write (``kafka``).

The client waits for all in-sync replicas and is idempotent: the broker drops duplicate writes.
"""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Awaitable, Sequence
from typing import TYPE_CHECKING, Final

import msgspec

from soliton.errors import InvariantBroken
from soliton.matcher.journal.errors import JournalProblem, WrongJournal
from soliton.matcher.log_throttle import throttle
from soliton.storage.topics import MultiplePartitions, create_topics, ignore_lost_errors

if TYPE_CHECKING:
    from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition

WRITE_BYTES: Final = 512 * 1024
"""The maximum size of a write; brokers accept 1 MiB by default."""
WRITE_COUNT: Final = 4_096
_CLIENT_BYTES: Final = 1_000_000
_READ_BYTES: Final = 4 * 1024 * 1024
_READ_COUNT: Final = 4_096
_REQUEST_SECONDS: Final = 10
_READ_WAIT_MS: Final = 100
"""How long the broker delays a read that finds nothing. Since it processes the requests of a
connection in order, requests for the ends of the topic may be delayed as long.
"""
_PARTITION: Final = 0


class BrokerProblem(JournalProblem):
    """The broker is unreachable, or rejects a request; a write in progress may have arrived."""


class OutOfRange(JournalProblem):
    """The broker does not have the entries at the read position (any more, or yet)."""


class Security(msgspec.Struct, frozen=True):
    """``events-queue.kafka.security``: encryption and authentication, in Kafka's terms.

    With or without TLS (``SSL``), with a user (``SASL``) or without; ``ca_file`` has the
    certificates that TLS trusts (empty: those of the system). The ``repr`` omits the password.
    """

    protocol: str = "PLAINTEXT"
    mechanism: str = "PLAIN"
    user: str = ""
    password: str = ""
    ca_file: str = ""

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.protocol!r}, {self.mechanism!r}, {self.user!r})"

    def options(self) -> dict[str, object]:
        """The arguments of the client library. Raises ``OSError`` for an unusable file."""
        options: dict[str, object] = {"security_protocol": self.protocol}
        if self.protocol.endswith("SSL"):
            options["ssl_context"] = ssl.create_default_context(cafile=self.ca_file or None)
        if self.protocol.startswith("SASL"):
            options |= {
                "sasl_mechanism": self.mechanism,
                "sasl_plain_username": self.user,
                "sasl_plain_password": self.password,
            }
        return options


class TopicAddress(msgspec.Struct, frozen=True):
    """The address of a topic: ``servers`` are host:port, separated by commas; ``delivery_seconds``
    is the timeout for delivering a command; ``replicas`` is the replication factor of a topic that
    has to be created.
    """

    servers: str
    topic: str
    delivery_seconds: float = 15.0
    replicas: int = 1
    security: Security = Security()

    @property
    def write_seconds(self) -> float:
        """The timeout of one write: commands that arrive during a write wait for the next one."""
        return self.delivery_seconds / 2

    def options(self) -> dict[str, object]:
        """The arguments common to all clients of the library."""
        return {"bootstrap_servers": self.servers, **self.security.options()}


class Topic:
    """A connection to the log. Use from one event loop, by one reader and one writer."""

    def __init__(
        self, address: TopicAddress, consumer: AIOKafkaConsumer, producer: AIOKafkaProducer | None
    ) -> None:
        """See ``connect``."""
        from aiokafka import TopicPartition

        self._address = address
        self._consumer = consumer
        self._producer = producer
        self._partition = TopicPartition(address.topic, _PARTITION)
        self.position = 0
        """The offset of the next read."""

    @staticmethod
    async def connect(address: TopicAddress, *, writing: bool = True) -> Topic:
        """Connect, and create the topic if it is missing.

        Raises ``BrokerProblem``, and ``WrongJournal`` for a topic with several partitions.
        """
        from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition
        from aiokafka.errors import KafkaError

        throttle("aiokafka")
        ignore_lost_errors(asyncio.get_running_loop())
        started: list[AIOKafkaConsumer | AIOKafkaProducer] = []
        try:
            await _prepare(address)
            consumer = AIOKafkaConsumer(
                **address.options(),
                enable_auto_commit=False,
                auto_offset_reset="none",
                max_partition_fetch_bytes=_READ_BYTES,
                fetch_max_wait_ms=_READ_WAIT_MS,
                request_timeout_ms=_REQUEST_SECONDS * 1000,
                retry_backoff_ms=100,
            )
            started.append(consumer)
            consumer.assign([TopicPartition(address.topic, _PARTITION)])
            await consumer.start()
            producer = None
            if writing:
                producer = AIOKafkaProducer(
                    **address.options(),
                    acks="all",
                    enable_idempotence=True,
                    max_batch_size=_CLIENT_BYTES,
                    request_timeout_ms=int(address.write_seconds * 1000),
                    retry_backoff_ms=100,
                )
                started.append(producer)
                await producer.start()
        except BaseException as error:
            for client in started:
                await client.stop()
            if isinstance(error, KafkaError | OSError):
                raise BrokerProblem(f"Kafka at {address.servers}: {error}") from error
            raise
        return Topic(address, consumer, producer)

    async def start(self) -> int:
        """The first available offset. Raises ``BrokerProblem``."""
        found = await self._bounded(self._consumer.beginning_offsets([self._partition]))
        return int(found[self._partition])

    async def end(self) -> int:
        """The offset of the next write. Raises ``BrokerProblem``."""
        found = await self._bounded(self._consumer.end_offsets([self._partition]))
        return int(found[self._partition])

    async def _bounded(
        self, request: Awaitable[dict[TopicPartition, int]]
    ) -> dict[TopicPartition, int]:
        from aiokafka.errors import KafkaError

        try:
            async with asyncio.timeout(_REQUEST_SECONDS):
                return await request
        except (KafkaError, TimeoutError) as error:
            raise BrokerProblem(f"Kafka does not tell the ends of the topic: {error}") from error

    def seek(self, offset: int) -> None:
        """Continue reading at an offset."""
        self._consumer.seek(self._partition, offset)
        self._consumer.resume(self._partition)
        self.position = offset

    def pause(self) -> None:
        """Stop reading until ``seek``."""
        self._consumer.pause(self._partition)

    async def read(self, seconds: float) -> list[tuple[int, bytes]]:
        """The next entries with their offsets, or an empty list after a timeout.

        Raises ``OutOfRange`` and ``BrokerProblem``.
        """
        from aiokafka.errors import KafkaError, OffsetOutOfRangeError

        try:
            found = await self._consumer.getmany(
                timeout_ms=int(seconds * 1000), max_records=_READ_COUNT
            )
        except OffsetOutOfRangeError as error:
            raise OutOfRange(f"Kafka does not have offset {self.position}") from error
        except KafkaError as error:
            raise BrokerProblem(f"Kafka does not let us read: {error}") from error
        entries = [
            (message.offset, message.value or b"")
            for messages in found.values()
            for message in messages
        ]
        if entries:
            self.position = entries[-1][0] + 1
        return entries

    async def write(self, values: Sequence[bytes]) -> int:
        """Append entries in one batch; returns the offset of the first.

        Raises ``BrokerProblem``; even then they may have arrived, or arrive later.
        """
        from aiokafka.errors import KafkaError

        if self._producer is None:
            raise InvariantBroken("this connection was opened for reading")
        batch = self._producer.create_batch()
        for value in values:
            if batch.append(key=None, value=value, timestamp=None) is None:
                raise InvariantBroken("more than one write can hold")
        batch.close()
        try:
            async with asyncio.timeout(self._address.write_seconds):
                sent = await self._producer.send_batch(
                    batch, self._address.topic, partition=_PARTITION
                )
                stored = await sent
        except (KafkaError, OSError, TimeoutError) as error:
            reason = str(error) or type(error).__name__
            raise BrokerProblem(f"Kafka did not confirm a write: {reason}") from error
        if stored.offset < 0:
            # A duplicate of a write whose offset the broker no longer knows.
            raise BrokerProblem("Kafka confirmed a write without telling where it is")
        return int(stored.offset)

    async def close(self) -> None:
        """Close the connections once pending writes have arrived or timed out."""
        try:
            if self._producer is not None:
                await self._producer.stop()
        finally:
            await self._consumer.stop()


async def _prepare(address: TopicAddress) -> None:
    """Create the topic if it is missing; raises ``WrongJournal`` if it has several partitions."""
    try:
        await create_topics(address.options(), [address.topic], address.replicas)
    except MultiplePartitions as error:
        raise WrongJournal(str(error)) from error
