"""Clients of ill will at the port of the serving process: floods, silence, and whole crowds. They
are sent away, a client of good will beside them is answered, and memory and descriptors have a
bound.

The floods are those of CVE-2019-9511 to 9518, CVE-2023-44487 (rapid reset), CVE-2024-27316 and its
kin (continuations) and CVE-2025-8671 (streams that the server resets).
"""

from __future__ import annotations

import itertools
import socket
import struct
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

from soliton.node.grpc_settings import GrpcLimits
from tests.amounts import only_long
from tests.grpc_api.door import BLOCK, LONG, WATCH, Beside, Door, door_of
from tests.grpc_api.picky import (
    ACK,
    AWAY,
    CALM,
    CANCEL,
    DATA,
    END_HEADERS,
    END_STREAM,
    HEADERS,
    INITIAL_WINDOW,
    LARGEST_WINDOW,
    MORE,
    PADDED,
    PING,
    PREFACE,
    PRIORITY,
    RESET,
    SETTINGS,
    USUAL_FRAME,
    USUAL_WINDOW,
    Answer,
    Picky,
    frame,
    head,
    headers,
    literal,
    message,
    opened,
    settings,
    update,
    whole,
)

MIB = 1024 * 1024
MOST_BYTES = 64 * MIB
"""How much one client may cost; what the system takes for code and tables is in it."""
COUNT = 100_000
UNKNOWN_KIND = 0x42
STREAMS = range(1, 2 * COUNT, 2)
CANCELLED = struct.pack(">I", CANCEL)
SLOWEST_SECONDS = 5.0
TOGETHER = 500
"""Frames that go in one go."""
OPEN = opened(1)

FLOODS: dict[str, Iterator[bytes]] = {
    "rapid resets": (opened(each) + frame(RESET, 0, each, CANCELLED) for each in STREAMS),
    "rapid resets of whole calls": (
        whole(each, BLOCK, LONG) + frame(RESET, 0, each, CANCELLED) for each in STREAMS),
    "streams that the server is to reset": (opened(each) + update(each, 0) for each in STREAMS),
    "requests that break the rules": (
        headers(head() + literal("A", "b"), each) for each in STREAMS),
    "more streams than there may be": (opened(each) for each in STREAMS),
    "continuations": itertools.chain(
        (frame(HEADERS, 0, 1, head()),), itertools.repeat(frame(MORE, 0, 1), COUNT)),
    "continuations with headers": itertools.chain(
        (frame(HEADERS, 0, 1, head()),),
        itertools.repeat(frame(MORE, 0, 1, literal("a", "b" * 100)), COUNT)),
    "pings": itertools.repeat(frame(PING, 0, 0, bytes(8)), COUNT),
    "answers to no pings": itertools.repeat(frame(PING, ACK, 0, bytes(8)), COUNT),
    "settings": itertools.repeat(settings(), COUNT),
    "settings that change": itertools.cycle(
        (settings((INITIAL_WINDOW, 0)), settings((INITIAL_WINDOW, LARGEST_WINDOW)))),
    "long settings": itertools.repeat(settings(*[(INITIAL_WINDOW, 9)] * 2_000), COUNT),
    "settings acknowledged": itertools.repeat(frame(SETTINGS, ACK, 0), COUNT),
    "empty data": itertools.chain((OPEN,), itertools.repeat(frame(DATA, 0, 1), COUNT)),
    "data that is only padding": itertools.chain(
        (OPEN,), itertools.repeat(frame(DATA, PADDED, 1, b"\0"), COUNT)),
    "priorities": itertools.repeat(frame(PRIORITY, 0, 1, bytes(5)), COUNT),
    "farewells": itertools.repeat(frame(AWAY, 0, 0, bytes(8)), COUNT),
    "unknown frames": itertools.repeat(frame(UNKNOWN_KIND, 0, 0), COUNT),
    "windows": itertools.repeat(update(0, 1), COUNT),
    "windows of a stream": itertools.chain(
        (whole(1, WATCH),), itertools.repeat(update(1, 1), COUNT)),
}  # fmt: skip


@pytest.mark.parametrize("name", FLOODS)
def test_floods_end(door: Door, name: str) -> None:
    door.most_memory()
    before = door.most_memory()
    with Beside(door.port) as beside, Picky(door.port) as client:
        client.settle()
        flood = FLOODS[name]
        taken = 0
        while some := list(itertools.islice(flood, TOGETHER)):
            taken += len(some)
            if not client.send(*some) or taken > 2 * COUNT:
                break
            client.read(lambda: client.gone is not None, 0)
        assert client.end() == CALM, (client.gone, client.text)
    assert door.most_memory() - before < MOST_BYTES
    assert beside.slowest < SLOWEST_SECONDS


def test_large_headers_again_and_again(door: Door) -> None:
    """A table makes a few bytes into many: the request is refused, and costs no more than that."""
    door.most_memory()
    before = door.most_memory()
    with Beside(door.port) as beside, Picky(door.port) as client:
        client.send(headers(head() + literal("a", "b" * 4_000, 0x40), 1, END_HEADERS))
        client.send(frame(DATA, END_STREAM, 1, message()))
        assert client.answer(1).status == "0"
        for stream in range(3, 803, 2):
            # Of other blocks nothing is remembered.
            more = b"\xbe" * 15 + literal("n", str(stream))
            client.send(headers(head() + more, stream))
        assert client.read(lambda: client.on(801).is_over)
        assert {client.on(stream).status for stream in range(3, 803, 2)} == {"8"}
    assert door.most_memory() - before < MOST_BYTES
    assert beside.slowest < SLOWEST_SECONDS


