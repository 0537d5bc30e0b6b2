"""Numbers for the expressions of a script, the same for every tree of the same script.

What lives here: the numbers (each expression before what is in it, as ``script.nodes`` walks), and
which function each belongs to. What does not: where they are in a text (``source_map``).
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice

import msgspec

from soliton.ride.expressions import (
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
    StringConst,
)
from soliton.ride.script import nodes

MAX_LOOKED_AT = 500
"""Expressions inside of one that are looked at for names."""


class Body(msgspec.Struct, frozen=True):
    """What an expression is the body of: a function, or a value of a dApp (without parameters)."""

    name: str
    parameters: tuple[str, ...] = ()
    is_function: bool = True


class Numbering:
    """The expressions of one tree by number and by identity. It keeps the tree alive."""

    def __init__(
        self, expressions: list[Expression], owners: list[int], bodies: dict[int, Body]
    ) -> None:
        self.expressions = expressions
        self.owners = owners
        """For each expression the number of the body that it is in."""
        self.bodies = bodies
        self._numbers = {id(each): number for number, each in enumerate(expressions)}

    def of(self, expression: Expression) -> int | None:
        """The number of an expression of this tree."""
        return self._numbers.get(id(expression))

    def __contains__(self, expression: Expression) -> bool:
        return id(expression) in self._numbers

    def inside(self, expression: Expression) -> Iterator[Expression]:
        """An expression and some of what is in it."""
        return islice(nodes(expression), MAX_LOOKED_AT)


def numbered(content: Expression | DApp) -> Numbering:
    """The numbers of a tree's expressions."""
    expressions: list[Expression] = []
    owners: list[int] = []
    bodies: dict[int, Body] = {}
    stack = [(node, -1, body) for node, body in reversed(_tops(content))]
    while stack:
        node, owner, body = stack.pop()
        number = len(expressions)
        if body is not None:
            owner = number
            bodies[number] = body
        expressions.append(node)
        owners.append(owner)
        match node:
            case If(condition, then, otherwise):
                parts = (otherwise, then, condition)
                stack.extend((part, owner, None) for part in parts)
            case GetField(inner):
                stack.append((inner, owner, None))
            case Call(_, arguments):
                stack.extend((argument, owner, None) for argument in reversed(arguments))
            case Block(Let(_, value), rest):
                stack += ((rest, owner, None), (value, owner, None))
            case Block(Func() as function, rest):
                stack += ((rest, owner, None), (function.body, owner, _body(function)))
            case _:
                pass
    return Numbering(expressions, owners, bodies)


def _tops(content: Expression | DApp) -> list[tuple[Expression, Body | None]]:
    if not isinstance(content, DApp):
        return [(content, Body("", (), False))]
    found: list[tuple[Expression, Body | None]] = []
    for each in content.declarations:
        if isinstance(each, Let):
            found.append((each.value, Body(each.name, (), False)))
        else:
            found.append((each.body, _body(each)))
    annotated = [*content.callables, *filter(None, (content.verifier,))]
    found += [
        (each.function.body, Body(each.function.name, each.function.parameters))
        for each in annotated
    ]
    return found


def _body(function: Func) -> Body | None:
    """Functions that the compiler made belong to whoever they are in."""
    if function.name.startswith("$"):
        return None
    return Body(function.name, function.parameters)


def shape(expressions: list[Expression]) -> tuple[object, ...]:
    """What two trees of the same script have in common: all but names."""
    return tuple(map(_kind, expressions))


def _kind(node: Expression) -> object:
    match node:
        case Call(int(function), arguments):
            return function, len(arguments)
        case GetField(_, field):
            return field
        case LongConst(value) | StringConst(value) | BytesConst(value) | BoolConst(value):
            return type(value), value
        case Block(declaration, _, old):
            return type(declaration), old
        case _:
            return type(node)
