"""Analysis of a source for editors: errors, types, definitions, completions.

What lives here: the answers, in offsets of the author's text. What does not: the protocol
(``lsp``), and the analysis itself (``soliton.ride``).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Final

import msgspec

from soliton.ride.compiler import Compiled, CompileError, compile_source
from soliton.ride.compiler.all_faults import Checked, check_source
from soliton.ride.compiler.library import UTILITY_PREFIX, Signature
from soliton.ride.compiler.syntax import FunctionNode
from soliton.ride.functions.catalogue import functions
from soliton.ride.lint import Named, Names, resolve, warnings
from soliton.ride.types import Record, Type, fields_of, members

MAX_SHOWN_CHARS: Final = 400
MAX_COMPLETIONS: Final = 2_000
KEYWORDS: Final = (
    *("let", "strict", "func", "if", "then", "else", "match", "case", "true", "false", "FOLD"),
    *("@Callable", "@Verifier"),
)
_WORD: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_MEMBER: Final = re.compile(r"\.[ \t]*[A-Za-z0-9_]*$")


class Remark(msgspec.Struct, frozen=True):
    """An error or a warning with its range in the author's text."""

    start: int
    end: int
    message: str
    kind: str = ""
    """The kind of warning; empty for an error."""


class Completion(msgspec.Struct, frozen=True):
    """A completion."""

    label: str
    kind: str
    """``function``, ``value``, ``field``, ``type`` or ``keyword``."""
    detail: str = ""


