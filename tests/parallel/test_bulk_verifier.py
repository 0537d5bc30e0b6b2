"""Signatures checked by a process beside: in order, whoever makes the verdicts, and without it."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import time
from collections.abc import Iterator

import pytest

from soliton.crypto import base58, curve25519
from soliton.crypto.curve25519 import SignedMessage
from soliton.parallel import bulk_verifier
from soliton.parallel.bulk_verifier import Batch, BulkVerifier
from tests import stopping

PRIVATE_KEY = base58.decode("3kMEhU5z3v8bmer1ERFUUhW58Dtuhyo9hE5vrhjqAWYT")
PUBLIC_KEY = curve25519.public_key(PRIVATE_KEY)


def signed(count: int) -> list[SignedMessage]:
    """Every third is wrong."""
    found = []
    for number in range(count):
        message = number.to_bytes(4, "big")
        signature = curve25519.sign(PRIVATE_KEY, message)
        found.append((PUBLIC_KEY, message if number % 3 else b"other", signature))
    return found


ALL = signed(200)
EXPECTED = [bool(number % 3) for number in range(200)]


@pytest.fixture(autouse=True)
def _few_are_enough(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bulk_verifier, "MIN_SIGNATURES", 8)
    monkeypatch.setattr(bulk_verifier, "GROUP", 4)
    monkeypatch.setattr(bulk_verifier, "LAST_GROUPS", 2)
    monkeypatch.setattr(bulk_verifier, "cores", lambda: 2)


@pytest.fixture
def made() -> Iterator[BulkVerifier]:
    with contextlib.closing(BulkVerifier()) as found:
        yield found


def process_of(made: BulkVerifier) -> subprocess.Popen[bytes]:
    assert made._process is not None
    return made._process


def batch_of(made: BulkVerifier, messages: list[SignedMessage]) -> Batch:
    batch = made.batch()
    batch.add(messages)
    return batch


def wait_for(batch: Batch, number: int) -> None:
    """Until the process has answered so many groups."""
    for group in batch._groups[:number]:
        group.answered.result(60)
        assert group.verdicts is not None


def stop(made: BulkVerifier, batch: Batch, messages: list[SignedMessage]) -> None:
    """Stop the process, and let it have something all the same that it does not answer."""
    stopping.stop(process_of(made).pid)
    batch.add(messages)
    on_their_way = False
    while not on_their_way:
        # What it had said before it stopped may still be on its way here.
        time.sleep(0.05)
        on_their_way = any(
            not (group.answered.done() or group in made._queue) for group in batch._groups
        )


def test_verdicts_come_in_order_batch_after_batch(made: BulkVerifier) -> None:
    first = made.batch()
    for start in range(0, 100, 7):
        first.add(ALL[start : min(start + 7, 100)])
    wait_for(first, 3)
    assert first.verdicts() == EXPECTED[:100]
    assert made.batch().verdicts() == []
    assert batch_of(made, ALL[100:]).verdicts() == EXPECTED[100:]


def test_few_are_checked_without_a_process(made: BulkVerifier) -> None:
    assert batch_of(made, ALL[:7]).verdicts() == EXPECTED[:7]
    assert made._process is None


def test_what_was_asked_for_before_counts(made: BulkVerifier) -> None:
    assert batch_of(made, ALL[:7]).verdicts() == EXPECTED[:7]
    second = batch_of(made, ALL[7:14])
    wait_for(second, 1)
    assert second.verdicts() == EXPECTED[7:14]


def test_a_batch_that_was_let_go_changes_nothing(made: BulkVerifier) -> None:
    lost = batch_of(made, ALL[:50])
    wait_for(lost, 1)
    dropped = lost.checking()
    next(dropped)
    dropped.close()
    assert batch_of(made, ALL[50:]).verdicts() == EXPECTED[50:]


def test_steps_end_where_the_process_is_waited_for(made: BulkVerifier) -> None:
    """Whoever does something else between the steps is told when to go on."""
    batch = batch_of(made, ALL[:50])
    wait_for(batch, 1)
    stop(made, batch, ALL[50:])
    checking = batch.checking()
    wanted = None
    while wanted is None:
        wanted = next(checking)
    assert not wanted.done()
    os.kill(process_of(made).pid, signal.SIGCONT)
    wanted.result(60)
    verdicts = None
    try:
        while True:
            step = next(checking)
            if step is not None:
                step.result(60)
    except StopIteration as end:
        verdicts = end.value
    assert verdicts == EXPECTED


def test_a_process_that_is_killed_is_not_missed(made: BulkVerifier) -> None:
    batch = batch_of(made, ALL[:50])
    wait_for(batch, 1)
    os.kill(process_of(made).pid, signal.SIGKILL)
    batch.add(ALL[50:100])
    assert batch.verdicts() == EXPECTED[:100]
    assert batch_of(made, ALL[100:]).verdicts() == EXPECTED[100:]


def test_a_process_that_hangs_is_given_up(
    made: BulkVerifier, monkeypatch: pytest.MonkeyPatch
) -> None:
    batch = batch_of(made, ALL[:50])
    wait_for(batch, 1)
    stop(made, batch, ALL[50:])
    monkeypatch.setattr(bulk_verifier, "ANSWER_SECONDS", 0.1)
    assert batch.verdicts() == EXPECTED
    process_of(made).wait(60)


@pytest.mark.parametrize("command", [("/nobody/has/this",), ("/bin/true",)])
def test_a_process_that_does_not_start(
    made: BulkVerifier, monkeypatch: pytest.MonkeyPatch, command: tuple[str, ...]
) -> None:
    monkeypatch.setattr(bulk_verifier, "COMMAND", command)
    assert batch_of(made, ALL).verdicts() == EXPECTED


def test_one_core_has_no_process(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bulk_verifier, "cores", lambda: 1)
    with contextlib.closing(BulkVerifier()) as alone:
        assert batch_of(alone, ALL).verdicts() == EXPECTED
        assert alone._process is None


def test_who_wants_none_has_no_process() -> None:
    with contextlib.closing(BulkVerifier(starts=False)) as alone:
        assert batch_of(alone, ALL).verdicts() == EXPECTED
        assert alone._process is None


# --- small groups, the first ones first -----------------------------------------------------------


def hurried(made: BulkVerifier) -> Batch:
    batch = made.batch()
    batch.gather(ALL)
    batch.hurry()
    return batch


def verdicts_in_turn(batch: Batch) -> list[bool]:
    found = []
    for place in range(len(ALL)):
        asking = batch.is_valid(place)
        try:
            while True:
                wanted = next(asking)
                assert wanted is not None
                wanted.result(ANSWER_IN)
        except StopIteration as end:
            found.append(end.value)
    return found


def ready(made: BulkVerifier) -> BulkVerifier:
    made.begin()
    end = time.monotonic() + ANSWER_IN
    while not made.is_ready:
        assert time.monotonic() < end, "the process does not start"
        time.sleep(0.01)
    return made


ANSWER_IN = 30.0


def test_those_in_a_hurry_are_checked_by_the_process(
    made: BulkVerifier, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bulk_verifier, "verify", None)
    assert verdicts_in_turn(hurried(ready(made))) == EXPECTED


def test_those_in_a_hurry_do_not_wait_for_the_start_of_a_process(made: BulkVerifier) -> None:
    made.begin()
    batch = hurried(made)
    for place, expected in enumerate(EXPECTED):
        asking = batch.is_valid(place)
        with pytest.raises(StopIteration) as end:
            next(asking)
        assert end.value.value == expected


@pytest.mark.parametrize("before", [True, False], ids=["before", "behind"])
def test_those_in_a_hurry_outlive_the_process(made: BulkVerifier, *, before: bool) -> None:
    ready(made)
    if before:
        process_of(made).kill()
        process_of(made).wait()
    else:
        # What it has in its hands, and what still waits for it.
        stopping.stop(process_of(made).pid)
    batch = hurried(made)
    process_of(made).kill()
    assert verdicts_in_turn(batch) == EXPECTED
    # Nothing is left to those who come later.
    assert made.pop_last() is None
