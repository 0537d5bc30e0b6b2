"""A matcher that reads a shared journal, and may come to lead.

What lives here: entering the log, judging its entries, and when to claim. What does not: what
claims mean (``leadership``), and writing (``kafka``).
"""

from __future__ import annotations

import asyncio
import logging
import secrets
from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Final

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
    """What a matcher does about leading."""

    AUTO = "auto"
    """Claims when nobody leads, or the master has been silent for a lease."""
    STANDBY = "standby"
    """Never claims."""
    MASTER = "master"
    """Deposes the master when it starts, whoever that is; later as ``AUTO``."""


@dataclass(frozen=True, slots=True)
class KafkaSettings:
    """``name`` is that of this matcher, different from those of the others."""

    address: TopicAddress
    name: str
    role: Role = Role.AUTO
    lease_seconds: float = 10.0
    drop_old: bool = False
    """Whether ``truncate_before`` deletes entries, which may be needed by a standby that is late.
    """
    rules: bytes = b""
    """What stands for its rules of trading; without, nobody's are compared."""


class Candidate:
    """One process among those that share a topic."""

    def __init__(self, settings: KafkaSettings, identity: bytes) -> None:
        """``identity`` (32 bytes) stands for the matcher."""
        self._settings = settings
        self._identity = identity
        self._started_anew = True
        self._heard = 0.0
        self.author = b""
        self.first_offset = 0
        """The lowest offset that the broker kept when it was asked last."""

    def begin(self) -> None:
        """Stand by from now on, under a new name for claims."""
        self.author = secrets.token_bytes(AUTHOR_BYTES)
        self._heard = asyncio.get_running_loop().time()

    async def enter(self, topic: Topic, from_offset: int) -> Terms:
        """Go to where ``from_offset`` is read next, knowing the term at that place."""
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
        """The commands among entries, those that happened. From the offset ``now`` on they are
        news: then whoever leads must have the same rules. Raises ``UnequalRules``.
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
        own = self._settings
        if not isinstance(entry, Claim | Beat) or not (entry.rules and own.rules):
            return
        if entry.rules != own.rules:
            raise UnequalRules(
                f"{entry.name} leads on this topic with other settings of trading than {own.name} "
                "has (order fees, matching rules, offsets, restrictions): they must be the same"
            )

    def is_ours(self, terms: Terms) -> bool:
        """Whether this process is the master."""
        return terms.master is not None and terms.master.author == self.author

    async def claim(self, topic: Topic, terms: Terms) -> Claim | None:
        """The claim that is to be made now, if any."""
        name = self._settings.name
        role = self._settings.role
        # Both hold once: two processes that want the same place shall not depose each other again
        # and again. A matcher that was started anew takes its own place at once.
        ordered = self._started_anew and role is Role.MASTER and terms.term > 0
        own_place = self._started_anew and terms.name == name
        now = asyncio.get_running_loop().time()
        silent = now - self._heard
        lease = self._settings.lease_seconds
        if role is Role.STANDBY:
            return None
        if not (ordered or terms.vacant or own_place or silent >= lease / BEATS_PER_LEASE):
            return None
        # Silence counts only while the broker is there to speak, and all is read that it has said.
        if not await self._all_is_read(topic):
            self._heard = asyncio.get_running_loop().time()
            return None
        if not (ordered or terms.vacant or own_place or silent >= lease):
            return None
        self._started_anew = False
        return Claim(
            *(terms.term + 1, terms.last_valid, ordered, self._identity, self.author, name),
            self._settings.rules,
        )

    async def _all_is_read(self, topic: Topic) -> bool:
        """Whether the broker says soon that there is nothing left to read."""
        try:
            async with asyncio.timeout(max(1.0, self._settings.lease_seconds / BEATS_PER_LEASE)):
                return await topic.end() == topic.position
        except (BrokerProblem, TimeoutError):
            return False
