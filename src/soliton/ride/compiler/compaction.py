"""Compaction of dApps: removal of unused declarations, and short names.

What lives here: both, and restoring the original names. What does not: the decision to compact
(``compile``).

Short names are assigned in the order of the reference's traversal, so that both compilers produce
the same bytes. Trees may be nested to any depth, since folds and foreign scripts are, so the
traversal is made of tasks, not of recursive calls.

Source: wavesplatform/Waves ``lang/shared/src/main/scala/com/wavesplatform/lang/v1/compiler/``
``ContractScriptCompactor.scala``.
"""

from __future__ import annotations

from collections.abc import Iterator
from string import ascii_lowercase, ascii_uppercase
from typing import Final

import msgspec

from soliton.ride.compiler.library import RESERVED_VARIABLES
from soliton.ride.compiler.tasks import Task, run
from soliton.ride.expressions import (
    AnnotatedFunction,
    Block,
    Call,
    DApp,
    Declaration,
    Expression,
    Func,
    GetField,
    If,
    Let,
    Ref,
    declared_expression,
)
from soliton.ride.meta import read_meta, write_meta
from soliton.ride.script import nodes

_LETTERS: Final = ascii_lowercase + ascii_uppercase


def without_unused(dapp: DApp) -> DApp:
    """Return the dApp without unused declarations."""
    values = {each.name: declared_expression(each) for each in dapp.declarations}
    pending = [each.function.body for each in dapp.callables]
    if dapp.verifier is not None:
        pending.append(dapp.verifier.function.body)
    used: set[str] = set()
    while pending:
        for name in _names(pending.pop()):
            if name not in used:
                used.add(name)
                if name in values:
                    pending.append(values[name])
    kept = tuple(each for each in dapp.declarations if each.name in used)
    return msgspec.structs.replace(dapp, declarations=kept)


def _names(expression: Expression) -> Iterator[str]:
    for node in nodes(expression):
        if isinstance(node, Ref):
            yield node.name
        elif isinstance(node, Call):
            yield str(node.function)


def compacted(dapp: DApp) -> DApp:
    """Return the dApp with short names; its metadata has the original ones."""
    taken = {each.function.name for each in dapp.callables} | RESERVED_VARIABLES
    renamer = _Renamer(taken)
    short = renamer.dapp(dapp)
    by_index = {_index_of(name): original for original, name in renamer.names.items()}
    originals = tuple(by_index.get(index, "") for index in range(max(by_index, default=-1) + 1))
    meta = msgspec.structs.replace(read_meta(dapp.meta), original_names=originals)
    return msgspec.structs.replace(short, meta=write_meta(meta))


def original_names(dapp: DApp) -> dict[str, str]:
    """Return the original names in a dApp's metadata, by short name."""
    meta = read_meta(dapp.meta)
    if meta.original_names:
        return {_name_at(index): name for index, name in enumerate(meta.original_names) if name}
    return dict(meta.name_pairs)


def with_original_names(dapp: DApp) -> DApp:
    """Return the dApp with the original names of its metadata."""
    meta = read_meta(dapp.meta)
    names = original_names(dapp)
    if meta.original_names:
        rest = msgspec.structs.replace(meta, original_names=())
    elif meta.name_pairs:
        rest = msgspec.structs.replace(meta, name_pairs=())
    else:
        return dapp
    renamer = _Renamer(None, names)
    return msgspec.structs.replace(renamer.dapp(dapp), meta=write_meta(rest))


class _Renamer:
    """Renames in the reference's order. ``_known`` is the names in scope that the dApp declares;
    others are the library's. A name that is declared several times has one short name.
    """

    def __init__(self, taken: set[str] | None, names: dict[str, str] | None = None) -> None:
        self.names: Final = names or {}
        self._taken = taken
        self._next = 0
        self._known: frozenset[str] = frozenset()

    def _new_name(self, old: str) -> str:
        if old in self.names:
            return self.names[old]
        if self._taken is None:
            return old
        while (name := _name_at(self._next)) in self._taken:
            self._next += 1
        self._next += 1
        self.names[old] = name
        return name

    def dapp(self, dapp: DApp) -> DApp:
        """Rename everything in a dApp but its callable functions."""
        declarations = tuple(run(self._declaration(each)) for each in dapp.declarations)
        outer = self._known
        callables = []
        for each in dapp.callables:
            callables.append(self._callable(each))
            self._known = outer
        verifier = None
        if dapp.verifier is not None:
            invocation = self._new_name(dapp.verifier.invocation)
            self._known = outer | {dapp.verifier.invocation}
            verifier = AnnotatedFunction(invocation, run(self._func(dapp.verifier.function)))
        return DApp(dapp.meta, declarations, tuple(callables), verifier)

    def _callable(self, each: AnnotatedFunction) -> AnnotatedFunction:
        function = each.function
        invocation = self._new_name(each.invocation)
        parameters = tuple(self._new_name(name) for name in function.parameters)
        self._known |= {each.invocation, *function.parameters}
        body = run(self._expression(function.body))
        return AnnotatedFunction(invocation, Func(function.name, parameters, body))

    def _declaration(self, declaration: Declaration) -> Task[Expression, Declaration]:
        if isinstance(declaration, Func):
            return (yield from self._func(declaration))
        before = self._known
        name = self._new_name(declaration.name)
        value = yield self._expression(declaration.value)
        self._known = before | {declaration.name}
        return Let(name, value)

    def _func(self, function: Func) -> Task[Expression, Func]:
        before = self._known
        name = self._new_name(function.name)
        parameters = tuple(self._new_name(each) for each in function.parameters)
        self._known = before | set(function.parameters)
        body = yield self._expression(function.body)
        self._known = before | {function.name}
        return Func(name, parameters, body)

    def _expression(self, expression: Expression) -> Task[Expression, Expression]:
        match expression:
            case Block(declaration, body, old):
                before = self._known
                renamed = yield from self._declaration(declaration)
                inner = yield self._expression(body)
                self._known = before
                return Block(renamed, inner, old)
            case Call(function, arguments):
                if isinstance(function, str) and function in self._known:
                    function = self.names.get(function, function)
                renamed_arguments = []
                for argument in arguments:
                    inner = yield self._expression(argument)
                    renamed_arguments.append(inner)
                return Call(function, tuple(renamed_arguments))
            case Ref(name):
                return Ref(self.names.get(name, name)) if name in self._known else expression
            case GetField(subject, field):
                return GetField((yield self._expression(subject)), field)
            case If(condition, then, otherwise):
                new_condition = yield self._expression(condition)
                new_then = yield self._expression(then)
                return If(new_condition, new_then, (yield self._expression(otherwise)))
            case _:
                return expression


def _name_at(index: int) -> str:
    """Return the short name of an index: ``a`` to ``Z``, then ``aa`` and so on."""
    name = ""
    while index >= 0:
        index, letter = divmod(index, len(_LETTERS))
        name = _LETTERS[letter] + name
        index -= 1
    return name


def _index_of(name: str) -> int:
    index = 0
    for letter in name:
        index = index * len(_LETTERS) + _LETTERS.index(letter) + 1
    return index - 1
