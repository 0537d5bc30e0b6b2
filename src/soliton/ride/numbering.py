"""Numbers for the expressions of a script, the same for every tree of the script.

What lives here: the numbers (in preorder, like ``script.nodes``), and the function of each
expression. What does not: positions in a text (``source_map``).
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
    Let,
    LongConst,
    StringConst,
    children,
)
from soliton.ride.script import nodes

_MAX_SEARCHED = 500
"""The number of inner expressions that are searched for names."""


class Body(msgspec.Struct, frozen=True):
    """The function, or the value of a dApp (without parameters), to which a body belongs."""

    name: str
    parameters: tuple[str, ...] = ()
    is_function: bool = True


class Numbering:
    """The expressions of a tree by number and by ``id``. It keeps the tree alive."""

    def __init__(
        self, expressions: list[Expression], owners: list[int], bodies: dict[int, Body]
    ) -> None:
        self.expressions = expressions
        self.owners = owners
        """For each expression, the number of the body that contains it."""
        self.bodies = bodies
        self._numbers = {id(each): number for number, each in enumerate(expressions)}

    def of(self, expression: Expression) -> int | None:
        """Return the number of an expression, or ``None`` if it is not in this tree."""
        return self._numbers.get(id(expression))

    def __contains__(self, expression: Expression) -> bool:
        return id(expression) in self._numbers

    def inside(self, expression: Expression) -> Iterator[Expression]:
        """Iterate over an expression and its first inner expressions."""
        return islice(nodes(expression), _MAX_SEARCHED)


def numbered(content: Expression | DApp) -> Numbering:
    """Number the expressions of a tree."""
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
        stack.extend((child, owner, None) for child in reversed(children(node)))
        if isinstance(node, Block) and isinstance(node.declaration, Func):
            stack[-1] = (node.declaration.body, owner, _body(node.declaration))
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
    """Return ``None`` for a generated function, which belongs to the body that contains it."""
    if function.name.startswith("$"):
        return None
    return Body(function.name, function.parameters)


def shape(expressions: list[Expression]) -> tuple[object, ...]:
    """Return everything but names, for comparing trees of the same script."""
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
