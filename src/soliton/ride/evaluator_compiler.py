"""The fast evaluator: trees turned once into closures, names into places in frames.

What lives here: compilation, and the programs that come out of it. What does not: every run that
does not simply succeed. A closure that meets an error, or the limit, raises ``Undecided`` (or the
error of a library function); the run is then repeated by ``evaluator_machine``, which knows exactly
what the reference makes of it. So closures need to be right about values and about the complexity
of success only: it must have been above zero all the time.

Python's own stack carries the nesting; how deep it gets is known after compilation, and what is too
deep is left to the machine.

Source of the rules: wavesplatform/Waves
``lang/shared/src/main/scala/com/wavesplatform/lang/v1/evaluator/EvaluatorV2.scala``.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, TypeAlias

from soliton.ride.environment import CallContext
from soliton.ride.errors import EvaluationError
from soliton.ride.evaluator_code import (
    Code,
    Frame,
    argument_code,
    constant_code,
    construct_code,
    counted,
    counted_get_code,
    counted_if_code,
    fixed_cost_call,
    frame_maker,
    free_call,
    get_code,
    if_code,
    journaled,
    let_code,
    native_code,
    script_call,
    start_code,
    undecided,
    unit_code,
    variable_code,
    watched,
    with_something_left,
)
from soliton.ride.evaluator_library import Library
from soliton.ride.evaluator_machine import EXTENDED, FIRST_OF_CHAIN, LAST_OF_CHAIN, constant_value
from soliton.ride.evaluator_scope import Scope, find
from soliton.ride.expressions import (
    AnnotatedFunction,
    Block,
    Call,
    Declaration,
    Expression,
    Func,
    GetField,
    If,
    Let,
    Ref,
)
from soliton.ride.values import UNIT, Value

MAX_DEPTH: Final = 1_500
"""Levels of closures within closures; a deeper program is left to the machine."""
WATCHED_COST: Final = 50
"""Before functions of this complexity a run may be stopped; the limit bounds the lighter ones."""


class TooDeep(EvaluationError):
    """A program that would need too much of Python's stack."""


class _Layout:
    """How many places the frames of one function have."""

    __slots__ = ("level", "size")

    def __init__(self, level: int) -> None:
        self.level = level
        self.size = 1

    def take(self) -> int:
        place = self.size
        self.size += 1
        return place


class _Variable:
    """A name with a place; without ``expression`` its value is there from the start."""

    __slots__ = ("code", "depth", "expression", "layout", "name", "place", "scope")

    def __init__(
        self, name: str, layout: _Layout, expression: Expression | None, scope: _Scope
    ) -> None:
        self.name = name
        self.layout = layout
        self.place = layout.take()
        self.expression = expression
        self.scope = scope
        self.code: Code | None = None
        self.depth = 0


class _Function:
    """A function of the script, compiled when the first call of it is."""

    __slots__ = ("code", "declaration", "depth", "layout", "level", "scope")

    def __init__(self, declaration: Func, level: int, scope: _Scope) -> None:
        self.declaration = declaration
        self.level = level
        self.scope = scope
        self.layout = _Layout(level + 1)
        self.code: Code | None = None
        self.depth = 0


_Scope: TypeAlias = Scope[_Variable | _Function] | None
_Made: TypeAlias = tuple[Code, int]


