"""Opening a matcher's journal and snapshots, by its settings.

What lives here: choosing the kind of journal and the paths of the files. What does not: the kinds
(``journal``), and the orders database, which the service opens itself.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Final

from soliton.matcher.journal import Journal, Record
from soliton.matcher.journal.embedded import EmbeddedJournal, EmbeddedSettings, Sync, stored
from soliton.matcher.journal.errors import WrongJournal
from soliton.matcher.journal.snapshots import SnapshotStore
from soliton.matcher.quarantine import Quarantine
from soliton.matcher.recovery import identity_of
from soliton.matcher.rules_hash import rules_hash
from soliton.matcher.settings import KAFKA, MatcherSettings

if TYPE_CHECKING:
    from soliton.matcher.journal.kafka import KafkaJournal

JOURNAL_NAME: Final = "journal"
SNAPSHOTS_NAME: Final = "snapshots"


def open_journal(settings: MatcherSettings) -> Journal:
    """The journal of a matcher. A local one is opened now, and created if missing; Kafka is
    contacted when the journal is used. Raises ``JournalProblem`` or ``WrongJournal``.
    """
    queue = settings.queue
    if queue.type == KAFKA:
        return _kafka_journal(settings)
    embedded = EmbeddedSettings(
        sync=Sync(queue.sync),
        sync_interval=queue.sync_interval_ms / 1000,
        segment_bytes=queue.segment_bytes,
    )
    directory = settings.directory / JOURNAL_NAME
    return EmbeddedJournal(directory, identity_of(settings), settings.clock, embedded)


def _kafka_journal(settings: MatcherSettings) -> KafkaJournal:
    # An optional dependency, which a local journal does not need.
    try:
        import aiokafka  # noqa: F401 - only whether it is there
    except ImportError:
        raise WrongJournal(
            "events-queue.type = kafka needs the package aiokafka: pip install aiokafka, or "
            "`make setup EXTRAS=kafka` in a checkout"
        ) from None
    from soliton.matcher.journal.candidate import KafkaSettings, Role
    from soliton.matcher.journal.kafka import KafkaJournal
    from soliton.matcher.journal.topic import TopicAddress

    queue = settings.queue
    address = TopicAddress(
        servers=queue.servers,
        topic=queue.topic,
        delivery_seconds=queue.delivery_ms / 1000,
        replicas=queue.replicas,
        security=queue.security,
    )
    kafka = KafkaSettings(
        *(address, queue.group, Role(queue.role), queue.lease_ms / 1000),
        rules=rules_hash(settings.trading),
    )
    return KafkaJournal(kafka, identity_of(settings), settings.clock)


def open_snapshots(settings: MatcherSettings) -> SnapshotStore:
    """The snapshots of a matcher; creates the directory. Raises ``JournalProblem``."""
    return SnapshotStore(settings.directory / SNAPSHOTS_NAME, identity_of(settings))


@asynccontextmanager
async def reading(
    settings: MatcherSettings,
) -> AsyncIterator[tuple[int, AsyncIterator[list[Record]]]]:
    """The first offset of a matcher's journal, and its commands up to now without those in
    quarantine. Read-only; the matcher may be running. Raises ``JournalProblem``, ``WrongJournal``
    or ``DatabaseProblem``.
    """
    quarantine = Quarantine(settings.directory)
    if settings.queue.type != KAFKA:
        first, batches = stored(settings.directory / JOURNAL_NAME, identity_of(settings))
        yield first, _without(quarantine, _one_by_one(batches))
        return
    journal = _kafka_journal(settings)
    try:
        first = await journal.earliest()
        yield first, _without(quarantine, journal.records(first))
    finally:
        await journal.close()


async def _without(
    quarantine: Quarantine, batches: AsyncIterator[list[Record]]
) -> AsyncIterator[list[Record]]:
    async for batch in batches:
        yield [each for each in batch if not quarantine.holds(each.offset, each.payload)]


async def _one_by_one(batches: Iterator[list[Record]]) -> AsyncIterator[list[Record]]:
    for batch in batches:
        yield batch
