"""Guesses of the parameter types of functions, which compiled scripts do not contain.

What lives here: guesses that let most decompiled scripts compile again. What does not: writing the
source (``soliton.ride.decompiler``).

A parameter gets the type that library functions require of it, else the types that cases test, else
the types of the arguments. The same is recorded for the items of tuples and lists that parameters
are, which gives the types of these. Arguments and results depend on one another, so the tree is
traversed in several rounds. Trees may have any depth.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from enum import Enum
from typing import Final

import msgspec

from soliton.ride.compiler.library import Library, ScriptKind, Signature, library
from soliton.ride.compiler.tasks import Task, run
from soliton.ride.compiler.type_text import parse_type
from soliton.ride.expressions import (
    AnnotatedFunction,
    Block,
    BoolConst,
    BytesConst,
    Call,
    DApp,
    Expression,
    Func,
    GetField,
    If,
    LongConst,
    Ref,
    StringConst,
)
from soliton.ride.functions.catalogue import EQUAL, GET_ELEMENT, IS_INSTANCE_OF
from soliton.ride.meta import ArgumentType, argument_types, read_meta
from soliton.ride.types import (
    ANY,
    BOOLEAN,
    BYTES,
    INT,
    NOTHING,
    STRING,
    GenericList,
    GenericTuple,
    GenericUnion,
    ListOf,
    Parameter,
    Pattern,
    Plain,
    Record,
    RideTypeError,
    TupleOf,
    Type,
    UnionOf,
    common,
    covers,
    field_type,
    fields_of,
    infer,
    list_of,
    members,
    tuple_of,
    union_of,
    with_parameters,
)

_ROUNDS: Final = 8
_SHAPES_FROM: Final = 3
"""From this round on, arguments have to be what the items of a parameter make: by then it is mostly
known what is given.
"""
_MAX_PATH: Final = 6
"""The depth to which items of items are recorded."""
_TUPLE_FIELD: Final = re.compile("_([1-9]|1[0-9]|2[0-2])")
_ITEM: Final = ""
"""The part of a list that all of its elements are."""
_CAST_NAME: Final = "@"
_CAST: Final = re.compile(r"Couldn't cast (.+) to .+", re.DOTALL)
_MAX_CONDITION: Final = 100
"""The number of nodes of a condition that are searched."""
_PLAIN: Final = (Plain, ListOf, TupleOf, UnionOf, Record)


class Follow(Enum):
    """What the guesses follow beside names: one way finds what another does not."""

    NAMES = "names"
    ITEMS = "items of tuples and lists"
    LISTS = "these, and lists of anything"


class Evidence(msgspec.Struct):
    """What is known of a parameter. ``listed``: it is passed on as a list. ``parts`` has what is
    known of the items of a tuple by field, or of the elements of a list.
    """

    described: Type | None = None
    demanded: Type | None = None
    listed: bool = False
    tested: dict[str, Type] = {}
    compared: Type | None = None
    given: Type = NOTHING
    fields: set[str] = set()
    type: Type = NOTHING
    parts: dict[str, Evidence] = {}


class _Function(msgspec.Struct):
    parameters: list[Evidence]
    result: Type = NOTHING


_Names = Mapping[str, "Evidence | Type"]


class Guesses:
    """The guessed parameter types of all functions of a script."""

    def __init__(
        self,
        content: Expression | DApp,
        version: int,
        kind: ScriptKind,
        follow: Follow,
    ) -> None:
        self._follow = follow
        self.library: Final[Library] = library(version, kind)
        self._signatures = _by_key(self.library)
        self._functions: dict[int, _Function] = {}
        self._names: dict[str, Evidence | Type] = dict(self.library.variables)
        self._in_scope: dict[str, _Function] = {}
        self.result: Type = ANY
        """The type of a script that is an expression."""
        if isinstance(content, DApp):
            self._record_described(content)
        self._changed = True
        for number in range(_ROUNDS):
            self._changed, self._round = False, number
            self._forget_arguments()
            if isinstance(content, DApp):
                self._walk_dapp(content)
            else:
                self.result = run(self._visit(content, None))
            self._decide()
            if not self._changed and (number >= _SHAPES_FROM or follow is Follow.NAMES):
                break

    def parameter_types(self, function: Func) -> tuple[Type, ...]:
        """Return the guess for each parameter of a function."""
        known = self._functions.get(id(function))
        if known is None:
            return (ANY,) * len(function.parameters)
        return tuple(
            list_of(ANY) if each.listed and each.type is NOTHING else each.type
            for each in known.parameters
        )

    def _record_described(self, dapp: DApp) -> None:
        """Take the parameter types of callable functions from the metadata."""
        types = argument_types(read_meta(dapp.meta)) or ()
        for each, described in zip(dapp.callables, types, strict=False):
            known = self._known(each.function)
            for evidence, of in zip(known.parameters, described, strict=False):
                evidence.described = _type_named(callable_type(of), self.library)

    # --- walking ---

    def _walk_dapp(self, dapp: DApp) -> None:
        for declaration in dapp.declarations:
            if isinstance(declaration, Func):
                self._in_scope[declaration.name] = self._known(declaration)
                run(self._body(declaration))
            else:
                self._names[declaration.name] = run(self._visit(declaration.value, None))
        for each in dapp.callables:
            self._annotated(each, self.library.invocation)
        if dapp.verifier is not None:
            self._annotated(dapp.verifier, self.library.verifier_input)

    def _annotated(self, each: AnnotatedFunction, invocation: Type) -> None:
        before = self._bind({each.invocation: invocation})
        run(self._body(each.function))
        self._unbind(before)

    def _bind(self, names: Mapping[str, Evidence | Type]) -> dict[str, Evidence | Type | None]:
        """Bring names into scope; return their previous types."""
        before = {name: self._names.get(name) for name in names}
        self._names.update(names)
        return before

    def _unbind(self, before: Mapping[str, Evidence | Type | None]) -> None:
        for name, value in before.items():
            if value is None:
                del self._names[name]
            else:
                self._names[name] = value

    def _known(self, function: Func) -> _Function:
        known = self._functions.get(id(function))
        if known is None:
            known = _Function([Evidence() for _ in function.parameters])
            self._functions[id(function)] = known
        return known

    def _body(self, function: Func) -> Task[Type, Type]:
        known = self._known(function)
        before = self._bind(dict(zip(function.parameters, known.parameters, strict=True)))
        known.result = yield self._visit(function.body, None)
        self._unbind(before)
        return known.result

    def _visit(self, node: Expression, expected: Type | None) -> Task[Type, Type]:
        """Return the type of an expression, and record the expected type at its names."""
        match node:
            case LongConst():
                return INT
            case StringConst():
                return STRING
            case BytesConst():
                return BYTES
            case BoolConst():
                return BOOLEAN
            case Ref(name):
                return _named(self._names, name, expected)
            case GetField(subject, field):
                evidence = self._place(subject)
                if evidence is not None:
                    evidence.fields.add(field)
                owner = yield self._visit(subject, None)
                # If it is not known yet, a later round may find it.
                found = NOTHING if owner is NOTHING else field_type(owner, field)
                if owner is not NOTHING and (found is None or found is NOTHING):
                    found = ANY
                return self._of_part(node, found or NOTHING, expected)
            case If(condition, then, otherwise):
                yield self._visit(condition, BOOLEAN)
                before = self._bind(_narrowed(condition, self.library))
                one = yield self._visit(then, expected)
                self._unbind(before)
                other = yield self._visit(otherwise, expected)
                return common(one, other, merge_tuples=False)
            case Block():
                return (yield from self._block(node, expected))
            case Call():
                return (yield from self._call(node, expected))
            case _:
                return ANY

    def _block(self, node: Block, expected: Type | None) -> Task[Type, Type]:
        declaration = node.declaration
        if isinstance(declaration, Func):
            outer = self._in_scope.get(declaration.name)
            self._in_scope[declaration.name] = self._known(declaration)
            yield self._body(declaration)
            result = yield self._visit(node.body, expected)
            if outer is None:
                del self._in_scope[declaration.name]
            else:
                self._in_scope[declaration.name] = outer
            return result
        value: Evidence | Type = yield self._visit(declaration.value, None)
        if isinstance(value, Evidence) or isinstance(declaration.value, Ref) or _is_vague(value):
            place = self._place(declaration.value)
            if place is None and isinstance(declaration.value, Ref):
                value = self._names.get(declaration.value.name, value)
            value = value if place is None else place
            if isinstance(value, Evidence) and declaration.name == _CAST_NAME:
                self._record_cast(value, node.body)
        before = self._bind({declaration.name: value})
        result = yield self._visit(node.body, expected)
        self._unbind(before)
        return result

    def _record_cast(self, evidence: Evidence, body: Expression) -> None:
        """Take the type of a cast's subject from the cast's error message."""
        match body:
            case If(_, _, Call(_, (StringConst(message),))):
                found = _CAST.fullmatch(message)
                if found is not None and evidence.described is None:
                    evidence.described = _type_named(found.group(1), self.library)

    def _call(self, node: Call, expected: Type | None) -> Task[Type, Type]:
        known = self._in_scope.get(node.function) if isinstance(node.function, str) else None
        if known is not None:
            for argument, evidence in zip(node.arguments, known.parameters, strict=False):
                type_ = yield self._visit(
                    argument, evidence.demanded or self._whole_shape(evidence)
                )
                evidence.given = common(evidence.given, type_, merge_tuples=False)
            return known.result
        signature = self._signatures.get(node.function)
        if signature is not None:
            self._record_lists(node.arguments, signature)
        parameters = _expectations(signature, len(node.arguments), expected)
        types = []
        for argument, parameter in zip(node.arguments, parameters, strict=True):
            types.append((yield self._visit(argument, parameter)))
        if node.function in (EQUAL, "!="):
            self._compare(node.arguments, types)
        if node.function == IS_INSTANCE_OF and len(node.arguments) == 2:
            self._record_test(*node.arguments)
        result = _result(signature, types)
        return self._of_part(node, result, expected) if node.function == GET_ELEMENT else result

    def _place(self, node: Expression) -> Evidence | None:
        """Return what is known of a parameter, or of an item of one; ``None`` for anything else."""
        path: list[str] = []
        while len(path) <= (0 if self._follow is Follow.NAMES else _MAX_PATH):
            match node:
                case Ref(name):
                    found = self._names.get(name)
                    if not isinstance(found, Evidence):
                        return None
                    for step in reversed(path):
                        found = found.parts.setdefault(step, Evidence())
                    return found
                case GetField(subject, field) if _TUPLE_FIELD.fullmatch(field):
                    path.append(field)
                    node = subject
                case Call(function, (subject, _)) if function == GET_ELEMENT:
                    path.append(_ITEM)
                    node = subject
                case _:
                    return None
        return None

    def _whole_shape(self, evidence: Evidence) -> Type | None:
        """Return the tuple or list that the items make if the types of all are known. What was
        given in an earlier round may have more items.
        """
        shape = _shape(evidence) if self._round >= _SHAPES_FROM else None
        if shape is None or evidence.type.key != shape.key:
            return None
        items = shape.items if isinstance(shape, TupleOf) else (shape,)
        is_open = _is_anything if self._follow is Follow.LISTS else _is_vague
        return None if any(map(is_open, items)) else shape

    def _of_part(self, node: Expression, found: Type, expected: Type | None) -> Type:
        """Return the type of an item, which is recorded with what is expected of it."""
        if not _is_vague(found):
            return found
        place = self._place(node)
        if place is None:
            return found
        known = _demanded(place, expected)
        return found if known is NOTHING else known

    def _compare(self, arguments: tuple[Expression, ...], types: list[Type]) -> None:
        for argument, other in zip(arguments, reversed(types), strict=True):
            evidence = self._place(argument)
            if evidence is not None:
                evidence.compared = other

    def _record_lists(self, arguments: tuple[Expression, ...], signature: Signature) -> None:
        for argument, parameter in zip(arguments, signature.arguments, strict=False):
            if isinstance(parameter, GenericList):
                evidence = self._place(argument)
                if evidence is not None:
                    evidence.listed = True

    def _record_test(self, subject: Expression, type_name: Expression) -> None:
        if isinstance(type_name, StringConst):
            evidence = self._place(subject)
            if evidence is not None:
                evidence.tested[type_name.value] = _type_named(type_name.value, self.library)

    # --- deciding ---

    def _forget_arguments(self) -> None:
        """Forget the arguments of an earlier round, when less was known of their types."""
        for function in self._functions.values():
            for parameter in function.parameters:
                for evidence in _with_parts(parameter):
                    evidence.given, evidence.compared = NOTHING, None

    def _decide(self) -> None:
        for function in self._functions.values():
            for parameter in function.parameters:
                # Items come before what they are items of.
                for evidence in reversed(_with_parts(parameter)):
                    type_ = self._decided(evidence)
                    if type_.key != evidence.type.key:
                        evidence.type = type_
                        self._changed = True

    def _decided(self, evidence: Evidence) -> Type:
        """Return the type that is known, with the items of tuples and lists that are not."""
        known = self._known_type(evidence)
        shape = _shape(evidence)
        return (
            known if shape is None or evidence.described is not None else _filled_up(known, shape)
        )

    def _known_type(self, evidence: Evidence) -> Type:
        if evidence.described is not None:
            return evidence.described
        if evidence.demanded is not None:
            return evidence.demanded
        if evidence.tested and evidence.given is not ANY:
            return _with_fields(
                union_of([*members(evidence.given), *evidence.tested.values()]), evidence
            )
        for type_ in (evidence.given, evidence.compared):
            if type_ is not None and type_ is not NOTHING and type_ is not ANY:
                return _with_fields(
                    _merged(type_, unions=self._follow is not Follow.NAMES), evidence
                )
        if evidence.fields:
            records = [each for each in self.library.types.values() if isinstance(each, Record)]
            fitting = [
                each for each in records if evidence.fields <= {name for name, _ in fields_of(each)}
            ]
            if fitting:
                return union_of(fitting) if len(fitting) > 1 else fitting[0]
        return NOTHING


def _with_fields(type_: Type, evidence: Evidence) -> Type:
    """Return the type, or ``Any`` if a field is accessed that not all members of a union have."""
    if isinstance(type_, UnionOf) and any(
        field_type(type_, each) is None for each in evidence.fields
    ):
        return ANY
    return type_


def _merged(type_: Type, *, unions: bool) -> Type:
    """Merge a union of tuples that differ only in unknown items, or in any if their items may be
    ``unions``; return other types unchanged.
    """
    if not isinstance(type_, UnionOf):
        return type_
    tuples = [each for each in type_.members if isinstance(each, TupleOf)]
    if len(tuples) < len(type_.members):
        return type_
    if unions:
        # A shorter one comes of an earlier round, when fewer items were known.
        longest = max(len(each.items) for each in tuples)
        tuples = [each for each in tuples if len(each.items) == longest]
    if len({len(each.items) for each in tuples}) != 1:
        return type_
    items = [_narrowest(same) for same in zip(*(each.items for each in tuples), strict=True)]
    if not unions and any(isinstance(each, UnionOf) for each in items):
        return type_
    return tuple_of(items)


def _narrowest(types: tuple[Type, ...]) -> Type:
    """Return the type of which the others say less, or a union."""
    known = {each.key: each for each in types if not _is_vague(each)}
    if not known:
        return next((each for each in types if isinstance(each, ListOf)), ANY)
    narrow = [
        each
        for each in known.values()
        if not any(covers(each, other) for other in known.values() if other is not each)
    ]
    return narrow[0] if len(narrow) == 1 else union_of(known.values())


def _is_anything(type_: Type) -> bool:
    return type_ in (ANY, NOTHING)


def _is_vague(type_: Type) -> bool:
    while isinstance(type_, ListOf):
        type_ = type_.inner
    return type_ in (ANY, NOTHING) or (isinstance(type_, UnionOf) and not type_.members)


def _by_key(known: Library) -> dict[int | str, Signature]:
    found = {each.key: each for each in known.constructors.values()}
    for signatures in known.functions.values():
        found.update((each.key, each) for each in signatures)
    return found


def _named(names: _Names, name: str, expected: Type | None) -> Type:
    found = names.get(name, ANY)
    if not isinstance(found, Evidence):
        return found
    return _demanded(found, expected)


def _demanded(found: Evidence, expected: Type | None) -> Type:
    """Record what is expected of a parameter or an item, and return its type."""
    if (
        expected is not None
        and expected is not ANY
        and (found.demanded is None or covers(found.demanded, expected))
    ):
        found.demanded = expected
    return found.described or found.demanded or found.type


def _with_parts(evidence: Evidence) -> list[Evidence]:
    """Return a parameter and all of its items, each after what it is an item of."""
    found = [evidence]
    for each in found:
        found += each.parts.values()
    return found


def _shape(evidence: Evidence) -> Type | None:
    """Return the tuple or list that the items make, ``None`` without any."""
    item = evidence.parts.get(_ITEM)
    if item is not None:
        return list_of(_item_type(item))
    numbers = [int(field[1:]) for field in evidence.parts]
    if not numbers:
        return None
    parts = (evidence.parts.get(f"_{number}") for number in range(1, max(2, *numbers) + 1))
    return tuple_of(map(_item_type, parts))


def _item_type(part: Evidence | None) -> Type:
    if part is not None and part.type is not NOTHING:
        return part.type
    return list_of(ANY) if part is not None and part.listed else ANY


def _filled_up(known: Type, shape: Type) -> Type:
    """Return a type with those items of a shape of which it says nothing."""
    if _is_vague(shape):
        return known
    if _is_vague(known) and not (isinstance(known, ListOf) and isinstance(shape, TupleOf)):
        return shape
    if isinstance(known, ListOf) and isinstance(shape, ListOf):
        return list_of(_filled_up(known.inner, shape.inner))
    if isinstance(known, TupleOf) and isinstance(shape, TupleOf):
        more = [ANY] * (len(known.items) - len(shape.items))
        pairs = zip(known.items, [*shape.items, *more], strict=False)
        return tuple_of(_filled_up(one, other) for one, other in pairs)
    return known


def _narrowed(condition: Expression, known: Library) -> dict[str, Type]:
    """Return the types of names after the type tests of a condition."""
    tested: dict[str, list[Type]] = {}
    pending = [condition]
    for _ in range(_MAX_CONDITION):
        if not pending:
            break
        node = pending.pop()
        match node:
            case Call(function, (Ref(name), StringConst(text))) if function == IS_INSTANCE_OF:
                tested.setdefault(name, []).append(_type_named(text, known))
            case If(first, second, third):
                pending += [first, second, third]
            case _:
                pass
    return {name: _simple(union_of(types)) for name, types in tested.items()}


def _simple(type_: Type) -> Type:
    return type_.members[0] if isinstance(type_, UnionOf) and len(type_.members) == 1 else type_


def _type_named(text: str, known: Library) -> Type:
    try:
        pattern = parse_type(text, {**known.types, "Any": ANY})
    except KeyError:
        return ANY
    return pattern if isinstance(pattern, _PLAIN) else ANY


def _expectations(
    signature: Signature | None, count: int, expected: Type | None
) -> list[Type | None]:
    """Return the expected type of each argument, ``None`` where it is not known."""
    if signature is None or len(signature.arguments) != count:
        return [None] * count
    found: dict[str, Type] = {}
    if expected is not None:
        match signature.result:
            case Parameter(name):
                found[name] = expected
            case GenericList(Parameter(name)) if isinstance(expected, ListOf):
                found[name] = expected.inner
            case GenericList(GenericUnion(parts)) if isinstance(expected, ListOf):
                found = {part.name: expected.inner for part in parts}
    return [_filled(argument, found) for argument in signature.arguments]


def _filled(pattern: Pattern, found: Mapping[str, Type]) -> Type | None:
    if isinstance(pattern, _PLAIN):
        return pattern
    try:
        return with_parameters(pattern, found)
    except RideTypeError:
        return None


def _result(signature: Signature | None, types: list[Type]) -> Type:
    if signature is None:
        return ANY
    if isinstance(signature.result, _PLAIN):
        return signature.result
    unknown = list_of(NOTHING)
    try:
        pairs = [
            (unknown if given is NOTHING and isinstance(expected, GenericList) else given, expected)
            for given, expected in zip(types, signature.arguments, strict=True)
        ]
        return with_parameters(signature.result, infer(pairs))
    except (RideTypeError, ValueError):
        return _anything(signature.result)


def _anything(pattern: Pattern) -> Type:
    match pattern:
        case GenericList():
            return list_of(ANY)
        case GenericTuple(items):
            return tuple_of(_anything(item) for item in items)
        case Parameter() | GenericUnion():
            return ANY
        case _:
            return pattern


def type_text(type_: Type, known: Library) -> str:
    """Return a type in the syntax of sources; ``Any`` for types that have no name there."""
    match type_:
        case ListOf(inner):
            return f"List[{type_text(inner, known)}]"
        case TupleOf(items):
            return f"({', '.join(type_text(item, known) for item in items)})"
        case UnionOf(parts):
            texts = [type_text(part, known) for part in parts]
            return "Any" if not texts or "Any" in texts else "|".join(dict.fromkeys(texts))
        case _:
            return type_.name if type_.name in known.types else "Any"


def callable_type(described: ArgumentType) -> str:
    """Return the type of a callable function's argument, from the script's metadata."""
    text = "|".join(described.types)
    return f"List[{text}]" if described.is_list else text
