"""Scripts that were changed at random: their text compiles to them, or says truly that it does not.

What lives here: the changes, and the comparison. What does not: scripts as compilers write them
(``test_decompiler``, ``differential.test_round_trip``).
"""

from __future__ import annotations

import re
from random import Random

from soliton.ride.compiler import CompileError, compile_source
from soliton.ride.decompiler import (
    NOT_A_SOURCE,
    NOT_COMPILED,
    OTHER_SCRIPT,
    DecompileError,
    decompile,
)
from soliton.ride.errors import RideError
from soliton.ride.expressions import (
    AnnotatedFunction,
    Block,
    BoolConst,
    BytesConst,
    Call,
    DApp,
    Expression,
    Func,
    GetField,
    If,
    Let,
    LongConst,
    Ref,
    StringConst,
    children,
)
from soliton.ride.meta import read_meta
from soliton.ride.script import Script, make_script, nodes
from tests.amounts import times
from tests.ride.differential.programs import program
from tests.ride.test_decompiler import without_offsets
from tests.vectors import report

_PROGRAMS = times(120, 3_000)
_STRANGE_NAMES = ("$match0", "@", "$l", "$t01", "a b", "unit", "if", "_", "x1")


def test_text_of_changed_scripts() -> None:
    counts = dict.fromkeys(("same", NOT_A_SOURCE, NOT_COMPILED, OTHER_SCRIPT), 0)
    for number in range(_PROGRAMS):
        script = _compiled(number)
        if script is None:
            continue
        chance = Random(f"mutants/{number}")
        mutant = make_script(script.version, _changed(script.content, chance))
        try:
            text = decompile(mutant)
        except DecompileError:
            continue
        head = text.splitlines()[3]
        mark = next((each for each in counts if head.startswith(f"# {each}")), "same")
        counts[mark] += 1
        assert _gives(text, mutant) is (mark == "same"), f"{number}: {mark}\n{text}"
    assert counts["same"] and sum(counts.values()) > counts["same"]
    for mark, count in counts.items():
        report.ran(f"changed scripts: {mark}", count)


def _compiled(number: int) -> Script | None:
    each = program(f"mutants/{number}")
    try:
        return compile_source(each.source, compact=each.compact, check_complexity=False).script
    except CompileError:
        return None


def _gives(text: str, script: Script) -> bool:
    """Whether a text compiles to a script, but for offsets in names."""
    content = script.content
    compact = isinstance(content, DApp) and bool(read_meta(content.meta).original_names)
    try:
        found = compile_source(text, compact=compact, check_complexity=False).script
    except RideError:
        return False
    return _told(found) == _told(script)


def _told(script: Script) -> tuple[bytes, object]:
    """Return a script without metadata, and that; both without offsets."""
    if not isinstance(script.content, DApp):
        return without_offsets(script.source), None
    meta = read_meta(script.content.meta)
    names = [re.sub(r"^\$t0\d+$", "$t0", name) for name in meta.original_names]
    bare = make_script(script.version, DApp(b"", *_parts(script.content)))
    signatures = (meta.version, meta.signatures, meta.name_pairs, names)
    return without_offsets(bare.source), signatures


def _parts(
    content: DApp,
) -> tuple[tuple[Let | Func, ...], tuple[AnnotatedFunction, ...], AnnotatedFunction | None]:
    return content.declarations, content.callables, content.verifier


def _changed(content: Expression | DApp, chance: Random) -> Expression | DApp:
    """Return a script with one change."""
    if not isinstance(content, DApp):
        return _with_change(content, chance)
    declarations, callables, verifier = _parts(content)
    if callables and chance.random() < 0.5:
        place = chance.randrange(len(callables))
        one = callables[place]
        body = _with_change(one.function.body, chance)
        function = Func(one.function.name, one.function.parameters, body)
        changed = AnnotatedFunction(one.invocation, function)
        callables = (*callables[:place], changed, *callables[place + 1 :])
    elif declarations:
        place = chance.randrange(len(declarations))
        other = _declaration(declarations[place], chance)
        declarations = (*declarations[:place], other, *declarations[place + 1 :])
    return DApp(content.meta, declarations, callables, verifier)


def _declaration(declaration: Let | Func, chance: Random) -> Let | Func:
    if isinstance(declaration, Let):
        return Let(declaration.name, _with_change(declaration.value, chance))
    body = _with_change(declaration.body, chance)
    return Func(declaration.name, declaration.parameters, body)


def _with_change(tree: Expression, chance: Random) -> Expression:
    """Return a tree with a change at one of its nodes, on the way to which it is copied."""
    count = len(children(tree))
    if not count or chance.random() < 0.3:
        return _other(tree, chance)
    place = chance.randrange(count)
    match tree:
        case If(condition, then, otherwise):
            three = [condition, then, otherwise]
            three[place] = _with_change(three[place], chance)
            return If(*three)
        case GetField(subject, field):
            return GetField(_with_change(subject, chance), field)
        case Call(function, arguments):
            changed = list(arguments)
            changed[place] = _with_change(changed[place], chance)
            return Call(function, tuple(changed))
        case Block(declaration, body, old):
            if place:
                return Block(declaration, _with_change(body, chance), old)
            return Block(_declaration(declaration, chance), body, old)
    return tree


def _other(node: Expression, chance: Random) -> Expression:
    match chance.randrange(5), node:
        case 0, Block(declaration, body, old) if isinstance(declaration, Let):
            return Block(declaration, body, not old)
        case 0 | 1, Block(Let(_, value), body, old):
            return Block(Let(chance.choice(_STRANGE_NAMES), value), body, old)
        case _, Call(function, arguments) if len(arguments) > 1:
            return Call(function, arguments[::-1])
        case _, If(condition, then, otherwise):
            return If(condition, otherwise, then)
        case _, LongConst(value):
            return LongConst(-1 - value)
        case _, StringConst(value):
            return StringConst(value + '"\\\n\0\x7fé')
        case _, BytesConst(value):
            return BytesConst(value + bytes(200))
        case _, Ref():
            return Ref(chance.choice(_STRANGE_NAMES))
        case _, GetField(subject, field):
            return GetField(subject, chance.choice(("_1", field, "a b", "if")))
    inside = [each for each in nodes(node) if not isinstance(each, Block)]
    return chance.choice([BoolConst(True), *inside])
