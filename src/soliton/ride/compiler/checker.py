"""The type checker: from syntax tree to compiled expression.

What lives here: expressions and declarations: names, types, overloads, casts, folds. What does not:
``match`` (which ``matching`` lowers to choices), dApps (``contract``), the algebra of types
(``soliton.ride.types``).

Compiled trees equal the reference's byte for byte. Therefore the numbers in ``$match0`` and
``$f0_1`` count as the reference's state does, which forgets folds inside branches, function bodies
and matches.

Source: wavesplatform/Waves ``lang/shared/src/main/scala/com/wavesplatform/lang/v1/compiler/``
``{ExpressionCompiler,CompilerMacro,TypeCast}.scala``.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, NamedTuple, TypeVar, cast

from soliton.ride.compiler.errors import CompileError, Source
from soliton.ride.compiler.library import UTILITY_PREFIX, Library, Signature
from soliton.ride.compiler.matching import lower_match
from soliton.ride.compiler.near_names import similar
from soliton.ride.compiler.syntax import (
    AnyType,
    Apply,
    Cast,
    Choice,
    Declared,
    Field,
    Fold,
    FunctionNode,
    LetNode,
    ListLiteral,
    Literal,
    Match,
    Name,
    NamedType,
    Node,
    Truth,
    TupleType,
    TypeNode,
    UnionType,
)
from soliton.ride.expressions import (
    FALSE,
    TRUE,
    Block,
    Call,
    Expression,
    Func,
    GetField,
    If,
    Let,
    LongConst,
    Ref,
    StringConst,
)
from soliton.ride.functions.catalogue import GET_ELEMENT, GET_TYPE, IS_INSTANCE_OF, THROW
from soliton.ride.types import (
    ANY,
    BOOLEAN,
    BYTES,
    INT,
    NOTHING,
    STRING,
    UNIT,
    ListOf,
    Pattern,
    Plain,
    Record,
    RideTypeError,
    TupleOf,
    Type,
    UnionOf,
    common,
    covers,
    equivalent,
    field_type,
    fields_of,
    infer,
    list_of,
    members,
    simplified,
    tuple_of,
    union_of,
    with_parameters,
)

MAX_NAME_BYTES: Final = 255
MAX_UNROLLED_STEPS: Final = 50_000
"""The total over all folds of a source: seven times what fits into the largest script."""

_CONSTANT_TYPES: Final = {LongConst: INT, StringConst: STRING}
_AT_LEAST, _JOIN, _LIST_SIZE = 103, 300, 400
_CAST_NAME: Final = "@"

_Value = TypeVar("_Value")


class Typed(NamedTuple):
    """A compiled expression and its type."""

    expression: Expression
    type: Type


class Checker:
    """Compiles a source. ``variables`` and ``functions`` are the names in the current scope."""

    def __init__(self, source: Source, library: Library) -> None:
        self.source: Final = source
        self.library: Final = library
        self.variables: Final = dict(library.variables)
        self.functions: Final = dict(library.functions)
        self._folds = 0
        self._unrolled = 0
        self._matches = 0
        self._handlers: dict[type, Callable[..., Typed]] = {
            Literal: self._literal,
            Truth: self._truth,
            Name: self._name,
            Field: self._field,
            Apply: self._apply,
            ListLiteral: self._list,
            Choice: self._choice,
            Declared: self._declared,
            Cast: self._cast,
            Fold: self._fold,
            Match: self._match,
        }

    def error(
        self, node: Node | FunctionNode | LetNode, problem: str, advice: str = ""
    ) -> CompileError:
        """Return an error at the start of a node."""
        return self.source.error(node.start, problem, advice)

    def expression(self, node: Node) -> Typed:
        """Compile an expression."""
        return self._handlers[type(node)](node)

    def local(self, node: Node) -> Typed:
        """Compile an expression whose folds do not count for those that follow."""
        folds = self._folds
        result = self._handlers[type(node)](node)
        self._folds = folds
        return result

    # --- leaves and fields ---

    def _literal(self, node: Literal) -> Typed:
        return Typed(node.value, _CONSTANT_TYPES.get(type(node.value), BYTES))

    def _truth(self, node: Truth) -> Typed:
        return Typed(TRUE if node.value else FALSE, BOOLEAN)

    def _name(self, node: Name) -> Typed:
        found = self.variables.get(node.name)
        if found is None:
            advice = similar(node.name, self.variables)
            if node.name in self.functions:
                advice = f"{node.name} is a function: call it with brackets"
            raise self.error(node, f"nothing is called {node.name!r} here", advice)
        return Typed(Ref(node.name), found)

    def _field(self, node: Field) -> Typed:
        subject = self.expression(node.subject)
        found = field_type(subject.type, node.field)
        if found is None or (found is NOTHING and not node.generated):
            known = [name for each in members(subject.type) for name, _ in fields_of(each)]
            advice = similar(node.field, known) or (
                f"its fields are {', '.join(dict.fromkeys(known))}" if known else ""
            )
            if len(members(subject.type)) > 1:
                advice = "not all types of the union have it: use match first"
            raise self.error(node, f"{subject.type.name} has no field {node.field!r}", advice)
        return Typed(GetField(subject.expression, node.field), found)

    # --- calls ---

    def _apply(self, node: Apply) -> Typed:
        """Compile a call; long chains of first arguments (``a + b + c``) do not recurse."""
        chain = [node]
        while chain[-1].arguments and type(chain[-1].arguments[0]) is Apply:
            chain.append(chain[-1].arguments[0])
        result: Typed | None = None
        while chain:
            call = chain.pop()
            arguments = [] if result is None else [result]
            rest = call.arguments[len(arguments) :]
            arguments += [self._handlers[type(each)](each) for each in rest]
            result = self.call(call, call.name, arguments)
        assert result is not None
        return result

    def _list(self, node: ListLiteral) -> Typed:
        items = [self.expression(item) for item in node.items]
        result = Typed(Ref("nil"), self.library.variables.get("nil", NOTHING))
        for item in reversed(items):
            result = self.call(node, "cons", [item, result])
        return result

    def call(self, node: Node, name: str, arguments: list[Typed]) -> Typed:
        """Compile a call, choosing the overload by the types of the arguments."""
        self.source.watch()
        signatures: tuple[Signature, ...] | None = self.functions.get(name)
        if signatures is None:
            constructor = self.library.constructors.get(name)
            if constructor is None:
                raise self._no_function(node, name, arguments)
            signatures = (constructor,)
        if len(signatures) == 1:
            try:
                return _called(signatures[0], arguments)
            except RideTypeError as error:
                raise self.error(node, f"{_shown(name)} does not fit: {error}") from None
        found = []
        for signature in signatures:
            try:
                found.append(_called(signature, arguments))
            except RideTypeError:
                continue
        if len(found) == 1:
            return found[0]
        given = ", ".join(argument.type.name for argument in arguments)
        shapes = "; ".join(
            f"({', '.join(each.name for each in signature.arguments)})" for signature in signatures
        )
        problem = "does not take" if not found else "can be taken in several ways for"
        advice = f"it takes {shapes}" if not found else "say the type with a match or exactAs"
        raise self.error(node, f"{_shown(name)} {problem} ({given})", advice)

    def _no_function(self, node: Node, name: str, arguments: list[Typed]) -> CompileError:
        if name.startswith(f"{UTILITY_PREFIX}Tuple"):
            return self.error(
                node, "there are no tuples here", "they need 2 elements and version 4"
            )
        if name in self.variables:
            return self.error(node, f"{name!r} is a value, not a function")
        known = [*self.functions, *self.library.constructors]
        given = ", ".join(argument.type.name for argument in arguments)
        advice = similar(name, known) or (
            f"version {self.library.version} does not have it, or it is a callable function"
        )
        return self.error(node, f"there is no function {_shown(name)}({given})", advice)

    # --- choices ---

    def _choice(self, node: Choice) -> Typed:
        branches = []
        rest: Node = node
        while type(rest) is Choice:
            self.source.watch()
            condition = self.local(rest.condition)
            if not equivalent(condition.type, BOOLEAN):
                raise self.error(
                    rest.condition,
                    f"a condition has to be Boolean, this is {condition.type.name}",
                    "compare it with something",
                )
            branches.append((condition.expression, self.local(rest.then)))
            rest = rest.otherwise
        result = self.local(rest)
        for condition_, then in reversed(branches):
            type_ = common(then.type, result.type, merge_tuples=False)
            result = Typed(If(condition_, then.expression, result.expression), type_)
        return result

    def _match(self, node: Match) -> Typed:
        """Compile a match: a hidden variable for its subject, and choices for its cases."""
        folds, number = self._folds, self._matches
        name = f"$match{number}"
        self._matches = number + 1
        subject = self.expression(node.subject)
        before = self.variables.get(name)
        self.variables[name] = subject.type
        body = self.expression(lower_match(self, node, name, subject))
        _restore(self.variables, name, before)
        self._folds, self._matches = folds, number
        return Typed(Block(Let(name, subject.expression), body.expression, True), body.type)

    # --- declarations ---

    def _declared(self, node: Declared) -> Typed:
        """Compile a block; many declarations in sequence do not recurse."""
        opened: list[tuple[Let, Type | None] | tuple[Func, tuple[Signature, ...] | None]] = []
        folds: int | None = None
        rest: Node = node
        while type(rest) is Declared:
            declaration = rest.declaration
            if isinstance(declaration, LetNode):
                let, type_ = self.let(declaration)
                opened.append((let, self.variables.get(declaration.name)))
                self.variables[declaration.name] = type_
            else:
                func, types, result_type = self.function(declaration)
                opened.append((func, self.functions.get(declaration.name)))
                signature = Signature(declaration.name, types, result_type)
                self.functions[declaration.name] = (signature,)
            if folds is None:
                folds = self._folds
            rest = rest.body
        result = self.expression(rest)
        expression = result.expression
        for compiled, before in reversed(opened):
            if isinstance(compiled, Let):
                _restore(self.variables, compiled.name, cast("Type | None", before))
                expression = Block(compiled, expression, True)
            else:
                _restore(
                    self.functions, compiled.name, cast("tuple[Signature, ...] | None", before)
                )
                expression = Block(compiled, expression)
        if folds is not None:
            self._folds = folds
        return Typed(expression, result.type)

    def let(self, node: LetNode) -> tuple[Let, Type]:
        """Compile a value; return it with its type. This does not bring the name into scope."""
        self.source.watch()
        self.check_name(node, may_shadow=node.may_shadow)
        value = self.expression(node.value)
        return Let(node.name, value.expression), node.type or value.type

    def function(
        self, node: FunctionNode, allowed: frozenset[str] = frozenset()
    ) -> tuple[Func, tuple[Type, ...], Type]:
        """Compile a function; return it with the types of its parameters and its result. This does
        not bring the name into scope.
        """
        self.source.watch()
        self.check_name(node, may_shadow=node.name in allowed)
        names = [name for name, _, _ in node.parameters]
        if len(set(names)) != len(names):
            raise self.error(node, f"{node.name} has two parameters of the same name")
        types = {name: self.type_of(of, name) for name, _, of in node.parameters}
        before = {name: self.variables.get(name) for name in names}
        self.variables.update(types)
        body = self.local(node.body)
        for name in names:
            _restore(self.variables, name, before[name])
        return Func(node.name, tuple(names), body.expression), tuple(types.values()), body.type

    def check_name(self, node: LetNode | FunctionNode, *, may_shadow: bool) -> None:
        """Raise ``CompileError`` for a name that is taken or too long."""
        name = node.name
        size = len(name.encode())
        if size > MAX_NAME_BYTES:
            raise self.error(node, f"a name of {size} bytes, {MAX_NAME_BYTES} are allowed")
        if name in self.variables and not may_shadow:
            raise self.error(node, f"{name!r} is already a value here", "choose another name")
        if name in self.functions:
            raise self.error(node, f"{name!r} is already a function", "choose another name")

    # --- types ---

    def type_of(self, node: TypeNode, variable: str | None = None) -> Type:
        """Resolve a type of the source."""
        if isinstance(node, AnyType):
            return ANY
        if isinstance(node, UnionType):
            return simplified(union_of([self.type_of(each, variable) for each in node.members]))
        if isinstance(node, TupleType):
            return tuple_of(self.type_of(each, variable) for each in node.items)
        if node.parameter is not None:
            if node.name != "List":
                raise self.source.error(node.start, f"{node.name} takes no type in brackets")
            return list_of(self.type_of(node.parameter, variable))
        return self._named_type(node, variable)

    def _named_type(self, node: NamedType, variable: str | None) -> Type:
        found = self.library.types.get(node.name)
        if found is None:
            whose = f" of {variable!r}" if variable else ""
            advice = similar(node.name, self.library.types)
            if node.name == "List":
                advice = "write List[Type]"
            raise self.source.error(node.start, f"no type {node.name!r}{whose}", advice)
        if isinstance(found, UnionOf):
            return simplified(union_of(found.members))
        return found

    def record_named(self, start: int, name: str) -> Record | None:
        """Return the object type of a name, or ``None`` if the type has no fields."""
        found = self.type_of(NamedType(start, start, name))
        return found if isinstance(found, Record) else None

    # --- casts and folds ---

    def _cast(self, node: Cast) -> Typed:
        target = self.type_of(node.type)
        subject = self.expression(node.subject)
        if isinstance(target, ListOf) and target.inner is not ANY:
            raise self.error(node, f"a cast to {target.name} checks nothing", "use List[Any]")
        failure: Expression = Ref("unit")
        type_: Type = union_of([target, UNIT])
        if node.exact:
            failure = Call(THROW, (self._cast_message(subject.type, target),))
            type_ = target
        value = Ref(_CAST_NAME)
        check = Call(IS_INSTANCE_OF, (value, StringConst(target.name)))
        block = Block(Let(_CAST_NAME, subject.expression), If(check, value, failure))
        return Typed(block, type_)

    def _cast_message(self, given: Type, target: Type) -> Expression:
        if not self.library.has_type_names_at_run_time:
            return StringConst(f"Couldn't cast {given.name} to {target.name}")
        suffix = StringConst(f" couldn't be cast to {target.name}")
        return Call(_JOIN, (Call(GET_TYPE, (Ref(_CAST_NAME),)), suffix))

    def _fold(self, node: Fold) -> Typed:
        items = self.expression(node.items)
        if not isinstance(items.type, ListOf):
            raise self.error(node, f"FOLD needs a list first, this is {items.type.name}")
        first = self.expression(node.first)
        inner = items.type.inner
        found = None
        for signature in self.functions.get(node.function, self._constructors(node.function)):
            if len(signature.arguments) != 2:
                continue
            one, two = signature.arguments
            if _accepts(one, first.type) and _accepts(two, inner):
                found = signature
                break
        if found is None:
            raise self.error(
                node,
                f"no function {node.function}({first.type.name}, {inner.name}) for the FOLD",
                "it takes what has been gathered, and an element",
            )
        self._unrolled += node.limit
        if self._unrolled > MAX_UNROLLED_STEPS:
            raise self.error(
                node,
                f"all FOLDs together take more than {MAX_UNROLLED_STEPS} steps",
                "no script has room for them",
            )
        number = self._folds
        self._folds = number + 1
        result = found.arguments[0]
        return Typed(
            unrolled_fold(number, node.limit, items.expression, first.expression, found.key),
            result,  # type: ignore[arg-type]
        )

    def _constructors(self, name: str) -> tuple[Signature, ...]:
        found = self.library.constructors.get(name)
        return () if found is None else (found,)


def unrolled_fold(
    number: int, limit: int, items: Expression, first: Expression, function: int | str
) -> Expression:
    """Return a fold as nested calls."""
    step, last = f"$f{number}_1", f"$f{number}_2"
    accumulated, position = Ref("$a"), Ref("$i")
    at_end = Call(_AT_LEAST, (position, Ref("$s")))
    element = Call(GET_ELEMENT, (Ref("$l"), position))
    too_long = Call(THROW, (StringConst(f"List size exceeds {limit}"),))
    parameters = ("$a", "$i")
    result: Expression = Ref("$acc0")
    for index in range(limit):
        result = Call(step, (result, LongConst(index)))
    result = Call(last, (result, LongConst(limit)))
    for declaration in (
        Func(last, parameters, If(at_end, accumulated, too_long)),
        Func(step, parameters, If(at_end, accumulated, Call(function, (accumulated, element)))),
        Let("$acc0", first),
        Let("$s", Call(_LIST_SIZE, (Ref("$l"),))),
        Let("$l", items),
    ):
        result = Block(declaration, result)
    return result


def _called(signature: Signature, arguments: list[Typed]) -> Typed:
    expected = signature.arguments
    if len(expected) != len(arguments):
        raise RideTypeError(f"it takes {len(expected)} arguments, not {len(arguments)}")
    types = [argument.type for argument in arguments]
    result = with_parameters(signature.result, infer(list(zip(types, expected, strict=True))))
    return Typed(Call(signature.key, tuple(each.expression for each in arguments)), result)


def _accepts(pattern: Pattern, given: Type) -> bool:
    """Whether a parameter without type variables accepts a type."""
    return isinstance(pattern, Plain | ListOf | TupleOf | UnionOf | Record) and covers(
        pattern, given
    )


def _restore(names: dict[str, _Value], name: str, before: _Value | None) -> None:
    """End the scope of a name."""
    if before is None:
        del names[name]
    else:
        names[name] = before


def _shown(name: str) -> str:
    """Return a name without the prefix of hidden functions."""
    return name.removeprefix(UTILITY_PREFIX)
