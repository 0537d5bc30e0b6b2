"""Dry runs: what a dApp would answer, without a transaction and without changing anything.

What lives here: evaluating an expression among the declarations of a dApp, or calling one of its
functions, on top of the state. What does not: the steps that every call takes (``call_frames``).

Source: wavesplatform/Waves
``node/src/main/scala/com/wavesplatform/api/http/utils/UtilsEvaluator.scala``.
"""

from __future__ import annotations

from typing import Final

import msgspec

from soliton.chain.addresses import Address
from soliton.chain.features import Feature
from soliton.chain.values import AssetId
from soliton.ledger.action_limits import allowance
from soliton.ledger.balances import check_balances
from soliton.ledger.call_frames import (
    CallContext,
    CallFrame,
    CallNode,
    RootCall,
    check_answer,
    check_fields,
    dapp_at,
    do_answer,
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
_ASKED: Final = Call(0, (TRUE, TRUE))
"""A condition that costs something. A function that costs nothing counts 1, an expression does not:
that there is a function at all is our own doing.
"""
_COST_OF_ASKING: Final = 1
_COST_OF_CHOICES_ONCE: Final = 1
"""Before version 6 of the language a choice cost something too."""
_STEPS_OF_CALLS: Final = 2
"""A trace begins with the function and its invocation."""
_STEPS_OF_ASKING: Final = 3
"""What the condition was given, what it cost, and what is left."""


class Caller(msgspec.Struct, frozen=True):
    """Who is said to call: the transaction and its fee, and the sender with its key."""

    address: Address
    public_key: bytes
    transaction_id: bytes
    fee: int
    fee_asset: AssetId | None = None


class DryRunResult(msgspec.Struct, frozen=True):
    """What came out: the value, the complexity that it took, and what would have been done."""

    value: Value
    complexity: int
    changes: StateChanges


class DryRun(msgspec.Struct, frozen=True):
    """Where and by which rules something is tried; ``trace`` collects steps when it is wanted."""

    state: State
    context: Context
    limit: int
    trace: Trace | None = None


def dry_run_expression(
    dapp: Address, expression: Expression, caller: Caller, dry_run: DryRun
) -> DryRunResult:
    """Evaluate an expression among all declarations and functions of a dApp.

    Raises ``EvaluationError`` or ``TransactionRejected``.
    """
    script = dapp_at(dapp, dry_run.state)[1]
    assert isinstance(script.content, DApp), "it is one"
    content = with_original_names(script.content)
    body = expression
    names = dict.fromkeys(each.invocation for each in content.callables)
    for each in reversed(content.callables):
        body = Block(each.function, body)
    # With one name for all, as usual, none has to be declared anew.
    invocation = next(iter(names)) if len(names) == 1 else _INVOCATION
    for name in names if len(names) > 1 else ():
        body = Block(Let(name, Ref(_INVOCATION)), body)
    body = If(_ASKED, body, TRUE)
    asked = AnnotatedFunction(invocation, Func(_FUNCTION, (), body))
    whole = Script(script.version, DApp(b"", content.declarations, (asked,)), b"")
    cost = _COST_OF_ASKING
    if not dry_run.context.rules.language.new_complexity:
        cost += _COST_OF_CHOICES_ONCE
    tried = _try(whole, Invoked(dapp, _FUNCTION, (), ()), caller, dry_run, cost)
    if dry_run.trace is not None:
        steps = dry_run.trace.steps
        found = [each for each in steps[_STEPS_OF_CALLS:] if not each.name.startswith(_FUNCTION)]
        steps[:] = found[_STEPS_OF_ASKING:]
    return tried


def dry_run_call(call: Invoked, caller: Caller, dry_run: DryRun) -> DryRunResult:
    """Call a function of a dApp; raises ``EvaluationError`` or ``TransactionRejected``, and
    ``NotCallable`` where the dApp has no such function.
    """
    assert isinstance(call.dapp, bytes), "an alias has been resolved"
    return _try(dapp_at(Address(call.dapp), dry_run.state)[1], call, caller, dry_run)


def _try(
    script: Script, call: Invoked, caller: Caller, dry_run: DryRun, cost_of_asking: int = 0
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
    told = Invocation(
        caller.address,
        caller.public_key,
        caller.address,
        caller.public_key,
        call.payments,
        caller.transaction_id,
        caller.fee,
        caller.fee_asset,
    )
    function = Function(call.function, call.arguments, invocation_object(told, script.version))
    limit = dry_run.limit + cost_of_asking
    language, trace = context.rules.language, dry_run.trace
    setting = Setting(limit, language, ScriptKind.ACCOUNT, trace, context.watch, context.observer)
    check_callable(script, function)
    outcome = invoke(script, environment, function, setting)
    spent = outcome.spent - cost_of_asking
    aliases = context.rules.has(Feature.BLOCK_V5)
    reader = Reader(script.version, environment, root.id, aliases)
    try:
        result = read_result(outcome.value, reader)
    except EvaluationError:
        # A value that stands for no actions is an answer as well.
        result = Result(())
    _do(frame, result, spent)
    changes = StateChanges(result.actions, tuple(frame.done))
    return DryRunResult(outcome.value, spent, changes)


def _do(frame: CallFrame, result: Result, spent: int) -> None:
    """Do the actions, so that their faults show; raises ``TransactionRejected``."""
    check_fields(frame, result)
    fault = limits_fault(frame, result)
    if fault is not None:
        raise TransactionRejected(fault)
    check_answer(frame, result, spent, frame.shared.root.sender)
    do_answer(frame, result, frame.address, spent, frame.shared.context)
    check_balances(frame.own, frame.base, frame.shared.rules)
