"""The library for the evaluator: the meaning of names and numbers at run time.

What lives here: the library of a version, a kind of script and a chain. What does not: the
functions (``functions``).

Source: wavesplatform/Waves
``lang/shared/src/main/scala/com/wavesplatform/lang/v1/evaluator/ctx/impl/waves/WavesContext.scala``
and ``node/src/main/scala/com/wavesplatform/transaction/smart/BlockchainContext.scala``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from typing import Final

import msgspec

from soliton.ride.bindings import address_object
from soliton.ride.compiler.library import ScriptKind, is_available, library
from soliton.ride.environment import CallContext
from soliton.ride.errors import EvaluationError
from soliton.ride.expressions import Expression
from soliton.ride.functions.bodies import named_functions
from soliton.ride.functions.catalogue import (
    POW_BIG_INT_TO_HALF,
    costs,
    functions,
)
from soliton.ride.functions.chain_data import asset_object, block_object
from soliton.ride.functions.library import implementations
from soliton.ride.types import Record
from soliton.ride.values import NIL, UNIT, Value, case_object

Implementation = Callable[[Sequence[Value], CallContext], Value]
Variable = Callable[[CallContext], Value]


class Native(msgspec.Struct, frozen=True):
    """A function that is called by number; ``name`` is its name in sources."""

    name: str
    cost: int
    implementation: Implementation


class Named(msgspec.Struct, frozen=True):
    """A library function written in the language; ``cost`` is by the newer complexity rules."""

    name: str
    cost: int
    parameters: tuple[str, ...]
    body: Expression


class Library(msgspec.Struct, frozen=True):
    """The predefined names of a version and kind. ``constructors`` has the fields of types,
    ``variables`` the values that depend on the run, ``constants`` the others.
    """

    version: int
    kind: ScriptKind
    chain_id: int
    natives: dict[int, Native]
    named: dict[str, Named]
    constructors: dict[str, tuple[str, ...]]
    constants: dict[str, Value]
    variables: dict[str, Variable]

    @property
    def key(self) -> tuple[int, ScriptKind, int]:
        """The arguments of ``load_library``."""
        return self.version, self.kind, self.chain_id


@cache
def load_library(version: int, kind: ScriptKind, chain_id: int) -> Library:
    """Return the library of a version for a kind of script on a chain."""
    names = named_functions(version, chain_id)
    bodies = implementations(version)
    bound_natives, bound_named = {}, {}
    for function in functions(version):
        key = function.key
        if not is_available(function.where, kind):
            continue
        if isinstance(key, int):
            bound_natives[key] = Native(function.name, function.costs[version], bodies[key])
        else:
            body = names[key]
            bound_named[key] = Named(
                function.name, function.costs[version], body.parameters, body.body
            )
    if POW_BIG_INT_TO_HALF in bodies:
        bound_natives[POW_BIG_INT_TO_HALF] = Native(
            "pow", costs(version)[POW_BIG_INT_TO_HALF], bodies[POW_BIG_INT_TO_HALF]
        )
    constants, variables = _values(version, kind)
    return Library(
        version,
        kind,
        chain_id,
        bound_natives,
        bound_named,
        _constructors(version, kind),
        constants,
        variables,
    )


def _constructors(version: int, kind: ScriptKind) -> dict[str, tuple[str, ...]]:
    types = library(version, kind).types
    found: dict[str, tuple[str, ...]] = {UNIT.type_name: ()}
    for name, each in types.items():
        if isinstance(each, Record):
            found[name] = tuple(field for field, _ in each.fields)
    return found


def _values(version: int, kind: ScriptKind) -> tuple[dict[str, Value], dict[str, Variable]]:
    """Return constants and variables by name."""
    constants: dict[str, Value] = {}
    variables: dict[str, Variable] = {}
    for name, of in library(version, kind).variables.items():
        if name == "unit":
            constants[name] = UNIT
        elif name == "nil":
            constants[name] = NIL
        elif name in ("Buy", "Sell"):
            constants[name] = case_object(name, {})
        elif name in _VARIABLES:
            variables[name] = _VARIABLES[name]
        else:
            constants[name] = case_object(of.name, {})
    return constants, variables


def _height(context: CallContext) -> Value:
    return context.environment.height


def _last_block(context: CallContext) -> Value:
    return block_object(context.environment.last_block(), context.version)


def _this(context: CallContext) -> Value:
    this = context.environment.this()
    if isinstance(this, bytes):
        return address_object(this)
    return asset_object(this, context.version)


def _subject(context: CallContext) -> Value:
    if context.subject is None:
        raise EvaluationError("Expected Transaction or Order")
    return context.subject()


_VARIABLES: Final[dict[str, Variable]] = {
    "height": _height,
    "lastBlock": _last_block,
    "this": _this,
    "tx": _subject,
}
