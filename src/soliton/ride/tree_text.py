"""Expressions as the reference prints its trees: ``scriptText`` in REST answers.

What lives here: that notation. What does not: source text (``decompiler``), values (``printing``).
Of dApps the reference prints addresses of its own memory as well, which nobody can tell.

Source: wavesplatform/Waves
``lang/shared/src/main/scala/com/wavesplatform/lang/v1/compiler/Terms.scala``.
"""

from __future__ import annotations

from typing import Final

from soliton.ride.evaluator_machine import constant_value
from soliton.ride.expressions import (
    Block,
    Call,
    DApp,
    Expression,
    Func,
    GetField,
    If,
    Let,
    Ref,
)
from soliton.ride.functions.printing import plain_text
from soliton.ride.script import Script

MAX_TREE_CHARS: Final = 1_000_000
"""Scripts of accounts and assets have a tenth of it at most."""


def tree_text(script: Script) -> str:
    """The tree of an expression; nothing for dApps and for what is longer than the limit."""
    if isinstance(script.content, DApp):
        return ""
    parts: list[str] = []
    length = 0
    waiting: list[Expression | str] = [script.content]
    while waiting:
        node = waiting.pop()
        if isinstance(node, str):
            parts.append(node)
            length += len(node)
            if length > MAX_TREE_CHARS:
                return ""
        else:
            waiting.extend(reversed(_parts(node)))
    return "".join(parts)


def _parts(node: Expression) -> list[Expression | str]:
    match node:
        case Ref(name):
            return [f"REF({name})"]
        case GetField(inner, field):
            return ["GETTER(", inner, f",{field})"]
        case If(condition, then, otherwise):
            return ["IF(", condition, ",", then, ",", otherwise, ")"]
        case Call(function, arguments):
            header = f"User({function})" if isinstance(function, str) else f"Native({function})"
            parts: list[Expression | str] = [f"FUNCTION_CALL({header},List("]
            for place, argument in enumerate(arguments):
                parts += [", ", argument] if place else [argument]
            return [*parts, "))"]
        case Block(Let(name, value), body, old):
            return ["LET_BLOCK(" if old else "BLOCK(", f"LET({name},", value, "),", body, ")"]
        case Block(Func(name, parameters, value), body):
            given = ", ".join(parameters)
            return [f"BLOCK(FUNC({name},List({given}),", value, "),", body, ")"]
        case _:
            return [plain_text(constant_value(node))]
