"""Answers on a chain that is read from afar are sent when all of them is there: up to a limit."""

from __future__ import annotations

from collections.abc import AsyncIterator, Coroutine
from typing import Any, cast

import pytest

from soliton.api import patient
from soliton.api.http import Request
from soliton.storage.errors import BelowProblem
from soliton.web.answers import Stream

NOBODY = cast("Request", None)


async def pieces(count: int) -> AsyncIterator[bytes]:
    for _ in range(count):
        yield b"12345"


async def answered(count: int) -> list[bytes]:
    given = patient.answered(lambda _: Stream(pieces(count), ()), NOBODY)
    made = await cast("Coroutine[Any, Any, Stream]", given)
    return [each async for each in made.chunks]


async def test_an_answer_has_a_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(patient, "MAX_BYTES", 20)
    assert await answered(4) == [b"12345"] * 4
    with pytest.raises(BelowProblem, match="all of an answer first"):
        await answered(5)
