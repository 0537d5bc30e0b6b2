"""Where a matcher keeps its commands and snapshots, as its settings say.

What lives here: choosing the form of the journal and the places of the files. What does not: the
forms (``journal``), and the orders database, which the service opens itself.
"""

from __future__ import annotations

from soliton.matcher.journal import Journal
from soliton.matcher.journal.embedded import EmbeddedJournal, EmbeddedSettings, Sync
from soliton.matcher.journal.snapshots import SnapshotStore
from soliton.matcher.recovery import identity_of
from soliton.matcher.settings import KAFKA, MatcherSettings


def open_journal(settings: MatcherSettings) -> Journal:
    """The journal of a matcher. A local one is opened at once, and made where it is missing; Kafka
    is asked when the journal is used. Raises ``JournalProblem`` or ``WrongJournal``.
    """
    queue = settings.queue
    identity = identity_of(settings)
    if queue.type == KAFKA:
        from soliton.matcher.journal.kafka import KafkaJournal, KafkaSettings, Role
        from soliton.matcher.journal.topic import TopicAddress

        address = TopicAddress(queue.servers, queue.topic, queue.delivery_ms / 1000, queue.replicas)
        kafka = KafkaSettings(address, queue.group, Role(queue.role), queue.lease_ms / 1000)
        return KafkaJournal(kafka, identity, settings.clock)
    embedded = EmbeddedSettings(
        sync=Sync(queue.sync),
        sync_interval=queue.sync_interval_ms / 1000,
        segment_bytes=queue.segment_bytes,
    )
    return EmbeddedJournal(settings.directory / "journal", identity, settings.clock, embedded)


def open_snapshots(settings: MatcherSettings) -> SnapshotStore:
    """The snapshots of a matcher; the directory is made. Raises ``JournalProblem``."""
    return SnapshotStore(settings.directory / "snapshots", identity_of(settings))
