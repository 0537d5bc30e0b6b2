"""The expression tree of scripts: expressions, declarations, dApps.

What lives here: the node types, and access to their children. What does not: serialization
(``serialization``), evaluation (``evaluator``), the types of the source language (``types``).

The size of a script is the only limit of nesting, so trees can be tens of thousands of levels deep.
Do not traverse, compare or print them recursively. Nodes with direct children are tracked by the
garbage collector, which frees deep trees without recursion. Nodes whose children are in tuples
leave that to the tuples: calls are most of a tree, and tracking those of all cached scripts would
make full collections slow.

Source: wavesplatform/Waves
``lang/shared/src/main/scala/com/wavesplatform/lang/v1/compiler/Terms.scala``.
"""

from __future__ import annotations

from collections.abc import Callable
from operator import attrgetter
from typing import Any, Final, Union

import msgspec

FIRST_VERSION: Final = 1
LAST_VERSION: Final = 9
"""The versions of the language."""
DEFAULT_FUNCTION: Final = "default"
"""The function that a call without a name calls."""


class LongConst(msgspec.Struct, frozen=True, gc=False):
    """A 64-bit signed integer."""

    value: int


class BytesConst(msgspec.Struct, frozen=True, gc=False):
    """A byte vector."""

    value: bytes


class StringConst(msgspec.Struct, frozen=True, gc=False):
    """A string."""

    value: str


class BoolConst(msgspec.Struct, frozen=True, gc=False):
    """A Boolean."""

    value: bool


class ListConst(msgspec.Struct, frozen=True, gc=False):
    """A list of constants; it occurs only as an argument of a call."""

    items: tuple[Constant, ...]


class ObjectConst(msgspec.Struct, frozen=True, gc=False):
    """An object with constant fields; it has no serialized form."""

    type_name: str
    fields: tuple[tuple[str, Constant], ...]


class Ref(msgspec.Struct, frozen=True, gc=False):
    """A reference to a value."""

    name: str


class GetField(msgspec.Struct, frozen=True):
    """A field access."""

    expression: Expression
    field: str


class If(msgspec.Struct, frozen=True):
    """A choice; only the chosen branch is evaluated."""

    condition: Expression
    then: Expression
    otherwise: Expression


class Call(msgspec.Struct, frozen=True, gc=False):
    """A call: of a library function by number, or of a script's function, a named library function
    or a constructor by name.
    """

    function: int | str
    arguments: tuple[Expression, ...]


class Let(msgspec.Struct, frozen=True):
    """A named value, evaluated at its first use."""

    name: str
    value: Expression


class Func(msgspec.Struct, frozen=True):
    """A function of a script."""

    name: str
    parameters: tuple[str, ...]
    body: Expression


class Block(msgspec.Struct, frozen=True):
    """A declaration and the expression in its scope; ``old`` marks the form of versions 1 and 2 of
    the language, which has no functions.
    """

    declaration: Let | Func
    body: Expression
    old: bool = False


class AnnotatedFunction(msgspec.Struct, frozen=True):
    """A callable function or verifier of a dApp; ``invocation`` is the name of its annotation's
    parameter.
    """

    invocation: str
    function: Func


class DApp(msgspec.Struct, frozen=True):
    """The content of a dApp; ``meta`` is its serialized metadata."""

    meta: bytes
    declarations: tuple[Let | Func, ...]
    callables: tuple[AnnotatedFunction, ...]
    verifier: AnnotatedFunction | None = None


Constant = Union[LongConst, BytesConst, StringConst, BoolConst, ListConst, ObjectConst]  # noqa: UP007 - it is recursive
Expression = Union[Constant, Ref, GetField, If, Call, Block]  # noqa: UP007 - it is recursive
Declaration = Let | Func

CONSTANTS: Final = (LongConst, BytesConst, StringConst, BoolConst, ListConst, ObjectConst)
TRUE: Final = BoolConst(True)
FALSE: Final = BoolConst(False)


def declared_expression(declaration: Declaration) -> Expression:
    """Return the value of a ``Let`` or the body of a ``Func``."""
    return declaration.value if isinstance(declaration, Let) else declaration.body


def children(node: Expression) -> tuple[Expression, ...]:
    """Return the children of a node in order; constants have none."""
    of_kind = _CHILDREN.get(type(node))
    return () if of_kind is None else of_kind(node)


_CHILDREN: Final[dict[type, Callable[[Any], tuple[Expression, ...]]]] = {
    If: attrgetter("condition", "then", "otherwise"),
    GetField: lambda node: (node.expression,),
    Call: attrgetter("arguments"),
    Block: lambda node: (declared_expression(node.declaration), node.body),
}
