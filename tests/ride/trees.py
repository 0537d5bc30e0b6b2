"""Short ways to write trees of expressions in tests."""

from __future__ import annotations

from soliton.ride.expressions import (
    AnnotatedFunction,
    Block,
    BoolConst,
    BytesConst,
    Call,
    DApp,
    Declaration,
    Expression,
    Func,
    Let,
    LongConst,
    Ref,
    StringConst,
)

Plain = Expression | int | str | bytes | bool
"""A text is the name of a value; ``text`` makes a literal."""


def tree(plain: Plain) -> Expression:
    """Literals for Python's values, references for names."""
    match plain:
        case bool():
            return BoolConst(plain)
        case int():
            return LongConst(plain)
        case bytes():
            return BytesConst(plain)
        case str():
            return Ref(plain)
    return plain


def text(value: str) -> Expression:
    """A literal of text."""
    return StringConst(value)


def call(function: int | str, *arguments: Plain) -> Expression:
    """A call."""
    return Call(function, tuple(tree(argument) for argument in arguments))


def equal(left: Plain, right: Plain) -> Expression:
    """``==``."""
    return call(0, left, right)


def add(*numbers: Plain) -> Expression:
    """A sum, from the left."""
    first, *rest = numbers
    total = tree(first)
    for number in rest:
        total = call(100, total, number)
    return total


def let(name: str, value: Plain) -> Let:
    """A declaration of a value."""
    return Let(name, tree(value))


def func(name: str, parameters: str, body: Plain) -> Func:
    """A declaration of a function; parameters with blanks between them."""
    return Func(name, tuple(parameters.split()), tree(body))


def block(*parts: Declaration | Plain) -> Expression:
    """Declarations, and what they are for."""
    *declarations, last = parts
    assert not isinstance(last, Let | Func)
    body = tree(last)
    for declaration in reversed(declarations):
        assert isinstance(declaration, Let | Func)
        body = Block(declaration, body)
    return body


def dapp(*declarations: Declaration, callables: tuple[Func, ...], verifier: Func | None) -> DApp:
    """A dApp; the invocation is called ``i``, what the verifier is asked about ``tx``."""
    return DApp(
        b"",
        declarations,
        tuple(AnnotatedFunction("i", function) for function in callables),
        None if verifier is None else AnnotatedFunction("tx", verifier),
    )
