"""The syntax tree of scripts: expressions, declarations, dApps.

What lives here: the node types, nothing else. What does not: how they are written
(``serialization``), what they are worth (``evaluator``), the types of the source language.

A tree may be nested as deeply as its bytes allow, tens of thousands of levels. Nobody may walk it
recursively without a bound; comparing or printing such a tree with Python's own means is no good
idea either. The nodes that hold other nodes directly are known to the garbage collector: it is what
takes deep trees apart without recursion. Those that hold them in tuples leave that to the tuples:
calls are most of a tree, and what is kept of scripts would make each full collection long.

Source: wavesplatform/Waves
``lang/shared/src/main/scala/com/wavesplatform/lang/v1/compiler/Terms.scala``.
"""

from __future__ import annotations

from typing import Final, Union

import msgspec

DEFAULT_FUNCTION: Final = "default"
"""The function that a call without a name means."""


class LongConst(msgspec.Struct, frozen=True, gc=False):
    """A 64-bit signed integer."""

    value: int


class BytesConst(msgspec.Struct, frozen=True, gc=False):
    """A literal of bytes."""

    value: bytes


class StringConst(msgspec.Struct, frozen=True, gc=False):
    """A literal of text."""

    value: str


class BoolConst(msgspec.Struct, frozen=True, gc=False):
    """True or false."""

    value: bool


class ListConst(msgspec.Struct, frozen=True, gc=False):
    """A list of constants; only the arguments of calls are written so."""

    items: tuple[Constant, ...]


class ObjectConst(msgspec.Struct, frozen=True, gc=False):
    """An object with constant fields; no script from outside can contain one."""

    type_name: str
    fields: tuple[tuple[str, Constant], ...]


class Ref(msgspec.Struct, frozen=True, gc=False):
    """The value of a name."""

    name: str


class GetField(msgspec.Struct, frozen=True):
    """One field of an object."""

    expression: Expression
    field: str


class If(msgspec.Struct, frozen=True):
    """A choice; only the chosen branch is evaluated."""

    condition: Expression
    then: Expression
    otherwise: Expression


class Call(msgspec.Struct, frozen=True, gc=False):
    """A call: of a library function by its number, or of a script's function, a named library
    function or a constructor by name.
    """

    function: int | str
    arguments: tuple[Expression, ...]


class Let(msgspec.Struct, frozen=True):
    """A named value, evaluated when it is first asked for."""

    name: str
    value: Expression


class Func(msgspec.Struct, frozen=True):
    """A function of a script."""

    name: str
    parameters: tuple[str, ...]
    body: Expression


class Block(msgspec.Struct, frozen=True):
    """A declaration and the expression that may use it; ``old`` marks the form of versions 1 and 2
    of the language, which knows no functions.
    """

    declaration: Let | Func
    body: Expression
    old: bool = False


class AnnotatedFunction(msgspec.Struct, frozen=True):
    """A function of a dApp that is called from outside; ``invocation`` names the parameter of its
    annotation (the invocation of a callable function, the transaction of the verifier).
    """

    invocation: str
    function: Func


class DApp(msgspec.Struct, frozen=True):
    """The content of a dApp; ``meta`` is its description in bytes, as it was written."""

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
