"""Handlers of a forked chain, whose state is partly read from another node.

A handler that needs state which has not been read yet is called again when it has been. Handlers
change nothing before that. Other requests are answered meanwhile.

What lives here: the retry for each kind of result. What does not: the retry itself
(``soliton.storage.retrying``).
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
from soliton.storage.retrying import ReadPending, RetryContext, retry_until_read
from soliton.web.answers import Deferred, Stream

MAX_BYTES: Final = 64 * 1024 * 1024
"""The limit on a streamed answer, which a fork buffers as a whole before sending it."""
_TOO_LONG: Final = f"a fork has to have all of an answer first: {MAX_BYTES} bytes at most"


def answered(handler: Handler, request: Request) -> object:
    """The result of a handler; a coroutine if more has to be read or awaited."""
    patience = RetryContext()
    try:
        result = patience.attempt(partial(handler, request))
    except ReadPending as missing:
        return _again(patience, missing, handler, request)
    if isinstance(result, (Coroutine, Deferred)) or (
        isinstance(result, Stream) and not result.endless
    ):
        return _finished(patience, result, handler, request)
    return result


async def _again(
    patience: RetryContext, missing: ReadPending, handler: Handler, request: Request
) -> object:
    await patience.read(missing)
    return await retry_until_read(lambda: _whole(handler(request)), patience)


async def _finished(
    patience: RetryContext, result: object, handler: Handler, request: Request
) -> object:
    first = [result]
    return await retry_until_read(
        lambda: _whole(first.pop() if first else handler(request)), patience
    )


async def _whole(result: object) -> object:
    """The finished result, with all of its chunks if it is a stream."""
    if isinstance(result, Coroutine):
        result = await result
    if isinstance(result, Deferred):
        outcome: asyncio.Future[object] = asyncio.get_running_loop().create_future()
        result.ask(lambda found: None if outcome.done() else outcome.set_result(found))
        result = result.then(await outcome)
    if isinstance(result, Stream) and not result.endless:
        result = msgspec.structs.replace(result, chunks=_each(await _gathered(result.chunks)))
    return result


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
