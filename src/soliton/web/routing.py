"""Finding the routes that match a path.

Several routes may match one path. They are tried in order, static segments before parameters, and
when a parameter rejects its segment the next route is tried, like with ``~`` of akka-http in
wavesplatform/Waves ``node/src/main/scala/com/wavesplatform/api/http/CompositeHttpService.scala``.

What lives here: the trie of path segments. What does not: the routes (the services), and the types
of parameters (``parameters``).
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, Generic, TypeVar
from urllib.parse import unquote

from soliton.web.request import RejectionError

T = TypeVar("T")

MAX_PATH_SEGMENTS: Final = 16
"""No route is half as deep; longer paths are refused before any search."""
WHATEVER: Final = "*"
"""A wildcard as the last segment of a route's path: matches any rest, also an empty one."""


class _Node(Generic[T]):
    __slots__ = ("below", "parameter", "routes", "static")

    def __init__(self) -> None:
        self.static: dict[str, _Node[T]] = {}
        self.parameter: _Node[T] | None = None
        self.routes: list[T] = []
        self.below: list[T] = []
        """Routes that match any rest of the path."""


class Router(Generic[T]):
    """The trie of all routes; paths without parameters are looked up in one step."""

    __slots__ = ("_fixed", "_root")

    def __init__(self, routes: Iterable[tuple[str, T]]) -> None:
        """``routes`` are paths, with parameters in braces, and their routes."""
        self._root = _Node[T]()
        fixed: list[str] = []
        for path, route in routes:
            node = self._root
            for segment in path.split("/")[1:]:
                if segment == WHATEVER:
                    break
                if segment.startswith("{"):
                    if node.parameter is None:
                        node.parameter = _Node()
                    node = node.parameter
                else:
                    node = node.static.setdefault(segment, _Node())
            (node.below if path.endswith(f"/{WHATEVER}") else node.routes).append(route)
            if "{" not in path:
                fixed.append(path)
        self._fixed = {path: self._search(path) for path in fixed}

    def find(self, raw_path: str) -> list[tuple[T, tuple[str, ...]]]:
        """Return the routes that match a raw path, in the order in which to try them, each with the
        texts of its parameters.
        """
        fixed = self._fixed.get(raw_path)
        return self._search(raw_path) if fixed is None else fixed

    def _search(self, raw_path: str) -> list[tuple[T, tuple[str, ...]]]:
        segments = raw_path.split("/", MAX_PATH_SEGMENTS + 1)[1:]
        found: list[tuple[T, tuple[str, ...]]] = []
        if len(segments) > MAX_PATH_SEGMENTS:
            return found
        if "%" in raw_path:
            try:
                segments = [unquote(segment, errors="strict") for segment in segments]
            except UnicodeDecodeError as error:
                raise RejectionError("path is not UTF-8") from error
        _walk(self._root, segments, 0, (), found)
        return found


def _walk(
    node: _Node[T],
    segments: list[str],
    index: int,
    taken: tuple[str, ...],
    found: list[tuple[T, tuple[str, ...]]],
) -> None:
    if index == len(segments):
        found.extend((route, taken) for route in node.routes)
        return
    segment = segments[index]
    child = node.static.get(segment)
    if child is not None:
        _walk(child, segments, index + 1, taken, found)
    if node.parameter is not None and segment:
        _walk(node.parameter, segments, index + 1, (*taken, segment), found)
    found.extend((route, taken) for route in node.below)