class Program:
    """The declarations of a script and all code made from it so far."""

    __slots__ = ("_compiler", "_entries", "_layout", "_scope")

    def __init__(
        self,
        library: Library,
        new_complexity: bool,
        calls_scripts: bool,
        declarations: Sequence[Declaration] = (),
    ) -> None:
        self._compiler = _Compiler(library, new_complexity, calls_scripts)
        self._layout = _Layout(0)
        self._scope: _Scope = None
        for declaration in declarations:
            self._scope = _declare(declaration, self._layout, self._scope)
        self._entries: dict[tuple[str, bool], Entry] = {}

    def expression(self, expression: Expression) -> Entry:
        """The entry for a plain expression; raises ``TooDeep``."""
        code, depth = self._compiler.start(expression, self._scope, self._layout)
        return Entry(code, depth, self._layout, 0)

    def function(self, annotated: AnnotatedFunction, verifies: bool) -> Entry:
        """The entry for a callable function or for the verifier, which may have the same name;
        raises ``TooDeep``.
        """
        key = (annotated.function.name, verifies)
        entry = self._entries.get(key)
        if entry is None:
            invocation = _Variable(annotated.invocation, self._layout, None, self._scope)
            scope = Scope((False, invocation.name), invocation, self._scope)
            function = _Function(annotated.function, 0, scope)
            code, depth = self._compiler.start_body(function)
            size, count = function.layout.size, len(annotated.function.parameters)
            start = start_code(code, count, size, self._compiler.new)
            entry = Entry(start, depth + 1, self._layout, invocation.place)
            self._entries[key] = entry
        return entry


class Entry:
    """Where a run begins."""

    __slots__ = ("_code", "_layout", "_place", "depth")

    def __init__(self, code: Code, depth: int, layout: _Layout, place: int) -> None:
        self._code = code
        self.depth = depth
        self._layout = layout
        self._place = place

    def run(
        self,
        context: CallContext,
        invocation: Value | None = None,
        arguments: tuple[Value, ...] = (),
    ) -> Value:
        """The value; raises ``EvaluationError`` where the machine has to be asked.

        The arguments of a function are handed over in the place of the frame around the script.
        """
        frame: Frame = [None] * self._layout.size
        if self._place:
            frame[0] = list(arguments)
            frame[self._place] = invocation
        return self._code(frame, context)


def _declare(declaration: Declaration, layout: _Layout, scope: _Scope) -> _Scope:
    if isinstance(declaration, Let):
        variable = _Variable(declaration.name, layout, declaration.value, scope)
        return Scope((False, declaration.name), variable, scope)
    function = _Function(declaration, layout.level, scope)
    return Scope((True, declaration.name), function, scope)


