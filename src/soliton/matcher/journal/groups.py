"""Group commit: commands of several callers that are stored in one step.

What lives here: who waits for what, and the answers. What does not: storing (``embedded``,
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
        """Begin an empty one."""
        self.payloads: list[bytes] = []
        self.size = 0
        self._calls: list[tuple[int, asyncio.Future[list[Position]]]] = []

    def add(self, payloads: Sequence[bytes], future: asyncio.Future[list[Position]]) -> None:
        """Take a call in; ``future`` is to be answered."""
        self.payloads.extend(payloads)
        self.size += sum(map(len, payloads))
        self._calls.append((len(payloads), future))

    def stored(self, offsets: Sequence[int], timestamp: int) -> None:
        """Answer all calls: their commands have these offsets."""
        start = 0
        for count, future in self._calls:
            if not future.done():
                own = offsets[start : start + count]
                future.set_result([Position(offset, timestamp) for offset in own])
            start += count

    def refuse(self, problem: JournalProblem) -> None:
        """Answer all calls with a problem."""
        for _, future in self._calls:
            if not future.done():
                future.set_exception(problem)


class Waiting:
    """Calls that wait for a step, in order."""

    def __init__(self) -> None:
        """Begin with none."""
        self._calls: deque[tuple[Sequence[bytes], asyncio.Future[list[Position]]]] = deque()

    def __bool__(self) -> bool:
        return bool(self._calls)

    def add(self, payloads: Sequence[bytes]) -> asyncio.Future[list[Position]]:
        """A new call; its answer comes through the future."""
        for payload in payloads:
            if len(payload) > MAX_PAYLOAD_BYTES:
                raise InvariantBroken(f"a command of {len(payload)} bytes")
        future: asyncio.Future[list[Position]] = asyncio.get_running_loop().create_future()
        self._calls.append((payloads, future))
        return future

    def take(self, max_bytes: int, max_count: int) -> Group:
        """The first calls that fit into one step, at least one."""
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
        """Answer all calls with a problem."""
        while self._calls:
            _, future = self._calls.popleft()
            if not future.done():
                future.set_exception(problem)
