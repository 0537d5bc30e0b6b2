"""Answers that come in pieces: from items to chunks of JSON.

What lives here: the text around and between items, and the account of a client that reads them.
What does not: where items come from (the handlers), answers of ready bytes (``application``).
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
"""Items of a JSON stream are gathered up to this size before they are sent."""


def json_stream(
    request: Request,
    items: AsyncIterator[object],
    prefix: bytes = b"[",
    suffix: bytes = b"]",
    headers: Headers = (),
) -> Stream:
    """A JSON array (or what ``prefix`` and ``suffix`` say) sent in chunks, item by item.

    An item that is ``msgspec.Raw`` is text in the form that the client wishes.
    """
    as_strings = request.wish is Accepted.STRINGS

    def encode(item: object) -> bytes:
        encoded = encode_json(item)
        return with_strings(encoded) if as_strings and type(item) is not msgspec.Raw else encoded

    return _stream(request, measured_items(items, request.charge), encode, prefix, suffix, headers)


def number_stream(request: Request, members: AsyncIterator[tuple[str, int]]) -> Stream:
    """A JSON object of numbers sent in chunks, member by member; all of them become strings for a
    client that wants large numbers so.
    """
    as_strings = request.wish is Accepted.STRINGS

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
    content_type = JSON_WITH_STRINGS if request.wish is Accepted.STRINGS else APPLICATION_JSON
    chunks = _chunks(items, encode, prefix, suffix, request.context.time_slices)
    return Stream(chunks, ((b"content-type", content_type), *headers))


async def _chunks(
    items: AsyncIterator[T],
    encode: Callable[[T], bytes],
    prefix: bytes,
    suffix: bytes,
    slices: TimeSlices,
) -> AsyncIterator[bytes]:
    gathered, separator = bytearray(prefix), b""
    until = await slices.take()
    async for item in items:
        gathered += separator + encode(item)
        separator = b","
        if len(gathered) >= STREAM_CHUNK_BYTES:
            yield bytes(gathered)
            gathered.clear()
        if time.perf_counter() > until:
            until = await slices.take()
    yield bytes(gathered + suffix)


class Opened:
    """Chunks whose ``first`` is there; each is charged for, and at their end somebody is told."""

    __slots__ = ("_charge", "_first", "_leave", "_note", "_rest")

    def __init__(
        self,
        first: bytes | None,
        rest: AsyncIterator[bytes],
        charge: Callable[[int], None],
        leave: Callable[[], None],
        note: Callable[[EnvironmentProblem], None],
    ) -> None:
        """``note`` hears of a trouble that breaks the answer off."""
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
        """The client has all of it, or has gone."""
        try:
            close = getattr(self._rest, "aclose", None)
            if close is not None:
                await close()
        finally:
            self._leave()
