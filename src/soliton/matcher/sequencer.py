"""The single writer: commands are appended to the journal and applied in the same order.

Commands that arrive while others are being stored are stored together in the next step. Once the
journal has stored a command, the engine applies it, and the caller receives the events.

After an error the state in memory cannot be trusted, so the journal is replayed. A command that
fails again in the replay is quarantined (``quarantine``).

What lives here: the queue in front of the journal, and applying stored commands. What does not:
whether a command is allowed (``placing``), and the effects of events (``effects``).
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import Final

from soliton.chain.errors import ChainError
from soliton.errors import EnvironmentProblem
from soliton.matcher.journal import Journal, Position, Record
from soliton.matcher.journal.errors import JournalProblem, LeadershipLost
from soliton.matcher.log_throttle import throttled
from soliton.matcher.quarantine import Quarantine
from soliton.matcher.time_slices import in_slices
from soliton.matching import errors
from soliton.matching.commands import MAX_COMMAND_BYTES, Command, decode, encode
from soliton.matching.engine import Engine
from soliton.matching.errors import MatcherError
from soliton.matching.events import Event

MAX_WAITING: Final = 50_000
"""The maximum number of commands waiting for the journal; further ones are rejected."""

Applied = Callable[[int, int, list[Event]], None]
"""Offset and timestamp (ms) of a command, and its events."""
Prepare = Callable[[Command], Awaitable[None]]
Outcome = list[Event] | MatcherError
"""The events of a command; or an error if it was rejected, or if its outcome is not known yet."""
OnOutcome = Callable[[Outcome], None]
"""Called exactly once. Must not raise."""
_Queued = tuple[Command, bytes, OnOutcome]
"""A command, its bytes in the journal, and the callback."""

_ENVIRONMENT_ERRORS: Final = (EnvironmentProblem, OSError, MemoryError)
"""Errors that are not caused by the command: it may succeed at another time."""

_log = throttled(logging.getLogger(__name__))


class CommandQuarantined(Exception):
    """A command was quarantined after it may have changed the state: the engine must be restored
    from a snapshot, and the journal replayed.
    """


class Sequencer:
    """Use from one event loop."""

    def __init__(
        self,
        journal: Journal,
        engine: Engine,
        applied: Applied,
        prepare: Prepare,
        quarantine: Quarantine,
    ) -> None:
        """``applied`` is called for every command, in order, before its caller is notified;
        ``prepare`` before a replayed command is applied.
        """
        self._quarantine = quarantine
        self._journal = journal
        self._engine = engine
        self._applied = applied
        self._prepare = prepare
        self._waiting: list[_Queued] = []
        self._count = 0
        self._last: asyncio.Task[None] | None = None
        self.lost = asyncio.Event()
        """Set when this process may no longer write, because commands in flight or the state in
        memory are uncertain.
        """

    def submit(self, command: Command) -> asyncio.Future[list[Event]]:
        """Store and apply a command; the order of calls is the order in the journal.

        The future raises ``MatcherError`` if the command was not stored, and another one if that is
        unknown. Raises the first directly if too many commands are waiting.
        """
        future: asyncio.Future[list[Event]] = asyncio.get_running_loop().create_future()
        self.enqueue(command, partial(resolve, future))
        return future

    @property
    def waiting(self) -> int:
        """The number of commands that wait for the journal."""
        return self._count

    def enqueue(self, command: Command, on_outcome: OnOutcome) -> None:
        """As ``submit``, with a callback instead of a future. Raises ``MatcherError`` also for a
        command that the journal cannot represent.
        """
        payload = _encoded(command)
        if self._count >= MAX_WAITING or self.lost.is_set():
            raise _not_stored()
        if not self._waiting:
            asyncio.get_running_loop().call_soon(self._send)
        self._waiting.append((command, payload, on_outcome))
        self._count += 1

    def _send(self) -> None:
        batch, self._waiting = self._waiting, []
        self._last = asyncio.create_task(self._store(batch, self._last))

    async def _store(
        self,
        batch: Sequence[_Queued],
        before: asyncio.Task[None] | None,
    ) -> None:
        try:
            positions = await self._journal.append([payload for _, payload, _ in batch])
        except JournalProblem as error:
            await _until_done(before)
            refusal = _not_stored()
            if isinstance(error, LeadershipLost):
                self.lost.set()
                if not error.nothing_stored:
                    refusal = _unknown()
            _log.error("the journal did not take %d commands: %s", len(batch), error)
            _refuse_all(batch, refusal)
        except Exception:  # noqa: BLE001 - any error, or callers would wait forever
            await _until_done(before)
            _log.exception("%d commands could not be stored", len(batch))
            # The journal may have them or not: it is replayed.
            self.lost.set()
            _refuse_all(batch, _unknown())
        else:
            await _until_done(before)
            await self._apply(batch, positions)
        finally:
            self._count -= len(batch)

    async def _apply(
        self,
        batch: Sequence[_Queued],
        positions: Sequence[Position],
    ) -> None:
        stored = zip(batch, positions, strict=True)
        async for (command, _, on_outcome), (offset, timestamp) in in_slices(stored):
            if self.lost.is_set():
                # The command is stored: the replay applies it.
                on_outcome(_unknown())
                continue
            try:
                events = self._engine.apply(offset, timestamp, command)
                self._applied(offset, timestamp, events)
            except Exception:  # noqa: BLE001 - any error, or callers would wait forever
                # The state in memory cannot be trusted any more: the journal is replayed.
                _log.exception("the command at offset %d could not be applied", offset)
                self.lost.set()
                on_outcome(_unknown())
            else:
                on_outcome(events)

    async def replay(self, from_offset: int) -> int:
        """Apply the journal's commands from an offset on, until this process leads; returns their
        number. Quarantined and undecodable commands are skipped. Raises ``JournalProblem`` and
        ``CommandQuarantined``.
        """
        count = 0
        async for batch in self._journal.follow(from_offset):
            for record in batch:
                await self._replay(record)
            count += len(batch)
        self.lost.clear()
        return count

    async def _replay(self, record: Record) -> None:
        offset, timestamp, payload = record
        if self._quarantine.holds(offset, payload):
            self._skip(offset, timestamp)
            return
        try:
            command = decode(payload)
        except _ENVIRONMENT_ERRORS:
            raise
        except Exception as error:  # noqa: BLE001 - any error that bytes can cause
            self._quarantine.add(*record, f"it is no command: {error}")
            self._skip(offset, timestamp)
            return
        await self._prepare(command)
        try:
            events = self._engine.apply(offset, timestamp, command)
            self._applied(offset, timestamp, events)
        except _ENVIRONMENT_ERRORS:
            self.lost.set()
            raise
        except Exception as error:
            self.lost.set()
            self._quarantine.add(*record, f"{type(error).__name__}: {error}")
            _log.exception("where the command at offset %d has failed", offset)
            raise CommandQuarantined from error

    def _skip(self, offset: int, timestamp: int) -> None:
        """Continue after a command as if it had done nothing."""
        self._engine.skip(offset, timestamp)
        self._applied(offset, timestamp, [])

    async def drain(self) -> None:
        """Wait until every submitted command is applied or rejected."""
        while self._waiting or (self._last is not None and not self._last.done()):
            if self._last is not None:
                await asyncio.wait([self._last])
            await asyncio.sleep(0)


def resolve(future: asyncio.Future[list[Event]], outcome: Outcome) -> None:
    """Set a future to the outcome of a command, unless it is done (cancelled)."""
    if future.done():
        return
    if isinstance(outcome, MatcherError):
        future.set_exception(outcome)
    else:
        future.set_result(outcome)


def _encoded(command: Command) -> bytes:
    """The journal's bytes of a command. Raises ``MatcherError`` if it could not be read back."""
    try:
        payload = encode(command)
    except ChainError as error:
        raise MatcherError(
            errors.ORDER_COMMON_VALIDATION_FAILED, details=f"it cannot be stored: {error}"
        ) from error
    if len(payload) > MAX_COMMAND_BYTES:
        details = f"it takes {len(payload)} bytes, of {MAX_COMMAND_BYTES} at most"
        raise MatcherError(errors.ORDER_COMMON_VALIDATION_FAILED, details=details)
    return payload


def _not_stored() -> MatcherError:
    """The error for a command that was not stored."""
    return MatcherError(errors.CAN_NOT_PERSIST_EVENT)


def _unknown() -> MatcherError:
    """The error for a command that may have been stored."""
    return MatcherError(errors.COMMAND_OUTCOME_UNKNOWN)


def _refuse_all(batch: Sequence[_Queued], refusal: MatcherError) -> None:
    for _, _, on_outcome in batch:
        on_outcome(refusal)


async def _until_done(task: asyncio.Task[None] | None) -> None:
    if task is not None and not task.done():
        await asyncio.wait([task])