class Analysis:
    """The analysis of one text."""

    def __init__(self, text: str, libraries: Mapping[str, str] | None = None) -> None:
        self.text: Final = text
        self._libraries = libraries or {}
        self.checked: Final[Checked] = check_source(text, self._libraries)
        self.names: Final[Names] = resolve(self.checked)
        self.rejected = ""
        """Why a source without errors is rejected, such as its size."""
        self.compiled: Final[Compiled | None] = self._compile()

    def _compile(self) -> Compiled | None:
        if self.checked.faults:
            return None
        try:
            return compile_source(self.text, libraries=self._libraries)
        except CompileError as fault:
            self.rejected = str(fault)
            return None

    # --- offsets: the linked text contains the imports ---

    def _linked(self, offset: int) -> int:
        imported = self.checked.source.imported
        if imported is None or offset < imported[1]:
            return offset
        return offset + imported[2]

    def _own(self, offset: int) -> int | None:
        imported = self.checked.source.imported
        if imported is None or offset < imported[0]:
            return offset
        _, end, longer = imported
        return offset - longer if offset >= end + longer else None

    # --- answers ---

    def remarks(self) -> list[Remark]:
        """The errors, or the warnings."""
        found = []
        for fault in self.checked.faults:
            start = self._own(fault.offset) if fault.line else 0
            message = fault.problem + (f" ({fault.advice})" if fault.advice else "")
            if start is None:
                imported = self.checked.source.imported
                start = imported[0] if imported is not None else 0
                if fault.library is not None:
                    name, line, column = fault.library
                    message = f"{name}:{line}:{column}: {message}"
            found.append(Remark(start, self._end_of(start), message))
        if self.rejected:
            found.append(Remark(0, 1, self.rejected))
        for each in warnings(self.checked, self.compiled):
            start = self._own(each.start)
            if start is not None:
                found.append(Remark(start, self._end_of(start), each.message, each.kind))
        return found

    def _end_of(self, start: int) -> int:
        word = _WORD.match(self.text, start)
        return word.end() if word is not None else min(len(self.text), start + 1)

    def hover(self, offset: int) -> str | None:
        """The declaration, type and complexity of the name at an offset."""
        word = self._word_at(offset)
        if word is None:
            return None
        named = self.names.at(self._linked(word[0]))
        if named is not None:
            return self._about(named)
        return self._about_library(self.text[word[0] : word[1]]) or self._about_place(word)

    def definition(self, offset: int) -> tuple[str, int] | None:
        """The file (empty for this one) and the offset of the declaration of a name."""
        named = self.names.at(self._linked(offset))
        if named is None:
            return None
        own = self._own(named.start)
        if own is not None:
            return "", own
        for begin, end, name in self.checked.source.libraries:
            if begin <= named.start < end:
                text = self._libraries.get(name, "")
                line, column = self.checked.source.library_position(named.start)[1:]  # type: ignore[index]
                lines = text.split("\n")
                return name, sum(len(each) + 1 for each in lines[: line - 1]) + column - 1
        return None

    def completions(self, offset: int) -> list[Completion]:
        """The completions at an offset: fields after a dot, else names."""
        member = _MEMBER.search(self.text, 0, offset)
        if member is not None:
            return self._members(member.start(), offset)
        found = [Completion(word, "keyword") for word in KEYWORDS]
        for each in self.names.declared:
            kind = "function" if each.kind == "function" else "value"
            found.append(Completion(each.name, kind, self._signature(each)))
        known = self.checked.library
        found += self._functions()
        found += [Completion(name, "value", of.name) for name, of in known.variables.items()]
        found += [Completion(name, "type") for name in known.types]
        unique = {(each.label, each.kind): each for each in reversed(found)}
        return list(unique.values())[::-1][:MAX_COMPLETIONS]

    def _functions(self) -> Iterator[Completion]:
        """The functions of the library that are called by name."""
        for name, signatures in self.checked.library.functions.items():
            if not name.startswith((UTILITY_PREFIX, "_")) and _WORD.fullmatch(name):
                yield Completion(name, "function", _library_signature(name, signatures[0]))

    def _members(self, dot: int, offset: int) -> list[Completion]:
        """The fields of the value before a dot, from an analysis of the text without the dot."""
        other = Analysis(self.text[:dot] + self.text[offset:], self._libraries)
        found: dict[str, Completion] = {}
        place = other._linked(dot)
        spans = [span for span in other.checked.types if span[1] == place]
        if spans:
            of = other.checked.types[min(spans)]
            for each in members(of):
                for name, field in fields_of(each):
                    found[name] = Completion(name, "field", _shown(field))
        for function in self._functions():
            found.setdefault(function.label, function)
        return list(found.values())[:MAX_COMPLETIONS]

    # --- words ---

    def _word_at(self, offset: int) -> tuple[int, int] | None:
        start = offset
        while start > 0 and (self.text[start - 1].isalnum() or self.text[start - 1] == "_"):
            start -= 1
        found = _WORD.match(self.text, start)
        return None if found is None or found.end() < offset else found.span()

    def _about(self, named: Named) -> str:
        lines = [f"```ride\n{self._signature(named)}\n```"]
        cost = self._cost(named)
        if cost is not None:
            lines.append(f"complexity {cost}")
        return "\n".join(lines)

    def _cost(self, named: Named) -> int | None:
        parts = None if self.compiled is None else self.compiled.parts
        if parts is None:
            return None
        if named.kind == "value":
            return parts.values.get(named.name)
        if named.kind != "function":
            return None
        annotated = parts.annotated.get(named.name)
        return parts.functions.get(named.name) if annotated is None else annotated

    def _signature(self, named: Named) -> str:
        node = named.node
        if isinstance(node, FunctionNode):
            types = self.checked.functions.get(named.name)
            if types is None:
                return f"func {named.name}"
            pairs = zip(node.parameters, types[0], strict=False)
            parameters = ", ".join(f"{name}: {_shown(of)}" for (name, _, _), of in pairs)
            return f"func {named.name} ({parameters}): {_shown(types[1])}"
        of = self._type_of(named)
        word = "let " if named.kind == "value" else ""
        return f"{word}{named.name}: {_shown(of)}" if of is not None else f"{word}{named.name}"

    def _type_of(self, named: Named) -> Type | None:
        types = self.checked.types
        node = named.node
        if node is not None and not isinstance(node, FunctionNode):
            found = types.get((node.value.start, node.value.end))
            if found is not None:
                return found
        return next((types[use] for use in named.uses if use in types), None)

    def _about_library(self, name: str) -> str | None:
        known = self.checked.library
        if name in known.functions:
            shapes = [_library_signature(name, each) for each in known.functions[name]]
            keys = {each.key for each in known.functions[name]}
            version = self.checked.directives.version
            costs = sorted({each.costs[version] for each in functions(version) if each.key in keys})
            complexity = ", ".join(map(str, costs))
            return "```ride\n" + "\n".join(shapes) + f"\n```\ncomplexity {complexity}"
        if name in known.variables:
            return f"```ride\n{name}: {_shown(known.variables[name])}\n```"
        of = known.types.get(name)
        if isinstance(of, Record):
            fields = ", ".join(f"{field}: {_shown(kind)}" for field, kind in of.fields)
            return f"```ride\n{name}({fields})\n```"
        return None if of is None else f"```ride\n{name} = {_shown(of)}\n```"

    def _about_place(self, word: tuple[int, int]) -> str | None:
        """The type of the smallest expression that ends with a word, such as a field."""
        end = self._linked(word[1])
        spans = [span for span in self.checked.types if span[1] == end]
        if not spans:
            return None
        of = self.checked.types[max(spans)]
        return f"```ride\n{self.text[word[0] : word[1]]}: {_shown(of)}\n```"


def _shown(of: Type) -> str:
    name = of.name
    return name if len(name) <= MAX_SHOWN_CHARS else f"{name[: MAX_SHOWN_CHARS - 3]}..."


def _library_signature(name: str, signature: Signature) -> str:
    arguments = ", ".join(each.name for each in signature.arguments)
    return f"{name}({arguments}): {signature.result.name}"
