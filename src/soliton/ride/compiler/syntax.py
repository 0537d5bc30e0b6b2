"""The untyped syntax tree of sources, from the parser to the checker.

What lives here: the nodes. What does not: the tree of compiled scripts
(``soliton.ride.expressions``).

``start`` and ``end`` are offsets in the source text. Operators are calls; ``&&`` and ``||`` are
choices.

Nodes with child nodes are tracked by the garbage collector although they form no cycles. A chain
of a hundred thousand operators or declarations is a tree of that depth, and only tracked objects
are freed without recursion to that depth.

Source: wavesplatform/Waves
``lang/shared/src/main/scala/com/wavesplatform/lang/v1/parser/Expressions.scala``.
"""

from __future__ import annotations

from typing import Union

import msgspec

from soliton.ride.expressions import BytesConst, LongConst, StringConst
from soliton.ride.types import Type


class Literal(msgspec.Struct, frozen=True, gc=False):
    """A number, string or byte literal."""

    start: int
    end: int
    value: LongConst | StringConst | BytesConst


class Truth(msgspec.Struct, frozen=True, gc=False):
    """``true`` or ``false``."""

    start: int
    end: int
    value: bool


class Name(msgspec.Struct, frozen=True, gc=False):
    """A reference to a value."""

    start: int
    end: int
    name: str


class Field(msgspec.Struct, frozen=True):
    """A field access; a generated one is allowed on a value of unknown type."""

    start: int
    end: int
    subject: Node
    field: str
    generated: bool = False


class Apply(msgspec.Struct, frozen=True):
    """A function call."""

    start: int
    end: int
    name: str
    arguments: tuple[Node, ...]


class ListLiteral(msgspec.Struct, frozen=True):
    """``[a, b]``."""

    start: int
    end: int
    items: tuple[Node, ...]


class Choice(msgspec.Struct, frozen=True):
    """``if``, ``then``, ``else``."""

    start: int
    end: int
    condition: Node
    then: Node
    otherwise: Node


class LetNode(msgspec.Struct, frozen=True):
    """``let name = value``; generated ones have a type and may shadow a name."""

    start: int
    end: int
    name: str
    value: Node
    type: Type | None = None
    may_shadow: bool = False


class FunctionNode(msgspec.Struct, frozen=True):
    """``func name(parameter: Type) = body``."""

    start: int
    end: int
    name: str
    parameters: tuple[tuple[str, int, TypeNode], ...]
    """The name, offset and type of each."""
    body: Node


class Declared(msgspec.Struct, frozen=True):
    """A declaration and the expression in its scope."""

    start: int
    end: int
    declaration: LetNode | FunctionNode
    body: Node


class Cast(msgspec.Struct, frozen=True):
    """``value.as[Type]`` or ``value.exactAs[Type]``."""

    start: int
    end: int
    subject: Node
    exact: bool
    type: TypeNode


class Fold(msgspec.Struct, frozen=True):
    """``FOLD<limit>(list, first, function)``."""

    start: int
    end: int
    limit: int
    items: Node
    first: Node
    function: str


class Match(msgspec.Struct, frozen=True):
    """``match subject { case ... }``."""

    start: int
    end: int
    subject: Node
    cases: tuple[Case, ...]


class Case(msgspec.Struct, frozen=True):
    """``case pattern => body``."""

    start: int
    end: int
    pattern: PatternNode
    body: Node


# --- patterns -------------------------------------------------------------------------------------


class Binding(msgspec.Struct, frozen=True, gc=False):
    """``name: Type``, ``name``, ``_: Type`` or ``_``."""

    start: int
    end: int
    name: str | None
    type: TypeNode | None


class Constants(msgspec.Struct, frozen=True, gc=False):
    """``1 | 2``."""

    start: int
    end: int
    values: tuple[Node, ...]


class TuplePattern(msgspec.Struct, frozen=True, gc=False):
    """``(a, b: Int)``."""

    start: int
    end: int
    items: tuple[PatternNode, ...]


class ObjectPattern(msgspec.Struct, frozen=True, gc=False):
    """``Type(field = pattern)``; the fields are in the order in which the reference tests them."""

    start: int
    end: int
    type: str
    fields: tuple[tuple[str, PatternNode], ...]


# --- types ----------------------------------------------------------------------------------------


class NamedType(msgspec.Struct, frozen=True, gc=False):
    """``Name`` or ``Name[Parameter]``."""

    start: int
    end: int
    name: str
    parameter: TypeNode | None = None


class AnyType(msgspec.Struct, frozen=True, gc=False):
    """``Any``."""

    start: int
    end: int


class UnionType(msgspec.Struct, frozen=True, gc=False):
    """``A|B``."""

    start: int
    end: int
    members: tuple[TypeNode, ...]


class TupleType(msgspec.Struct, frozen=True, gc=False):
    """``(A, B)``."""

    start: int
    end: int
    items: tuple[TypeNode, ...]


# --- dApps ----------------------------------------------------------------------------------------


class Annotation(msgspec.Struct, frozen=True, gc=False):
    """``@Callable(i)``."""

    start: int
    end: int
    name: str
    parameters: tuple[tuple[str, int], ...]


class AnnotatedNode(msgspec.Struct, frozen=True, gc=False):
    """A function with its annotations."""

    annotations: tuple[Annotation, ...]
    function: FunctionNode


class ContractNode(msgspec.Struct, frozen=True, gc=False):
    """A whole dApp."""

    declarations: tuple[LetNode | FunctionNode, ...]
    functions: tuple[AnnotatedNode, ...]
    end: int


Node = Union[  # noqa: UP007 - it is recursive
    Literal, Truth, Name, Field, Apply, ListLiteral, Choice, Declared, Cast, Fold, Match
]
PatternNode = Union[Binding, Constants, TuplePattern, ObjectPattern]  # noqa: UP007
TypeNode = Union[NamedType, AnyType, UnionType, TupleType]  # noqa: UP007
DeclarationNode = LetNode | FunctionNode