@pytest.mark.parametrize("first", [message(), b"\0\0\0\0\1"])
def test_requests_that_go_on_behind_their_message(door: Door, first: bytes) -> None:
    """What nobody will read is not kept until the call is given up."""
    door.most_memory()
    before = door.most_memory()
    with Beside(door.port), Picky(door.port) as client:
        client.send(opened(1), frame(DATA, 0, 1, first))
        for _ in range(128 * MIB // USUAL_FRAME):
            client.send(frame(DATA, 0, 1, bytes(USUAL_FRAME)))
            client.read(lambda: client.on(1).is_over, 0)
        assert client.answer(1).status in ("12", "13")
        client.check(3)
    assert door.most_memory() - before < 32 * MIB


def test_a_window_that_widens_a_byte_at_a_time(door: Door) -> None:
    with Beside(door.port) as beside, Picky(door.port, (INITIAL_WINDOW, 0)) as client:
        client.widens = False
        client.send(whole(1, BLOCK, LONG))
        for count in range(5_000):
            client.widen(1, 1)
            if count % TOGETHER == 0:
                client.read(lambda: False, 0)
        assert client.read(lambda: len(client.on(1).data) == 5_000)
        client.widens = True
        client.widen(1, LARGEST_WINDOW // 2)
        assert client.answer(1).status == "0"
    assert beside.slowest < SLOWEST_SECONDS


# --- crowds, and silence --------------------------------------------------------------------------

READ_MS = 2_000
CONNECTIONS = 10_000
OF_ONE_CLIENT = 256
"""What the documents promise of one address."""


@pytest.fixture
def strict(tmp_path: Path) -> Iterator[Door]:
    """A process that counts clients on this machine as all others, and is in a hurry."""
    with door_of(tmp_path, limits=GrpcLimits(local_clients=True, read_ms=READ_MS)) as made:
        yield made


def test_who_reads_nothing(strict: Door) -> None:
    """100 long answers on each of some connections: they are held for a while, and then let go."""
    strict.most_memory()
    before = strict.most_memory()
    wide = (INITIAL_WINDOW, LARGEST_WINDOW)
    with Beside(strict.port) as beside:
        silent = [Picky(strict.port, wide, buffer=4_096) for _ in range(5)]
        for client in silent:
            client.widen(0, LARGEST_WINDOW - USUAL_WINDOW)
            client.send(*(whole(stream, BLOCK, LONG) for stream in STREAMS[:100]))
        # The process looks around every second.
        time.sleep(READ_MS / 1_000 + 3)
        for client in silent:
            client.widens = False
            answers = [client.on(stream) for stream in STREAMS[:100]]
            assert client.read(partial(_are_over, answers))
            given_up = [each for each in answers if each.status == "8" or each.reset == CALM]
            # What the systems on both sides hold has come, and nothing else.
            assert len(given_up) > 50
            client.close()
    # 500 answers of 120,000 bytes were made; each is there once, or twice for a moment.
    assert strict.most_memory() - before < 192 * MIB
    assert beside.slowest < SLOWEST_SECONDS


def _are_over(answers: list[Answer]) -> bool:
    return all(each.is_over for each in answers)


def test_a_crowd_of_one_address(strict: Door) -> None:
    with Beside(strict.port):
        before = strict.descriptors()
        crowd: list[socket.socket] = []
        most = 0
        for count in range(CONNECTIONS):
            crowd.append(socket.create_connection(("127.0.0.1", strict.port)))
            if count % 1_000 == 999:
                most = max(most, strict.descriptors())
        assert most <= before + OF_ONE_CLIENT + TOGETHER
        assert strict.settles(before + OF_ONE_CLIENT)
        # Each of those that are too many hears why, or nothing.
        told = Picky(strict.port)
        assert told.end() in (CALM, None)
        told.close()
        for each in crowd:
            each.close()
    assert strict.settles(before)


def test_a_crowd_of_clients_on_this_machine(door: Door) -> None:
    """They are not counted by address; but a port has so many connections, and no more."""
    with Beside(door.port) as beside:
        before = door.descriptors()
        crowd = [socket.create_connection(("127.0.0.1", door.port)) for _ in range(5_000)]
        assert door.settles(before + 4_096)
        for each in crowd:
            each.close()
        assert door.settles(before)
    assert beside.slowest < SLOWEST_SECONDS


@only_long
def test_who_does_not_say_what_it_wants(door: Door) -> None:
    """A connection that is silent, or says its first bytes one by one, has 20 seconds."""
    before = door.descriptors()
    slow = [socket.create_connection(("127.0.0.1", door.port)) for _ in range(60)]
    whole_preface = PREFACE + settings()
    end = time.monotonic() + 40
    sent = 0
    with Beside(door.port):
        while time.monotonic() < end and door.descriptors() > before + 1:
            for each in slow[:40]:
                try:
                    # Half of them would be done in a minute, the others begin otherwise.
                    each.send(whole_preface[sent : sent + 1])
                except OSError:
                    continue
            sent += 1
            time.sleep(1)
        assert door.descriptors() <= before + 1
        assert 15 <= sent <= 30
    for each in slow:
        each.close()
