"""A plain evaluator for tests: calls any function of the library, without counting complexity.

It is recursive and slow on purpose: it shares nothing with the evaluators of the program but the
functions themselves, the bodies of those that are made of others, and the fields of types.
"""

from __future__ import annotations

from soliton.ride.compiler.library import ScriptKind
from soliton.ride.environment import CallContext
from soliton.ride.errors import EvaluationError
from soliton.ride.evaluator_library import load_library
from soliton.ride.expressions import (
    Block,
    BoolConst,
    BytesConst,
    Call,
    Expression,
    GetField,
    If,
    Let,
    LongConst,
    ObjectConst,
    Ref,
    StringConst,
)
from soliton.ride.functions.bodies import named_functions
from soliton.ride.functions.library import implementations
from soliton.ride.values import UNIT, CaseObject, Value, case_object


def call(key: int | str, arguments: list[Value], context: CallContext) -> Value:
    """The result of a function of the library or of a constructor."""
    if isinstance(key, int):
        return implementations(context.version)[key](arguments, context)
    named = named_functions(context.version, context.environment.chain_id)
    if key in named:
        function = named[key]
        names = dict(zip(function.parameters, arguments, strict=False))
        return _evaluate(function.body, names, context)
    library = load_library(context.version, ScriptKind.DAPP, context.environment.chain_id)
    fields = library.constructors.get(key)
    if fields is None:
        raise EvaluationError(f"Function or type '{key}' not found")
    return case_object(key, dict(zip(fields, arguments, strict=False)))


def _evaluate(expression: Expression, names: dict[str, Value], context: CallContext) -> Value:
    match expression:
        case LongConst(value) | BytesConst(value) | StringConst(value) | BoolConst(value):
            return value
        case ObjectConst("Unit", ()) | Ref("unit"):
            return UNIT
        case Ref(name):
            if name not in names:
                raise EvaluationError(f"A definition of '{name}' not found")
            return names[name]
        case GetField(inner, field):
            owner = _evaluate(inner, names, context)
            if not isinstance(owner, CaseObject) or field not in owner.fields:
                raise EvaluationError(f"no field {field}")
            return owner.fields[field]
        case If(condition, then, otherwise):
            chosen = _evaluate(condition, names, context)
            if not isinstance(chosen, bool):
                raise EvaluationError("Non-boolean result in cond")
            return _evaluate(then if chosen else otherwise, names, context)
        case Block(Let(name, value), body):
            return _evaluate(body, {**names, name: _evaluate(value, names, context)}, context)
        case Call(function, arguments):
            values = [_evaluate(argument, names, context) for argument in arguments]
            return call(function, values, context)
    raise AssertionError(expression)
