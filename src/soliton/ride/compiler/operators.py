"""Translation of operators and ``strict`` to calls and choices.

What lives here: precedence, lowest first, and translation. What does not: parsing (``parser``).

Source: wavesplatform/Waves ``lang/shared/src/main/scala/com/wavesplatform/lang/v1/parser/``
``{BinaryOperation,Macro}.scala``.
"""

from __future__ import annotations

from typing import Final

from soliton.ride.compiler.syntax import (
    Apply,
    Choice,
    Declared,
    FunctionNode,
    LetNode,
    Literal,
    Name,
    Node,
    Truth,
)
from soliton.ride.expressions import StringConst

LEVELS: Final = (
    ("||",),
    ("&&",),
    (">", ">=", "<", "<="),
    ("==", "!="),
    ("::",),
    ("+", "-"),
    ("*", "/", "%"),
    (":+", "++"),
)
LEVEL_OF: Final = {sign: level for level, signs in enumerate(LEVELS) for sign in signs}
CONS_LEVEL: Final = LEVEL_OF["::"]
SUM_LEVEL: Final = LEVEL_OF["+"]

NOT_ITSELF: Final = "Strict value is not equal to itself."


def reduce_operands(operands: list[Node], sign: str) -> None:
    """Replace the last two operands with the application of an operator."""
    right = operands.pop()
    left = operands.pop()
    start, end = left.start, right.end
    result: Node
    match sign:
        case "&&":
            result = Choice(start, end, left, right, Truth(start, end, False))
        case "||":
            result = Choice(start, end, left, Truth(start, end, True), right)
        case "<":
            result = Apply(start, end, ">", (right, left))
        case "<=":
            result = Apply(start, end, ">=", (right, left))
        case "::":
            result = Apply(start, end, "cons", (left, right))
        case _:
            result = Apply(start, end, sign, (left, right))
    operands.append(result)


def strict_block(start: int, end: int, declared: list[LetNode | FunctionNode], body: Node) -> Node:
    """Return a block that evaluates its value first, by comparing it with itself."""
    first = declared[0]
    for other in declared[1:]:
        body = Declared(other.start, other.end, other, body)
    name = Name(first.start, first.end, first.name)
    message = Literal(first.start, first.end, StringConst(NOT_ITSELF))
    check = Choice(
        start,
        end,
        Apply(first.start, first.end, "==", (name, name)),
        body,
        Apply(first.start, first.end, "throw", (message,)),
    )
    return Declared(start, end, first, check)
