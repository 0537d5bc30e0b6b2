"""The single writer: commands go into the journal in one order and are applied in that order.

Commands that come while others are being stored are stored together in the next step. A command
counts when the journal has it; then the engine applies it, and whoever gave it gets the events.

What an error has interrupted is in no state that can be trusted, so nobody goes on from there: the
journal is read again. A command that fails then as well is set aside (``quarantine``).

What lives here: the queue before the journal, and applying what comes out of it. What does not:
whether a command may be given (``placing``), and what events cause (``effects``).
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
from soliton.matching import errors
from soliton.matching.commands import MAX_COMMAND_BYTES, Command, decode, encode
from soliton.matching.engine import Engine
from soliton.matching.errors import MatcherError
from soliton.matching.events import Event

MAX_WAITING: Final = 50_000
"""Commands that wait for the journal, at most; further ones are refused."""

Applied = Callable[[int, int, list[Event]], None]
"""Offset and timestamp (ms) of a command, and what it did."""
Prepare = Callable[[Command], Awaitable[None]]
Outcome = list[Event] | MatcherError
"""What a command did; or why it was refused, or that nobody knows yet what becomes of it."""
OnOutcome = Callable[[Outcome], None]
"""Called once. May not raise."""
_Queued = tuple[Command, bytes, OnOutcome]
"""A command, the bytes that the journal keeps of it, and whom to tell."""

_MACHINE_TROUBLE: Final = (EnvironmentProblem, OSError, MemoryError)
"""No command's fault: the same may be applied another time."""

_log = throttled(logging.getLogger(__name__))


class CommandSetAside(Exception):
    """A command of the journal was set aside after it had begun to change something: the engine has
    to go back to what is certain, and the journal to be read again.
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
        """``applied`` is called for every command, in order, before anybody is answered;
        ``prepare`` before a command that comes from the journal is applied.
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
        """Set when this process may not write any more: what it had on its way, or what it has in
        memory, is uncertain.
        """

    def submit(self, command: Command) -> asyncio.Future[list[Event]]:
        """Store and apply a command; the order of calls is the order in the journal.

        The future raises ``MatcherError`` for a command that was not stored, and another one where
        that is not known. Raises the first at once when too many wait.
        """
        future: asyncio.Future[list[Event]] = asyncio.get_running_loop().create_future()
        self.enqueue(command, partial(resolve, future))
        return future

    def enqueue(self, command: Command, on_outcome: OnOutcome) -> None:
        """Store and apply a command, for those who need no future. Raises ``MatcherError`` also for
        a command that a journal cannot hold.
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
        except Exception:  # noqa: BLE001 - whatever it is, nobody may wait for ever
            await _until_done(before)
            _log.exception("%d commands could not be stored", len(batch))
            # The journal may have them or not: it is read again.
            self.lost.set()
            _refuse_all(batch, _unknown())
        else:
            await _until_done(before)
            self._apply(batch, positions)
        finally:
            self._count -= len(batch)

    def _apply(
        self,
        batch: Sequence[_Queued],
        positions: Sequence[Position],
    ) -> None:
        for (command, _, on_outcome), (offset, timestamp) in zip(batch, positions, strict=True):
            if self.lost.is_set():
                # The journal has it: it is applied when that is read again.
                on_outcome(_unknown())
                continue
            try:
                events = self._engine.apply(offset, timestamp, command)
                self._applied(offset, timestamp, events)
            except Exception:  # noqa: BLE001 - whatever it is, nobody may wait for ever
                # What is in memory cannot be trusted any more; the journal can, and is read again.
                _log.exception("the command at offset %d could not be applied", offset)
                self.lost.set()
                on_outcome(_unknown())
            else:
                on_outcome(events)

    async def replay(self, from_offset: int) -> int:
        """Apply what the journal has from an offset on, until this process leads: how many
        commands. Those in quarantine are passed over, and so are bytes that are no command. Raises
        ``JournalProblem``, and ``CommandSetAside``.
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
            self._pass_over(offset, timestamp)
            return
        try:
            command = decode(payload)
        except _MACHINE_TROUBLE:
            raise
        except Exception as error:  # noqa: BLE001 - whatever bytes can lead to
            self._quarantine.add(*record, f"it is no command: {error}")
            self._pass_over(offset, timestamp)
            return
        await self._prepare(command)
        try:
            events = self._engine.apply(offset, timestamp, command)
            self._applied(offset, timestamp, events)
        except _MACHINE_TROUBLE:
            self.lost.set()
            raise
        except Exception as error:
            self.lost.set()
            self._quarantine.add(*record, f"{type(error).__name__}: {error}")
            _log.exception("where the command at offset %d has failed", offset)
            raise CommandSetAside from error

    def _pass_over(self, offset: int, timestamp: int) -> None:
        """Go on behind a command as if it had done nothing."""
        self._engine.pass_over(offset, timestamp)
        self._applied(offset, timestamp, [])

    async def drain(self) -> None:
        """Return when everything that was submitted is applied or refused."""
        while self._waiting or (self._last is not None and not self._last.done()):
            if self._last is not None:
                await asyncio.wait([self._last])
            await asyncio.sleep(0)


def resolve(future: asyncio.Future[list[Event]], outcome: Outcome) -> None:
    """Let whoever waits for a future know what became of a command, if somebody still does."""
    if future.done():
        return
    if isinstance(outcome, MatcherError):
        future.set_exception(outcome)
    else:
        future.set_result(outcome)


def _encoded(command: Command) -> bytes:
    """What the journal keeps of a command. Raises ``MatcherError`` for what could not be read again
    from there.
    """
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
    """The refusal of a command that the journal has not taken."""
    return MatcherError(errors.CAN_NOT_PERSIST_EVENT)


def _unknown() -> MatcherError:
    """What is said about a command that the journal may have, or will have."""
    return MatcherError(errors.COMMAND_OUTCOME_UNKNOWN)


def _refuse_all(batch: Sequence[_Queued], refusal: MatcherError) -> None:
    for _, _, on_outcome in batch:
        on_outcome(refusal)


async def _until_done(task: asyncio.Task[None] | None) -> None:
    if task is not None and not task.done():
        await asyncio.wait([task])
