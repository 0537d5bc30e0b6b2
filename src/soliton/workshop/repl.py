"""The REPL of the script language: ``soliton ride repl``.

What lives here: executing inputs, declarations, completion. What does not: line editing
(``prompts``), the chain that scripts see (``no_chain``, ``remote_chain``).
"""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Final

from soliton.errors import SolitonError
from soliton.ride.compiler import CompileError, compile_value
from soliton.ride.compiler.library import UTILITY_PREFIX, ScriptKind, library
from soliton.ride.environment import Environment
from soliton.ride.errors import RideError
from soliton.ride.evaluator import Setting, evaluate
from soliton.ride.faults import located_in, numbers_of, report
from soliton.ride.functions.printing import nested_text
from soliton.ride.observation import Observer
from soliton.ride.source_map import map_value
from soliton.workshop.no_chain import no_transaction
from soliton.workshop.reports import excerpt

PROMPT: Final = "> "
MAX_LIMIT: Final = 52_000
MAX_FILE_BYTES: Final = 1_000_000
_DECLARATION: Final = re.compile(r"(?:let|func|strict)[ \t]")
_DECLARED: Final = re.compile(r"^(?:let|func|strict)[ \t]+([A-Za-z_][A-Za-z0-9_]*)")
_DIRECTIVE: Final = re.compile(r"^[ \t]*\{-#[^\n]*$", re.MULTILINE)
_AT_THE_END: Final = ("the source ends", "the block has no result", "the source is empty")
_TEXTS: Final = re.compile(r'"(?:[^"\\]|\\.)*+(?:"|$)|#[^\n]*', re.DOTALL)
HELP: Final = """\
an expression    its type, its value and the complexity that it took
let, func        a declaration, which stays
:help            this
:names           what is declared here
:type EXPRESSION what it is, without evaluating it
:find TEXT       functions and values of the library whose names have this text
:load FILE       the declarations of a library
:forget NAME     one declaration less, and those after it
:reset           none at all
:quit            the end; so is Ctrl-D"""


