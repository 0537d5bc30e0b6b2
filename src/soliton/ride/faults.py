"""Reports of failed runs in terms of the source: function, line, expression, values, callers.

What lives here: the report, made of the state of a run (``observation``) and a source map
(``source_map``). What does not: output of reports (the shell).
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Final

import msgspec

from soliton.crypto import base58
from soliton.ride.errors import RideError
from soliton.ride.functions.printing import nested_text
from soliton.ride.numbering import Body, numbered
from soliton.ride.observation import RunFault, Spot
from soliton.ride.script import Script, parse_script
from soliton.ride.source_map import (
    SourceMap,
    TextRange,
    map_decompiled,
    map_known_source,
    shortened,
)
from soliton.ride.values import Value, weight

MAX_VALUE_WEIGHT: Final = 20_000
"""The weight up to which values are written out (and then shortened)."""
KNOWN, DECOMPILED, NO_TEXT = "known", "decompiled", "none"


class SourceText(msgspec.Struct, frozen=True):
    """A source with its imported libraries, and the name of its file, if any."""

    text: str
    libraries: dict[str, str] = {}
    name: str = ""


class Located(msgspec.Struct, frozen=True):
    """The positions and bodies of some expressions of a script; ``source`` is the kind of text."""

    source: str
    ranges: dict[int, TextRange]
    bodies: dict[int, Body]
    name: str = ""
    """The name of the text's file."""


class Position(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """A position in a script that ran. The line is 0 if no text compiles to the script."""

    script: str
    """The account's address or the asset's id."""
    function: str
    source: str
    line: int = 0
    column: int = 0
    expression: str = ""
    values: dict[str, str] = {}
    file: str = ""
    node: int = -1
    """The number of the expression in the script's tree, in preorder."""


class FaultReport(msgspec.Struct, frozen=True):
    """The error, its position, and the calls that led there, innermost first."""

    message: str
    position: Position
    calls: tuple[Position, ...]

    def members(self) -> dict[str, object]:
        """Return the report as JSON members."""
        calls = [msgspec.to_builtins(each) for each in self.calls]
        return {"message": self.message, **msgspec.to_builtins(self.position), "calls": calls}


def read_members(members: Mapping[str, object]) -> FaultReport:
    """Reverse ``FaultReport.members``; raise ``ValueError`` for malformed members."""
    plain = {key: value for key, value in members.items() if key not in ("message", "calls")}
    try:
        return FaultReport(
            msgspec.convert(members.get("message"), str),
            msgspec.convert(plain, Position),
            msgspec.convert(members.get("calls", ()), tuple[Position, ...]),
        )
    except msgspec.ValidationError as error:
        raise ValueError(str(error)) from error


def numbers_of(fault: RunFault) -> dict[bytes, tuple[int, ...]]:
    """Return, by script, the expressions that a report needs."""
    found: dict[bytes, set[int]] = {}
    for spot in fault.spots:
        named = {spot.node, spot.body, *(number for number, _ in spot.values)}
        found.setdefault(spot.script, set()).update(named - {-1})
    return {script: tuple(sorted(numbers)) for script, numbers in found.items()}


def locate(script: bytes, numbers: Collection[int], known: SourceText | None = None) -> Located:
    """Return the positions of expressions in the script's source if it is known and matches, else
    in the decompiled text. Raises ``ScriptFormatError``.
    """
    source, text = find_text(parse_script(script), known)
    if text is None:
        return _without_text(script, numbers)
    return located_in(text, numbers, source, known.name if known and source == KNOWN else "")


def find_text(script: Script, known: SourceText | None) -> tuple[str, SourceMap | None]:
    """Return the kind of text and the map of a script: of its source if that is known and matches,
    else of the decompiled text. Raises ``ScriptFormatError``.
    """
    if known is not None:
        text = map_known_source(script, known.text, known.libraries)
        if text is not None:
            return KNOWN, text
    text = map_decompiled(script.source)
    return (NO_TEXT if text is None else DECOMPILED), text


def located_in(
    text: SourceMap, numbers: Collection[int], source: str = KNOWN, name: str = ""
) -> Located:
    """Return the positions of expressions in a text with an existing map."""
    ranges = {number: text.range_of(number) for number in numbers}
    bodies = {number: body for number in numbers if (body := text.body(number)) is not None}
    return Located(source, ranges, bodies, name)


def _without_text(script: bytes, numbers: Collection[int]) -> Located:
    bodies = numbered(parse_script(script).content).bodies
    return Located(NO_TEXT, {}, {each: bodies[each] for each in numbers if each in bodies})


def report(fault: RunFault, located: Mapping[bytes, Located]) -> FaultReport | None:
    """Return the report, or ``None`` without any position."""
    positions = [_position(spot, located[spot.script]) for spot in fault.spots]
    calls: list[Position] = []
    for each in positions:
        # A loop that the compiler expanded calls itself at the same position.
        if not calls or _identity(each) != _identity(calls[-1]):
            calls.append(each)
    return FaultReport(shortened(fault.message), calls[0], tuple(calls[1:])) if calls else None


def _identity(position: Position) -> tuple[object, ...]:
    return position.script, position.function, position.line, position.column


def report_here(
    fault: RunFault, sources: Mapping[bytes, SourceText] | None = None
) -> FaultReport | None:
    """Locate the expressions and return the report. This may compile, which takes a while.

    ``sources`` has known sources by the bytes of the scripts.
    """
    known = sources or {}
    try:
        located = {
            script: locate(script, numbers, known.get(script))
            for script, numbers in numbers_of(fault).items()
        }
    except RideError:
        return None
    return report(fault, located)


def _position(spot: Spot, located: Located) -> Position:
    body = located.bodies.get(spot.body)
    values: dict[str, str] = {}
    if body is not None:
        pairs = zip(body.parameters, spot.parameters, strict=False)
        values |= {name: value_text(value) for name, value in pairs}
    for number, value in spot.values:
        text_range = located.ranges.get(number)
        if text_range is not None and not text_range.text.startswith(('"', "base")):
            values[text_range.text] = value_text(value)
    owner = base58.encode(spot.owner)
    function = "" if body is None else body.name
    text_range = located.ranges.get(spot.node)
    if text_range is None:
        return Position(owner, function, located.source, values=values, node=spot.node)
    return Position(
        owner,
        function,
        located.source,
        text_range.line,
        text_range.column,
        text_range.text,
        values,
        text_range.file or located.name,
        spot.node,
    )


def value_text(value: Value) -> str:
    """Return a value on one line, shortened."""
    if weight(value) > MAX_VALUE_WEIGHT:
        return f"({weight(value)} bytes)"
    return shortened(nested_text(value))


def lines_of(fault: FaultReport, names: Mapping[str, str] | None = None) -> list[str]:
    """Return a report as lines of text; ``names`` has files by the addresses of scripts."""
    lines = [fault.message]
    for each in (fault.position, *fault.calls):
        file = each.file or (names or {}).get(each.script) or each.script
        position = f"{file}:{each.line}:{each.column}" if each.line else file
        prefix = "at" if each is fault.position else "called at"
        function = f" in {each.function}" if each.function else ""
        lines.append(f"  {prefix} {position}{function}: {each.expression}".rstrip(": "))
        lines += [f"      {name} = {value}" for name, value in each.values.items()]
    return lines
