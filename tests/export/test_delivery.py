"""Handing over, against receivers that fail, hang, go away and come back."""

from __future__ import annotations

import json
import sqlite3
import stat
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from soliton.errors import InputError
from soliton.export import delivery
from soliton.export.delivery import Courier, NotifyCommand, Webhook, read_secrets, signed_headers
from soliton.export.outbox import Waiting, WaitingNotices
from tests.e2e.programs import eventually
from tests.export.receiver import Receiver, receiving

SECRET = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"


def fill(path: Path, count: int) -> None:
    """A file with notices that wait."""
    WaitingNotices(path).close()
    with sqlite3.connect(path) as database:
        database.execute("INSERT INTO state VALUES ('stream', 'test')")
        for number in range(count):
            body = json.dumps({"event": "payment", "amount": number})
            database.execute("INSERT INTO notices (height, place, body) VALUES (1, 0, ?)", (body,))
    database.close()


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "cursor"
    fill(path, 5)
    return path


@pytest.fixture
def secret(tmp_path: Path) -> Path:
    path = tmp_path / "secret"
    path.write_text(SECRET + "\n")
    return path


@pytest.fixture(autouse=True)
def soon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(delivery, "RETRY_SECONDS", (0.01, 0.02))


@contextmanager
def couriers(
    path: Path, receiver: Webhook | NotifyCommand
) -> Iterator[tuple[Courier, threading.Event, list[str]]]:
    stopped, said = threading.Event(), list[str]()
    courier = Courier(path, receiver, stopped, said.append)
    courier.start()
    try:
        yield courier, stopped, said
    finally:
        stopped.set()
        courier.finish()


def amounts(receiver: Receiver) -> list[int]:
    return [each.notice["amount"] for each in receiver.got]


def test_the_signature_is_that_of_the_standard() -> None:
    """The example of https://docs.svix.com/receiving/verifying-payloads/how-manual."""
    notice = Waiting(1, "msg_p5jXN8AQM9LWM0D4loKWxJek", b'{"test": 2432232314}')
    (key,) = (read_secret(SECRET),)
    headers = dict(signed_headers(notice, [key, b"another"], 1_614_265_330))
    first, second = headers[b"webhook-signature"].split()
    assert first == b"v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="
    assert second.startswith(b"v1,") and second != first
    assert headers[b"webhook-timestamp"] == b"1614265330"


def read_secret(text: str) -> bytes:
    import base64

    return base64.b64decode(text.removeprefix("whsec_"))


def test_all_come_in_order_and_signed(file: Path, secret: Path) -> None:
    with receiving(SECRET) as receiver:
        webhook = Webhook(receiver.url, read_secrets(secret), 5.0)
        with couriers(file, webhook) as (courier, _, said):
            courier.finish()
        assert amounts(receiver) == [0, 1, 2, 3, 4]
        assert [each.name for each in receiver.got] == [f"test-{n}" for n in range(1, 6)]
        assert (receiver.wrong, said) == ([], [])
    waiting = WaitingNotices(file)
    assert waiting.next(10) == []
    waiting.close()


def test_one_that_fails_is_tried_again_until_it_is_taken(file: Path, secret: Path) -> None:
    with receiving(SECRET) as receiver:
        answers = iter((500, 503, 302, 404, 200, 200, 429, 200, 200, 200))
        receiver.behave = lambda _notice: next(answers)
        webhook = Webhook(receiver.url, read_secrets(secret), 5.0)
        with couriers(file, webhook) as (courier, _, said):
            courier.finish()
        assert amounts(receiver) == [0, 1, 2, 3, 4]
        assert receiver.attempts == 10
    assert said == [
        "a notice was not handed over, it is tried again: the receiver answers 500",
        "notices are handed over again",
        "a notice was not handed over, it is tried again: the receiver answers 429",
        "notices are handed over again",
    ]