class Session:
    """The declarations of a session, and the environment."""

    def __init__(
        self, version: int, environment: Environment, *, kind: ScriptKind = ScriptKind.ACCOUNT
    ) -> None:
        self._version = version
        self._environment = environment
        self._kind = kind
        self._declared: list[str] = []
        self._commands: dict[str, Callable[[str], list[str]]] = {
            "help": lambda _rest: HELP.split("\n"),
            "names": lambda _rest: list(self._declared),
            "type": self._type,
            "find": self._find,
            "load": self._load,
            "forget": self._forget,
            "reset": self._reset,
        }

    def do(self, text: str) -> list[str] | None:
        """Execute an input and return its output; ``None`` if it quits."""
        text = text.strip()
        if text in (":quit", ":q"):
            return None
        if not text:
            return []
        try:
            if text.startswith(":"):
                word, _, rest = text[1:].partition(" ")
                command = self._commands.get(word)
                if command is None:
                    return [f"there is no command :{word[:40]}; :help lists them"]
                return command(rest.strip())
            if _DECLARATION.match(text):
                return self._declare(text)
            return self._evaluate(text)
        except SolitonError as error:
            return [str(error)]

    def names(self) -> list[str]:
        """The completions: declarations, names of the library, commands."""
        known = library(self._version, self._kind)
        own = [found.group(1) for each in self._declared if (found := _DECLARED.match(each))]
        words = {*known.functions, *known.variables, *known.constructors, *known.types}
        plain = sorted(word for word in words if not word.startswith((UTILITY_PREFIX, "_")))
        return [*own, *plain, *(f":{command}" for command in (*self._commands, "quit"))]

    def is_whole(self, text: str) -> bool:
        """Whether an input is complete, or continues on another line."""
        stripped = text.strip()
        if not stripped or stripped.startswith(":") or text.endswith("\n\n"):
            return True
        if _open_brackets(text) > 0:
            return False
        try:
            self._compiled(text)
        except CompileError as error:
            ends = error.problem.endswith("the end of the source")
            return not (ends or error.problem.startswith(_AT_THE_END))
        return True

    # --- commands ---

    def _whole(self, text: str) -> str:
        """The source of all declarations and an input; a declaration has the value ``unit``."""
        ends = ["unit"] if _DECLARATION.match(text.strip()) else []
        return "\n".join([*self._declared, text, *ends])

    def _compiled(self, text: str) -> str:
        """The type of an input; raises ``CompileError``."""
        return compile_value(self._whole(text), self._version, kind=self._kind)[1].name

    def _declare(self, text: str) -> list[str]:
        try:
            self._compiled(text)
        except CompileError as error:
            return self._error_lines(error, text)
        self._declared.append(text)
        return []

    def _evaluate(self, text: str) -> list[str]:
        whole = self._whole(text)
        try:
            script, type_ = compile_value(whole, self._version, kind=self._kind)
        except CompileError as error:
            return self._error_lines(error, text)
        try:
            setting = Setting(limit=MAX_LIMIT, kind=self._kind)
            outcome = evaluate(script, self._environment, no_transaction, setting)
        except RideError as error:
            return self._failed(whole, str(error))
        shown = nested_text(outcome.value)
        return [f"{type_.name} = {shown}   (complexity {outcome.spent})"]

    def _failed(self, whole: str, message: str) -> list[str]:
        """The message, and the expression that failed with its values."""
        observer = Observer()
        script, _ = compile_value(whole, self._version, kind=self._kind)
        try:
            setting = Setting(limit=MAX_LIMIT, kind=self._kind, observer=observer)
            evaluate(script, self._environment, no_transaction, setting)
        except RideError:
            pass
        fault = observer.fault
        if fault is None:
            return [message]
        text = map_value(whole, self._version, self._kind)
        located = {code: located_in(text, numbers) for code, numbers in numbers_of(fault).items()}
        found = report(fault, located)
        lines = [message]
        for each in () if found is None else (found.position, *found.calls):
            where = f" in {each.function}" if each.function else ""
            lines.append(f"  at {each.expression}{where}")
            lines += [f"      {name} = {value}" for name, value in each.values.items()]
        return lines

    def _error_lines(self, error: CompileError, text: str) -> list[str]:
        """A compile error with its position in the input."""
        before = sum(each.count("\n") + 1 for each in self._declared)
        line = error.line - before
        advice = f" ({error.advice})" if error.advice else ""
        return [*excerpt(text, line, error.column), f"{error.problem}{advice}"]

    def _type(self, rest: str) -> list[str]:
        try:
            return [self._compiled(rest)]
        except CompileError as error:
            return self._error_lines(error, rest)

    def _find(self, rest: str) -> list[str]:
        known = library(self._version, self._kind)
        part = rest.lower()
        found = [
            f"{name}({', '.join(each.name for each in one.arguments)}): {one.result.name}"
            for name, signatures in sorted(known.functions.items())
            if part in name.lower() and not name.startswith(UTILITY_PREFIX)
            for one in signatures
        ]
        found += [f"{name}: {of.name}" for name, of in known.variables.items() if part in name]
        return found[:100] or [f"the library has nothing with {rest[:40]!r}"]

    def _load(self, rest: str) -> list[str]:
        try:
            with Path(rest).open("rb") as opened:
                text = opened.read(MAX_FILE_BYTES + 1).decode()
        except (OSError, UnicodeError) as error:
            return [f"cannot read {rest[:100]}: {error}"]
        if len(text) > MAX_FILE_BYTES:
            return [f"{rest[:100]} has more than {MAX_FILE_BYTES} characters"]
        text = _DIRECTIVE.sub("", text).strip()
        self._compiled(text)
        self._declared.append(text)
        return [f"loaded {rest}"]

    def _forget(self, rest: str) -> list[str]:
        for place, each in enumerate(self._declared):
            found = _DECLARED.match(each)
            if found is not None and found.group(1) == rest:
                count = len(self._declared) - place
                del self._declared[place:]
                return [f"forgotten: {count}"]
        return [f"nothing is called {rest[:40]!r} here"]

    def _reset(self, _rest: str) -> list[str]:
        self._declared.clear()
        return []


def _open_brackets(text: str) -> int:
    """The number of open brackets outside of strings and comments."""
    plain = _TEXTS.sub("", text)
    return sum(map(plain.count, "([{")) - sum(map(plain.count, ")]}"))
