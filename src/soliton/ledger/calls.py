"""Calls of dApps by dApps.

What lives here: checks and limits of such a call, and its result for the caller. What does not: the
steps that all calls share (``call_frames``).

A call writes to an overlay of its own on top of the caller's; if it succeeds, the overlay is merged
into the caller's.

Sources: wavesplatform/Waves
``node/src/main/scala/com/wavesplatform/state/diffs/invoke/InvokeScriptDiff.scala`` and
``transaction/smart/WavesEnvironment.scala`` (``callScript``).
"""

from __future__ import annotations

from typing import Final

import msgspec

from soliton.chain.addresses import Address, Alias, address_text, check_address
from soliton.chain.errors import AddressError
from soliton.chain.features import Feature
from soliton.chain.values import AssetId
from soliton.crypto import base58
from soliton.errors import SolitonError
from soliton.ledger.action_limits import count
from soliton.ledger.actions import AlwaysRejected, asset_failure, asset_fault, error_text, failed
from soliton.ledger.balances import check_balances
from soliton.ledger.call_frames import (
    CallContext,
    CallFrame,
    CallNode,
    apply_result,
    check_arguments,
    check_fields,
    check_result,
    dapp_at,
    evaluate,
    limits_fault,
    max_total_complexity,
    pay,
)
from soliton.ledger.errors import BalanceErrors, TransactionRejected
from soliton.ledger.script_environment import Invoke
from soliton.ledger.script_results import Result
from soliton.ledger.script_runs import ScriptOwner, complexity_of, run_script
from soliton.ledger.script_subjects import Subject
from soliton.ledger.scripts import FailedTransaction
from soliton.ledger.state import ASSET_BALANCES, ASSET_SCRIPTS, WAVES, AssetScript, Overlay, State
from soliton.ledger.state_changes import ErrorMessage, InvokedCall, StateChanges
from soliton.ledger.traces import Fault
from soliton.ride.bindings import (
    Call,
    Envelope,
    Invocation,
    check_payment_count,
    invoke_object,
    transfer_object,
)
from soliton.ride.environment import Payment
from soliton.ride.errors import ComplexityExceeded, EvaluationError, FailOrReject, InvocationFailed
from soliton.ride.script import parse_script
from soliton.ride.values import Value

MAX_CALLS: Final = 100
MAX_PAYMENTS: Final = 100
_FIRST_THAT_IS_CALLED: Final = 5
_NAMED_REFUSALS: Final = ("AccountBalanceError(", "InvalidAddress(", "ScriptRunsLimitError(")


def caller_for(frame: CallFrame) -> Invoke:
    """Return the function that calls other dApps for a running one."""

    def invoke(
        dapp: bytes,
        function: str,
        arguments: tuple[Value, ...],
        payments: tuple[Payment, ...],
        available: int,
        reentrant: bool,
    ) -> tuple[Value, int]:
        call = Call(Address(dapp), function, arguments, payments)
        return _call(frame, call, available, reentrant)

    return invoke


def _call(frame: CallFrame, call: Call, available: int, reentrant: bool) -> tuple[Value, int]:
    """Call another dApp; return its value and the complexity left."""
    try:
        value, spent = _call_nested(frame, call, available, reentrant)
    except FailedTransaction as failure:
        left = available - failure.complexity
        raise InvocationFailed(_failure_text(failure), left, failure) from failure
    except AlwaysRejected as error:
        if error.skips:
            raise FailOrReject(str(error), available) from error
        raise InvocationFailed(str(error), available, error) from error
    except TransactionRejected as error:
        raise InvocationFailed(_rejection_text(error), available, error) from error
    return value, available - spent


class Unfinished(SolitonError):
    """A call exceeds the complexity that the pool runs, so its result is unknown."""


def _error_text(error: TransactionRejected) -> str | None:
    """Return why a call aborted, as shown in traces."""
    if isinstance(error, FailedTransaction):
        return error.reason if error.asset_id is None else error.detail or None
    if isinstance(error, AlwaysRejected):
        return f"FailOrRejectError({error},{str(error.skips).lower()})"
    return _rejection_text(error)


def _failure_text(failure: FailedTransaction) -> str:
    """Return the error of the calling dApp; the reference node includes the intermediate one."""
    if failure.asset_id is None or failure.detail:
        return failure.detail or failure.reason
    return f"FailedTransactionError(code = {failure.code}, error = {failure.reason})"


def _rejection_text(error: TransactionRejected) -> str:
    message = error_text(error)
    return message if message.startswith(_NAMED_REFUSALS) else f"GenericError({message})"


