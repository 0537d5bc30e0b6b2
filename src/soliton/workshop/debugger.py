"""The debugger in a terminal: ``soliton ride debug``.

What lives here: its commands and output. What does not: the moves (``walking``), line editing
(``prompts``).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from typing import Final

from soliton.ride.recording import Recording, Step
from soliton.workshop.walking import BACKWARD, FORWARD, Walk

PROMPT: Final = "(ride) "
AROUND: Final = 2
"""Lines of context before and after the current one."""
LISTED: Final = 8
_WORD: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_NUMBER: Final = re.compile(r"[0-9]{1,9}")
_BREAK: Final = re.compile(r"(?:([^\s:]{0,200}):)?([0-9]{1,7})")

HELP: Final = """\
  forward          backward
  s  step          bs  bstep     to another line, or into a function
  n  next          bn  bnext     to another line, not into functions
  o  out           bo  bout      to who called this function
  i  in            bi  bin       to the next expression that is entered or left
  r  run           br  brun      to the next breakpoint, or to the end or begin
  v  values        all names that are known here
  w  where         the calls that led here
  l  list          more lines around
  b  break PLACE   stop at a line, FILE:LINE or function; without a place: what there is
  d  delete PLACE  no more
  g  go NUMBER     to a step by its number
  q  quit          an empty line repeats the last move"""


class Debugger:
    """A debugging session of a recorded run."""

    def __init__(
        self,
        record: Recording,
        write: Callable[[str], None],
        names: Mapping[str, str] | None = None,
    ) -> None:
        """``write`` prints a line; ``names`` are file names by the addresses of scripts."""
        self._walk = Walk(record)
        self._write = write
        self._names = names or {}
        self._last = "step"
        self._moves: dict[str, Callable[[int], None]] = {
            "step": self._walk.line,
            "next": self._walk.over,
            "out": self._walk.out,
            "in": self._walk.expression,
            "run": self._walk.run,
        }
        self._others: dict[str, Callable[[str], None]] = {
            "values": self._values,
            "where": self._where,
            "list": self._list,
            "break": self._break,
            "delete": self._delete,
            "go": self._go,
            "help": self._help,
        }

    def commands(self) -> list[str]:
        """All command names."""
        return [*self._moves, *(f"b{move}" for move in self._moves), *self._others, "quit"]

    def session(self, lines: Iterable[str]) -> None:
        """Execute lines until they end or one of them quits."""
        record = self._walk.record
        cut = ", the rest is left out" if record.truncated else ""
        self._write(f"{len(record.steps)} steps{cut}; {_end(record)}. h is help.")
        self._show()
        for line in lines:
            if not self.do(line):
                return

    def do(self, line: str) -> bool:
        """Execute a line; False if it quits."""
        word, _, rest = line.strip().partition(" ")
        name = self._named(word or self._last)
        if name == "quit":
            return False
        if name is None:
            self._write(f"there is no command {word[:40]!r}: h is help")
        elif name in self._others:
            self._others[name](rest.strip())
        else:
            self._last = name
            is_back = name not in self._moves
            move = self._moves[name.removeprefix("b") if is_back else name]
            move(BACKWARD if is_back else FORWARD)
            self._show()
        return True

    def _named(self, word: str) -> str | None:
        known = self.commands()
        short = {name[0]: name for name in (*self._moves, *self._others, "quit")}
        short |= {f"b{move[0]}": f"b{move}" for move in self._moves}
        return word if word in known else short.get(word)

    # --- showing ---

    def _show(self) -> None:
        step, total = self._walk.step, len(self._walk.record.steps)
        if step is None:
            self._write(f"[end] {_end(self._walk.record)}")
            self._show_fault()
            return
        sign = " =" if step.end_line == step.line else " gives"
        state = "" if step.value is None else f"{sign} {step.value}"
        self._write(f"[{self._walk.at}/{total}] {self._title(step)}")
        self._lines(step, AROUND)
        self._write(f"{self._excerpt(step)}{state}")
        mentioned = set(_WORD.findall(self._excerpt(step)))
        for name, value in self._walk.names():
            if name in mentioned:
                self._write(f"    {name} = {value}")

    def _title(self, step: Step) -> str:
        file = step.file or self._file(step)
        return f"{step.function or 'script'} at {file}:{step.line}:{step.column}"

    def _file(self, step: Step) -> str:
        script = self._walk.record.scripts[step.script]
        return script.name or self._names.get(script.script, script.script)

    def _text(self, step: Step) -> list[str]:
        return self._walk.record.scripts[step.script].files.get(step.file, "").split("\n")

    def _lines(self, step: Step, around: int) -> None:
        lines = self._text(step)
        first = max(1, step.line - around)
        for number in range(first, min(len(lines), step.line + around) + 1):
            mark = "->" if number == step.line else "  "
            self._write(f"{mark} {number:4} | {lines[number - 1].rstrip()}".rstrip())

    def _excerpt(self, step: Step) -> str:
        lines = self._text(step)
        line = lines[step.line - 1] if step.line <= len(lines) else ""
        if step.end_line == step.line:
            return line[step.column - 1 : step.end_column - 1].strip()
        return f"{line[step.column - 1 :].strip()} ..."

    def _show_fault(self) -> None:
        fault = self._walk.record.fault
        if fault is None:
            return
        for place in (fault, *fault.get("calls", ())):  # type: ignore[misc]
            assert isinstance(place, dict)
            if place.get("line"):
                owner = str(place["script"])
                file = place.get("file") or self._names.get(owner, owner)
                where = f"{file}:{place['line']}:{place['column']}"
                self._write(f"  {where} in {place['function']}: {place['expression']}")

    # --- other commands ---

    def _values(self, _rest: str) -> None:
        names = self._walk.names()
        for name, value in names:
            self._write(f"    {name} = {value}")
        if not names:
            self._write("    nothing is known here yet")

    def _where(self, _rest: str) -> None:
        here = self._walk.step
        for step in [*([] if here is None else [here]), *self._walk.calls()]:
            self._write(f"  {self._title(step)}: {self._excerpt(step)}")

    def _list(self, _rest: str) -> None:
        if (step := self._walk.step) is not None:
            self._lines(step, LISTED)

    def _break(self, rest: str) -> None:
        if not rest:
            for file, line in sorted(self._walk.lines):
                self._write(f"  {file + ':' if file else ''}{line}")
            for function in sorted(self._walk.functions):
                self._write(f"  {function}")
            return
        place = _line_of(rest)
        if place is not None:
            self._walk.lines.add(place)
        else:
            self._walk.functions.add(rest)
        known = any(_is_at(step, place, rest) for step in self._walk.record.steps)
        self._write(
            f"stops at {rest}" if known else f"stops at {rest}, which this run never reaches"
        )

    def _delete(self, rest: str) -> None:
        place = _line_of(rest)
        if place is not None:
            self._walk.lines.discard(place)
        self._walk.functions.discard(rest)

    def _go(self, rest: str) -> None:
        if _NUMBER.fullmatch(rest) is None:
            self._write("go where? The number of a step")
            return
        self._walk.to(int(rest))
        self._show()

    def _help(self, _rest: str) -> None:
        self._write(HELP)


def _line_of(text: str) -> tuple[str, int] | None:
    found = _BREAK.fullmatch(text)
    return None if found is None else (found.group(1) or "", int(found.group(2)))


def _is_at(step: Step, place: tuple[str, int] | None, function: str) -> bool:
    return step.function == function if place is None else (step.file, step.line) == place


def _end(record: Recording) -> str:
    if record.error:
        return f"refused: {record.error}"
    if record.fault is not None:
        return f"failed: {record.fault.get('message')}"
    return "it ends well"
