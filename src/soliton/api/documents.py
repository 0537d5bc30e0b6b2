"""Long documents that are written piece by piece, with requests in between.

What lives here: a document as parts, the parts as pieces of JSON or YAML, and bytes that are made
when they are first asked for, in slices. What does not: what is in a document (``openapi``).
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

import msgspec

from soliton.api.time_slices import TimeSlices

Part = tuple[tuple[str, ...], object]
"""Where it is in a document, as the names on the way there, and what it is. Parts of one object
come one after another.
"""


def whole(parts: Iterable[Part]) -> dict[str, Any]:
    """The document that the parts make, as JSON values."""
    document: dict[str, Any] = {}
    for (*way, name), value in parts:
        inner = document
        for each in way:
            inner = inner.setdefault(each, {})
        inner[name] = value
    return document


def json_pieces(parts: Iterable[Part]) -> Iterator[bytes]:
    """The document as JSON: a piece for each part, and one for either end."""
    inside: list[str] = []
    before = b""
    yield b"{"
    for (*way, name), value in parts:
        same = _same_steps(inside, way)
        closing = b"}" * (len(inside) - same)
        opening = b"".join(_member(step) + b"{" for step in way[same:])
        yield closing + before + opening + _member(name) + msgspec.json.encode(value)
        inside, before = way, b","
    yield b"}" * (len(inside) + 1)


def _member(name: str) -> bytes:
    return msgspec.json.encode(name) + b":"


def _same_steps(one: list[str], other: list[str]) -> int:
    count = 0
    for mine, yours in zip(one, other, strict=False):
        if mine != yours:
            break
        count += 1
    return count


def yaml_pieces(parts: Iterable[Part]) -> Iterator[bytes]:
    """The document as block-style YAML; strings are quoted as in JSON, which YAML 1.2 contains."""
    inside: list[str] = []
    for (*way, name), value in parts:
        same = _same_steps(inside, way)
        lines = [f"{'  ' * depth}{json.dumps(way[depth])}:" for depth in range(same, len(way))]
        indent = "  " * len(way)
        lines += _yaml_entry(f"{indent}{json.dumps(name)}:", value, indent)
        inside = way
        yield ("\n".join(lines) + "\n").encode()


def _yaml_lines(value: object, indent: str) -> Iterator[str]:
    if isinstance(value, Mapping) and value:
        for name, member in value.items():
            yield from _yaml_entry(f"{indent}{json.dumps(name)}:", member, indent)
    elif isinstance(value, list | tuple) and value:
        for item in value:
            yield from _yaml_entry(f"{indent}-", item, indent)
    else:
        yield indent + json.dumps(value)


def _yaml_entry(head: str, value: object, indent: str) -> Iterator[str]:
    if isinstance(value, Mapping | list | tuple) and value:
        yield head
        yield from _yaml_lines(value, indent + "  ")
    else:
        yield f"{head} {json.dumps(value)}"


class MadeInSlices:
    """Bytes that are made when they are first asked for, a slice in each turn.

    All who ask meanwhile carry the same work on, so that it is done once, also where some of them
    go away.
    """

    __slots__ = ("_begin", "_done", "_made", "_rest")

    def __init__(self, begin: Callable[[], Iterator[bytes]]) -> None:
        self._begin = begin
        self._rest: Iterator[bytes] | None = None
        self._made: list[bytes] = []
        self._done: bytes | None = None

    @property
    def done(self) -> bytes | None:
        """The bytes, if they are there already."""
        return self._done

    async def get(self, slices: TimeSlices) -> bytes:
        """The bytes, as soon as they are there."""
        while self._done is None:
            self._carry_on(await slices.take())
        return self._done

    def _carry_on(self, end: float) -> None:
        if self._rest is None:
            self._rest = self._begin()
        try:
            for piece in self._rest:
                self._made.append(piece)
                if time.perf_counter() >= end:
                    return
        except BaseException:
            # What has failed half-way is begun anew, and is never taken for whole.
            self._rest, self._made = None, []
            raise
        if self._done is None:
            self._done = b"".join(self._made)
            self._rest, self._made = iter(()), []
