"""The fast evaluator: it compiles trees to closures, and names to slots in frames.

What lives here: compilation, and the compiled programs. What does not: runs that reach the limit,
or fail by the older complexity rules. A closure that encounters the limit raises ``Undecided``, and
``evaluator_machine`` repeats the run for the reference's exact result. So closures must be exact
only while some complexity is left: values, errors, and that complexity.

Closures nest on Python's stack. The depth is known after compilation, and programs that are too
deep are left to the machine.

Source of the rules: wavesplatform/Waves
``lang/shared/src/main/scala/com/wavesplatform/lang/v1/evaluator/EvaluatorV2.scala``.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Final, TypeAlias

from soliton.ride.environment import WATCHED_COST, CallContext
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
    failing,
    fixed_cost_call,
    frame_maker,
    free_call,
    get_code,
    if_code,
    journaled,
    let_code,
    native_code,
    remembered,
    remembering,
    script_call,
    start_code,
    undecided,
    unit_code,
    variable_code,
    watched,
    watched_call,
    with_message,
    with_something_left,
)
from soliton.ride.evaluator_library import Library
from soliton.ride.evaluator_machine import FIRST_OF_CHAIN, LAST_OF_CHAIN, constant_value
from soliton.ride.evaluator_scope import Scope, find
from soliton.ride.expressions import (
    CONSTANTS,
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
from soliton.ride.functions.bodies import VALUE, missing_value_message
from soliton.ride.functions.catalogue import CALLS_OF_DAPPS
from soliton.ride.values import UNIT, Value

MAX_DEPTH: Final = 1_500
"""The limit of nested closures; a deeper program is left to the machine."""


WATCHED_EXPRESSIONS: Final = 256
"""A call of a function calls ``watch`` once for so many expressions in its body."""


class TooDeep(EvaluationError):
    """The program would need too much of Python's stack."""


class _Layout:
    """The number of slots in the frames of a function."""

    __slots__ = ("level", "size")

    def __init__(self, level: int) -> None:
        self.level = level
        self.size = 1

    def take(self) -> int:
        slot = self.size
        self.size += 1
        return slot


class _Variable:
    """A name with a slot; without ``expression``, it is an argument."""

    __slots__ = ("code", "depth", "expression", "layout", "name", "scope", "slot")

    def __init__(
        self, name: str, layout: _Layout, expression: Expression | None, scope: _Scope
    ) -> None:
        self.name = name
        self.layout = layout
        self.slot = layout.take()
        self.expression = expression
        self.scope = scope
        self.code: Code | None = None
        self.depth = 0


class _Function:
    """A function of the script, which is compiled with its first call."""

    __slots__ = ("code", "count", "declaration", "depth", "layout", "level", "scope")

    def __init__(self, declaration: Func, level: int, scope: _Scope) -> None:
        self.declaration = declaration
        self.level = level
        self.scope = scope
        self.layout = _Layout(level + 1)
        self.code: Code | None = None
        self.depth = 0
        self.count = 0


_Scope: TypeAlias = Scope[_Variable | _Function] | None
_Made: TypeAlias = tuple[Code, int]


