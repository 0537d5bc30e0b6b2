"""The threads that ask the node which a chain is forked from."""

from __future__ import annotations

import threading

import pytest

from soliton.devnet.fork.chain import _LISTED
from soliton.devnet.fork.reading import MAX_WAITING, THREADS, Readers
from soliton.devnet.fork.state import GENERATING
from soliton.storage import layout
from soliton.storage.errors import BelowProblem

WAIT_SECONDS = 30.0


def test_questions_wait_in_a_queue_that_has_an_end() -> None:
    readers = Readers("http://far")
    under_way, may_answer = threading.Semaphore(0), threading.Event()

    def read() -> int:
        under_way.release()
        assert may_answer.wait(WAIT_SECONDS)
        return 1

    asked = [readers.submit(read) for _ in range(THREADS)]
    for _ in range(THREADS):
        assert under_way.acquire(timeout=WAIT_SECONDS)
    asked += [readers.submit(read) for _ in range(MAX_WAITING)]
    with pytest.raises(BelowProblem, match=f"http://far has not answered yet: {MAX_WAITING} "):
        readers.submit(read)
    # Those that nobody waits for any more are not asked.
    assert asked.pop().cancel()
    may_answer.set()
    assert {each.result(WAIT_SECONDS) for each in asked} == {1}
    assert readers.submit(lambda: 2).result(WAIT_SECONDS) == 2


def test_what_only_the_cache_of_a_fork_has_is_of_no_kind_of_a_store() -> None:
    assert {GENERATING, _LISTED}.isdisjoint(layout.KINDS)
