"""Expressions that are asked of a dApp: a source that uses what the dApp declares.

What lives here: their compilation. What does not: running them (``soliton.ledger.dry_run``).

Source: wavesplatform/Waves
``node/src/main/scala/com/wavesplatform/api/http/utils/UtilsEvaluator.scala`` (``compile``).
"""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from soliton.ride.compiler.checker import Checker, Typed
from soliton.ride.compiler.compile import MAX_SOURCE_CHARS
from soliton.ride.compiler.errors import CompileError, Source, bounded
from soliton.ride.compiler.library import UTILITY_PREFIX, ScriptKind, Signature, library
from soliton.ride.compiler.parser import parse_expression
from soliton.ride.compiler.syntax import Name, Node
from soliton.ride.expressions import Call, DApp, Expression, Func, Let, Ref
from soliton.ride.types import ANY, NOTHING


def compile_fragment(
    text: str, version: int, dapp: DApp, watch: Callable[[], None] | None = None
) -> Expression:
    """The expression of a source; raises ``CompileError``.

    A compiled dApp does not tell types: its names fit everywhere. Whether there is a name at all
    shows when it is evaluated, as in the reference. ``watch`` raises to stop this.
    """
    if len(text) > MAX_SOURCE_CHARS:
        raise CompileError(f"the source has more than {MAX_SOURCE_CHARS} characters")
    known = library(version, ScriptKind.DAPP)
    variables, functions = dict(known.variables), dict(known.functions)
    for declaration in (*dapp.declarations, *(each.function for each in dapp.callables)):
        match declaration:
            case Let(name):
                variables[name] = NOTHING
            case Func(name, parameters):
                own = Signature(name, (ANY,) * len(parameters), NOTHING)
                functions[name] = (own, *functions.get(name, ()))
    source = Source(text, watch=watch)
    extended = msgspec.structs.replace(known, variables=variables, functions=functions)
    with bounded():
        tree = parse_expression(source, version)
        return _OpenChecker(source, extended).expression(tree).expression


class _OpenChecker(Checker):
    """Takes unknown names for those of values and functions that are declared elsewhere."""

    def _name(self, node: Name) -> Typed:
        if node.name not in self.variables:
            return Typed(Ref(node.name), NOTHING)
        return super()._name(node)

    def call(self, node: Node, name: str, arguments: list[Typed]) -> Typed:
        """The call of whatever the name means, or of a function that nobody knows yet."""
        known = name in self.functions or name in self.library.constructors
        if known or name.startswith(UTILITY_PREFIX):
            return super().call(node, name, arguments)
        given = tuple(argument.expression for argument in arguments)
        return Typed(Call(name, given), NOTHING)
