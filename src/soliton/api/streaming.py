"""Answers that come in pieces: from items to chunks, and chunks to a client until it goes away.

What lives here: the text around and between items, and sending it. What does not: where items come
from (the handlers), answers of ready bytes (``asgi``).
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator, AsyncIterator
from dataclasses import dataclass

import msgspec

from soliton.api.http import APPLICATION_JSON, JsonStream, NumberStream, RawStream, Relayed
from soliton.api.significands import with_strings
from soliton.api.turns import Turns
from soliton.web.significands import JSON_WITH_STRINGS, Accepted
from soliton.web.types import Headers, Message, Receive, Send

STREAM_CHUNK_BYTES = 32 * 1024
"""Items of a JSON stream are gathered up to this size before they are sent."""

encode_json = msgspec.json.Encoder().encode


@dataclass(frozen=True, slots=True)
class OpenStream:
    """A stream whose first chunk is there, unless it has none."""

    headers: Headers
    first: bytes | None
    rest: AsyncIterator[bytes]
    status: int = 200


async def open_stream(result: object, turns: Turns, wish: Accepted) -> OpenStream:
    """A stream with its first chunk, so that errors until there still show."""
    if isinstance(result, RawStream):
        chunks = aiter(result.chunks)
        first = await anext(chunks, None)
        headers = ((b"content-type", result.content_type), *result.headers)
        return OpenStream(headers, first, chunks)
    if isinstance(result, Relayed):
        chunks = aiter(result.chunks)
        return OpenStream(result.headers, await anext(chunks, None), chunks, result.status)
    content_type = JSON_WITH_STRINGS if wish is Accepted.STRINGS else APPLICATION_JSON
    if isinstance(result, JsonStream):
        chunks = _json_chunks(result, turns, as_strings=wish is Accepted.STRINGS)
        return OpenStream(
            ((b"content-type", content_type), *result.headers), await anext(chunks, None), chunks
        )
    assert isinstance(result, NumberStream)
    chunks = _member_chunks(result, turns, as_strings=wish is Accepted.STRINGS)
    return OpenStream(((b"content-type", content_type),), await anext(chunks, None), chunks)


async def send_stream(stream: OpenStream, more: Headers, receive: Receive, send: Send) -> None:
    """Chunk by chunk until the end, or until the client goes away."""
    headers = stream.headers + more
    await send({"type": "http.response.start", "status": stream.status, "headers": headers})
    task = asyncio.current_task()
    gone = asyncio.ensure_future(_disconnected(receive))
    if task is not None:
        gone.add_done_callback(lambda done: done.cancelled() or task.cancel())
    try:
        chunk = stream.first
        while chunk is not None:
            await send({"type": "http.response.body", "body": chunk, "more_body": True})
            chunk = await anext(stream.rest, None)
        await send({"type": "http.response.body", "body": b""})
    except asyncio.CancelledError:
        if not gone.done():
            raise
    finally:
        gone.cancel()
        # Not when the collector comes by: what feeds the stream ends with its client.
        if isinstance(stream.rest, AsyncGenerator):
            await stream.rest.aclose()


async def _disconnected(receive: Receive) -> None:
    message: Message = {"type": "http.request"}
    while message["type"] != "http.disconnect":
        message = await receive()


async def _json_chunks(
    stream: JsonStream, turns: Turns, *, as_strings: bool
) -> AsyncIterator[bytes]:
    gathered = bytearray(stream.prefix)
    first = True
    until = await turns.take()
    async for item in stream.items:
        if not first:
            gathered += b","
        first = False
        encoded = encode_json(item)
        ready = isinstance(item, msgspec.Raw)
        gathered += with_strings(encoded) if as_strings and not ready else encoded
        if len(gathered) >= STREAM_CHUNK_BYTES:
            yield bytes(gathered)
            gathered.clear()
        if time.perf_counter() > until:
            until = await turns.take()
    yield bytes(gathered + stream.suffix)


async def _member_chunks(
    stream: NumberStream, turns: Turns, *, as_strings: bool
) -> AsyncIterator[bytes]:
    gathered = bytearray(b"{")
    separator = b""
    until = await turns.take()
    async for name, number in stream.members:
        gathered += separator + encode_json(name) + b":"
        gathered += encode_json(str(number) if as_strings else number)
        separator = b","
        if len(gathered) >= STREAM_CHUNK_BYTES:
            yield bytes(gathered)
            gathered.clear()
        if time.perf_counter() > until:
            until = await turns.take()
    yield bytes(gathered + b"}")
