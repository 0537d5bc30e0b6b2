"""Messages with their lengths, packed ones, statuses as headers, times."""

from __future__ import annotations

import gzip
import zlib
from urllib.parse import unquote

import hpack
import pytest
from hypothesis import given
from hypothesis import strategies as st

from soliton.grpc_api import framing
from soliton.grpc_api.errors import Code, Refused


def headers(block: bytes) -> list[tuple[str, str]]:
    return [(str(name), str(value)) for name, value in hpack.Decoder().decode(block)]


@given(st.text(max_size=200))
def test_words_of_a_status(words: str) -> None:
    found = dict(headers(framing.status(Code.NOT_FOUND, words, (), is_all=False)))
    assert found["grpc-status"] == "5"
    shown = found.get("grpc-message", "")
    assert shown.isascii() and shown.isprintable()
    assert unquote(shown, errors="surrogateescape") == words.encode("utf-8", "replace").decode()


@pytest.mark.parametrize("letter", ["a", "%", "\u00e4", "\U0001f30a"])
@pytest.mark.parametrize("before", range(3))
def test_long_words_are_cut_but_not_inside_of_an_escape(letter: str, before: int) -> None:
    made = framing.escaped("b" * before + letter * 20_000)
    assert framing.MAX_TEXT_BYTES - 3 <= len(made) <= framing.MAX_TEXT_BYTES
    assert unquote(made.decode(), errors="ignore").startswith("b" * before + letter * 300)
    assert b"%" not in made[-2:]


def test_an_answer_that_is_a_status_alone() -> None:
    trailers = (("error-code", "301"), ("desc", "caf\u00e9\r\n x "))
    found = headers(framing.status(Code.INVALID_ARGUMENT, "no", trailers, is_all=True))
    assert found == [
        (":status", "200"),
        ("content-type", "application/grpc"),
        ("grpc-status", "3"),
        ("grpc-message", "no"),
        ("error-code", "301"),
        ("desc", "caf??? x"),
    ]


def test_every_status_has_the_number_of_the_protocol() -> None:
    # grpc/grpc doc/statuscodes.md
    expected = {
        "CANCELLED": 1,
        "UNKNOWN": 2,
        "INVALID_ARGUMENT": 3,
        "DEADLINE_EXCEEDED": 4,
        "NOT_FOUND": 5,
        "ALREADY_EXISTS": 6,
        "RESOURCE_EXHAUSTED": 8,
        "FAILED_PRECONDITION": 9,
        "UNIMPLEMENTED": 12,
        "INTERNAL": 13,
        "UNAVAILABLE": 14,
    }
    assert {each.name: framing.number_of(each) for each in Code} == expected


@pytest.mark.parametrize(
    ("text", "seconds"),
    [(b"1H", 3_600), (b"2M", 120), (b"3S", 3), (b"250m", 0.25), (b"5u", 5e-6), (b"99999999n", 0.1)],
)
def test_times(text: bytes, seconds: float) -> None:
    assert framing.seconds_of(text) == pytest.approx(seconds)


@pytest.mark.parametrize("text", [b"", b"S", b"1", b"1s", b"-1S", b"1.5S", b"123456789S", b"1 S"])
def test_what_is_no_time(text: bytes) -> None:
    with pytest.raises(Refused):
        framing.seconds_of(text)


def test_lengths() -> None:
    assert framing.length_of(b"\0\0\0\1") is None
    assert framing.length_of(framing.message(b"abc")) == 3
    assert framing.length_of(b"\0\0\x40\0\0") == framing.MAX_REQUEST_BYTES
    with pytest.raises(Refused) as refused:
        framing.length_of(b"\0\0\x40\0\1")
    words = "Received message larger than max (4194305 vs. 4194304)"
    assert (refused.value.code, refused.value.text) == (Code.RESOURCE_EXHAUSTED, words)


@given(st.binary(max_size=2_000))
def test_packed_messages(data: bytes) -> None:
    assert framing.unpacked(0, data, is_gzip=False) == data
    assert framing.unpacked(1, gzip.compress(data, mtime=0), is_gzip=True) == data


BOMB = gzip.compress(bytes(framing.MAX_REQUEST_BYTES + 1), mtime=0)


@pytest.mark.parametrize(
    ("flag", "data", "is_gzip", "code"),
    [
        (1, gzip.compress(b"x", mtime=0), False, Code.INTERNAL),
        (2, gzip.compress(b"x", mtime=0), True, Code.INTERNAL),
        (1, b"x", True, Code.INTERNAL),
        (1, zlib.compress(b"x"), True, Code.INTERNAL),
        (1, gzip.compress(b"x", mtime=0)[:-1], True, Code.INTERNAL),
        (1, gzip.compress(b"x", mtime=0) + b"y", True, Code.INTERNAL),
        (1, BOMB, True, Code.RESOURCE_EXHAUSTED),
    ],
)
def test_what_cannot_be_unpacked(flag: int, data: bytes, is_gzip: bool, code: Code) -> None:
    with pytest.raises(Refused) as refused:
        framing.unpacked(flag, data, is_gzip=is_gzip)
    assert refused.value.code is code
