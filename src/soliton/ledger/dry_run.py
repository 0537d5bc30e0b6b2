"""Dry runs: the result of a dApp without a transaction, and without changing the state.

What lives here: evaluating an expression in the scope of a dApp, or calling one of its functions.
What does not: the steps that every call takes (``call_frames``).

Source: wavesplatform/Waves
``node/src/main/scala/com/wavesplatform/api/http/utils/UtilsEvaluator.scala``.
"""

from __future__ import annotations

from typing import Final

import msgspec

from soliton.chain.addresses import Address, from_public_key
from soliton.chain.values import AssetId
from soliton.ledger.action_limits import allowance
from soliton.ledger.actions import failed
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
from soliton.ledger.invocation import check_fee
from soliton.ledger.portfolio import Portfolio
from soliton.ledger.script_results import Reader, Result, read_result
from soliton.ledger.sponsorship import take_fee
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
    """The simulated caller: the address and the public key that the dApp sees, transaction id and
    fee. The account of the key pays.
    """

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
    try:
        return _run(wrapped, Invoked(dapp, _FUNCTION, (), ()), caller, dry_run, cost)
    finally:
        if dry_run.trace is not None:
            steps = dry_run.trace.steps
            own = [each for each in steps[_CALL_STEPS:] if not each.name.startswith(_FUNCTION)]
            steps[:] = own[_CONDITION_STEPS:]


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
    payer = from_public_key(caller.public_key, context.rules.chain_id)
    root = RootCall(
        caller.transaction_id,
        context.timestamp,
        payer,
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
    pay(call.payments, payer, dapp).write(frame.own)
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
    result = _applied(outcome.value, frame, reader, spent)
    check_balances(frame.own, frame.base, frame.shared.rules)
    return DryRunResult(outcome.value, spent, StateChanges(result.actions, tuple(frame.done)))


def _applied(value: Value, frame: CallFrame, reader: Reader, spent: int) -> Result:
    """Take the fee and apply the actions, to report their errors; raise ``TransactionRejected``.

    Values that represent no actions are valid results, and cost no fee.
    """
    try:
        result = read_result(value, reader)
    except EvaluationError:
        return Result(())
    root = frame.shared.root
    check_fields(frame, result)
    fault = limits_fault(frame, result)
    if fault is not None:
        raise failed(fault, spent)
    check_result(frame, result, spent, root.sender)
    check_fee(frame, result, spent, 0)
    fee = Portfolio()
    take_fee(root.sender, root.fee_asset, root.fee, fee, frame.own, frame.shared.rules)
    apply_result(frame, result, frame.address, spent, frame.shared.context, fee)
    return result
