"""Checking signatures in a process beside the event loop."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import AsyncIterator, Callable

import pytest
import pytest_asyncio

from soliton.crypto import curve25519
from soliton.crypto.curve25519 import SignedMessage
from soliton.crypto.keys import key_pair
from soliton.parallel import signatures
from soliton.parallel.signatures import SignatureChecker
from tests.stopping import stop

PAIR = key_pair("somebody")
TALKATIVE = """
import sys
sys.stdout.buffer.write(bytes((2,)))
sys.stdout.flush()
sys.stdin.buffer.read(1)
sys.stdout.buffer.write(bytes(999))
sys.stdout.flush()
sys.stdin.read()
"""
STOP = getattr(signal, "SIGSTOP", 0)


def signed(message: bytes) -> SignedMessage:
    return PAIR.public_key, message, curve25519.sign(PAIR.private_key, message)


GOOD = [signed(b"message %d" % number) for number in range(40)]
BAD = [(key, message + b"!", proof) for key, message, proof in GOOD]
MIXED = [item for pair in zip(GOOD, BAD, strict=True) for item in pair]
KEY, MESSAGE, PROOF = GOOD[0]
ODD = [
    (b"", b"", b""),
    (KEY, MESSAGE, PROOF[:63]),
    (KEY * 2, MESSAGE, PROOF),
    (KEY, b"", bytes(64)),
    (bytes(32), b"", bytes(64)),
    (KEY, bytes(200_000), PROOF),
]
VERDICTS = [True, False] * len(GOOD)


@pytest.fixture(autouse=True)
def two_cores(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(signatures, "cores", lambda: 2)
    monkeypatch.setattr(signatures, "STARTS_AFTER", 2)


@pytest_asyncio.fixture
async def checker() -> AsyncIterator[SignatureChecker]:
    checker = SignatureChecker(answer_seconds=0.3)
    yield checker
    await checker.close()


async def check_all(checker: SignatureChecker, items: list[SignedMessage]) -> list[bool]:
    return list(await asyncio.gather(*(checker.check(*item) for item in items)))


async def until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(20):
        while not condition():  # noqa: ASYNC110 - nothing here could set an event
            await asyncio.sleep(0.01)


async def begin(checker: SignatureChecker) -> int:
    """The process's number, once it takes checks."""
    assert await check_all(checker, MIXED[:4]) == VERDICTS[:4]
    await until(lambda: checker.process_id is not None)
    assert checker.process_id is not None
    return checker.process_id


async def test_verdicts_come_from_the_process(
    checker: SignatureChecker, monkeypatch: pytest.MonkeyPatch
) -> None:
    await begin(checker)

    def here(*_item: bytes) -> bool:
        raise AssertionError("checked here")

    monkeypatch.setattr(signatures, "verify", here)
    assert await check_all(checker, MIXED) == VERDICTS
    assert await check_all(checker, list(reversed(MIXED))) == list(reversed(VERDICTS))
    assert await check_all(checker, ODD) == [curve25519.verify(*item) for item in ODD]


async def test_one_alone_is_checked_here(checker: SignatureChecker) -> None:
    assert await checker.check(*GOOD[0])
    assert not await checker.check(*BAD[0])
    assert checker._process is None