def _call_nested(
    frame: CallFrame, call: Call, available: int, reentrant: bool
) -> tuple[Value, int]:
    shared = frame.shared
    assert not isinstance(call.dapp, Alias), "the language has resolved it"
    try:
        address = check_address(call.dapp, shared.rules.chain_id)
    except AddressError as error:
        raise TransactionRejected(f"InvalidAddress({error})") from error
    if address != frame.address and address in frame.blocked:
        raise TransactionRejected(
            "The invocation stack contains multiple invocations of the dApp at address "
            f"{address_text(address)} with invocations of another dApp between them"
        )
    node = CallNode(address, call.function, call.arguments, call.payments)
    frame.node.children.append(node)
    blocked = frame.blocked if reentrant else frame.blocked | {frame.address}
    try:
        nested = _Nested(frame, node, blocked, available)
        value, spent, result = nested.run()
    except TransactionRejected as error:
        code = error.code if isinstance(error, FailedTransaction) else 1
        node.error = ErrorMessage(code, str(error))
        node.fault = Fault(_error_text(error))
        raise
    node.result = result
    callee = nested.callee
    if shared.rules.has(Feature.LIGHT_NODE):
        limit = max_total_complexity(shared.version)
        _check_balances_above(frame.base, callee.own, shared, limit - available)
    frame.own.merge(callee.own)
    frame.calls_left -= 1
    frame.left = callee.left
    frame.payments_left = callee.payments_left
    changes = StateChanges(result.actions, tuple(callee.done))
    frame.done.append(InvokedCall(address, call.function, call.arguments, call.payments, changes))
    return value, spent


class _Nested:
    """A call by a dApp, from its checks to its actions."""

    __slots__ = ("available", "blocked", "call", "callee", "caller", "node", "script")

    def __init__(
        self, caller: CallFrame, node: CallNode, blocked: frozenset[Address], available: int
    ) -> None:
        self.caller = caller
        self.node = node
        self.blocked = blocked
        self.available = available
        account, self.script = dapp_at(node.dapp, caller.own)
        self.call = Call(node.dapp, node.function, node.arguments, node.payments)
        self.callee = CallFrame(
            caller.shared,
            node.dapp,
            account.public_key,
            self.script.version,
            caller.own,
            Overlay(caller.own, caller.shared.context.height),
            blocked,
            caller.calls_left - 1,
            caller.left,
            caller.payments_left - len(node.payments),
            node,
        )

    def run(self) -> tuple[Value, int, Result]:
        """Return the value of the dApp, the complexity that counts for it, and its result.

        Raises ``FailedTransaction`` or ``TransactionRejected``.
        """
        caller, callee, shared = self.caller, self.callee, self.caller.shared
        light = shared.rules.has(Feature.LIGHT_NODE)
        self._check()
        scripts, left = self._run_asset_scripts()
        pay(self.node.payments, caller.address, callee.address).write(callee.own)
        if light and shared.rules.payments_of_calls_checked:
            _check_balances_above(caller.own, callee.own, shared, 0)
        result, unused = self._evaluate(left)
        used = self.available - unused
        if not light:
            spent_so_far = self.available - max(unused, 0)
            _check_balances_above(caller.own, callee.own, shared, spent_so_far)
        if result is None:
            limit = max_total_complexity(shared.version)
            raise failed(f"Invoke complexity limit = {limit} is exceeded", used)
        fault = limits_fault(callee, result)
        if fault is not None:
            raise failed(fault, used)
        spent = left - unused
        check_result(callee, result, spent, caller.address)
        # The exception for early reissues of assets that are not reissuable does not apply here.
        late = shared.rules.invalid_reissue_until + 1
        block = msgspec.structs.replace(shared.context.block, timestamp=late)
        context = msgspec.structs.replace(shared.context, block=block, traces=None)
        spent += apply_result(callee, result, callee.address, spent, context)
        spent += sum(script.complexity for script in scripts)
        if not light:
            _check_balances_above(caller.own, callee.own, shared, spent)
        callee.left = callee.left.minus(count(result, shared.rules))
        return result.value, spent, result

    def _check(self) -> None:
        caller, node, rules = self.caller, self.node, self.caller.shared.rules
        if rules.has(Feature.RIDE_V6):
            check_arguments(node.arguments, rules)
        message = f"DApp {address_text(caller.address)} invoked DApp {address_text(node.dapp)}"
        if self.script.version < _FIRST_THAT_IS_CALLED:
            raise TransactionRejected(
                f"{message} that uses RIDE V{self.script.version}, but dApp-to-dApp invocation "
                "requires version 5 or higher"
            )
        if caller.calls_left <= 0:
            raise TransactionRejected(
                f"ScriptRunsLimitError(DApp calls limit = {MAX_CALLS} is exceeded)"
            )
        if rules.has(Feature.RIDE_V6) and caller.payments_left < len(node.payments):
            raise TransactionRejected(f"Invoke payments limit = {MAX_PAYMENTS} is exceeded")
        for payment in node.payments:
            if payment.amount < 0:
                self._refuse_negative(message, payment)
        try:
            check_payment_count(node.payments, self.script.version, rules.block_v5_approved, "DApp")
        except EvaluationError as error:
            raise TransactionRejected(error.message) from error

    def _refuse_negative(self, message: str, payment: Payment) -> None:
        shared = self.caller.shared
        asset = "WAVES"
        if payment.asset_id is not None:
            asset = f"token {base58.encode(payment.asset_id)}"
        message = f"{message} with attached {asset} amount = {payment.amount}"
        if shared.rules.has(Feature.RIDE_V6):
            raise TransactionRejected(message)
        if shared.rules.has(Feature.SYNCHRONOUS_CALLS) and shared.rules.dapp_actions_checked:
            raise AlwaysRejected(message)

    def _run_asset_scripts(self) -> tuple[list[AssetScript], int]:
        """Run the scripts of the assets in the payments; return these and the complexity left."""
        shared, own = self.caller.shared, self.caller.own
        found = []
        for payment in self.node.payments:
            if payment.asset_id is not None:
                fault = asset_fault(payment.asset_id, own, shared.rules)
                if fault is not None:
                    raise TransactionRejected(fault)
                script = own.get(ASSET_SCRIPTS, payment.asset_id)
                if script is not None:
                    found.append((payment.asset_id, payment.amount, script))
        left = self.available
        for asset_id, amount, script in found:
            left -= self._run_asset_script(asset_id, amount, script, left)
        return [script for _, _, script in found], left

    def _run_asset_script(
        self, asset_id: AssetId, amount: int, script: AssetScript, left: int
    ) -> int:
        shared = self.caller.shared
        outcome = run_script(
            parse_script(script.script),
            self._payment_subject(asset_id, amount),
            ScriptOwner(asset_id=asset_id),
            self.caller.own,
            shared.context,
            left,
        )
        complexity = complexity_of(outcome, script.complexity, shared.context)
        if outcome.value is True:
            return complexity
        total = max_total_complexity(shared.version) - left + complexity
        code = 3 if outcome.value is None else 4
        raise asset_failure(code, asset_id, total, outcome.value, outcome.error)

    def _payment_subject(self, asset_id: AssetId, amount: int) -> Subject:
        root, caller, dapp = self.caller.shared.root, self.caller, self.node.dapp
        envelope = Envelope(root.id, root.timestamp, caller.address, caller.public_key)
        if not caller.shared.rules.has(Feature.RIDE_V6):
            return Subject(
                root.id, lambda view: transfer_object(envelope, dapp, asset_id, amount, view)
            )
        call, version = self.call, self.script.version
        return Subject(
            root.id,
            lambda view: invoke_object(
                envelope, call, msgspec.structs.replace(view, payments_version=version)
            ),
        )

    def _evaluate(self, limit: int) -> tuple[Result | None, int]:
        """Return the result (``None``: out of complexity) and the complexity left."""
        root, caller = self.caller.shared.root, self.caller
        invocation = Invocation(
            caller.address,
            caller.public_key,
            root.sender,
            root.sender_public_key,
            self.node.payments,
            root.id,
            root.fee,
            root.fee_asset,
        )
        try:
            result, spent = evaluate(
                self.callee, self.script, self.call, invocation, limit, caller_for(self.callee)
            )
        except ComplexityExceeded as error:
            if caller.shared.context.limit is not None:
                raise Unfinished("a call was not finished") from error
            return None, limit - error.spent
        except FailOrReject as error:
            self.node.steps = ()
            refusal = AlwaysRejected(error.message)
            refusal.skips = False
            raise refusal from error
        except EvaluationError as error:
            # The reference node keeps only the steps of completed evaluations.
            self.node.steps = ()
            raise failed(error.message, self.available - limit + error.spent) from error
        unused = limit - spent
        try:
            check_fields(self.callee, result)
        except AlwaysRejected:
            raise
        except TransactionRejected as error:
            raise failed(f"GenericError({error})", self.available - unused) from error
        return result, unused


