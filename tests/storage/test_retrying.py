"""Reading what a store stands on, on an event loop that goes on: what is asked, how often, and who
begins again.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from concurrent.futures import Future
from functools import partial
from typing import TypeVar

import pytest

from soliton.storage import retrying
from soliton.storage.errors import BelowProblem
from soliton.storage.retrying import ReadPending, read_remote, retry_until_read, without_retry

T = TypeVar("T")
WHOM = "http://far"
WAIT_SECONDS = 30.0


class Far:
    """Answers on threads of its own, when it may."""

    def __init__(self) -> None:
        self.asked: list[str] = []
        self.may_answer = threading.Event()
        self.may_answer.set()
        self.faulty = ""

    def get(self, name: str) -> str:
        def read() -> str:
            assert self.may_answer.wait(WAIT_SECONDS)
            self.asked.append(name)
            if name == self.faulty:
                raise BelowProblem("a fault")
            return name.upper()

        return read_remote(name.encode(), read, begin, WHOM)


def begin(read: Callable[[], T]) -> Future[T]:
    answer: Future[T] = Future()
    answer.set_running_or_notify_cancel()

    def work() -> None:
        try:
            answer.set_result(read())
        except BelowProblem as error:
            answer.set_exception(error)

    threading.Thread(target=work, daemon=True).start()
    return answer


@pytest.fixture
def far() -> Far:
    return Far()


def test_work_begins_again_until_all_is_read(far: Far) -> None:
    tries = 0

    async def work() -> str:
        nonlocal tries
        tries += 1
        first = far.get("a")
        await asyncio.sleep(0)
        return first + far.get("b") + far.get("a")

    assert asyncio.run(retry_until_read(work)) == "ABA"
    assert far.asked == ["a", "b"] and tries == 3


def test_others_work_while_somebody_waits(far: Far) -> None:
    async def work() -> str:
        return far.get("a")

    async def both() -> str:
        far.may_answer.clear()
        waiting = asyncio.create_task(retry_until_read(work))
        for _ in range(100):
            await asyncio.sleep(0)
        assert not waiting.done()
        far.may_answer.set()
        return await waiting

    assert asyncio.run(both()) == "A"


def test_a_fault_is_raised_where_the_answer_was_needed(far: Far) -> None:
    async def work() -> str:
        try:
            return far.get("a")
        except BelowProblem:
            return "handled"

    far.faulty = "a"
    assert asyncio.run(retry_until_read(work)) == "handled"
    assert far.asked == ["a"]


def test_whom_nobody_answers_in_time(far: Far, monkeypatch: pytest.MonkeyPatch) -> None:
    async def work() -> str:
        try:
            return far.get("a")
        except Exception:  # noqa: BLE001 - handlers of errors do not see that something is missing
            return "swallowed"

    monkeypatch.setattr(retrying, "RETRY_SECONDS", 0.01)
    far.may_answer.clear()
    with pytest.raises(BelowProblem, match=WHOM):
        asyncio.run(retry_until_read(work))
    far.may_answer.set()


def test_who_does_not_begin_again_waits_a_moment(far: Far, monkeypatch: pytest.MonkeyPatch) -> None:
    async def alone() -> str:
        return far.get("a")

    async def part() -> str:
        # Neither what is done within, nor a task that it begins.
        with without_retry():
            found = far.get("a")
        return found + await asyncio.create_task(alone())

    for work in (alone, partial(retry_until_read, part)):
        assert set(asyncio.run(work())) == {"A"}
    far.may_answer.clear()
    monkeypatch.setattr(retrying, "BLOCKING_SECONDS", 0.01)
    for work in (alone, partial(retry_until_read, part)):
        with pytest.raises(BelowProblem, match=WHOM):
            asyncio.run(work())
    far.may_answer.set()


def test_a_thread_asks_itself(far: Far) -> None:
    async def work() -> str:
        return await asyncio.to_thread(far.get, "a")

    assert asyncio.run(retry_until_read(work)) == far.get("a") == "A"


def test_what_is_missing_is_no_error() -> None:
    assert not issubclass(ReadPending, Exception)
