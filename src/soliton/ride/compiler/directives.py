"""Directives at the head of a source, and the libraries that it imports.

What lives here: ``{-# STDLIB_VERSION 6 #-}`` and its like, and how imported declarations come into
the text. What does not: where the text of a library comes from; callers hand it in.

Sources: wavesplatform/Waves
``lang/shared/src/main/scala/com/wavesplatform/lang/directives/{DirectiveParser,DirectiveSet}.scala``
and ``lang/script/ScriptPreprocessor.scala``.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Final

import msgspec

from soliton.ride.compiler.errors import CompileError, Source

FIRST_VERSION: Final = 1
LAST_VERSION: Final = 8
DEFAULT_VERSION: Final = 3
FIRST_DAPP_VERSION: Final = 3

EXPRESSION: Final = "EXPRESSION"
DAPP: Final = "DAPP"
LIBRARY: Final = "LIBRARY"
ACCOUNT: Final = "ACCOUNT"
ASSET: Final = "ASSET"
CALL: Final = "CALL"

_LINE: Final = re.compile(r"\s*\{-#.*#-\}\s*")
_DIRECTIVE: Final = re.compile(
    r"[ \t\r]*\{-#[ \t\r]*([A-Za-z0-9_]+)[ \t\r]*([A-Za-z0-9_\-/., ]+)[ \t\r]*#-\}[ \t\r]*"
)
_IMPORT: Final = re.compile(r"\{-#\s*IMPORT.*#-\}")
_ANY_DIRECTIVE: Final = re.compile(r"\{-#.*#-\}")
_VALUES: Final = {
    "STDLIB_VERSION": tuple(str(version) for version in range(FIRST_VERSION, LAST_VERSION + 1)),
    "CONTENT_TYPE": (EXPRESSION, DAPP, LIBRARY),
    "SCRIPT_TYPE": (ACCOUNT, ASSET, CALL),
    "IMPORT": (),
}


class Directives(msgspec.Struct, frozen=True):
    """What a source says about itself."""

    version: int = DEFAULT_VERSION
    content: str = EXPRESSION
    script: str = ACCOUNT
    imports: tuple[str, ...] = ()


def read_directives(text: str, default_version: int = DEFAULT_VERSION) -> Directives:
    """The directives of a source; raises ``CompileError``."""
    found: dict[str, str] = {}
    for number, line in enumerate(text.split("\n"), 1):
        if not _LINE.fullmatch(line):
            continue
        directive = _DIRECTIVE.match(line)
        if directive is None:
            raise CompileError("a directive that cannot be read", "write {-# KEY value #-}", number)
        key, value = directive.group(1), directive.group(2).replace(" ", "")
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
    """The source with the declarations of its imports in place of the directive."""
    missing = [name for name in directives.imports if name not in libraries]
    if missing:
        raise CompileError(f"cannot find the imported {', '.join(missing)}")
    parts = []
    for name in dict.fromkeys(directives.imports):
        if read_directives(libraries[name]).content != LIBRARY:
            raise CompileError(
                f"the imported {name} is no library", "begin it with {-# CONTENT_TYPE LIBRARY #-}"
            )
        parts.append(_ANY_DIRECTIVE.sub("", libraries[name]))
    declarations = "\n".join(parts)
    found = _IMPORT.search(text)
    if not directives.imports or found is None:
        return Source(text, watch=watch)
    linked = text[: found.start()] + declarations + text[found.end() :]
    length = found.end() - found.start()
    return Source(linked, (found.start(), found.end(), len(declarations) - length), watch)
