"""Dry runs: the result of a dApp without a transaction, and without changing the state.

What lives here: evaluating an expression in the scope of a dApp, or calling one of its functions.
What does not: the steps that every call takes (``call_frames``).

Source: wavesplatform/Waves
``node/src/main/scala/com/wavesplatform/api/http/utils/UtilsEvaluator.scala``.
"""

from __future__ import annotations

from typing import Final

import msgspec

from soliton.chain.addresses import Address
from soliton.chain.values import AssetId
from soliton.ledger.action_limits import allowance
from soliton.ledger.balances import check_balances
from soliton.ledger.call_frames import (
    CallContext,
    CallFrame,
    CallNode,
    RootCall,
    apply_result,
    check_fields,
    check_result,
    dapp_at,
    limits_fault,
    pay,
)
from soliton.ledger.calls import MAX_CALLS, MAX_PAYMENTS, caller_for
from soliton.ledger.context import Context
from soliton.ledger.errors import TransactionRejected
from soliton.ledger.script_results import Reader, Result, read_result
from soliton.ledger.state import Overlay, State
from soliton.ledger.state_changes import StateChanges
from soliton.ride.bindings import Call as Invoked
from soliton.ride.bindings import Invocation, invocation_object
from soliton.ride.compiler.compaction import with_original_names
from soliton.ride.compiler.library import ScriptKind
from soliton.ride.errors import EvaluationError
from soliton.ride.evaluator import Invocation as Function
from soliton.ride.evaluator import Setting, check_callable, invoke
from soliton.ride.expressions import (
    TRUE,
    AnnotatedFunction,
    Block,
    Call,
    DApp,
    Expression,
    Func,
    If,
    Let,
    Ref,
)
from soliton.ride.script import Script
from soliton.ride.trace import Trace
from soliton.ride.values import Value

_FUNCTION: Final = "$evaluate"
_INVOCATION: Final = "$invocation"
_CONDITION: Final = Call(0, (TRUE, TRUE))
"""A condition that has a cost. A function without a cost counts 1, but an expression does not; the
function around the expression is an artifact of ours.
"""
_CONDITION_COST: Final = 1
_OLD_CHOICE_COST: Final = 1
"""Before version 6 of the language a choice had a cost."""
_CALL_STEPS: Final = 2
"""A trace begins with the function and its invocation."""
_CONDITION_STEPS: Final = 3
"""The arguments of the condition, its cost, and the remaining complexity."""


class Caller(msgspec.Struct, frozen=True):
    """The simulated caller: sender and public key, transaction id and fee."""

    address: Address
    public_key: bytes
    transaction_id: bytes
    fee: int
    fee_asset: AssetId | None = None


class DryRunResult(msgspec.Struct, frozen=True):
    """The result: the value, the complexity spent, and the changes that would have been made."""

    value: Value
    complexity: int
    changes: StateChanges


class DryRun(msgspec.Struct, frozen=True):
    """State, context and complexity limit of a dry run; ``trace`` collects its steps."""

    state: State
    context: Context
    limit: int
    trace: Trace | None = None


def dry_run_expression(
    dapp: Address, expression: Expression, caller: Caller, dry_run: DryRun
) -> DryRunResult:
    """Evaluate an expression in the scope of all declarations and functions of a dApp.

    Raises ``EvaluationError`` or ``TransactionRejected``.
    """
    script = dapp_at(dapp, dry_run.state)[1]
    assert isinstance(script.content, DApp), "it is one"
    content = with_original_names(script.content)
    body = expression
    names = dict.fromkeys(each.invocation for each in content.callables)
    for each in reversed(content.callables):
        body = Block(each.function, body)
    # If all functions use the same name, as is usual, it needs no declaration.
    invocation = next(iter(names)) if len(names) == 1 else _INVOCATION
    for name in names if len(names) > 1 else ():
        body = Block(Let(name, Ref(_INVOCATION)), body)
    body = If(_CONDITION, body, TRUE)
    function = AnnotatedFunction(invocation, Func(_FUNCTION, (), body))
    wrapped = Script(script.version, DApp(b"", content.declarations, (function,)), b"")
    cost = _CONDITION_COST
    if not dry_run.context.rules.language.new_complexity:
        cost += _OLD_CHOICE_COST
    result = _run(wrapped, Invoked(dapp, _FUNCTION, (), ()), caller, dry_run, cost)
    if dry_run.trace is not None:
        steps = dry_run.trace.steps
        own = [each for each in steps[_CALL_STEPS:] if not each.name.startswith(_FUNCTION)]
        steps[:] = own[_CONDITION_STEPS:]
    return result


def dry_run_call(call: Invoked, caller: Caller, dry_run: DryRun) -> DryRunResult:
    """Call a function of a dApp; raise ``EvaluationError`` or ``TransactionRejected``, and
    ``NotCallable`` if the dApp has no such function.
    """
    assert isinstance(call.dapp, bytes), "an alias has been resolved"
    return _run(dapp_at(Address(call.dapp), dry_run.state)[1], call, caller, dry_run)


def _run(
    script: Script, call: Invoked, caller: Caller, dry_run: DryRun, wrapper_cost: int = 0
) -> DryRunResult:
    context, address = dry_run.context, call.dapp
    assert isinstance(address, bytes), "an alias has been resolved"
    dapp = Address(address)
    root = RootCall(
        caller.transaction_id,
        context.timestamp,
        caller.address,
        caller.public_key,
        caller.fee,
        caller.fee_asset,
        call,
        False,
    )
    base = Overlay(dry_run.state, context.height)
    frame = CallFrame(
        CallContext(root, script.version, context),
        dapp,
        dapp_at(dapp, dry_run.state)[0].public_key,
        script.version,
        base,
        Overlay(base, context.height),
        frozenset(),
        MAX_CALLS,
        allowance(script.version),
        MAX_PAYMENTS - len(call.payments),
        CallNode(dapp, call.function, call.arguments, call.payments),
    )
    pay(call.payments, caller.address, dapp).write(frame.own)
    environment = frame.environment(caller_for(frame))
    invocation = Invocation(
        caller.address,
        caller.public_key,
        caller.address,
        caller.public_key,
        call.payments,
        caller.transaction_id,
        caller.fee,
        caller.fee_asset,
    )
    function = Function(
        call.function, call.arguments, invocation_object(invocation, script.version)
    )
    limit = dry_run.limit + wrapper_cost
    language, trace = context.rules.language, dry_run.trace
    setting = Setting(limit, language, ScriptKind.ACCOUNT, trace, context.watch, context.observer)
    check_callable(script, function)
    outcome = invoke(script, environment, function, setting)
    spent = outcome.spent - wrapper_cost
    reader = Reader(script.version, environment, root.id, context.rules.block_v5_approved)
    try:
        result = read_result(outcome.value, reader)
    except EvaluationError:
        # Values that represent no actions are valid results.
        result = Result(())
    _apply(frame, result, spent)
    return DryRunResult(outcome.value, spent, StateChanges(result.actions, tuple(frame.done)))


def _apply(frame: CallFrame, result: Result, spent: int) -> None:
    """Apply the actions, to report their errors; raise ``TransactionRejected``."""
    check_fields(frame, result)
    fault = limits_fault(frame, result)
    if fault is not None:
        raise TransactionRejected(fault)
    check_result(frame, result, spent, frame.shared.root.sender)
    apply_result(frame, result, frame.address, spent, frame.shared.context)
    check_balances(frame.own, frame.base, frame.shared.rules)
