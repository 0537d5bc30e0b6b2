"""Processes that answer questions: whatever one is asked, others are answered, and none is left."""

from __future__ import annotations

import os
import resource
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from soliton.errors import InvariantBroken
from soliton.parallel._served import MAX_KEPT_BYTES
from soliton.parallel.killable import Killable, MemoryExceeded, ProcessLost

PROGRAM = "tests.parallel.answers"
PATIENCE = 60.0
"""Far more than anything here takes, however busy the machine is."""


class GaveUp(Exception):
    """Nobody waits any more."""


class Asker:
    """Asks, and keeps what is charged."""

    def __init__(self, count: int = 1) -> None:
        self.killable = Killable(PROGRAM, count=count)
        self.charged: list[float] = []

    def __call__(self, question: str, seconds: float = PATIENCE, patience: float = PATIENCE) -> str:
        last = time.monotonic() + patience

        def watch() -> None:
            if time.monotonic() > last:
                raise GaveUp

        asked = self.killable.ask(question.encode(), seconds, watch, self.charged.append)
        return asked.decode()

    def number(self) -> int:
        return int(self("number"))


@pytest.fixture
def ask(monkeypatch: pytest.MonkeyPatch) -> Iterator[Asker]:
    # The program is below the tests, and processes do not look into the current directory.
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(filter(None, (str(Path.cwd()), *sys.path))))
    made = Asker()
    yield made
    made.killable.close()


def is_there(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    return True


def test_one_process_answers_one_question_after_the_other(ask: Asker) -> None:
    assert ask("hello") == "hello"
    assert {ask.number() for _ in range(5)} == set(ask.killable.process_ids())
    assert len(ask("say 5000000")) == 5_000_000
    assert ask("h" * 5_000_000) == "h" * 5_000_000
    assert ask("print") == "answer"


def test_a_large_parent_does_not_make_its_processes_large(ask: Asker) -> None:
    """Linux counts the memory of the parent into what a new process had at its most."""
    held = bytearray(MAX_KEPT_BYTES + 2**25)
    held[::4096] = bytes(len(range(0, len(held), 4096)))
    assert len({ask.number() for _ in range(5)}) == 1


def test_one_that_has_grown_is_replaced(ask: Asker) -> None:
    before = ask.number()
    assert len(ask(f"hold {MAX_KEPT_BYTES + 2**25}")) == 4
    for _ in range(3):
        assert ask.number() != before


def test_what_is_stuck_in_c_is_killed_when_nobody_waits_any_more(ask: Asker) -> None:
    before = ask.number()
    with pytest.raises(GaveUp):
        ask("backtrack", patience=0.2)
    assert not is_there(before)
    assert ask.number() != before


def test_a_process_ends_itself_after_its_time(ask: Asker) -> None:
    """Nobody has to be there who kills it."""
    before = ask.number()
    with pytest.raises(ProcessLost):
        ask("backtrack", seconds=0.1)
    assert not is_there(before)
    assert ask("again") == "again"


def test_one_that_ended_is_replaced(ask: Asker) -> None:
    with pytest.raises(ProcessLost):
        ask("end")
    before = ask.number()
    os.kill(before, 9)
    os.waitpid(before, 0)
    assert ask.number() != before


@pytest.mark.skipif(sys.platform != "linux", reason="other systems do not limit addresses")
def test_memory_is_limited(ask: Asker) -> None:
    with pytest.raises(MemoryExceeded):
        ask("allocate")
    assert ask("again") == "again"


def test_a_fault_of_the_program_is_ours(ask: Asker) -> None:
    with pytest.raises(InvariantBroken, match="ValueError: the reason"):
        ask("fail")
    assert ask("again") == "again"


def test_work_is_charged_in_seconds_of_the_process(ask: Asker) -> None:
    ask("work 0.2")
    assert 0.2 <= ask.charged[0] < 0.4
    with pytest.raises(GaveUp):
        ask("backtrack", patience=0.3)
    assert len(ask.charged) == 2
    assert ask.charged[1] >= 0.2


def test_there_are_never_more_than_allowed(ask: Asker) -> None:
    with ThreadPoolExecutor(6) as threads:
        numbers = set(threads.map(lambda _: ask.number(), range(24)))
    assert len(numbers) == 1
    assert ask.killable.process_ids() == [*numbers]


def test_who_waits_for_a_place_gives_up_as_well(ask: Asker) -> None:
    begun = threading.Event()

    def long() -> None:
        begun.set()
        with pytest.raises(GaveUp):
            ask("backtrack", patience=3)

    with ThreadPoolExecutor(1) as threads:
        running = threads.submit(long)
        begun.wait()
        time.sleep(0.2)
        with pytest.raises(GaveUp):
            ask("hello", patience=0.1)
        running.result()
    assert ask("hello") == "hello"


def test_processes_end_with_their_parent(ask: Asker) -> None:
    assert ask.number()  # the surroundings are those of the other tests
    program = (
        "from soliton.parallel.killable import Killable\n"
        f"asked = Killable({PROGRAM!r}).ask(b'number', 60, lambda: None, lambda _: None)\n"
        "print(asked.decode(), flush=True)\n"
        "input()\n"
    )
    command = [sys.executable, "-c", program]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as parent:
        assert parent.stdout is not None
        child = int(parent.stdout.readline())
        assert is_there(child)
        parent.kill()
    last = time.monotonic() + PATIENCE
    while is_there(child) and time.monotonic() < last:
        time.sleep(0.05)
    assert not is_there(child)


@pytest.mark.parametrize("room", [0, 2, 3])
def test_too_many_open_files_are_no_fault_of_ours(ask: Asker, room: int) -> None:
    """Of a process that cannot be started, whatever it is that there is no room for."""
    usual, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    next_free = os.dup(0)
    os.close(next_free)
    resource.setrlimit(resource.RLIMIT_NOFILE, (next_free + room, most))
    try:
        with pytest.raises(ProcessLost, match="Too many open files"):
            ask("number")
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (usual, most))
    assert ask.number() > 0


def test_who_answers_others_comes_first(ask: Asker) -> None:
    process = ask.number()
    own = os.getpriority(os.PRIO_PROCESS, 0)
    assert os.getpriority(os.PRIO_PROCESS, process) == min(own + 5, 19)
