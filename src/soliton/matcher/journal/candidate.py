"""A matcher that reads a shared journal, and is a candidate for its leadership.

What lives here: starting to read the log, evaluating its entries, and when to claim. What does not:
the meaning of claims (``leadership``), and writing (``kafka``).
"""

from __future__ import annotations

import asyncio
import logging
import secrets
from collections.abc import Sequence
from enum import Enum
from typing import Final

import msgspec

from soliton.matcher.journal import Record
from soliton.matcher.journal.errors import JournalGap, UnequalRules
from soliton.matcher.journal.leadership import (
    AUTHOR_BYTES,
    Beat,
    Claim,
    Command,
    Entry,
    Terms,
    Verdict,
    decode,
)
from soliton.matcher.journal.topic import BrokerProblem, Topic, TopicAddress

BEATS_PER_LEASE: Final = 3

_log = logging.getLogger(__name__)


class Role(Enum):
    """When a matcher claims the leadership."""

    AUTO = "auto"
    """If there is no master, or the master has been silent for a lease."""
    STANDBY = "standby"
    """Never."""
    MASTER = "master"
    """At its start, deposing any master; later as ``AUTO``."""


class KafkaSettings(msgspec.Struct, frozen=True):
    """``name`` is the matcher's, unique among those that share the topic."""

    address: TopicAddress
    name: str
    role: Role = Role.AUTO
    lease_seconds: float = 10.0
    rules: bytes = b""
    """The hash of the trading rules; if empty, rules are not compared."""


class Candidate:
    """One of the processes that share a topic."""

    def __init__(self, settings: KafkaSettings, identity: bytes) -> None:
        """``identity`` (32 bytes) identifies the matcher."""
        self._settings = settings
        self._identity = identity
        self._restarted = True
        self._heard = 0.0
        self.author = b""
        self.first_offset = 0
        """The lowest offset on the broker, as of the last request."""

    def begin(self) -> None:
        """Start as a standby, with a new id for claims."""
        self.author = secrets.token_bytes(AUTHOR_BYTES)
        self._heard = asyncio.get_running_loop().time()

    async def enter(self, topic: Topic, from_offset: int) -> Terms:
        """Seek to ``from_offset`` and return the state of the terms there."""
        terms = Terms(self._identity)
        first, end = await topic.start(), await topic.end()
        self.first_offset = first
        before = from_offset - 1
        if (before < 0 and first > 0) or (before >= 0 and not first <= before < end):
            raise JournalGap(from_offset, first, end - 1)
        topic.seek(max(before, 0))
        if before < 0:
            return terms
        entries: list[tuple[int, bytes]] = []
        while not entries:
            entries = await topic.read(1.0)
        offset, value = entries[0]
        entry = decode(value)
        if offset != before or not isinstance(entry, Command):
            raise JournalGap(from_offset, offset, end - 1)
        terms.resume(offset, entry)
        topic.seek(from_offset)
        return terms

    def judge(
        self, terms: Terms, entries: Sequence[tuple[int, bytes]], now: int | None = None
    ) -> list[Record]:
        """The valid commands among entries. From the offset ``now`` on entries are current: their
        author must have the same rules. Raises ``UnequalRules``.
        """
        commands = []
        for offset, value in entries:
            entry = decode(value)
            verdict = terms.take(offset, entry)
            if verdict is not Verdict.VOID:
                if now is not None and offset >= now:
                    self._check_rules(entry)
                self._heard = asyncio.get_running_loop().time()
            if verdict is Verdict.COMMAND and isinstance(entry, Command):
                commands.append(Record(offset, entry.timestamp, entry.payload))
            elif verdict is Verdict.TERM_BEGAN and terms.master is not None:
                _log.info("term %d: %s leads", terms.term, terms.master.name)
        return commands

    def _check_rules(self, entry: Entry) -> None:
        settings = self._settings
        if not isinstance(entry, Claim | Beat) or not (entry.rules and settings.rules):
            return
        if entry.rules != settings.rules:
            raise UnequalRules(
                f"{entry.name} leads on this topic with other settings of trading than "
                f"{settings.name} has (order fees, matching rules, offsets, restrictions): they "
                "must be the same"
            )

    def is_ours(self, terms: Terms) -> bool:
        """Whether this process is the master."""
        return terms.master is not None and terms.master.author == self.author

    async def claim(self, topic: Topic, terms: Terms) -> Claim | None:
        """The claim to make now, if any."""
        name = self._settings.name
        role = self._settings.role
        # Both apply only once after a start, so that two processes do not depose each other
        # repeatedly. A restarted master reclaims its own leadership immediately.
        ordered = self._restarted and role is Role.MASTER and terms.term > 0
        was_master = self._restarted and terms.name == name
        now = asyncio.get_running_loop().time()
        silent = now - self._heard
        lease = self._settings.lease_seconds
        if role is Role.STANDBY:
            return None
        if not (ordered or terms.vacant or was_master or silent >= lease / BEATS_PER_LEASE):
            return None
        # Silence counts only if the broker responds and all of its entries were read.
        if not await self._all_is_read(topic):
            self._heard = asyncio.get_running_loop().time()
            return None
        if not (ordered or terms.vacant or was_master or silent >= lease):
            return None
        self._restarted = False
        return Claim(
            *(terms.term + 1, terms.last_valid, ordered, self._identity, self.author, name),
            self._settings.rules,
        )

    async def _all_is_read(self, topic: Topic) -> bool:
        """Whether the broker confirms in time that there is nothing left to read."""
        try:
            async with asyncio.timeout(max(1.0, self._settings.lease_seconds / BEATS_PER_LEASE)):
                return await topic.end() == topic.position
        except (BrokerProblem, TimeoutError):
            return False
