"""The directives of a source, such as ``{-# STDLIB_VERSION 6 #-}``, and its imported libraries.

What lives here: parsing of directives, and linking of libraries into the text. What does not:
finding the text of a library, which callers pass in.

Sources: wavesplatform/Waves
``lang/shared/src/main/scala/com/wavesplatform/lang/directives/{DirectiveParser,DirectiveSet}.scala``
and ``lang/script/ScriptPreprocessor.scala``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Final

import msgspec

from soliton.ride.compiler.errors import CompileError, Source
from soliton.ride.expressions import FIRST_VERSION, LAST_VERSION

DEFAULT_VERSION: Final = 3
FIRST_DAPP_VERSION: Final = 3

EXPRESSION: Final = "EXPRESSION"
DAPP: Final = "DAPP"
LIBRARY: Final = "LIBRARY"
ACCOUNT: Final = "ACCOUNT"
ASSET: Final = "ASSET"
CALL: Final = "CALL"

_OPEN: Final = "{-#"
_CLOSE: Final = "#-}"
_IMPORT: Final = "IMPORT"
_BLANKS: Final = " \t\r"
_SPACES: Final = " \t\n\x0b\f\r"
_LETTERS: Final = "abcdefghijklmnopqrstuvwxyz"
_KEY: Final = frozenset(f"{_LETTERS}{_LETTERS.upper()}0123456789_")
_VALUE: Final = _KEY | frozenset("-/., ")
_VALUES: Final = {
    "STDLIB_VERSION": tuple(str(version) for version in range(FIRST_VERSION, LAST_VERSION + 1)),
    "CONTENT_TYPE": (EXPRESSION, DAPP, LIBRARY),
    "SCRIPT_TYPE": (ACCOUNT, ASSET, CALL),
    "IMPORT": (),
}


class Directives(msgspec.Struct, frozen=True):
    """The directives of a source, or their defaults."""

    version: int = DEFAULT_VERSION
    content: str = EXPRESSION
    script: str = ACCOUNT
    imports: tuple[str, ...] = ()


def read_directives(text: str, default_version: int = DEFAULT_VERSION) -> Directives:
    """Read the directives of a source; raise ``CompileError`` if one is invalid."""
    found: dict[str, str] = {}
    for number, line in enumerate(text.split("\n"), 1):
        stripped = line.strip(_SPACES)
        if not _is_directive(stripped):
            continue
        directive = _key_and_value(line.strip(_BLANKS))
        if directive is None:
            raise CompileError("a directive that cannot be read", "write {-# KEY value #-}", number)
        key, value = directive
        if key not in _VALUES:
            raise CompileError(f"no directive {key}", f"use {', '.join(_VALUES)}", number, 1)
        if _VALUES[key] and value not in _VALUES[key]:
            advice = f"use {', '.join(_VALUES[key])}"
            raise CompileError(f"{key} cannot be {value!r}", advice, number, 1)
        if key in found:
            raise CompileError(f"{key} is given twice", "remove one", number, 1)
        found[key] = value
    directives = Directives(
        int(found.get("STDLIB_VERSION", default_version)),
        found.get("CONTENT_TYPE", EXPRESSION),
        found.get("SCRIPT_TYPE", ACCOUNT),
        tuple(name.strip() for name in found.get("IMPORT", "").split(",") if name.strip()),
    )
    _check(directives)
    return directives


def _is_directive(text: str) -> bool:
    long_enough = len(text) >= len(_OPEN) + len(_CLOSE)
    return long_enough and text.startswith(_OPEN) and text.endswith(_CLOSE)


def _key_and_value(text: str) -> tuple[str, str] | None:
    """Return the key and the value of a directive, in time linear in the length of the line."""
    if not _is_directive(text):
        return None
    inner = text[len(_OPEN) : -len(_CLOSE)].strip(_BLANKS)
    end = next((index for index, char in enumerate(inner) if char not in _KEY), len(inner))
    key, value = inner[:end], inner[end:].lstrip(_BLANKS)
    if not key or not value or not _VALUE.issuperset(value):
        return None
    return key, value.replace(" ", "")


def _directive_spans(text: str) -> Iterator[tuple[int, int]]:
    """Yield the start and end of each directive, from the first ``{-#`` to the last ``#-}`` of a
    line.
    """
    begin = text.find(_OPEN)
    while begin >= 0:
        line_end = text.find("\n", begin)
        line_end = len(text) if line_end < 0 else line_end
        close = text.rfind(_CLOSE, begin + len(_OPEN), line_end)
        if close >= 0:
            yield begin, close + len(_CLOSE)
            begin = text.find(_OPEN, close + len(_CLOSE))
        else:
            begin = text.find(_OPEN, line_end)


def _without_directives(text: str) -> str:
    parts, rest = [], 0
    for begin, end in _directive_spans(text):
        parts.append(text[rest:begin])
        rest = end
    return "".join((*parts, text[rest:]))


def _import_span(text: str) -> tuple[int, int] | None:
    """Return the start and end of the first import directive, to the last ``#-}`` of its line."""
    word = text.find(_IMPORT)
    while word >= 0:
        before = word
        while before and text[before - 1] in _SPACES:
            before -= 1
        if text.endswith(_OPEN, 0, before):
            line_end = text.find("\n", word)
            line_end = len(text) if line_end < 0 else line_end
            close = text.rfind(_CLOSE, word + len(_IMPORT), line_end)
            if close >= 0:
                return before - len(_OPEN), close + len(_CLOSE)
            word = text.find(_IMPORT, line_end)
        else:
            word = text.find(_IMPORT, word + len(_IMPORT))
    return None


def _check(directives: Directives) -> None:
    if directives.content == LIBRARY and directives.imports:
        raise CompileError("a library imports nothing")
    if directives.content == DAPP and (
        directives.script != ACCOUNT or directives.version < FIRST_DAPP_VERSION
    ):
        raise CompileError(
            "a dApp is a script of an account, from version 3 on",
            "remove SCRIPT_TYPE, or raise STDLIB_VERSION",
        )


def link(
    text: str,
    directives: Directives,
    libraries: Mapping[str, str],
    watch: Callable[[], None] | None = None,
) -> Source:
    """Return the source with the import directive replaced by the imported declarations."""
    missing = [name for name in directives.imports if name not in libraries]
    if missing:
        raise CompileError(f"cannot find the imported {', '.join(missing)}")
    parts = []
    for name in dict.fromkeys(directives.imports):
        if read_directives(libraries[name]).content != LIBRARY:
            raise CompileError(
                f"the imported {name} is no library", "begin it with {-# CONTENT_TYPE LIBRARY #-}"
            )
        parts.append(_without_directives(libraries[name]))
    declarations = "\n".join(parts)
    span = _import_span(text) if directives.imports else None
    if span is None:
        return Source(text, watch=watch)
    begin, end = span
    linked = text[:begin] + declarations + text[end:]
    imported, start = [], begin
    for name, part in zip(dict.fromkeys(directives.imports), parts, strict=True):
        imported.append((start, start + len(part), name))
        start += len(part) + 1
    return Source(linked, (begin, end, len(declarations) - (end - begin)), watch, tuple(imported))
