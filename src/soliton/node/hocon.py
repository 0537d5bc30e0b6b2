"""Parser of HOCON, the format of configuration files, into a tree with the place of every key.

It covers all that configurations of the ecosystem use: comments, paths as keys, merging of
sections, ``+=``, concatenation, ``include``, and substitutions from the file or the environment,
including self-references. Messages name file, line and column, and never quote values, which may be
passwords. Work and size are bounded, also for substitutions that multiply each other.

What lives here: tokens and the tree. What does not: substitutions (``hocon_resolving``), files
(``settings_file``), and what the keys mean.

Source: lightbend/config ``HOCON.md``.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Final, NamedTuple, NoReturn

import msgspec

from soliton.errors import InputError

MAX_DEPTH: Final = 64
"""Nesting of sections and lists; configurations have six levels."""
MAX_INCLUDES: Final = 10
"""Nesting of includes."""

_TOKEN: Final = re.compile(
    r"""(?P<space>[^\S\n]*)(?:
      (?P<line>\n)
    | (?P<comment>(?:\#|//)[^\n]*)
    | (?P<triple>\"\"\")
    | (?P<quoted>"(?:[^"\\\n]|\\[^\n])*")
    | \$\{(?P<reference>[^}\n]*)\}
    | (?P<sign>\+=|[{}\[\],=]|:(?!//))
    | (?P<text>(?:[^\s"{}\[\],=:\#$+/]|/(?!/)|\+(?!=)|://)+)
    | (?P<end>\Z)
    )""",
    re.VERBOSE,
)
_WHOLE: Final = re.compile(r"-?[0-9]{1,40}")
_NUMBER: Final = re.compile(r"-?[0-9]{1,40}(?:\.[0-9]{1,40})?(?:[eE][-+]?[0-9]{1,3})?")
_WORDS: Final[Mapping[str, object]] = {"true": True, "false": False, "null": None}


class HoconError(InputError):
    """The text is not valid HOCON; the message begins with the place."""


class Place(NamedTuple):
    """Where something was written."""

    file: str
    line: int

    def __str__(self) -> str:
        return f"{self.file}:{self.line}"


class Leaf(msgspec.Struct, frozen=True):
    """A string, number, boolean or null."""

    value: object


class Reference(msgspec.Struct, frozen=True):
    """``${path}``, or ``${?path}`` if optional; ``prefix`` is the path its file is included at."""

    path: str
    optional: bool
    prefix: str
    place: Place


class Items(msgspec.Struct, frozen=True):
    """A list."""

    items: list[Node]


class Tree(msgspec.Struct, frozen=True):
    """A section."""

    entries: dict[str, Node]


class Joined(msgspec.Struct, frozen=True):
    """A concatenation: values with the spaces between, joined when all are resolved."""

    parts: list[Node]
    spaces: list[str]
    place: Place


class Layers(msgspec.Struct, frozen=True):
    """Values of the same key, oldest first: the newest may refer to or merge with older ones."""

    nodes: list[Node]


Node = Leaf | Reference | Items | Tree | Joined | Layers
ReadFile = Callable[[str, str], tuple[str, str] | None]
"""Maps the name in an ``include`` and the including file to the name and text of the included
file, or ``None`` if there is none.
"""


class Document(NamedTuple):
    """A parsed document. ``places`` has the last place of each key, by full path."""

    root: Tree
    places: dict[str, Place]


class _Token(NamedTuple):
    kind: str
    text: str
    space: str
    line: int
    column: int


def parse(text: str, file: str, read: ReadFile) -> Document:
    """Parse a document; raises ``HoconError``."""
    document = Document(Tree({}), {})
    _Parser(text, file, read, document.places).root(document.root, "", 0)
    return document


def _tokens(text: str, file: str) -> Iterator[_Token]:
    position, line, begin = 0, 1, 0
    while True:
        match = _TOKEN.match(text, position)
        if match is None:
            at = Place(file, line)
            while position < len(text) and text[position] in " \t\r":
                position += 1
            column, sign = position - begin + 1, text[position]
            what = 'this text has no closing "' if sign == '"' else f"{sign!r} needs quotes here"
            raise HoconError(f"{at}: column {column}: {what}")
        kind = match.lastgroup or ""
        start = match.end("space")
        found, space, end = match[kind], match["space"], match.end()
        token_line, column = line, start - begin + 1
        if kind == "triple":
            closing = text.find('"""', end)
            if closing < 0:
                raise HoconError(f'{Place(file, line)}: column {column}: no closing """')
            # Quotes more than three belong to the text.
            while text.startswith('"', closing + 3):
                closing += 1
            found, kind, position = text[end:closing], "string", closing + 3
            line += found.count("\n")
            if "\n" in found:
                begin = text.rfind("\n", 0, position) + 1
        elif kind == "quoted":
            try:
                found = json.loads(found, strict=False)
            except ValueError:
                raise HoconError(
                    f"{Place(file, line)}: column {column}: a wrong \\ in a text"
                ) from None
            kind, position = "string", end
        else:
            position = end
        if kind == "comment":
            continue
        yield _Token(found if kind == "sign" else kind, found, space, token_line, column)
        if kind == "line":
            line, begin = line + 1, position
        if kind == "end":
            return


class _Parser:
    """Parses the tokens of one file."""

    def __init__(self, text: str, file: str, read: ReadFile, places: dict[str, Place]) -> None:
        self._tokens = _tokens(text, file)
        self._file = file
        self._read = read
        self._places = places
        self._prefix = ""
        self._includes = 0
        self._token = next(self._tokens)

    def root(self, into: Tree, prefix: str, includes: int) -> None:
        """Parse the whole file, with or without braces around it."""
        self._prefix, self._includes = prefix, includes
        self._skip("line")
        if self._token.kind == "{":
            opening = self._take()
            self._entries(into, prefix, opening, 1)
            self._skip("line", ",")
        elif self._token.kind == "[":
            self._fault("a configuration is made of sections, not a list")
        else:
            self._entries(into, prefix, None, 0)
        if self._token.kind != "end":
            self._fault("there is a } too many above, or this belongs inside of the last one")

    def _entries(self, into: Tree, prefix: str, opening: _Token | None, depth: int) -> None:
        if depth > MAX_DEPTH:
            self._fault(f"more than {MAX_DEPTH} sections in each other")
        while True:
            self._skip("line", ",")
            token = self._token
            if token.kind == "end" and opening is not None:
                self._fault(f"the {{ of line {opening.line} is not closed")
            if token.kind == "end":
                return
            if token.kind == "}":
                if opening is None:
                    self._fault("there is no { that this } closes")
                self._take()
                return
            if token.kind == "text" and token.text == "include":
                self._include(into, prefix)
            else:
                self._entry(into, prefix, depth)
            if self._token.kind not in ("line", ",", "}", "end"):
                self._fault(
                    "a new line or a comma is missing before this, or quotes around the value"
                )

    def _entry(self, into: Tree, prefix: str, depth: int) -> None:
        place = self._place()
        path = self._path()
        sign = self._token.kind
        if sign in ("=", ":", "+="):
            self._take()
            self._skip("line")
        elif sign == "line":
            self._skip("line")
        if sign not in ("=", ":", "+=") and self._token.kind != "{":
            raise HoconError(f"{place}: a key without a value: expected = or {{ after it")
        full = _full(prefix, path)
        for number in range(1, len(path) + 1):
            self._places[_full(prefix, path[:number])] = place
        node = self._value(full, depth + len(path))
        if sign == "+=":
            before = Reference(full, True, "", place)
            node = Joined([before, Items([node])], ["", ""], place)
        for key in path[:-1]:
            into = _section(into, key)
        _put(into, path[-1], node)

    def _path(self) -> list[str]:
        """Parse a key: names separated by dots, each of which may be quoted."""
        names = [""]
        first = True
        while self._token.kind in ("text", "string"):
            token = self._take()
            if token.space and not first:
                names[-1] += token.space
            pieces = [token.text] if token.kind == "string" else token.text.split(".")
            names[-1] += pieces[0]
            names.extend(pieces[1:])
            first = False
        if first or not all(names):
            self._fault("expected a key")
        if len(names) > MAX_DEPTH:
            self._fault(f"more than {MAX_DEPTH} sections in each other")
        return names

    def _value(self, full: str, depth: int) -> Node:
        place = self._place()
        parts: list[Node] = []
        spaces: list[str] = []
        while True:
            token = self._token
            match token.kind:
                case "text" | "string":
                    self._take()
                    is_quoted = token.kind == "string"
                    parts.append(Leaf(token.text if is_quoted else _Unquoted(token.text)))
                case "reference":
                    self._take()
                    path = token.text.removeprefix("?").strip()
                    optional = token.text.startswith("?")
                    at = Place(self._file, token.line)
                    parts.append(Reference(path.replace('"', ""), optional, self._prefix, at))
                case "{":
                    self._take()
                    section = Tree({})
                    self._entries(section, full, token, depth + 1)
                    parts.append(section)
                case "[":
                    self._take()
                    parts.append(self._items(full, token, depth + 1))
                case _:
                    break
            spaces.append(token.space)
        if not parts:
            self._fault("expected a value")
        return _joined(parts, spaces, place)

    def _items(self, full: str, opening: _Token, depth: int) -> Items:
        if depth > MAX_DEPTH:
            self._fault(f"more than {MAX_DEPTH} lists in each other")
        items: list[Node] = []
        while True:
            self._skip("line", ",")
            if self._token.kind == "]":
                self._take()
                return Items(items)
            if self._token.kind == "end":
                self._fault(f"the [ of line {opening.line} is not closed")
            here = f"{full}[{len(items)}]"
            self._places[here] = self._place()
            items.append(self._value(here, depth))
            if self._token.kind not in ("line", ",", "]"):
                self._fault("a comma, a new line or ] is missing before this")

    def _include(self, into: Tree, prefix: str) -> None:
        place = self._place()
        self._take()
        how = ""
        while self._token.kind == "text":
            how += self._take().text
        if self._token.kind != "string":
            raise HoconError(f"{place}: expected a file's name in quotes after include")
        name = self._take().text
        while self._token.kind == "text" and set(self._token.text) == {")"}:
            self._take()
        if "url(" in how or "package(" in how:
            raise HoconError(f"{place}: only files can be included")
        if self._includes >= MAX_INCLUDES:
            raise HoconError(f"{place}: more than {MAX_INCLUDES} files include each other")
        found = self._read(name, self._file)
        if found is None:
            if how.startswith("required"):
                raise HoconError(f"{place}: there is no file {name}")
            return
        file, text = found
        section = Tree({})
        parser = _Parser(text, file, self._read, self._places)
        parser.root(section, prefix, self._includes + 1)
        for key, node in section.entries.items():
            _put(into, key, node)

    # --- tokens -----------------------------------------------------------------------------------

    def _take(self) -> _Token:
        token = self._token
        if token.kind != "end":
            self._token = next(self._tokens)
        return token

    def _skip(self, *kinds: str) -> None:
        while self._token.kind in kinds:
            self._take()

    def _place(self) -> Place:
        return Place(self._file, self._token.line)

    def _fault(self, what: str) -> NoReturn:
        raise HoconError(f"{self._place()}: column {self._token.column}: {what}")


class _Unquoted(str):
    """An unquoted text, which may be a number, boolean or null."""

    __slots__ = ()


def _joined(parts: list[Node], spaces: list[str], place: Place) -> Node:
    if len(parts) == 1:
        part = parts[0]
        if isinstance(part, Leaf) and isinstance(part.value, _Unquoted):
            return Leaf(_literal(str(part.value)))
        return part
    if all(isinstance(part, Leaf) for part in parts):
        texts = [str(part.value) for part in parts if isinstance(part, Leaf)]
        whole = "".join(space + text for space, text in zip(["", *spaces[1:]], texts, strict=True))
        return Leaf(whole)
    return Joined(parts, spaces, place)


def _literal(text: str) -> object:
    if text in _WORDS:
        return _WORDS[text]
    if _WHOLE.fullmatch(text):
        return int(text)
    return float(text) if _NUMBER.fullmatch(text) else text


def _full(prefix: str, path: list[str]) -> str:
    return ".".join([prefix, *path] if prefix else path)


def _section(tree: Tree, key: str) -> Tree:
    """Return the section at ``key``, which is added if it is missing."""
    found = tree.entries.get(key)
    if isinstance(found, Layers):
        found = found.nodes[-1]
    if isinstance(found, Tree):
        return found
    section = Tree({})
    _put(tree, key, section)
    return section


def _put(tree: Tree, key: str, node: Node) -> None:
    """Set a value: sections are merged, everything else is replaced."""
    before = tree.entries.get(key)
    last = before.nodes[-1] if isinstance(before, Layers) else before
    if isinstance(last, Tree) and isinstance(node, Tree):
        for name, each in node.entries.items():
            _put(last, name, each)
        return
    needs_before = isinstance(node, Tree | Joined | Reference | Layers)
    if before is None or not needs_before or (isinstance(node, Tree) and isinstance(before, Leaf)):
        tree.entries[key] = node
        return
    older = before.nodes if isinstance(before, Layers) else [before]
    newer = node.nodes if isinstance(node, Layers) else [node]
    tree.entries[key] = Layers([*older, *newer])
