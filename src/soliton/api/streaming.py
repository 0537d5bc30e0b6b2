"""Streamed responses: JSON from an iterator of items.

What lives here: the text around and between items, and charging the client for chunks. What does
not: the items (the handlers), streaming a finished body (``application``).
"""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Callable
from typing import TypeVar

import msgspec

from soliton.api.http import Request, encode_json
from soliton.api.measuring import measured_items
from soliton.api.number_strings import with_strings
from soliton.api.time_slices import TimeSlices
from soliton.errors import EnvironmentProblem
from soliton.web.answers import APPLICATION_JSON, Stream
from soliton.web.number_strings import JSON_WITH_STRINGS, Accepted
from soliton.web.types import Headers

T = TypeVar("T")

STREAM_CHUNK_BYTES = 32 * 1024
"""Items are buffered up to this size before they are sent."""


def json_stream(
    request: Request,
    items: AsyncIterator[object],
    prefix: bytes = b"[",
    suffix: bytes = b"]",
    headers: Headers = (),
) -> Stream:
    """Stream a JSON array, or what ``prefix`` and ``suffix`` make of the items.

    An item of type ``msgspec.Raw`` is JSON in the form that the client accepts already.
    """
    as_strings = request.accepts is Accepted.STRINGS

    def encode(item: object) -> bytes:
        encoded = encode_json(item)
        return with_strings(encoded) if as_strings and type(item) is not msgspec.Raw else encoded

    return _stream(request, measured_items(items, request.charge), encode, prefix, suffix, headers)


def number_stream(request: Request, members: AsyncIterator[tuple[str, int]]) -> Stream:
    """Stream a JSON object of numbers, which are strings for a client that accepts long numbers
    as strings.
    """
    as_strings = request.accepts is Accepted.STRINGS

    def encode(member: tuple[str, int]) -> bytes:
        name, number = member
        return encode_json(name) + b":" + encode_json(str(number) if as_strings else number)

    return _stream(request, members, encode, b"{", b"}", ())


def _stream(
    request: Request,
    items: AsyncIterator[T],
    encode: Callable[[T], bytes],
    prefix: bytes,
    suffix: bytes,
    headers: Headers,
) -> Stream:
    content_type = JSON_WITH_STRINGS if request.accepts is Accepted.STRINGS else APPLICATION_JSON
    chunks = _chunks(items, encode, prefix, suffix, request.context.time_slices)
    return Stream(chunks, ((b"content-type", content_type), *headers))


async def _chunks(
    items: AsyncIterator[T],
    encode: Callable[[T], bytes],
    prefix: bytes,
    suffix: bytes,
    slices: TimeSlices,
) -> AsyncIterator[bytes]:
    buffer, separator = bytearray(prefix), b""
    until = await slices.take()
    async for item in items:
        buffer += separator + encode(item)
        separator = b","
        if len(buffer) >= STREAM_CHUNK_BYTES:
            yield bytes(buffer)
            buffer.clear()
        if time.perf_counter() > until:
            until = await slices.take()
    yield bytes(buffer + suffix)


class Opened:
    """An iterator over the chunks of a response that has begun.

    ``charge`` is called with the length of each chunk, ``leave`` at the end.
    """

    __slots__ = ("_charge", "_first", "_leave", "_note", "_rest")

    def __init__(
        self,
        first: bytes | None,
        rest: AsyncIterator[bytes],
        charge: Callable[[int], None],
        leave: Callable[[], None],
        note: Callable[[EnvironmentProblem], None],
    ) -> None:
        """``note`` is called with an error that cuts the response off."""
        self._first = first
        self._rest = rest
        self._charge = charge
        self._leave = leave
        self._note = note

    def __aiter__(self) -> Opened:
        return self

    async def __anext__(self) -> bytes:
        chunk, self._first = self._first, None
        if chunk is None:
            try:
                chunk = await anext(self._rest)
            except EnvironmentProblem as error:
                self._note(error)
                raise
        self._charge(len(chunk))
        return chunk

    async def aclose(self) -> None:
        """Close the chunks: the client has received all of them, or has disconnected."""
        try:
            close = getattr(self._rest, "aclose", None)
            if close is not None:
                await close()
        finally:
            self._leave()
