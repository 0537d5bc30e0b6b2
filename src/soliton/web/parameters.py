"""Parameters of routes, and parsing the lines that declare routes.

A line is the method, the path, the query and options::

    GET /assets/nft/{address}/limit/{limit}?after.nft&order.asc family=waves,tn reads=state

``{address}`` and ``after.nft`` name parameters; the part after a dot distinguishes parameters of
the same name. ``ANY`` stands for all methods. ``[/]`` after a path allows a trailing slash. The
meaning of options is up to the service.

What lives here: kinds of parameters, tables of parameters, parsing a line. What does not: routes.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from enum import Enum
from typing import Any, Final, NamedTuple

import msgspec

from soliton.errors import InvariantBroken

Schema = Mapping[str, Any]

_MAX_INT: Final = 2**31 - 1
_MAX_LONG: Final = 2**63 - 1
_MAX_DIGITS: Final = 19


class Kind(msgspec.Struct, frozen=True):
    """The type of a parameter; ``convert`` returns None for invalid text or raises ``ApiError``.
    ``expected`` names the valid texts, for messages.
    """

    name: str
    schema: Schema
    convert: Callable[[str], object | None]
    expected: str = "a text"


def _natural(limit: int) -> Callable[[str], int | None]:
    def convert(text: str) -> int | None:
        if not text.isdecimal() or not text.isascii() or len(text.lstrip("0")) > _MAX_DIGITS:
            return None
        value = int(text.lstrip("0") or "0")
        return value if value <= limit else None

    return convert


def _signed(limit: int) -> Callable[[str], int | None]:
    natural = _natural(limit + 1)

    def convert(text: str) -> int | None:
        sign, digits = (text[:1], text[1:]) if text[:1] in ("-", "+") else ("", text)
        value = natural(digits)
        if value is None or (value > limit and sign != "-"):
            return None
        return -value if sign == "-" else value

    return convert


_TRUTHS = dict.fromkeys(("true", "yes", "on", "1"), True) | dict.fromkeys(
    ("false", "no", "off", "0"), False
)


def _boolean(text: str) -> bool | None:
    return _TRUTHS.get(text.lower())


def whole(name: str, most: int, *, least: int = 0) -> Kind:
    """A kind of whole numbers, written without a sign."""
    natural = _natural(most)

    def convert(text: str) -> int | None:
        value = natural(text)
        return None if value is None or value < least else value

    size = "int32" if most <= _MAX_INT else "int64"
    schema = {"type": "integer", "format": size, "minimum": least, "maximum": most}
    return Kind(name, schema, convert, f"a whole number from {least} to {most}")


TEXT = Kind("text", {"type": "string"}, lambda text: text)
NATURAL = whole("natural", _MAX_INT)
NATURAL_LONG = whole("natural_long", _MAX_LONG)
INTEGER = Kind(
    "integer", {"type": "integer", "format": "int32"}, _signed(_MAX_INT), "a number of 32 bits"
)
LONG = Kind("long", {"type": "integer", "format": "int64"}, _signed(_MAX_LONG), "one of 64 bits")
BOOLEAN = Kind("boolean", {"type": "boolean"}, _boolean, "true or false")
ORDER = Kind(
    "order",
    {"type": "string", "enum": ["asc", "desc"]},
    lambda text: text if text in ("asc", "desc") else None,
    "asc or desc",
)


class Place(Enum):
    """Where a parameter is."""

    PATH = "path"
    QUERY = "query"
    HEADER = "header"


class Parameter(msgspec.Struct, frozen=True):
    """A declared parameter; ``example`` is for the documentation and for tests."""

    name: str
    kind: Kind
    description: str
    example: object
    """An example value; ``None`` if there is none."""
    place: Place = Place.PATH
    required: bool = True
    repeated: bool = False
    """Whether it may be repeated: read the values from ``request.query``."""


MAX_SHOWN_CHARS: Final = 80
"""A wrong value is quoted in a message up to this length."""


def wrong_value(parameter: Parameter, text: str | None) -> str:
    """The message about a value that cannot be read, or (``None``) a missing one."""
    if text is None:
        return f"the parameter {parameter.name} is missing: expected {parameter.kind.expected}"
    shown = repr(text if len(text) <= MAX_SHOWN_CHARS else f"{text[:MAX_SHOWN_CHARS]}…")
    return f"the parameter {parameter.name} is {shown}: expected {parameter.kind.expected}"


def unknown_name(names: Iterable[str], known: Sequence[str]) -> str | None:
    """The message about the first name in a query that no parameter has; ``None`` without one."""
    for name in names:
        if name not in known:
            shown = name if len(name) <= MAX_SHOWN_CHARS else f"{name[:MAX_SHOWN_CHARS]}…"
            there = f"there are {', '.join(known)}" if known else "there are none"
            return f"no parameter is called {shown}: {there}"
    return None


_KINDS: Final = {
    kind.name: kind for kind in (TEXT, NATURAL, NATURAL_LONG, INTEGER, LONG, BOOLEAN, ORDER)
}
_NO_EXAMPLE: Final = "-"


def parameters(text: str, *kinds: Kind) -> dict[str, Parameter]:
    """Parse a table of parameters, and return them by their names in lines. A row is name, kind,
    description and an example, or ``-`` for none. After a kind, ``*`` marks a repeated parameter,
    ``!`` a required one of the query. ``kinds`` are additional kinds.
    """
    found, known = {}, _KINDS | {kind.name: kind for kind in kinds}
    for row in text.strip().splitlines():
        name, kind_text, description, example = (part.strip() for part in row.split(" | "))
        kind, repeated = known[kind_text.rstrip("*!")], kind_text.endswith("*")
        value = None if example == _NO_EXAMPLE else kind.convert(example)
        if value is None and example != _NO_EXAMPLE:
            raise InvariantBroken(f"{example!r} is no example of {name}")
        shown = [value] if repeated else value
        required = kind_text.endswith("!")
        own = name.partition(".")[0]
        found[name] = Parameter(own, kind, description, shown, Place.QUERY, required, repeated)
    return found


class Line(NamedTuple):
    """A parsed line."""

    method: str
    path: str
    of_path: tuple[Parameter, ...]
    of_query: tuple[Parameter, ...]
    or_slash: bool
    words: dict[str, str]


def read_line(line: str, known: Mapping[str, Parameter], words: Collection[str]) -> Line:
    """Parse a line; unknown parameters and options raise ``InvariantBroken``."""
    method, target, *others = line.split(" ")
    whole_path, _, query = target.partition("?")
    path, or_slash, _ = whole_path.partition("[/]")
    segments, of_path = path.split("/"), []
    try:
        for number, segment in enumerate(segments):
            if segment.startswith("{"):
                parameter = known[segment[1:-1]]
                of_path.append(msgspec.structs.replace(parameter, place=Place.PATH, required=True))
                segments[number] = f"{{{parameter.name}}}"
        of_query = tuple(known[name] for name in query.split("&") if name)
    except KeyError as error:
        raise InvariantBroken(f"{line}: no parameter is called {error}") from error
    said = dict(word.split("=", 1) for word in others)
    if unknown := said.keys() - set(words):
        raise InvariantBroken(f"{line}: nothing is called {sorted(unknown)}")
    return Line(method, "/".join(segments), tuple(of_path), of_query, bool(or_slash), said)
