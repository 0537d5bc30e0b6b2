"""Resolving the substitutions of a configuration, ``${path}``.

A path is looked up in the document, then in the defaults of the reference, then in ``properties``
(the environment). A self-reference takes the previous value of the key. Resolved values count
against a budget, so that references to references cannot grow exponentially.

What lives here: resolving a document into plain values. What does not: its syntax (``hocon``).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from soliton.node.hocon import (
    Document,
    HoconError,
    Items,
    Joined,
    Layers,
    Leaf,
    Node,
    Reference,
    Tree,
)

MAX_WORK: Final = 500_000
"""Values resolved, and characters of text joined: far more than any configuration has."""
MAX_NESTED: Final = 30
"""Nesting of references."""


class _Missing:
    """The value of an optional reference without a target."""


_MISSING: Final = _Missing()


Defaults = Callable[[str, Callable[[str], object]], Tree | None]
"""Returns the defaults for a path, a tree with its root, or ``None``. The function that it gets
returns a value of the document, ``None`` without one.
"""


def resolve(
    document: Document, properties: Mapping[str, str], defaults: Defaults | None = None
) -> tuple[dict[str, object], set[str]]:
    """Return the plain tree, and the paths that are referenced; raises ``HoconError``."""
    resolver = _Resolver(document.root, properties, defaults or (lambda _path, _peek: None))
    tree = resolver.section(document.root, "")
    return tree, resolver.referenced


class _Resolver:
    def __init__(self, root: Tree, properties: Mapping[str, str], defaults: Defaults) -> None:
        self._root = root
        self._properties = properties
        self._defaults = defaults
        self._work = 0
        self._nested = 0
        # The older layers of each value being resolved, by its path, the oldest first.
        self._hidden: dict[str, list[Node]] = {}
        self.referenced: set[str] = set()

    def section(self, tree: Tree, path: str) -> dict[str, object]:
        found = {}
        for key, node in tree.entries.items():
            value = self._value(node, f"{path}.{key}" if path else key)
            if not isinstance(value, _Missing):
                found[key] = value
        return found

    def _value(self, node: Node, path: str) -> object:
        self._spend(1)
        match node:
            case Leaf(value):
                return value
            case Tree():
                return self.section(node, path)
            case Items(items):
                made = [self._value(each, f"{path}[{n}]") for n, each in enumerate(items)]
                return [each for each in made if not isinstance(each, _Missing)]
            case Layers(nodes):
                return self._layers(nodes, path)
            case _:
                return self._layers([node], path)

    def _layers(self, nodes: list[Node], path: str) -> object:
        """Return the newest value of a key, merged with older ones."""
        *older, newest = nodes
        before = self._hidden.get(path)
        self._hidden[path] = older
        try:
            match newest:
                case Reference():
                    value = self._referred(newest)
                case Joined():
                    value = self._joined(newest, path)
                case _:
                    value = self._value(newest, path)
        finally:
            if before is None:
                del self._hidden[path]
            else:
                self._hidden[path] = before
        if older and (isinstance(value, dict | _Missing)):
            hidden = self._layers(older, path)
            if isinstance(value, _Missing):
                return hidden
            if isinstance(hidden, dict):
                return _merged(hidden, value)
        return value

    def _joined(self, node: Joined, path: str) -> object:
        values = [
            self._referred(part) if isinstance(part, Reference) else self._value(part, path)
            for part in node.parts
        ]
        there = [each for each in values if not isinstance(each, _Missing)]
        if not there:
            return _MISSING
        if all(isinstance(each, dict) for each in there):
            whole: dict[str, object] = {}
            for each in there:
                assert isinstance(each, dict)
                whole = _merged(whole, each)
            return whole
        if all(isinstance(each, list) for each in there):
            return [item for each in there if isinstance(each, list) for item in each]
        if any(isinstance(each, dict | list) for each in there):
            raise HoconError(f"{node.place}: a text, a section or a list cannot be joined")
        text = ""
        for number, (value, space) in enumerate(zip(values, node.spaces, strict=True)):
            text += space if number else ""
            text += "" if isinstance(value, _Missing) else _as_text(value)
        self._spend(len(text))
        return text.strip()

    def _referred(self, reference: Reference) -> object:
        if self._nested >= MAX_NESTED:
            raise HoconError(f"{reference.place}: references to references without end")
        self._nested += 1
        try:
            prefix = reference.prefix
            for path in ([f"{prefix}.{reference.path}"] if prefix else []) + [reference.path]:
                self.referenced.add(path)
                value = self._at(path)
                below = self._default(path, value)
                if not isinstance(below, _Missing):
                    return below
        finally:
            self._nested -= 1
        found = self._properties.get(reference.path)
        if found is not None:
            return found
        if reference.optional:
            return _MISSING
        raise HoconError(
            f"{reference.place}: ${{{reference.path}}} is neither in the file nor in the "
            "environment, and no default"
        )

    def _default(self, path: str, value: object) -> object:
        """Return a value of the document, a section with the defaults below it, or a default."""
        if not isinstance(value, _Missing | dict):
            return value
        node: Node | None = self._defaults(path, self._peek)
        for name in path.split("."):
            node = node.entries.get(name) if isinstance(node, Tree) else None
        if node is None:
            return value
        below = self._value(node, path)
        if isinstance(value, dict):
            return _merged(below, value) if isinstance(below, dict) else value
        return below

    def _peek(self, path: str) -> object:
        value = self._at(path)
        return None if isinstance(value, _Missing) else value

    def _at(self, path: str) -> object:
        """Return the value at a full path of the document."""
        if path in self._hidden:
            hidden = self._hidden[path]
            return self._layers(hidden, path) if hidden else _MISSING
        node: Node | None = self._root
        names = path.split(".")
        for number, name in enumerate(names):
            if isinstance(node, Tree):
                node = node.entries.get(name)
                continue
            if node is None:
                return _MISSING
            above = ".".join(names[:number])
            if above in self._hidden:
                hidden = self._hidden[above]
                value = self._layers(hidden, above) if hidden else _MISSING
            else:
                value = self._value(node, above)
            for rest in names[number:]:
                value = value.get(rest, _MISSING) if isinstance(value, dict) else _MISSING
            return value
        return _MISSING if node is None else self._value(node, path)

    def _spend(self, work: int) -> None:
        self._work += work
        if self._work > MAX_WORK:
            raise HoconError("too large when all ${…} in it are written out")


def _merged(older: dict[str, object], newer: dict[str, object]) -> dict[str, object]:
    whole = dict(older)
    for key, value in newer.items():
        before = whole.get(key)
        both = isinstance(before, dict) and isinstance(value, dict)
        whole[key] = _merged(before, value) if both else value  # type: ignore[arg-type]
    return whole


def _as_text(value: object) -> str:
    if value is None:
        return "null"
    return str(value).lower() if isinstance(value, bool) else str(value)
