"""Answers of a node that stands on the chain of another one, which may take its time: others are
answered meanwhile.

A handler that needs what has not been read is called again when that is there. Until then it has
changed nothing.

What lives here: doing so with each kind of result. What does not: beginning again
(``soliton.storage.patience``).
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Coroutine
from functools import partial
from typing import Final

import msgspec

from soliton.api.http import Request
from soliton.api.routes import Handler
from soliton.storage.errors import BelowProblem
from soliton.storage.patience import NotReadYet, Patience, patiently
from soliton.web.answers import Deferred, Stream

MAX_BYTES: Final = 64 * 1024 * 1024
"""Of an answer that is made piece by piece: it is sent when all of it is there."""
_TOO_LONG: Final = f"a fork has to have all of an answer first: {MAX_BYTES} bytes at most"


def answered(handler: Handler, request: Request) -> object:
    """What a handler gives; a coroutine if it takes more than what has been read."""
    patience = Patience()
    try:
        given = patience.attempt(partial(handler, request))
    except NotReadYet as missing:
        return _again(patience, missing, handler, request)
    if isinstance(given, (Coroutine, Deferred)) or (
        isinstance(given, Stream) and not given.endless
    ):
        return _finished(patience, given, handler, request)
    return given


async def _again(
    patience: Patience, missing: NotReadYet, handler: Handler, request: Request
) -> object:
    await patience.read(missing)
    return await patiently(lambda: _whole(handler(request)), patience)


async def _finished(
    patience: Patience, given: object, handler: Handler, request: Request
) -> object:
    begun = [given]
    return await patiently(lambda: _whole(begun.pop() if begun else handler(request)), patience)


async def _whole(given: object) -> object:
    """A result for which nothing has to be read any more."""
    if isinstance(given, Coroutine):
        given = await given
    if isinstance(given, Deferred):
        outcome: asyncio.Future[object] = asyncio.get_running_loop().create_future()
        given.ask(lambda found: None if outcome.done() else outcome.set_result(found))
        given = given.then(await outcome)
    if isinstance(given, Stream) and not given.endless:
        given = msgspec.structs.replace(given, chunks=_each(await _gathered(given.chunks)))
    return given


async def _gathered(chunks: AsyncIterator[bytes]) -> list[bytes]:
    found: list[bytes] = []
    size = 0
    async for each in chunks:
        found.append(each)
        size += len(each)
        if size > MAX_BYTES:
            raise BelowProblem(_TOO_LONG)
    return found


async def _each(chunks: list[bytes]) -> AsyncIterator[bytes]:
    for each in chunks:
        yield each
