"""The same hostile inputs in every run: damaged forms of valid encodings, and known bombs."""

from __future__ import annotations

import random
import tracemalloc

import pytest

from tests.fuzzing.decoders import DECODERS, one_input
from tests.fuzzing.seeds import seeds

MUTATIONS_OF_EACH = 6
MAX_ALLOCATION_FACTOR = 2_000
"""A byte of input may cost so many bytes of memory: the smallest records have a few dozen."""
ALLOCATION_FLOOR = 4 * 1024 * 1024


def _damaged(seed: bytes, chance: random.Random) -> bytes:
    """One of: a flipped bit, a cut, an insertion, a repetition, a huge number in the middle."""
    data = bytearray(seed)
    at = chance.randrange(1, len(data)) if len(data) > 1 else 0
    match chance.randrange(5):
        case 0:
            data[at] ^= 1 << chance.randrange(8)
        case 1:
            del data[at:]
        case 2:
            data[at:at] = chance.randbytes(chance.randrange(1, 9))
        case 3:
            data += data[at:]
        case _:
            data[at : at + 4] = chance.choice((b"\xff" * 4, b"\x7f\xff\xff\xff", b"\x80\0\0\0"))
    return bytes(data)


def test_valid_encodings_and_their_damaged_forms() -> None:
    chance = random.Random(4)
    count = 0
    for seed in seeds():
        one_input(seed)
        for _ in range(MUTATIONS_OF_EACH):
            one_input(_damaged(seed, chance))
            count += 1
    assert count > 500


FOUND = [
    # A genesis transaction in protobuf with a sender and a fee, which it cannot have.
    (
        "010a58085712"
        "2013ad447bc0f4eca2a3fc6c773d03ee5cd390473caaa0e2e6babffded2d43f6041a0410a08d0620b8d6f3c59f34"
        "2802aa06220a20de5f2b51d05f5b73e2daac3451467e5d3d3c5bd1981906d5457796bd573a597a"
    ),
]


@pytest.mark.parametrize("text", FOUND)
def test_what_fuzzing_has_found(text: str) -> None:
    one_input(bytes.fromhex(text))


BOMBS = [
    b"",
    b"\0",
    b"\xff" * 40,
    b"\x7f" * 40,
    b"[" * 100_000,
    b'{"a":' * 50_000,
    b"9" * 100_000,
    b"\x0a\xff\xff\xff\xff\x0f",
    b"\x0a\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80\x01",
    b"\x0c\x01" + bytes(32) + b"\x7f\xff" * 20,
    b"\x00\x0c\x01" + bytes(32) + b"\x7f\xff" * 20,
    b'{"type":4,"fee":1e400,"amount":-0.0}',
    b'{"type":12,"data":[{"key":"\\ud800","type":"string","value":"x"}]}',
    b'{"type":99999999999999999999999999}',
]


@pytest.mark.parametrize("bomb", BOMBS, ids=lambda bomb: bomb[:12].hex() or "nothing")
def test_bombs(bomb: bytes) -> None:
    for number in range(len(DECODERS)):
        one_input(bytes((number,)) + bomb)


@pytest.mark.parametrize("bomb", BOMBS, ids=lambda bomb: bomb[:12].hex() or "nothing")
def test_memory_follows_the_size_of_the_input(bomb: bytes) -> None:
    for number in range(len(DECODERS)):
        tracemalloc.start()
        try:
            one_input(bytes((number,)) + bomb)
            _, peak = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()
        assert peak < ALLOCATION_FLOOR + MAX_ALLOCATION_FACTOR * len(bomb)
