"""Encoding of long documents in steps, so that other requests are served in between.

What lives here: documents as parts, encoding parts as JSON or YAML, and bytes that are made at the
first request, in time slices. What does not: the content (``openapi``).
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

import msgspec

from soliton.api.time_slices import TimeSlices

Part = tuple[tuple[str, ...], object]
"""The path of a value in a document, and the value. Parts of one object are consecutive."""


def whole(parts: Iterable[Part]) -> dict[str, Any]:
    """The document made of the parts, as JSON values."""
    document: dict[str, Any] = {}
    for (*path, name), value in parts:
        inner = document
        for each in path:
            inner = inner.setdefault(each, {})
        inner[name] = value
    return document


def json_pieces(parts: Iterable[Part]) -> Iterator[bytes]:
    """The document as JSON: a piece for each part, and one for each end."""
    parent: list[str] = []
    separator = b""
    yield b"{"
    for (*path, name), value in parts:
        common = _common_length(parent, path)
        closing = b"}" * (len(parent) - common)
        opening = b"".join(_member(step) + b"{" for step in path[common:])
        yield closing + separator + opening + _member(name) + msgspec.json.encode(value)
        parent, separator = path, b","
    yield b"}" * (len(parent) + 1)


def _member(name: str) -> bytes:
    return msgspec.json.encode(name) + b":"


def _common_length(one: list[str], other: list[str]) -> int:
    pairs = enumerate(zip(one, other, strict=False))
    return next((at for at, (a, b) in pairs if a != b), min(len(one), len(other)))


def yaml_pieces(parts: Iterable[Part]) -> Iterator[bytes]:
    """The document as block-style YAML. Strings are quoted as in JSON, a subset of YAML 1.2."""
    parent: list[str] = []
    for (*path, name), value in parts:
        common = _common_length(parent, path)
        lines = [f"{'  ' * depth}{json.dumps(path[depth])}:" for depth in range(common, len(path))]
        indent = "  " * len(path)
        lines += _yaml_entry(f"{indent}{json.dumps(name)}:", value, indent)
        parent = path
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
    """Bytes that are made at the first request, in time slices.

    Concurrent requests share the work: each continues it, so that it also ends when some of them
    are cancelled.
    """

    __slots__ = ("_begin", "_done", "_made", "_rest")

    def __init__(self, begin: Callable[[], Iterator[bytes]]) -> None:
        self._begin = begin
        self._rest: Iterator[bytes] | None = None
        self._made: list[bytes] = []
        self._done: bytes | None = None

    @property
    def done(self) -> bytes | None:
        """The bytes if they are complete."""
        return self._done

    async def get(self, slices: TimeSlices) -> bytes:
        """Make the bytes, or the rest of them, and return them."""
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
            # Restart after a failure, so that a partial result is never returned.
            self._rest, self._made = None, []
            raise
        if self._done is None:
            self._done = b"".join(self._made)
            self._rest, self._made = iter(()), []
