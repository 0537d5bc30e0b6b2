"""The calling convention of library functions, and the type check of their arguments.

What lives here: the type of implementations, and the decorators ``checked`` and ``in_context``,
which check the number and the types of arguments. What does not: the functions.

Compiled scripts are untrusted and may call a function with any arguments. The check takes one
comparison per argument; the functions then have typed parameters.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from soliton.ride.environment import CallContext
from soliton.ride.errors import EvaluationError
from soliton.ride.values import Value, kind_of, type_name

Implementation = Callable[[Sequence[Value], CallContext], Value]
"""A function as the evaluator calls it; raises ``EvaluationError`` and its subclasses."""

ANYTHING = object
"""In a tuple of types: an argument of any type."""


def checked(name: str, kinds: tuple[type, ...], body: Callable[..., Value]) -> Implementation:
    """Return the implementation for a function of its arguments only."""
    if ANYTHING in kinds:
        return _mixed(name, kinds, body)
    match kinds:
        case (kind,):
            return _unary(name, kind, body)
        case (left, right):
            return _binary(name, left, right, body)

    count = len(kinds)

    def call(arguments: Sequence[Value], _context: CallContext) -> Value:
        if len(arguments) != count or tuple(map(type, arguments)) != kinds:
            _check(name, arguments, kinds)
        return body(*arguments)

    return call


def in_context(name: str, kinds: tuple[type, ...], body: Callable[..., Value]) -> Implementation:
    """Return the implementation for a function of the context and its arguments."""

    def call(arguments: Sequence[Value], context: CallContext) -> Value:
        _check(name, arguments, kinds)
        return body(context, *arguments)

    return call


def mismatch(name: str, arguments: Sequence[Value]) -> EvaluationError:
    """Return the error for arguments of the wrong number or types."""
    given = ", ".join(type_name(argument) for argument in arguments)
    return EvaluationError(f"Can't apply ({given}) to '{name}'")


def _unary(name: str, kind: type, body: Callable[..., Value]) -> Implementation:
    def call(arguments: Sequence[Value], _context: CallContext) -> Value:
        if len(arguments) != 1 or type(arguments[0]) is not kind:
            _check(name, arguments, (kind,))
        return body(arguments[0])

    return call


def _binary(name: str, left: type, right: type, body: Callable[..., Value]) -> Implementation:
    def call(arguments: Sequence[Value], _context: CallContext) -> Value:
        if len(arguments) != 2 or type(arguments[0]) is not left or type(arguments[1]) is not right:
            _check(name, arguments, (left, right))
        return body(arguments[0], arguments[1])

    return call


def _mixed(name: str, kinds: tuple[type, ...], body: Callable[..., Value]) -> Implementation:
    def call(arguments: Sequence[Value], _context: CallContext) -> Value:
        _check(name, arguments, kinds)
        return body(*arguments)

    return call


def _check(name: str, arguments: Sequence[Value], kinds: tuple[type, ...]) -> None:
    """Raise the error for a mismatch unless the arguments fit. Most are settled before, by one
    comparison for each.
    """
    if len(arguments) != len(kinds):
        raise mismatch(name, arguments)
    for argument, kind in zip(arguments, kinds, strict=True):
        if type(argument) is not kind and kind is not ANYTHING and kind_of(argument) is not kind:
            raise mismatch(name, arguments)
