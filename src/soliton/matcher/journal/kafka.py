"""The journal on Kafka: one ordered topic shared by several matchers.

All of them read it and keep the same books; one of them, the master, writes. The entries themselves
determine the master and which entries are valid (``leadership``). If the offset of a write directly
follows the last one that the master knows, there was no other writer, and its commands are valid
without reading them back; otherwise the master reads the entries in between first.

What lives here: standing by, writing, stepping down. What does not: when to claim (``candidate``),
and the client library (``topic``).
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from typing import Final

import msgspec

from soliton.matcher.journal import Position, Record, time_after
from soliton.matcher.journal.candidate import BEATS_PER_LEASE, Candidate, KafkaSettings
from soliton.matcher.journal.errors import JournalGap, JournalProblem, LeadershipLost
from soliton.matcher.journal.groups import Waiting
from soliton.matcher.journal.leadership import (
    NOBODY,
    Beat,
    Resignation,
    Terms,
    encode,
    encode_command,
)
from soliton.matcher.journal.topic import (
    WRITE_BYTES,
    WRITE_COUNT,
    BrokerProblem,
    OutOfRange,
    Topic,
)

RETRY_SECONDS: Final = 0.5
"""The pause between attempts to reach a broker."""
POLL_SECONDS: Final = 0.1
"""How long a standby waits for entries before it considers a claim."""
CLOSING_SECONDS: Final = 5.0
"""The timeout for closing connections at the end of the program."""

_log = logging.getLogger(__name__)


class _Term(msgspec.Struct):
    """A term of this process: ``next_offset`` is the known end of the log."""

    topic: Topic
    terms: Terms
    next_offset: int


class KafkaJournal:
    """A ``Journal`` on a Kafka topic. It leads after ``follow`` has ended."""

    def __init__(self, settings: KafkaSettings, identity: bytes, clock: Callable[[], int]) -> None:
        """``identity`` (32 bytes) identifies the matcher; ``clock`` returns milliseconds. Connects
        at the first call.
        """
        self._settings = settings
        self._clock = clock
        self._candidate = Candidate(settings, identity)
        self._waiting = Waiting()
        self._arrived = asyncio.Event()
        self._ended = asyncio.Event()
        self._ended.set()
        self._topic: Topic | None = None
        self._term: _Term | None = None
        self._leading_task: asyncio.Task[None] | None = None
        self._stopping = False
        self._closing: set[asyncio.Task[None]] = set()
        self._last_offset = NOBODY

    @property
    def first_offset(self) -> int:
        """The lowest offset on the broker, as of the last request."""
        return self._candidate.first_offset

    @property
    def last_offset(self) -> int:
        """The offset of the last known command."""
        return self._last_offset

    async def term_ended(self) -> None:
        """Wait until this process no longer leads."""
        await self._ended.wait()

    # --- reading ----------------------------------------------------------------------------------

    async def earliest(self) -> int:
        """The lowest offset from which the topic can be read. Raises ``BrokerProblem``."""
        topic = await Topic.connect(self._settings.address, writing=False)
        try:
            first = await topic.start()
        finally:
            await topic.close()
        # A reader that starts in the middle needs the entry before, for the term at that place.
        return first + 1 if first else 0

    async def records(self, from_offset: int) -> AsyncIterator[list[Record]]:
        """The commands from an offset to the end, over a separate connection."""
        topic = await Topic.connect(self._settings.address, writing=False)
        try:
            terms = await self._candidate.enter(topic, from_offset)
            end = await topic.end()
            while topic.position < end:
                commands = self._candidate.judge(terms, await topic.read(1.0))
                commands = [record for record in commands if record.offset < end]
                if commands:
                    yield commands
        except OutOfRange as error:
            raise JournalGap(from_offset, topic.position, topic.position) from error
        finally:
            await topic.close()

    async def follow(self, from_offset: int) -> AsyncIterator[list[Record]]:
        """Yield commands until this process leads; retries while the broker is unreachable."""
        await self._step_down()
        has_warned = False
        while True:
            try:
                self._topic = await Topic.connect(self._settings.address)
                has_warned = False
                async for batch in self._stand_by(self._topic, from_offset):
                    from_offset = batch[-1].offset + 1
                    yield batch
            except BrokerProblem as problem:
                self._disconnect()
                if not has_warned:
                    _log.warning("%s; trying again", problem)
                has_warned = True
                await asyncio.sleep(RETRY_SECONDS)
            else:
                return

    # --- standing by and claiming -----------------------------------------------------------------

    async def _stand_by(self, topic: Topic, from_offset: int) -> AsyncIterator[list[Record]]:
        """Yield commands until a claim of this process is valid."""
        terms = await self._candidate.enter(topic, from_offset)
        self._candidate.begin()
        claimed, now = NOBODY, await topic.end()
        while True:
            try:
                entries = await topic.read(POLL_SECONDS)
            except OutOfRange as error:
                ends = (await topic.start(), await topic.end())
                raise JournalGap(topic.position, *ends) from error
            commands = self._candidate.judge(terms, entries, now)
            if commands:
                self._last_offset = commands[-1].offset
                yield commands
            if self._candidate.is_ours(terms):
                self._begin_term(_Term(topic, terms, topic.position))
                return
            if topic.position > claimed:
                claim = await self._candidate.claim(topic, terms)
                if claim is not None:
                    claimed = await topic.write([encode(claim)])

    # --- leading ----------------------------------------------------------------------------------

    def _begin_term(self, term: _Term) -> None:
        term.topic.pause()
        self._term = term
        self._ended.clear()
        self._leading_task = asyncio.create_task(self._lead(term))

    async def append(self, payloads: Sequence[bytes]) -> list[Position]:
        """Append commands in this order; returns once the brokers have them."""
        if self._term is None or self._stopping:
            raise LeadershipLost("this matcher does not lead", nothing_stored=True)
        if not payloads:
            return []
        futures = [self._waiting.add(part) for part in _parts(payloads)]
        self._arrived.set()
        positions: list[Position] = []
        failures: list[BaseException] = []
        for part in await asyncio.gather(*futures, return_exceptions=True):
            if isinstance(part, BaseException):
                failures.append(part)
            else:
                positions += part
        if failures:
            # Nothing was stored only if that is true of every part.
            uncertain = (each for each in failures if not getattr(each, "nothing_stored", False))
            raise next(uncertain, _lost(failures[0]) if positions else failures[0])
        return positions

    async def confirm(self) -> None:
        """Does nothing: the brokers have all commands for which ``append`` has returned."""

    async def _lead(self, term: _Term) -> None:
        """Write waiting commands, and heartbeats, until the term ends."""
        beat = encode(Beat(term.terms.term, self._settings.name, self._settings.rules))
        loop = asyncio.get_running_loop()
        pause = self._settings.lease_seconds / BEATS_PER_LEASE
        next_beat = loop.time() + pause
        cause: JournalProblem | None = None
        try:
            while self._waiting or not self._stopping:
                if not await self._something_waits(next_beat) or loop.time() >= next_beat:
                    next_beat = loop.time() + pause
                    await self._write(term, [beat])
                    continue
                group = self._waiting.take(WRITE_BYTES, WRITE_COUNT)
                timestamp = time_after(term.terms.timestamp, self._clock())
                number = term.terms.term
                values = [encode_command(number, timestamp, each) for each in group.payloads]
                try:
                    offsets = await self._write(term, values)
                except BaseException as error:
                    group.refuse(_lost(error))
                    raise
                term.terms.timestamp = timestamp
                self._last_offset = offsets[-1]
                group.stored(offsets, timestamp)
            await term.topic.write([encode(Resignation(term.terms.term))])
        except JournalProblem as problem:
            _log.warning("term %d of this matcher ends: %s", term.terms.term, problem)
            cause = problem
        finally:
            self._end_term(cause)

    async def _something_waits(self, until: float) -> bool:
        """Wait for commands until a time of the event loop; returns whether there are any."""
        if not self._waiting and not self._stopping:
            self._arrived.clear()
            try:
                async with asyncio.timeout_at(until):
                    await self._arrived.wait()
            except TimeoutError:
                pass
        return bool(self._waiting)

    async def _write(self, term: _Term, values: Sequence[bytes]) -> range:
        """Append entries and check that they are valid; returns their offsets. Raises
        ``JournalProblem``.
        """
        base = await term.topic.write(values)
        offsets = range(base, base + len(values))
        if base == term.next_offset:
            term.terms.last_valid = offsets[-1]
        else:
            await self._read_back(term, offsets)
        term.next_offset = offsets[-1] + 1
        return offsets

    async def _read_back(self, term: _Term, own: range) -> None:
        """Read and evaluate our entries and those in between, which another process wrote."""
        term.topic.seek(term.next_offset)
        loop = asyncio.get_running_loop()
        deadline = loop.time() + self._settings.address.delivery_seconds
        while term.topic.position <= own[-1]:
            if loop.time() > deadline:
                raise BrokerProblem("what was written cannot be read back")
            entries = await term.topic.read(1.0)
            self._candidate.judge(term.terms, [entry for entry in entries if entry[0] <= own[-1]])
            if not self._candidate.is_ours(term.terms):
                master = term.terms.master
                by = "nobody" if master is None else master.name
                raise LeadershipLost(f"{by} leads since term {term.terms.term}")
        term.topic.pause()

    # --- ends -------------------------------------------------------------------------------------

    async def _step_down(self) -> None:
        """End our term, if there is one."""
        task, self._leading_task = self._leading_task, None
        if task is not None:
            task.cancel()
            await asyncio.wait([task])
        self._end_term(None)

    def _end_term(self, problem: JournalProblem | None) -> None:
        """Fail all waiting calls, and close the connection."""
        self._term = None
        self._waiting.refuse(_lost(problem, nothing_stored=True))
        self._disconnect()
        self._ended.set()

    def _disconnect(self) -> None:
        """Close the connection in the background: that may take as long as a write's timeout."""
        topic, self._topic = self._topic, None
        if topic is not None:
            task = asyncio.create_task(topic.close())
            self._closing.add(task)
            task.add_done_callback(self._closing.discard)

    async def truncate_before(self, offset: int) -> None:
        """Does nothing: a lagging standby may still need the commands."""

    async def close(self) -> None:
        """Write waiting commands, resign if this process leads, and close the connections."""
        self._stopping = True
        self._arrived.set()
        if self._leading_task is not None:
            await asyncio.wait([self._leading_task], timeout=CLOSING_SECONDS)
        await self._step_down()
        if self._closing:
            _, late = await asyncio.wait(self._closing, timeout=CLOSING_SECONDS)
            for task in late:
                task.cancel()


def _parts(payloads: Sequence[bytes]) -> Iterator[Sequence[bytes]]:
    """Payloads in chunks that fit into one write."""
    start = size = 0
    for index, payload in enumerate(payloads):
        size += len(payload)
        if index > start and (size > WRITE_BYTES or index - start >= WRITE_COUNT):
            yield payloads[start:index]
            start, size = index, len(payload)
    yield payloads[start:]


def _lost(cause: BaseException | None, *, nothing_stored: bool = False) -> LeadershipLost:
    message = f"this matcher does not lead any more: {cause or 'it stopped'}"
    return LeadershipLost(message, nothing_stored=nothing_stored)
