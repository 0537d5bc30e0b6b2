"""Documents in pieces: the same as in one go, and no piece holds others up."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import msgspec
import pytest

from soliton.api.documents import MadeInSlices, Part, json_pieces, whole, yaml_pieces
from soliton.api.time_slices import TimeSlices

PARTS: tuple[Part, ...] = (
    (("a",), [1, {"b": None, "c: d": "x\n"}, [], [[2]]]),
    (("e", "f"), {}),
    (("e", "g", "h"), True),
    (("e", "g", "i"), {"k": "ä"}),
    (("l", "m", "n"), []),
    (("o",), 0.5),
)
DOCUMENT = {
    "a": [1, {"b": None, "c: d": "x\n"}, [], [[2]]],
    "e": {"f": {}, "g": {"h": True, "i": {"k": "ä"}}},
    "l": {"m": {"n": []}},
    "o": 0.5,
}


def test_the_pieces_are_the_document() -> None:
    assert whole(PARTS) == DOCUMENT
    pieces = list(json_pieces(PARTS))
    assert len(pieces) == len(PARTS) + 2
    assert msgspec.json.decode(b"".join(pieces)) == DOCUMENT
    assert b"".join(json_pieces(())) == b"{}"


def test_yaml() -> None:
    assert b"".join(yaml_pieces(PARTS)).decode() == (
        '"a":\n  - 1\n  -\n    "b": null\n    "c: d": "x\\n"\n  - []\n  -\n    -\n      - 2\n'
        '"e":\n  "f": {}\n  "g":\n    "h": true\n    "i":\n      "k": "\\u00e4"\n'
        '"l":\n  "m":\n    "n": []\n"o": 0.5\n'
    )


async def test_all_who_ask_share_the_work_and_others_get_their_turn() -> None:
    begun = rounds = 0
    alive = True

    def pieces() -> Iterator[bytes]:
        nonlocal begun
        begun += 1
        for number in range(50):
            end = asyncio.get_running_loop().time() + 0.003
            while asyncio.get_running_loop().time() < end:
                pass
            yield b"%d," % number

    async def others() -> None:
        nonlocal rounds
        while alive:
            rounds += 1
            await asyncio.sleep(0)

    made, slices = MadeInSlices(pieces), TimeSlices()
    beside = asyncio.create_task(others())
    first, *rest = [asyncio.create_task(made.get(slices)) for _ in range(5)]
    await asyncio.sleep(0.02)
    # One of those who wait goes away; the others are served all the same.
    first.cancel()
    answers = await asyncio.gather(*rest)
    alive = False
    await beside
    assert set(answers) == {b"".join(b"%d," % number for number in range(50))}
    assert begun == 1
    # Each piece takes more than a slice: between two of them there is a round of the loop.
    assert rounds >= 50
    assert made.done is answers[0] is await made.get(slices)


async def test_what_fails_half_way_is_not_taken_for_whole() -> None:
    attempts = 0

    def pieces() -> Iterator[bytes]:
        nonlocal attempts
        attempts += 1
        yield b"half"
        if attempts == 1:
            raise RuntimeError("no more")
        yield b", whole"

    made, slices = MadeInSlices(pieces), TimeSlices()
    with pytest.raises(RuntimeError, match="no more"):
        await made.get(slices)
    assert made.done is None
    assert await made.get(slices) == b"half, whole"