def _check_balances_above(
    before: State, own: Overlay, shared: CallContext, complexity: int
) -> None:
    """Check the balances that a call wrote, relative to the state ``before``.

    That need not be the state that the call was made on: since the light-node feature, earlier
    changes by the caller, including leases, are ignored.
    """
    above = Overlay(before, shared.context.height)
    above.changes = own.changes
    if shared.rules.has(Feature.RIDE_V6):
        try:
            check_balances(above, before, shared.rules)
        except BalanceErrors as error:
            raise failed(error_text(error), complexity) from error
    elif shared.rules.dapp_actions_checked:
        _refuse_negative_balances(above, before)


def _refuse_negative_balances(above: Overlay, before: State) -> None:
    for address, balance in above.changes.get(WAVES, {}).items():
        if balance < 0:
            old = before.get(WAVES, address)
            raise AlwaysRejected(
                f"{address_text(address)}: Negative waves balance: old = {old}, new = {balance}"
            )
    for (address, asset_id), balance in above.changes.get(ASSET_BALANCES, {}).items():
        if balance < 0:
            old = before.get(ASSET_BALANCES, (address, asset_id))
            raise AlwaysRejected(
                f"{address_text(address)}: Negative asset {base58.encode(asset_id)} balance: "
                f"old = {old}, new = {balance}"
            )
