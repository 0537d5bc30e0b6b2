"""The text form of expression trees, as the reference prints it: ``scriptText`` in REST responses.

What lives here: that notation. What does not: source text (``decompiler``), values (``printing``).
For dApps, the reference's text contains memory addresses, so it cannot be reproduced.

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
"""The limit. Scripts of accounts and assets have a tenth of it at most."""


def tree_text(script: Script) -> str:
    """Return the tree of an expression; an empty string for a dApp, or beyond the limit."""
    if isinstance(script.content, DApp):
        return ""
    parts: list[str] = []
    length = 0
    pending: list[Expression | str] = [script.content]
    while pending:
        node = pending.pop()
        if isinstance(node, str):
            parts.append(node)
            length += len(node)
            if length > MAX_TREE_CHARS:
                return ""
        else:
            pending.extend(reversed(_parts(node)))
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
            for index, argument in enumerate(arguments):
                parts += [", ", argument] if index else [argument]
            return [*parts, "))"]
        case Block(Let(name, value), body, old):
            return ["LET_BLOCK(" if old else "BLOCK(", f"LET({name},", value, "),", body, ")"]
        case Block(Func(name, parameters, value), body):
            names = ", ".join(parameters)
            return [f"BLOCK(FUNC({name},List({names}),", value, "),", body, ")"]
        case _:
            return [plain_text(constant_value(node))]
