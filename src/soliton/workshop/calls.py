"""Calls of dApps in the syntax of the language: ``buy(7, "x", [true])``.

What lives here: parsing a call and evaluating its arguments. What does not: sending it
(``soliton.client``).
"""

from __future__ import annotations

from typing import Final

from soliton.chain.function_calls import Argument, FunctionCall
from soliton.errors import InputError
from soliton.ride.compiler import CompileError, compile_value
from soliton.ride.compiler.errors import Source, bounded
from soliton.ride.compiler.parser import parse_expression
from soliton.ride.compiler.syntax import Apply, Name
from soliton.ride.evaluator import evaluate
from soliton.ride.values import RideList, Value
from soliton.workshop.no_chain import NoChain, no_transaction

MAX_CALL_CHARS: Final = 20_000
_LANGUAGE: Final = 8


def read_call(text: str) -> FunctionCall:
    """Parse a call; raises ``InputError``. Arguments may be expressions that need no chain."""
    if len(text) > MAX_CALL_CHARS:
        raise InputError(f"a call has at most {MAX_CALL_CHARS} characters")
    try:
        with bounded():
            node = parse_expression(Source(text), _LANGUAGE)
        if isinstance(node, Name):
            return FunctionCall(node.name)
        if not isinstance(node, Apply) or not text[node.start :].startswith(node.name):
            raise InputError(f"a call is written NAME(ARGUMENT, …), not {text[:60]}")
        arguments = tuple(_argument(text[each.start : each.end]) for each in node.arguments)
    except CompileError as error:
        raise InputError(f"the call: {error}") from error
    return FunctionCall(node.name, arguments)


def _argument(text: str) -> Argument:
    script, _ = compile_value(text, _LANGUAGE)
    return _plain(evaluate(script, NoChain(), no_transaction).value)


def _plain(value: Value) -> Argument:
    if isinstance(value, (bool, int, str, bytes)):
        return value
    if isinstance(value, RideList):
        return tuple(_plain(each) for each in value.items)
    raise InputError("arguments are numbers, texts, bytes, true or false, and lists of those")
