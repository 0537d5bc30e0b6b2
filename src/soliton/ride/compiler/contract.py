"""Compilation of dApps: declarations, callable functions, the verifier, and the metadata.

What lives here: the checks that only dApps have. What does not: short names and removal of unused
declarations (``compaction``).

Source: wavesplatform/Waves ``lang/shared/src/main/scala/com/wavesplatform/lang/v1/compiler/``
``ContractCompiler.scala``, and ``lang/contract/meta/*.scala``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final

from soliton.ride.compiler.checker import Checker
from soliton.ride.compiler.errors import CompileError
from soliton.ride.compiler.library import Signature
from soliton.ride.compiler.syntax import (
    AnnotatedNode,
    AnyType,
    ContractNode,
    DeclarationNode,
    LetNode,
    NamedType,
    TupleType,
    TypeNode,
    UnionType,
)
from soliton.ride.expressions import AnnotatedFunction, DApp, Func, Let
from soliton.ride.meta import Meta, write_meta
from soliton.ride.types import BOOLEAN, ListOf, Type, covers, members

MAX_PARAMETERS: Final = 22
_PRIMITIVES: Final = ("Int", "ByteVector", "Boolean", "String")
_LIST_FLAG: Final = 16
_NO_UNIONS_SINCE: Final = 6
_CALLABLE, _VERIFIER = "Callable", "Verifier"


def _refuse(fault: CompileError) -> None:
    raise fault


def compile_contract(
    checker: Checker, node: ContractNode, refuse: Callable[[CompileError], None] = _refuse
) -> DApp:
    """Compile a dApp. Faults are passed to ``refuse``, which by default raises the first. If it
    does not raise, the result is not valid.
    """
    declarations = [_declaration(checker, each) for each in node.declarations]
    with _catching(refuse):
        _check_bindings(checker, node)
    for each in node.functions:
        with _catching(refuse):
            _check_parameter_types(checker, each)
    callables: list[AnnotatedFunction] = []
    signatures: list[bytes] = []
    verifier: AnnotatedFunction | None = None
    names: set[str] = set()
    for each in node.functions:
        with _catching(refuse):
            kind, function, types = _annotated(checker, each)
            if function.function.name in names:
                problem = f"two functions are called {each.function.name!r}"
                raise checker.error(each.function, problem)
            names.add(function.function.name)
            if kind == _CALLABLE:
                callables.append(function)
                signatures.append(bytes(_type_byte(checker, each, of) for of in types))
            elif verifier is not None:
                raise checker.error(each.function, "a dApp has one verifier")
            else:
                verifier = function
    version = 1 if checker.library.version <= 3 else 2
    meta = write_meta(Meta(version, tuple(signatures)))
    return DApp(meta, tuple(declarations), tuple(callables), verifier)


@contextmanager
def _catching(refuse: Callable[[CompileError], None]) -> Iterator[None]:
    try:
        yield
    except CompileError as fault:
        refuse(fault)


def _declaration(checker: Checker, node: DeclarationNode) -> Let | Func:
    if isinstance(node, LetNode):
        let, type_ = checker.let(node)
        checker.variables[node.name] = type_
        return let
    func, types, result = checker.function(node)
    checker.functions[node.name] = (Signature(node.name, types, result),)
    return func


def _check_bindings(checker: Checker, node: ContractNode) -> None:
    for each in node.functions:
        for annotation in each.annotations:
            for name, offset in annotation.parameters:
                if name in checker.variables:
                    raise checker.source.error(
                        offset, f"{name!r} is already a value here", "name the parameter otherwise"
                    )
    # The reference checks only the first function, and scripts on chains rely on that.
    for each in node.functions[:1]:
        bound = {name for annotation in each.annotations for name, _ in annotation.parameters}
        for name, offset, _ in each.function.parameters:
            if name in bound:
                raise checker.source.error(
                    offset, f"{name!r} is the annotation's parameter", "name one of them otherwise"
                )


def _check_parameter_types(checker: Checker, node: AnnotatedNode) -> None:
    for name, offset, type_ in node.function.parameters:
        if not _can_be_argument(type_):
            raise checker.source.error(
                offset,
                f"{name!r} has a type that no transaction can carry",
                "use Int, ByteVector, Boolean, String, or a List of those",
            )


def _can_be_argument(type_: TypeNode) -> bool:
    match type_:
        case NamedType(name=name, parameter=None):
            return name in _PRIMITIVES
        case NamedType(name=name, parameter=parameter):
            if name != "List":
                return False
            inner = parameter.members if isinstance(parameter, UnionType) else (parameter,)
            return all(
                isinstance(each, NamedType) and each.parameter is None and each.name in _PRIMITIVES
                for each in inner
            )
        case UnionType(members=parts):
            return all(_can_be_argument(part) for part in parts)
        case TupleType():
            return False
        case AnyType():
            return True


def _annotated(
    checker: Checker, node: AnnotatedNode
) -> tuple[str, AnnotatedFunction, tuple[Type, ...]]:
    function = node.function
    annotation = node.annotations[0]
    if len(node.annotations) > 1:
        raise checker.source.error(node.annotations[1].start, "a function has one annotation")
    if annotation.name not in (_CALLABLE, _VERIFIER):
        raise checker.source.error(
            annotation.start, f"no annotation @{annotation.name}", "use @Callable or @Verifier"
        )
    if len(annotation.parameters) != 1:
        raise checker.source.error(
            annotation.start,
            f"@{annotation.name} binds one name",
            f"write @{annotation.name}({'i' if annotation.name == _CALLABLE else 'tx'})",
        )
    binding = annotation.parameters[0][0]
    is_callable = annotation.name == _CALLABLE
    if is_callable and checker.library.version >= _NO_UNIONS_SINCE:
        for name, offset, type_ in function.parameters:
            if _has_union(type_):
                raise checker.source.error(
                    offset, f"{name!r} has a union type", "callable functions take none since V6"
                )
    bound = checker.library.invocation if is_callable else checker.library.verifier_input
    checker.variables[binding] = bound
    try:
        compiled, types, result = checker.function(function, frozenset({binding}))
    finally:
        del checker.variables[binding]
    _check_signature(checker, node, result, is_callable=is_callable)
    return annotation.name, AnnotatedFunction(binding, compiled), types


def _has_union(type_: TypeNode) -> bool:
    while isinstance(type_, NamedType) and type_.name == "List" and type_.parameter is not None:
        type_ = type_.parameter
    return isinstance(type_, UnionType)


def _check_signature(
    checker: Checker, node: AnnotatedNode, result: Type, *, is_callable: bool
) -> None:
    function = node.function
    if len(function.parameters) > MAX_PARAMETERS:
        raise checker.error(
            function, f"{function.name} has more than {MAX_PARAMETERS} parameters", "pass a List"
        )
    if not is_callable:
        if function.parameters:
            raise checker.error(function, "a verifier has no parameters")
        if not covers(BOOLEAN, result):
            raise checker.error(function, f"a verifier is Boolean, this one is {result.name}")
        return
    expected = checker.library.callable_result
    if expected is None:
        raise checker.error(function, "there are no dApps before version 3")
    if not covers(expected, result):
        raise checker.error(
            function, f"{function.name} gives {result.name}", f"it has to give {expected.name}"
        )


def _type_byte(checker: Checker, node: AnnotatedNode, type_: Type) -> int:
    flag = 0
    if isinstance(type_, ListOf) and checker.library.version > 3:
        flag, type_ = _LIST_FLAG, type_.inner
    names = [each.name for each in members(type_)]
    if not names or not all(name in _PRIMITIVES for name in names):
        raise _no_such_type(checker, node, type_)
    return flag + sum(1 << _PRIMITIVES.index(name) for name in names)


def _no_such_type(checker: Checker, node: AnnotatedNode, type_: Type) -> CompileError:
    return checker.error(
        node.function,
        f"{node.function.name} has a parameter of type {type_.name}",
        "use Int, ByteVector, Boolean, String, or since version 4 a List of those",
    )
