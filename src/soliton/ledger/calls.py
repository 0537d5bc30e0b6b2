"""Calls of dApps by dApps.

What lives here: who may call whom, what a call may cost, and what comes back. What does not: the
steps that all calls have in common (``call_frames``).

A call works on an overlay of its own, which lies above that of its caller; when it succeeds the
caller takes over what it wrote.

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
from soliton.ledger.actions import AlwaysRejected, asset_failure, asset_fault, failed, words_of
from soliton.ledger.balances import check_balances
from soliton.ledger.call_frames import (
    CallContext,
    CallFrame,
    CallNode,
    check_answer,
    check_arguments,
    check_fields,
    dapp_at,
    do_answer,
    evaluate,
    limits_fault,
    max_total_complexity,
    pay,
)
from soliton.ledger.errors import BalanceErrors, TransactionRejected
from soliton.ledger.script_environment import Invoke
from soliton.ledger.script_results import Result
from soliton.ledger.script_runs import Asked, ask, complexity_of
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
    """What calls other dApps for a function while it runs."""

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
    """Call another dApp: what it returned, and the complexity left over."""
    try:
        value, spent = _call_nested(frame, call, available, reentrant)
    except FailedTransaction as failure:
        left = available - failure.complexity
        raise InvocationFailed(_words_of_failure(failure), left, failure) from failure
    except AlwaysRejected as error:
        if error.skips:
            raise FailOrReject(str(error), available) from error
        raise InvocationFailed(str(error), available, error) from error
    except TransactionRejected as error:
        raise InvocationFailed(_words_of_refusal(error), available, error) from error
    return value, available - spent


class Unfinished(SolitonError):
    """A call that takes more than the pool runs, so that nobody knows what it returns."""


def _words(error: TransactionRejected) -> str | None:
    """Why a call broke off, as traces tell it."""
    if isinstance(error, FailedTransaction):
        return error.reason if error.asset_id is None else error.detail or None
    if isinstance(error, AlwaysRejected):
        return f"FailOrRejectError({error},{str(error.skips).lower()})"
    return _words_of_refusal(error)


def _words_of_failure(failure: FailedTransaction) -> str:
    """What the calling dApp breaks off with: the reference shows what lies in between, too."""
    if failure.asset_id is None or failure.detail:
        return failure.detail or failure.reason
    return f"FailedTransactionError(code = {failure.code}, error = {failure.reason})"


def _words_of_refusal(error: TransactionRejected) -> str:
    words = words_of(error)
    return words if words.startswith(_NAMED_REFUSALS) else f"GenericError({words})"


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
        node.fault = Fault(_words(error))
        raise
    node.result = result
    callee = nested.callee
    if shared.rules.has(Feature.LIGHT_NODE):
        most = max_total_complexity(shared.version)
        _check_balances_above(frame.base, callee.own, shared, most - available)
    frame.own.merge(callee.own)
    frame.calls_left -= 1
    frame.left = callee.left
    frame.payments_left = callee.payments_left
    changes = StateChanges(result.actions, tuple(callee.done))
    frame.done.append(InvokedCall(address, call.function, call.arguments, call.payments, changes))
    return value, spent


class _Nested:
    """A call that a dApp makes, from the checks of what it asks for to its actions."""

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
        """The value that the dApp returned, the complexity that counts for it, and its actions.

        Raises ``FailedTransaction`` or ``TransactionRejected``.
        """
        caller, callee, shared = self.caller, self.callee, self.caller.shared
        light = shared.rules.has(Feature.LIGHT_NODE)
        self._check()
        scripts, left = self._ask_assets()
        pay(self.node.payments, caller.address, callee.address).write(callee.own)
        if light and shared.rules.payments_of_calls_checked:
            _check_balances_above(caller.own, callee.own, shared, 0)
        result, unused = self._evaluate(left)
        used = self.available - unused
        if not light:
            spent_so_far = self.available - max(unused, 0)
            _check_balances_above(caller.own, callee.own, shared, spent_so_far)
        if result is None:
            most = max_total_complexity(shared.version)
            raise failed(f"Invoke complexity limit = {most} is exceeded", used)
        fault = limits_fault(callee, result)
        if fault is not None:
            raise failed(fault, used)
        spent = left - unused
        check_answer(callee, result, spent, caller.address)
        # What is not reissuable cannot be reissued, whatever the time.
        late = shared.rules.invalid_reissue_until + 1
        block = msgspec.structs.replace(shared.context.block, timestamp=late)
        context = msgspec.structs.replace(shared.context, block=block, traces=None)
        spent += do_answer(callee, result, callee.address, spent, context)
        spent += sum(script.complexity for script in scripts)
        if not light:
            _check_balances_above(caller.own, callee.own, shared, spent)
        callee.left = callee.left.minus(count(result, shared.rules))
        return result.value, spent, result

    def _check(self) -> None:
        caller, node, rules = self.caller, self.node, self.caller.shared.rules
        if rules.has(Feature.RIDE_V6):
            check_arguments(node.arguments, rules)
        words = f"DApp {address_text(caller.address)} invoked DApp {address_text(node.dapp)}"
        if self.script.version < _FIRST_THAT_IS_CALLED:
            raise TransactionRejected(
                f"{words} that uses RIDE V{self.script.version}, but dApp-to-dApp invocation "
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
                self._refuse_negative(words, payment)
        try:
            check_payment_count(
                node.payments, self.script.version, rules.has(Feature.BLOCK_V5), "DApp"
            )
        except EvaluationError as error:
            raise TransactionRejected(error.message) from error

    def _refuse_negative(self, words: str, payment: Payment) -> None:
        shared = self.caller.shared
        asset = "WAVES"
        if payment.asset_id is not None:
            asset = f"token {base58.encode(payment.asset_id)}"
        words = f"{words} with attached {asset} amount = {payment.amount}"
        if shared.rules.has(Feature.RIDE_V6):
            raise TransactionRejected(words)
        if shared.rules.has(Feature.SYNCHRONOUS_CALLS) and shared.rules.dapp_actions_checked:
            raise AlwaysRejected(words)

    def _ask_assets(self) -> tuple[list[AssetScript], int]:
        """Ask the scripts of the assets in the payments: these, and the complexity left."""
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
            left -= self._ask_asset(asset_id, amount, script, left)
        return [script for _, _, script in found], left

    def _ask_asset(self, asset_id: AssetId, amount: int, script: AssetScript, left: int) -> int:
        shared = self.caller.shared
        answer = ask(
            parse_script(script.script),
            self._payment_subject(asset_id, amount),
            Asked(asset_id=asset_id),
            self.caller.own,
            shared.context,
            left,
        )
        complexity = complexity_of(answer, script.complexity, shared.context)
        if answer.value is True:
            return complexity
        total = max_total_complexity(shared.version) - left + complexity
        code = 3 if answer.value is None else 4
        raise asset_failure(code, asset_id, total, answer.value, answer.error)

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
        """The answer (``None``: the complexity did not suffice), and the complexity left over."""
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
            # The reference keeps the steps of what was evaluated to its end alone.
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
    """Check the balances that a call wrote, as if it had been made on the state ``before``.

    That need not be the state on which it was made: since the light-node feature what the caller
    itself did before does not count, neither does what it leased.
    """
    above = Overlay(before, shared.context.height)
    above.changes = own.changes
    if shared.rules.has(Feature.RIDE_V6):
        try:
            check_balances(above, before, shared.rules)
        except BalanceErrors as error:
            raise failed(words_of(error), complexity) from error
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