def test_one_that_hangs_is_given_up_and_tried_again(file: Path, secret: Path) -> None:
    with receiving(SECRET) as receiver:
        answers = iter((None, None, 200, 200, 200, 200, 200))
        receiver.behave = lambda _notice: next(answers)
        webhook = Webhook(receiver.url, read_secrets(secret), 0.2)
        with couriers(file, webhook) as (courier, _, _):
            courier.finish()
        # One that took it but was too slow to say so gets it again under its name.
        assert amounts(receiver)[-1] == 4
        assert sorted(set(amounts(receiver))) == [0, 1, 2, 3, 4]


def test_a_stop_ends_it_whatever_the_receiver_does(file: Path, secret: Path) -> None:
    with receiving(SECRET) as receiver:
        receiver.behave = lambda _notice: None
        webhook = Webhook(receiver.url, read_secrets(secret), 1_000.0)
        with couriers(file, webhook) as (courier, stopped, _):
            eventually(lambda: receiver.attempts == 1, "an attempt")
            stopped.set()
            courier.finish()
        assert receiver.got == []


def test_a_receiver_that_is_away_comes_back(file: Path, secret: Path) -> None:
    first = Receiver(SECRET)
    port = first.port
    first.behave = lambda notice: 200 if notice["amount"] < 2 else 500
    webhook = Webhook(first.url, read_secrets(secret), 5.0)
    with couriers(file, webhook) as (courier, _, said):
        eventually(lambda: first.attempts > 2, "an attempt that fails")
        first.close()
        eventually(lambda: bool(said), "a word")
        second = Receiver(SECRET, port)
        courier.finish()
        second.close()
    assert amounts(first) + amounts(second) == [0, 1, 2, 3, 4]


PROGRAM = """
import os, sys, json, pathlib
place = pathlib.Path(sys.argv[1])
notice = json.loads(sys.stdin.read())
tried = place / f"tried-{notice['amount']}"
if not tried.exists():
    tried.touch()
    if notice["amount"] == 1:
        sys.exit(3)
    if notice["amount"] == 2:
        import time
        time.sleep(1_000)
with (place / "lines").open("a") as file:
    file.write(f"{os.environ['SOLITON_NOTICE']} {notice['amount']}\\n")
"""


def test_a_program_is_run_for_each_until_it_ends_well(file: Path, tmp_path: Path) -> None:
    script = tmp_path / "program.py"
    script.write_text(PROGRAM)
    # One that hangs is ended after this time; starting takes a part of it.
    program = NotifyCommand([sys.executable, str(script), str(tmp_path)], 3.0)
    with couriers(file, program) as (courier, _, said):
        courier.finish()
    lines = (tmp_path / "lines").read_text().splitlines()
    assert list(dict.fromkeys(lines)) == [f"test-{n + 1} {n}" for n in range(5)]
    assert any("ended with code 3" in each for each in said)
    assert any("did not finish in 3 s" in each for each in said)


@pytest.mark.parametrize("url", ["http://h/\u043f", "http://h/a b", "http://h/\x7f", "http://[h"])
def test_an_address_of_no_use(url: str) -> None:
    with pytest.raises(InputError, match="URL"):
        Webhook(url, [b"secret"], 5.0)


def test_a_program_that_is_not_there(file: Path) -> None:
    with couriers(file, NotifyCommand(["/nowhere/program"], 3.0)) as (_, _, said):
        eventually(lambda: bool(said), "a word")
    assert "/nowhere/program: No such file or directory" in said[0]


def test_a_secret_is_made_and_read(tmp_path: Path) -> None:
    path = tmp_path / "made"
    (made,) = read_secrets(path)
    assert len(made) == 32
    assert read_secrets(path) == [made]
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    for text in ("", "whsec_", "whsec_!!!"):
        path.write_text(text)
        with pytest.raises(InputError):
            read_secrets(path)
    with pytest.raises(InputError):
        read_secrets(tmp_path)
