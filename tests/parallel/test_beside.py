"""Signatures checked by a process beside: in order, whoever makes the verdicts, and without it."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
from collections.abc import Iterator

import pytest

from soliton.crypto import base58, curve25519
from soliton.crypto.curve25519 import SignedMessage
from soliton.parallel import beside
from soliton.parallel.beside import Beside

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
    monkeypatch.setattr(beside, "LEAST", 8)
    monkeypatch.setattr(beside, "GROUP", 4)
    monkeypatch.setattr(beside, "cores", lambda: 2)


@pytest.fixture
def made() -> Iterator[Beside]:
    with contextlib.closing(Beside()) as found:
        yield found


def process_of(made: Beside) -> subprocess.Popen[bytes]:
    assert made._process is not None
    return made._process


def wait_for(made: Beside, number: int) -> None:
    """Until the process has answered so many groups."""
    for group in made._groups[:number]:
        assert group.answered.wait(60)
        assert group.verdicts is not None


def test_verdicts_come_in_order_batch_after_batch(made: Beside) -> None:
    for start in range(0, 100, 7):
        made.add(ALL[start : min(start + 7, 100)])
    wait_for(made, 3)
    assert made.verdicts() == EXPECTED[:100]
    assert made.verdicts() == []
    made.add(ALL[100:])
    assert made.verdicts() == EXPECTED[100:]


def test_few_are_checked_without_a_process(made: Beside) -> None:
    made.add(ALL[:7])
    assert made.verdicts() == EXPECTED[:7]
    assert made._process is None


def test_a_process_that_is_killed_is_not_missed(made: Beside) -> None:
    made.add(ALL[:50])
    wait_for(made, 1)
    os.kill(process_of(made).pid, signal.SIGKILL)
    made.add(ALL[50:100])
    assert made.verdicts() == EXPECTED[:100]
    made.add(ALL[100:])
    assert made.verdicts() == EXPECTED[100:]


def test_a_process_that_hangs_is_given_up(made: Beside, monkeypatch: pytest.MonkeyPatch) -> None:
    made.add(ALL[:50])
    wait_for(made, 1)
    os.kill(process_of(made).pid, signal.SIGSTOP)
    monkeypatch.setattr(beside, "ANSWER_SECONDS", 0.1)
    made.add(ALL[50:])
    assert made.verdicts() == EXPECTED
    assert process_of(made).returncode is not None


@pytest.mark.parametrize("command", [("/nobody/has/this",), ("/bin/true",)])
def test_a_process_that_does_not_start(
    made: Beside, monkeypatch: pytest.MonkeyPatch, command: tuple[str, ...]
) -> None:
    monkeypatch.setattr(beside, "COMMAND", command)
    made.add(ALL)
    assert made.verdicts() == EXPECTED


def test_one_core_has_no_process(made: Beside, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(beside, "cores", lambda: 1)
    with contextlib.closing(Beside()) as alone:
        alone.add(ALL)
        assert alone.verdicts() == EXPECTED
        assert alone._process is None
