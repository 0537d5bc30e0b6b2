"""Work in turns: short work is done at once, long work one turn for each iteration of the loop."""

from __future__ import annotations

import asyncio

import pytest

from soliton.node import turns
from soliton.node.turns import TooBusy, Turn, Turns
from soliton.steps import pause


def work(count: int) -> int:
    for _ in range(count):
        pause()
    return count


@pytest.fixture(autouse=True)
def each_pause_ends_a_turn(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(turns, "TURN_SECONDS", 0.0)


async def test_short_work_is_done_at_once() -> None:
    turn = Turns().begin(lambda: 5)
    assert turn.is_done and turn.result() == 5


def test_without_an_event_loop_all_work_is_done_at_once() -> None:
    assert Turns().begin(lambda: work(50)).result() == 50


async def test_long_work_is_done_in_order() -> None:
    queue = Turns()
    ended: list[int] = []

    def note(turn: Turn[int]) -> None:
        ended.append(turn.result())

    queue.begin(lambda: work(30)).when_done(note)
    queue.begin(lambda: work(5)).when_done(note)
    assert len(queue) == 2
    iterations = 0
    while len(queue):
        await asyncio.sleep(0)
        iterations += 1
    assert ended == [30, 5]
    assert iterations >= 30


async def test_an_error_is_raised_where_the_result_is_wanted() -> None:
    def failing() -> None:
        pause()
        raise ValueError("no")

    turn = Turns().begin(failing)
    await turn.wait()
    with pytest.raises(ValueError, match="no"):
        turn.result()


async def test_work_beyond_the_limit_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(turns, "MAX_WAITING", 1)
    queue = Turns()
    first, second = queue.begin(lambda: work(5)), queue.begin(lambda: work(6))
    with pytest.raises(TooBusy):
        second.result()
    await first.wait()
    assert first.result() == 5


async def test_closing_ends_all_work() -> None:
    queue = Turns()
    ended: list[Turn[int]] = []
    queue.begin(lambda: work(5)).when_done(ended.append)
    queue.close()
    assert len(ended) == 1 and not len(queue)
    with pytest.raises(TooBusy):
        ended[0].result()


async def test_the_nodes_own_work_is_never_given_up_and_comes_first(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(turns, "MAX_WAITING", 2)
    queue = Turns()
    ended: list[int] = []
    for count in (30, 31):
        queue.begin(lambda count=count: work(count)).when_done(  # type: ignore[misc]
            lambda turn: ended.append(turn.result())
        )
    own = queue.begin(lambda: work(5), is_own=True)
    with pytest.raises(TooBusy):
        queue.begin(lambda: work(6)).result()
    own.when_done(lambda turn: ended.append(turn.result()))
    while len(queue):  # noqa: ASYNC110 - the queue sets no event
        await asyncio.sleep(0)
    assert ended == [5, 30, 31]


async def test_own_work_may_begin_while_other_work_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    queue = Turns()
    begun: list[Turn[int]] = []
    first = queue.begin(lambda: work(3))
    first.when_done(lambda _: begun.append(queue.begin(lambda: work(4), is_own=True)))
    last = queue.begin(lambda: work(2))
    while len(queue):  # noqa: ASYNC110 - the queue sets no event
        await asyncio.sleep(0)
    assert (first.result(), begun[0].result(), last.result()) == (3, 4, 2)