class _Compiler:
    """Compiles for one library and one way of counting."""

    __slots__ = ("_calls_scripts", "_depth", "_library", "_named", "new")

    def __init__(self, library: Library, new_complexity: bool, calls_scripts: bool) -> None:
        self._library = library
        self._calls_scripts = calls_scripts
        self._named: dict[str, _Function] = {}
        self._depth = 0
        self.new = new_complexity

    def start(self, node: Expression, scope: _Scope, layout: _Layout) -> _Made:
        """The code of a whole expression and how deep it nests; raises ``TooDeep``."""
        self._depth = 0
        return self.compile(node, scope, layout)

    def start_body(self, function: _Function) -> _Made:
        """The code of a function that is called from outside; raises ``TooDeep``."""
        self._depth = 0
        return self.body(function)

    def compile(self, node: Expression, scope: _Scope, layout: _Layout) -> _Made:
        """The code of an expression within another one."""
        self._depth += 1
        if self._depth > MAX_DEPTH:
            raise TooDeep
        while isinstance(node, Block):
            scope = _declare(node.declaration, layout, scope)
            node = node.body
        match node:
            case Ref(name):
                code, depth = self._ref(name, scope, layout)
            case Call():
                code, depth = self._call(node, scope, layout)
            case If():
                code, depth = self._if(node, scope, layout)
            case GetField(inner, field):
                owner, depth = self.compile(inner, scope, layout)
                code = get_code(owner, field) if self.new else counted_get_code(owner, field)
            case _:
                code, depth = constant_code(constant_value(node)), 0
        self._depth -= 1
        if depth >= MAX_DEPTH:
            raise TooDeep
        return code, depth + 1

    def body(self, function: _Function) -> _Made:
        """The code of a function's body, made when it is first wanted."""
        if function.code is None:
            scope = function.scope
            for name in function.declaration.parameters:
                variable = _Variable(name, function.layout, None, None)
                scope = Scope((False, name), variable, scope)
            function.code, function.depth = self.compile(
                function.declaration.body, scope, function.layout
            )
        return function.code, function.depth

    def _if(self, node: If, scope: _Scope, layout: _Layout) -> _Made:
        condition, first = self.compile(node.condition, scope, layout)
        then, second = self.compile(node.then, scope, layout)
        otherwise, third = self.compile(node.otherwise, scope, layout)
        make = if_code if self.new else counted_if_code
        return make(condition, then, otherwise), max(first, second, third)

    def _ref(self, name: str, scope: _Scope, layout: _Layout) -> _Made:
        found = find(scope, (False, name))
        if found is not None:
            assert isinstance(found.declaration, _Variable)
            return self._variable(found.declaration, layout)
        if name in self._library.constants:
            code = constant_code(self._library.constants[name])
        elif name in self._library.variables:
            code = variable_code(name, self._library.variables[name])
        else:
            return undecided, 0
        return (code if self.new else counted(code)), 1

    def _variable(self, variable: _Variable, layout: _Layout) -> _Made:
        hops = layout.level - variable.layout.level
        if variable.expression is None:
            code = argument_code(variable.place, hops)
        else:
            if variable.code is None:
                variable.code, variable.depth = self.compile(
                    variable.expression, variable.scope, variable.layout
                )
            code = let_code(variable.code, variable.place, hops)
        return (code if self.new else counted(code)), variable.depth + 1

    def _call(self, node: Call, scope: _Scope, layout: _Layout) -> _Made:
        made = [self.compile(argument, scope, layout) for argument in node.arguments]
        codes = tuple(code for code, _ in made)
        depth = max((depth for _, depth in made), default=0)
        if isinstance(node.function, int):
            return self._native(node.function, codes), depth
        if node.function in self._library.named:
            return self._named_call(node.function, codes, depth)
        found = find(scope, (True, node.function))
        if found is None:
            return self._construct(node.function, codes), depth
        function = found.declaration
        assert isinstance(function, _Function)
        if len(codes) != len(function.declaration.parameters):
            return undecided, 0
        body, inner = self.body(function)
        frames = frame_maker(codes, function.layout.size, layout.level - function.level)
        make = script_call if self.new else free_call
        return make(frames, body), max(depth, inner) + 1

    def _native(self, number: int, codes: tuple[Code, ...]) -> Code:
        native = self._library.natives.get(number)
        if native is None:
            return undecided
        implementation = native.implementation
        if native.cost >= WATCHED_COST:
            implementation = watched(implementation)
        if self._calls_scripts and FIRST_OF_CHAIN <= number <= LAST_OF_CHAIN:
            implementation = journaled(implementation)
        code = native_code(codes, native.cost, implementation)
        return with_something_left(code) if number in EXTENDED else code

    def _named_call(self, name: str, codes: tuple[Code, ...], depth: int) -> _Made:
        named = self._library.named[name]
        if len(codes) != len(named.parameters):
            return undecided, 0
        function = self._named.get(name)
        if function is None:
            declaration = Func(name, named.parameters, named.body)
            function = self._named[name] = _Function(declaration, -1, None)
        body, inner = self.body(function)
        frames = frame_maker(codes, function.layout.size, 0)
        if self.new:
            return fixed_cost_call(frames, body, named.cost), max(depth, inner) + 1
        return free_call(frames, body), max(depth, inner) + 1

    def _construct(self, name: str, codes: tuple[Code, ...]) -> Code:
        fields = self._library.constructors.get(name)
        if fields is None:
            return undecided
        code: Code
        if not fields and name == UNIT.type_name:
            code = unit_code(codes)
        else:
            code = construct_code(name, fields, codes)
        return counted(code) if self.new else code