async def test_the_process_starts_with_enough_that_came_together(
    checker: SignatureChecker, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(signatures, "STARTS_AFTER", 6)
    for item in GOOD[:8]:
        assert await checker.check(*item)
    assert await check_all(checker, MIXED[:4]) == VERDICTS[:4]
    assert checker._process is None
    await begin(checker)


async def test_too_many_at_once_are_shared(checker: SignatureChecker) -> None:
    await begin(checker)
    many = MIXED * 5
    assert len(many) > signatures.MAX_SENT
    assert await check_all(checker, many) == VERDICTS * 5


async def test_a_killed_process_loses_nothing(checker: SignatureChecker) -> None:
    process = await begin(checker)
    asked = asyncio.gather(*(checker.check(*item) for item in MIXED))
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    os.kill(process, signal.SIGKILL)
    assert await asked == VERDICTS
    await until(lambda: checker.process_id is None)
    assert await check_all(checker, MIXED) == VERDICTS


async def test_another_process_comes_after_a_while(
    checker: SignatureChecker, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(signatures, "RESTART_SECONDS", 0.0)
    first = await begin(checker)
    os.kill(first, signal.SIGKILL)
    await until(lambda: checker.process_id is None)
    assert await begin(checker) != first


@pytest.mark.skipif(not STOP, reason="this system cannot stop a process")
async def test_a_process_that_hangs_is_given_up(checker: SignatureChecker) -> None:
    process = await begin(checker)
    stop(process)
    assert await check_all(checker, MIXED) == VERDICTS
    assert checker.process_id is None


@pytest.mark.parametrize(
    "command",
    [
        ("/nowhere/at/all",),
        (sys.executable, "-c", ""),
        (sys.executable, "-c", "print('not what was asked for', flush=True); input()"),
        (
            *(sys.executable, "-c"),
            TALKATIVE,
        ),
    ],
    ids=["cannot start", "ends at once", "says something else", "answers too much"],
)
async def test_checks_go_on_without_a_process_that_works(command: tuple[str, ...]) -> None:
    checker = SignatureChecker(command=command)
    for _ in range(20):
        assert await check_all(checker, MIXED[:8]) == VERDICTS[:8]
        await asyncio.sleep(0.02)
    await checker.close()


async def test_what_is_not_waited_for_any_more_does_no_harm(checker: SignatureChecker) -> None:
    await begin(checker)
    tasks = [asyncio.create_task(checker.check(*item)) for item in MIXED]
    await asyncio.sleep(0)
    for task in tasks[::2]:
        task.cancel()
    found = await asyncio.gather(*tasks, return_exceptions=True)
    assert found[1::2] == VERDICTS[1::2]
    assert await check_all(checker, MIXED) == VERDICTS


async def test_closing_answers_what_waits(checker: SignatureChecker) -> None:
    await begin(checker)
    asked = asyncio.gather(*(checker.check(*item) for item in MIXED))
    await asyncio.sleep(0)
    await checker.close()
    assert await asked == VERDICTS
    assert checker.process_id is None


@pytest.mark.parametrize("reason", ["forbidden", "one core"])
async def test_there_need_not_be_a_process(reason: str, monkeypatch: pytest.MonkeyPatch) -> None:
    if reason == "one core":
        monkeypatch.setattr(signatures, "cores", lambda: 1)
    checker = SignatureChecker(beside=reason != "forbidden")
    assert await check_all(checker, MIXED) == VERDICTS
    await asyncio.sleep(0.05)
    assert checker._process is None
    await checker.close()


async def test_a_group_is_told_while_the_rest_is_still_asked_for() -> None:
    checker = SignatureChecker(group=4)
    await begin(checker)
    sent: list[int] = []
    told: list[bool] = []
    for item in MIXED[:10]:
        checker.submit(item, told.append)
        sent.append(len(checker._sent))
    assert sent == [0, 0, 0, 4, 4, 4, 4, 8, 8, 8]
    assert told == []
    await until(lambda: len(told) == 10)
    assert told == VERDICTS[:10]
    await checker.close()


async def test_groups_beyond_the_limit_wait_for_the_end_of_the_turn() -> None:
    checker = SignatureChecker(group=4)
    await begin(checker)
    told: list[bool] = []
    many = (MIXED * 4)[: signatures.MAX_SENT + 10]
    for item in many:
        checker.submit(item, told.append)
    assert len(checker._sent) == signatures.MAX_SENT
    assert told == []
    await until(lambda: len(told) == len(many))
    assert sorted(told) == sorted((VERDICTS * 4)[: len(many)])
    await checker.close()


@pytest.mark.parametrize("at_once", [MIXED[:1], GOOD[:3], MIXED[:3], BAD[:2]])
async def test_several_are_valid_if_each_is(
    checker: SignatureChecker, at_once: list[SignedMessage]
) -> None:
    for beside in (False, True):
        if beside:
            await begin(checker)
        told: list[bool] = []
        checker.submit_all(at_once, told.append)
        assert told == []
        await until(lambda: bool(told))  # noqa: B023 - called before the next round
        assert told == [all(item in GOOD for item in at_once)]


async def test_signatures_are_made_beside_between_checks(
    checker: SignatureChecker, monkeypatch: pytest.MonkeyPatch
) -> None:
    await begin(checker)

    def here(*_item: object, **_more: object) -> bool:
        raise AssertionError("done here")

    monkeypatch.setattr(signatures, "verify", here)
    monkeypatch.setattr(signatures, "sign", here)
    made: list[bytes] = []
    told: list[bool] = []
    messages = [b"to be signed %d" % number for number in range(40)]
    for item, message in zip(MIXED, messages, strict=False):
        checker.submit(item, told.append)
        checker.sign(*unsigned(message), made.append)
    await until(lambda: len(told) == len(made) == len(messages))
    assert told == VERDICTS[:40]
    for message, proof in zip(messages, made, strict=True):
        assert curve25519.verify(PAIR.public_key, message, proof)


def unsigned(message: bytes) -> tuple[bytes, bytes, bytes]:
    return PAIR.private_key, message, curve25519.signing_point(PAIR.private_key)


async def test_a_signature_that_comes_in_pieces_is_one(checker: SignatureChecker) -> None:
    await begin(checker)
    process = checker._process
    assert process is not None
    stop(process.id or 0)
    made: list[bytes] = []
    told: list[bool] = []
    for _ in range(2):
        checker.sign(*unsigned(b"message"), made.append)
        checker.submit(GOOD[0], told.append)
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    proofs = bytes(range(128))
    # Checks come first in what is sent together.
    for piece in (b"\1", b"\0" + proofs[:10], proofs[10:70], proofs[70:]):
        process.pipe_data_received(1, piece)
    assert told == [True, False]
    assert made == [proofs[:64], proofs[64:]]


@pytest.mark.parametrize("is_killed", [True, False])
async def test_what_the_process_does_not_sign_is_signed_here(
    checker: SignatureChecker, is_killed: bool
) -> None:
    if is_killed:
        stop(await begin(checker))
    made: list[bytes] = []
    for _ in range(5):
        checker.sign(*unsigned(b"message"), made.append)
    assert made == []
    await until(lambda: len(made) == 5)
    assert all(curve25519.verify(PAIR.public_key, b"message", proof) for proof in made)
