"""Programs of the source language by chance: the same ones for the same seed.

What lives here: whole programs, with directives, declarations and annotations, of which some are
spoiled on purpose. What does not: the expressions inside of them (``values``).
"""

from __future__ import annotations

import re
from random import Random
from typing import Final

import msgspec

from soliton.ride.compiler.library import ScriptKind
from soliton.ride.types import BIG_INT, BOOLEAN, INT, Type, list_of, tuple_of
from tests.ride.differential.values import Values

SPOILED: Final = 0.15
"""How many programs get a mistake."""
_KINDS: Final = (
    ("DAPP", "ACCOUNT", ScriptKind.DAPP),
    ("DAPP", "ACCOUNT", ScriptKind.DAPP),
    ("EXPRESSION", "ACCOUNT", ScriptKind.ACCOUNT),
    ("EXPRESSION", "ASSET", ScriptKind.ASSET),
    ("EXPRESSION", "CALL", ScriptKind.CALL),
    ("LIBRARY", "ACCOUNT", ScriptKind.ACCOUNT),
)
_VERSIONS: Final = (1, 2, 3, 4, 5, 6, 7, 8, 9, 9, 9)
"""The newest version, whose functions are new, comes more often."""
_FIRST_DAPP_VERSION: Final = 3
_FIRST_CALL_VERSION: Final = 6
_TOKEN: Final = re.compile(r'"[^"]*"|\w+|[^\w\s]')


class Program(msgspec.Struct, frozen=True):
    """A source, and how it is to be compiled."""

    source: str
    compact: bool
    remove_unused: bool


def programs(seed: int, count: int) -> list[Program]:
    """Each program has a generator of its own, so that one can be made again alone."""
    return [program(f"{seed}/{number}") for number in range(count)]


def program(seed: str) -> Program:
    """The program of a seed."""
    chance = Random(seed)
    version = chance.choice(_VERSIONS)
    content, script, kind = chance.choice(_KINDS)
    if version < _FIRST_DAPP_VERSION and content != "EXPRESSION":
        content, kind = "EXPRESSION", ScriptKind.ACCOUNT
    if script == "CALL" and version < _FIRST_CALL_VERSION:
        script, kind = "ACCOUNT", ScriptKind.ACCOUNT
    values = Values(chance, version, kind)
    parts = [
        f"{{-# STDLIB_VERSION {version} #-}}",
        f"{{-# CONTENT_TYPE {content} #-}}",
        f"{{-# SCRIPT_TYPE {script} #-}}",
        *_comment(chance),
        *values.declarations(chance.randint(0, 5)),
    ]
    if content == "DAPP":
        parts += _annotated(values, chance)
    elif script == "CALL":
        assert values.library.callable_result is not None
        parts.append(values.of(values.library.callable_result, 4))
    elif content == "EXPRESSION":
        parts.append(values.of(BOOLEAN, 4))
    source = chance.choice(("\n", "\n\n", " \n")).join(parts)
    if chance.random() < SPOILED:
        source = _spoiled(source, chance)
    small = content == "DAPP" and chance.random() < 0.3
    return Program(source, small, content == "DAPP" and chance.random() < 0.3)


def _comment(chance: Random) -> list[str]:
    return [chance.choice(("# a comment", "#", "# é ∆ 😀"))] if chance.random() < 0.3 else []


def _annotated(values: Values, chance: Random) -> list[str]:
    library = values.library
    result = library.callable_result
    assert result is not None
    written = []
    for number in range(chance.randint(0, 3)):
        parameters = [(values.name(), _parameter_type(values)) for _ in range(chance.randint(0, 3))]
        invocation = values.name()
        with values.scope([(invocation, library.invocation), *parameters]):
            body = values.of(result, 4)
        told = ", ".join(f"{name}: {type_.name}" for name, type_ in parameters)
        gap = chance.choice((" ", "\n"))
        written.append(f"@Callable({invocation}){gap}func call{number}({told}) = {body}")
    if chance.random() < 0.4:
        name = values.name()
        with values.scope([(name, library.verifier_input)]):
            body = values.of(BOOLEAN, 4)
        written.append(f"@Verifier({name})\nfunc verify() = {body}")
    return written


def _parameter_type(values: Values) -> Type:
    simple = values.simple()
    choice = values.chance.random()
    if values.version >= 4 and choice < 0.3 and simple is not BIG_INT:
        return list_of(simple)
    if choice < 0.32:
        return tuple_of((simple, simple))
    return INT if simple is BIG_INT and choice < 0.95 else simple


def _spoiled(source: str, chance: Random) -> str:
    """The source with one token left out, doubled or put in another's place."""
    head = source.rindex("#-}")
    tokens = [found for found in _TOKEN.finditer(source) if found.start() > head + 2]
    if not tokens:
        return source
    hit = chance.choice(tokens)
    new = chance.choice(("", f"{hit.group()} {hit.group()}", chance.choice(tokens).group()))
    return source[: hit.start()] + new + source[hit.end() :]
