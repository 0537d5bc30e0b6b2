"""Compilation of expressions that use the declarations of a compiled dApp.

What does not live here: evaluating them (``soliton.ledger.dry_run``).

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
    """Compile an expression; raise ``CompileError`` for a fault. ``watch`` may raise to cancel.

    A compiled dApp has no types, so its names fit everywhere. As in the reference, an unknown name
    is an error only in the evaluation; but an unknown function gives ``Any``, which few others
    take.
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
    """Accepts unknown names as values and functions of any type."""

    def _name(self, node: Name) -> Typed:
        if node.name not in self.variables:
            return Typed(Ref(node.name), NOTHING)
        return super()._name(node)

    def call(self, node: Node, name: str, arguments: list[Typed]) -> Typed:
        """Compile a call of a known or unknown function."""
        known = name in self.functions or name in self.library.constructors
        if known or name.startswith(UTILITY_PREFIX):
            return super().call(node, name, arguments)
        given = tuple(argument.expression for argument in arguments)
        return Typed(Call(name, given), ANY)
