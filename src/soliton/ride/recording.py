"""Recordings of runs in terms of the source, for debuggers.

What lives here: the record, made from an observer's events. What does not: the debugger
(``soliton.workshop.debugger``), evaluation (``evaluator``, the ledger).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import msgspec

from soliton.crypto import base58
from soliton.ride.compiler.compaction import original_names
from soliton.ride.evaluator_machine import LetNode
from soliton.ride.expressions import Block, DApp
from soliton.ride.faults import KNOWN, SourceText, find_text, report_here, value_text
from soliton.ride.observation import Event, ObservedRun, Observer, lets_at

MAX_STEPS: Final = 20_000
"""The limit of steps; beyond it, ``truncated`` is set."""


class ScriptText(msgspec.Struct, frozen=True, omit_defaults=True):
    """A script that ran: its owner, and its texts by file; the main text has the empty name."""

    script: str
    source: str
    files: dict[str, str] = {}
    name: str = ""


class NamedValue(msgspec.Struct, frozen=True):
    """A name and its value as text."""

    name: str
    value: str


class Step(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """The start of an expression, or its end with a value."""

    script: int
    """The index in ``scripts``."""
    depth: int
    function: str
    line: int
    column: int
    end_line: int
    end_column: int
    file: str = ""
    value: str | None = None
    names: tuple[int, ...] = ()
    """The evaluated names in scope, innermost first: indexes in ``names``."""
    parent: int = -1
    """The step that started the enclosing expression."""


class Recording(msgspec.Struct, frozen=True, omit_defaults=True):
    """All steps of a transaction's scripts, and its error, if any."""

    scripts: tuple[ScriptText, ...]
    names: tuple[NamedValue, ...]
    steps: tuple[Step, ...]
    error: str = ""
    fault: dict[str, object] | None = None
    truncated: bool = False


def recording(
    observer: Observer, sources: Mapping[bytes, SourceText] | None = None, error: str = ""
) -> Recording:
    """Return the recording of an observer, in terms of known sources or decompiled texts."""
    return _Builder(observer, sources or {}).build(error)


class _Text:
    """A script's text, its source map, and its original names."""

    def __init__(self, run: ObservedRun, known: SourceText | None) -> None:
        source, self.map = find_text(run.script, known)
        files, name = {}, ""
        if known is not None and source == KNOWN:
            files, name = {"": known.text, **known.libraries}, known.name
        elif self.map is not None:
            files = {"": self.map.text}
        self.shown = ScriptText(base58.encode(run.owner), source, files, name)
        content = run.script.content
        self.names = original_names(content) if isinstance(content, DApp) else {}


class _Builder:
    def __init__(self, observer: Observer, sources: Mapping[bytes, SourceText]) -> None:
        self._observer = observer
        self._sources = sources
        self._texts: dict[tuple[bytes, bytes], tuple[int, _Text]] = {}
        self._scripts: list[ScriptText] = []
        self._names: list[NamedValue] = []
        self._known: dict[int, int] = {}
        self._steps: list[Step] = []

    def build(self, error: str) -> Recording:
        open_steps: list[int] = []
        truncated = False
        for number, event in enumerate(self._observer.events):
            if len(self._steps) >= MAX_STEPS:
                truncated = True
                break
            step = self._step(number, event, open_steps[-1] if open_steps else -1)
            if step is None:
                continue
            if event.value is None:
                open_steps.append(len(self._steps))
            elif open_steps:
                open_steps.pop()
                parent = open_steps[-1] if open_steps else -1
                step = msgspec.structs.replace(step, parent=parent)
            self._steps.append(step)
        fault = self._observer.fault
        found = None if fault is None else report_here(fault, self._sources)
        members = None if found is None else found.members()
        return Recording(
            tuple(self._scripts), tuple(self._names), tuple(self._steps), error, members, truncated
        )

    def _step(self, number: int, event: Event, parent: int) -> Step | None:
        run = event.run
        node = run.numbering.of(event.expression)
        # A block ends with the value of its last expression.
        if node is None or isinstance(event.expression, Block):
            return None
        at, text = self._text(run)
        if text.map is None:
            return None
        text_range = text.map.range_of(node)
        body = text.map.body(text.map.owners[node])
        value = event.value
        return Step(
            at,
            event.depth,
            "" if body is None else body.name,
            text_range.line,
            text_range.column,
            text_range.end_line,
            text_range.end_column,
            text_range.file,
            None if value is None else value_text(value),
            tuple(self._name(let, text) for let in lets_at(self._observer, number)),
            parent,
        )

    def _text(self, run: ObservedRun) -> tuple[int, _Text]:
        key = run.owner, run.script.source
        found = self._texts.get(key)
        if found is None:
            found = len(self._scripts), _Text(run, self._sources.get(run.script.source))
            self._texts[key] = found
            self._scripts.append(found[1].shown)
        return found

    def _name(self, let: LetNode, text: _Text) -> int:
        at = self._known.get(id(let))
        if at is None:
            at = self._known[id(let)] = len(self._names)
            name = text.names.get(let.name, let.name)
            self._names.append(NamedValue(name, value_text(let.value)))  # type: ignore[arg-type]
        return at