class Program:
    """The declarations of a script, and the code compiled so far."""

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
        """Return the entry of an expression; raise ``TooDeep`` if it is nested too deeply."""
        code, depth = self._compiler.start(expression, self._scope, self._layout)
        return Entry(code, depth, self._layout, 0)

    def function(self, annotated: AnnotatedFunction, verifies: bool) -> Entry:
        """Return the entry of a callable function or of the verifier, which may have the same name;
        raise ``TooDeep`` if it is nested too deeply.
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
            entry = Entry(start, depth + 1, self._layout, invocation.slot)
            self._entries[key] = entry
        return entry


class Entry:
    """The entry point of a run."""

    __slots__ = ("_code", "_layout", "_slot", "depth")

    def __init__(self, code: Code, depth: int, layout: _Layout, slot: int) -> None:
        self._code = code
        self.depth = depth
        self._layout = layout
        self._slot = slot

    def run(
        self,
        context: CallContext,
        invocation: Value | None = None,
        arguments: tuple[Value, ...] = (),
    ) -> Value:
        """Run, and return the value; raise ``EvaluationError`` if the machine must repeat the run.

        The slot of the outer frame has the arguments of a function.
        """
        frame: Frame = [None] * self._layout.size
        if self._slot:
            frame[0] = list(arguments)
            frame[self._slot] = invocation
        return self._code(frame, context)


def _declare(declaration: Declaration, layout: _Layout, scope: _Scope) -> _Scope:
    if isinstance(declaration, Let):
        variable = _Variable(declaration.name, layout, declaration.value, scope)
        return Scope((False, declaration.name), variable, scope)
    function = _Function(declaration, layout.level, scope)
    return Scope((True, declaration.name), function, scope)


def _is_value_call(node: Call) -> bool:
    return node.function == VALUE and len(node.arguments) == 1


class _Compiler:
    """The compiler for a library and a set of complexity rules."""

    __slots__ = (
        "_calls_scripts",
        "_compiled",
        "_depth",
        "_library",
        "_named",
        "_remembered",
        "new",
    )

    def __init__(self, library: Library, new_complexity: bool, calls_scripts: bool) -> None:
        self._library = library
        self._calls_scripts = calls_scripts
        self._named: dict[str, _Function] = {}
        self._remembered: Expression | None = None
        self._depth = self._compiled = 0
        self.new = new_complexity

    def start(self, node: Expression, scope: _Scope, layout: _Layout) -> _Made:
        """Return the code of an expression and its depth; raise ``TooDeep`` beyond the limit."""
        self._depth = 0
        return self.compile(node, scope, layout)

    def start_body(self, function: _Function) -> _Made:
        """Return the code of a function and its depth; raise ``TooDeep`` beyond the limit."""
        self._depth = 0
        return self.body(function)

    def compile(self, node: Expression, scope: _Scope, layout: _Layout) -> _Made:
        """Return the code of an inner expression and its depth."""
        self._compiled += 1
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
        """Return the code of a function's body and its depth, compiling it once."""
        if function.code is None:
            scope = function.scope
            for name in function.declaration.parameters:
                variable = _Variable(name, function.layout, None, None)
                scope = Scope((False, name), variable, scope)
            before = self._compiled
            function.code, function.depth = self.compile(
                function.declaration.body, scope, function.layout
            )
            function.count = self._compiled - before
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
            return failing(f"A definition of '{name}' not found"), 0
        return (code if self.new else counted(code)), 1

    def _variable(self, variable: _Variable, layout: _Layout) -> _Made:
        hops = layout.level - variable.layout.level
        if variable.expression is None:
            code = argument_code(variable.slot, hops)
        else:
            if variable.code is None:
                variable.code, variable.depth = self.compile(
                    variable.expression, variable.scope, variable.layout
                )
            code = let_code(variable.code, variable.slot, hops)
        return (code if self.new else counted(code)), variable.depth + 1

    def _call(self, node: Call, scope: _Scope, layout: _Layout) -> _Made:
        remembers = node is self._remembered
        self._remembered = node.arguments[0] if _is_value_call(node) else None
        made = [self.compile(argument, scope, layout) for argument in node.arguments]
        codes = tuple(code for code, _ in made)
        depth = max((depth for _, depth in made), default=0)
        if isinstance(node.function, int):
            return self._native(node.function, codes, remembers), depth
        if node.function in self._library.named:
            return self._named_call(node, codes, depth, remembers)
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
        call, times = make(frames, body), function.count // WATCHED_EXPRESSIONS
        return watched_call(call, times) if times else call, max(depth, inner) + 1

    def _native(self, number: int, codes: tuple[Code, ...], remembers: bool) -> Code:
        native = self._library.natives.get(number)
        if native is None:
            return failing(f"function 'Native({number})' not found", codes)
        implementation = native.implementation
        if remembers:
            implementation = remembered(implementation)
        if native.cost >= WATCHED_COST:
            implementation = watched(implementation)
        if self._calls_scripts and FIRST_OF_CHAIN <= number <= LAST_OF_CHAIN:
            implementation = journaled(implementation)
        code = native_code(codes, native.cost, implementation)
        return with_something_left(code) if number in CALLS_OF_DAPPS else code

    def _named_call(
        self, node: Call, codes: tuple[Code, ...], depth: int, remembers: bool
    ) -> _Made:
        name = str(node.function)
        named = self._library.named[name]
        if len(codes) != len(named.parameters):
            return undecided, 0
        function = self._named.get(name)
        if function is None:
            declaration = Func(name, named.parameters, named.body)
            function = self._named[name] = _Function(declaration, -1, None)
        body, inner = self.body(function)
        frames = frame_maker(codes, function.layout.size, 0)
        if remembers:
            frames = remembering(frames, len(codes))
        if _is_value_call(node) and not isinstance(node.arguments[0], CONSTANTS):
            body = with_message(body, partial(missing_value_message, node.arguments[0]))
        if self.new:
            return fixed_cost_call(frames, body, named.cost), max(depth, inner) + 1
        return free_call(frames, body), max(depth, inner) + 1

    def _construct(self, name: str, codes: tuple[Code, ...]) -> Code:
        fields = self._library.constructors.get(name)
        if fields is None:
            return failing(f"Function or type '{name}' not found", codes)
        code: Code
        if not fields and name == UNIT.type_name:
            code = unit_code(codes)
        else:
            code = construct_code(name, fields, codes)
        return counted(code) if self.new else code
