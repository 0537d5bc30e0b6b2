"""Group commit: commands of several calls that are stored in one step.

What lives here: the waiting calls and their futures. What does not: storing (``embedded``,
``kafka``).
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Sequence

from soliton.errors import InvariantBroken
from soliton.matcher.journal import MAX_PAYLOAD_BYTES, Position
from soliton.matcher.journal.errors import JournalProblem


class Group:
    """The calls that share one step, and their commands in order."""

    def __init__(self) -> None:
        self.payloads: list[bytes] = []
        self.size = 0
        self._calls: list[tuple[int, asyncio.Future[list[Position]]]] = []

    def add(self, payloads: Sequence[bytes], future: asyncio.Future[list[Position]]) -> None:
        """Add a call with its future."""
        self.payloads.extend(payloads)
        self.size += sum(map(len, payloads))
        self._calls.append((len(payloads), future))

    def stored(self, offsets: Sequence[int], timestamp: int) -> None:
        """Complete all calls: their commands have these offsets."""
        start = 0
        for count, future in self._calls:
            if not future.done():
                own = offsets[start : start + count]
                future.set_result([Position(offset, timestamp) for offset in own])
            start += count

    def refuse(self, problem: JournalProblem) -> None:
        """Fail all calls."""
        for _, future in self._calls:
            if not future.done():
                future.set_exception(problem)


class Waiting:
    """Calls that wait for a step, in order."""

    def __init__(self) -> None:
        self._calls: deque[tuple[Sequence[bytes], asyncio.Future[list[Position]]]] = deque()

    def __bool__(self) -> bool:
        return bool(self._calls)

    def add(self, payloads: Sequence[bytes]) -> asyncio.Future[list[Position]]:
        """Add a call; returns its future."""
        for payload in payloads:
            if len(payload) > MAX_PAYLOAD_BYTES:
                raise InvariantBroken(f"a command of {len(payload)} bytes")
        future: asyncio.Future[list[Position]] = asyncio.get_running_loop().create_future()
        self._calls.append((payloads, future))
        return future

    def take(self, max_bytes: int, max_count: int) -> Group:
        """Remove the first calls that fit into one step, at least one."""
        group = Group()
        while self._calls:
            payloads, future = self._calls[0]
            size = group.size + sum(map(len, payloads))
            count = len(group.payloads) + len(payloads)
            if group.payloads and (size > max_bytes or count > max_count):
                break
            self._calls.popleft()
            group.add(payloads, future)
        return group

    def refuse(self, problem: JournalProblem) -> None:
        """Fail all calls."""
        while self._calls:
            _, future = self._calls.popleft()
            if not future.done():
                future.set_exception(problem)
