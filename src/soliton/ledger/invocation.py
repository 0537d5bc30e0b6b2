"""Calls of dApps by transactions, from the arguments to the actions, with the fee.

What lives here: the order of steps, and which errors fail or reject the transaction. What does not:
calls by a dApp (``calls``), the steps that all calls share (``call_frames``).

Source: wavesplatform/Waves
``node/src/main/scala/com/wavesplatform/state/diffs/invoke/InvokeScriptTransactionDiff.scala``.
"""

from __future__ import annotations

from typing import Final

from soliton.chain.addresses import Address, Recipient, from_public_key
from soliton.chain.features import Feature
from soliton.chain.transactions.ethereum import EthereumCall
from soliton.chain.transactions.invoke_script import InvokeScript
from soliton.chain.transactions.model import AnyTransaction
from soliton.crypto import base58
from soliton.ledger import script_runs, wallet_calls
from soliton.ledger.action_limits import allowance
from soliton.ledger.actions import AlwaysRejected, asset_fault, failed
from soliton.ledger.assets import is_nft
from soliton.ledger.call_frames import (
    CallContext,
    CallFrame,
    CallNode,
    RootCall,
    apply_result,
    check_arguments,
    check_fields,
    check_result,
    dapp_at,
    evaluate,
    limits_fault,
    max_total_complexity,
    pay,
    scripts_of_actions,
)
from soliton.ledger.calls import MAX_CALLS, MAX_PAYMENTS, Unfinished, caller_for
from soliton.ledger.context import Context
from soliton.ledger.errors import TransactionRejected
from soliton.ledger.portfolio import Portfolio
from soliton.ledger.rules_at import Rules
from soliton.ledger.script_results import Issue, Result
from soliton.ledger.script_subjects import call_subject
from soliton.ledger.scripts import (
    FAIL_FREE_COMPLEXITY,
    FailedTransaction,
    InvocationRejected,
    NotAllowedByScript,
    ScriptExecutionError,
    asset_script,
    failed_by_asset,
    has_paid_verifier,
    smart_assets,
)
from soliton.ledger.sponsorship import sponsor_of, take_fee, to_waves
from soliton.ledger.state import AssetScript, Overlay, State
from soliton.ledger.state_changes import ErrorMessage, Invoked, StateChanges
from soliton.ledger.traces import UNKNOWN, Fault
from soliton.ride.bindings import (
    Call,
    Invocation,
    call_of,
    check_payment_count,
    foreign_envelope_of,
)
from soliton.ride.environment import Payment
from soliton.ride.errors import ComplexityExceeded, EvaluationError, FailOrReject
from soliton.ride.evaluator import NO_LIMIT
from soliton.ride.script import Script

_FIRST_PAID_BEFORE: Final = 5
_INVOKE_SCRIPT: Final = 16
_ISSUE: Final = 3


def max_step_complexity(version: int) -> int:
    """Return the complexity that one fee pays for."""
    return 2_000 if version < 3 else 4_000


def invoke(
    dapp: Address, transaction: AnyTransaction, overlay: Overlay, context: Context
) -> Invoked:
    """Call a dApp for a transaction and write all effects, including the fee.

    Raises ``FailedTransaction`` or ``TransactionRejected``; then ``overlay`` is unchanged.
    """
    call = call_of(transaction.payload, transaction.fee_asset_id)
    own = Overlay(overlay, context.height)
    invoked = _run(dapp, _root(transaction, call), overlay, own, context)
    overlay.merge(own)
    return invoked


def invoke_by_wallet(
    transaction: AnyTransaction, action: EthereumCall, overlay: Overlay, context: Context
) -> Invoked:
    """The same for a call signed by an Ethereum wallet.

    The scripts of the assets in its payments are run afterwards, on the state before the call.
    """
    rules = context.rules
    payload = wallet_calls.read_call(action, overlay, rules)
    call = call_of(payload, None)
    paid = [payment.asset_id for payment in payload.payments if payment.asset_id is not None]
    for asset_id in paid:
        fault = asset_fault(asset_id, overlay, rules)
        if fault is not None:
            raise TransactionRejected(fault)
    own = Overlay(overlay, context.height)
    invoked = _run(action.d_app, _root(transaction, call), overlay, own, context)
    complexity = invoked.complexity
    subject = call_subject(foreign_envelope_of(transaction), call)
    for asset_id in smart_assets(tuple(paid), overlay):
        script, left = asset_script(asset_id, overlay), context.left_after(complexity)
        try:
            complexity += script_runs.run_asset_script(
                asset_id, script, subject, overlay, left, UNKNOWN
            )
        except (NotAllowedByScript, ScriptExecutionError) as error:
            raise failed_by_asset(error, complexity + script.complexity) from error
    overlay.merge(own)
    return Invoked(complexity, invoked.changes)


def _root(transaction: AnyTransaction, call: Call) -> RootCall:
    old = not isinstance(transaction.payload, InvokeScript) or transaction.version == 1
    return RootCall(
        transaction.id,
        transaction.timestamp,
        from_public_key(transaction.sender_public_key, transaction.chain_id),
        transaction.sender_public_key,
        transaction.fee,
        transaction.fee_asset_id,
        call,
        old,
    )


def _run(dapp: Address, root: RootCall, base: Overlay, own: Overlay, context: Context) -> Invoked:
    account, script = dapp_at(dapp, base)
    node = CallNode(dapp, root.call.function, root.call.arguments, root.call.payments)
    frame = CallFrame(
        CallContext(root, script.version, context),
        dapp,
        account.public_key,
        script.version,
        base,
        own,
        frozenset((root.sender,)),
        MAX_CALLS,
        allowance(script.version),
        MAX_PAYMENTS - len(root.call.payments),
        node,
    )
    try:
        return _invoke(frame, script, root.call.dapp)
    except FailedTransaction as failure:
        failure.changes = StateChanges((), node.calls(), ErrorMessage(failure.code, failure.reason))
        raise


def _invoke(frame: CallFrame, script: Script, recipient: Recipient) -> Invoked:
    shared, own, version = frame.shared, frame.own, frame.version
    root, context = shared.root, shared.context
    check_arguments(root.call.arguments, shared.rules)
    try:
        multiple = shared.rules.block_v5_approved
        check_payment_count(root.call.payments, version, multiple, "DApp")
    except EvaluationError as error:
        raise TransactionRejected(error.message) from error
    paid_before = version >= _FIRST_PAID_BEFORE
    if paid_before:
        pay(root.call.payments, root.sender, frame.address).write(own)
    limit, free = _limits(version, context)
    scripted = _asset_scripts(root.call.payments, frame.base)
    for_payments = sum(each.complexity for each in scripted)
    limit -= for_payments
    try:
        result, spent = _evaluate_root(frame, script, limit, free, for_payments)
    except TransactionRejected as error:
        frame.node.fault = Fault(_error_text(error))
        raise
    finally:
        if context.traces is not None:
            context.traces.append(frame.node.trace(recipient))
    fault = limits_fault(frame, result)
    if fault is not None:
        raise failed(fault, spent)
    check_result(frame, result, spent, root.sender)
    portfolio = Portfolio() if paid_before else pay(root.call.payments, root.sender, frame.address)
    check_fee(frame, result, spent, len(scripted))
    # The fee is paid before the actions are applied, but after those of the dApps called: one of
    # them may have changed the sponsorship of its asset.
    take_fee(root.sender, root.fee_asset, root.fee, portfolio, own, shared.rules)
    complexity = spent + apply_result(frame, result, recipient, spent, context, portfolio)
    return Invoked(complexity, StateChanges(result.actions, tuple(frame.done)))


def _error_text(error: TransactionRejected) -> str:
    """Return why the called dApp aborted, as shown in traces."""
    if isinstance(error, FailedTransaction):
        return error.detail or error.reason
    message = error.reason if isinstance(error, InvocationRejected) else str(error)
    return f"InvokeRejectError(error = {message})"


def _limits(version: int, context: Context) -> tuple[int, int]:
    """Return the complexity limit of a transaction, and the complexity up to which errors reject it
    instead of failing it.
    """
    rules = context.rules
    second_estimator = rules.has(Feature.BLOCK_REWARD) and not rules.has(Feature.BLOCK_V5)
    limit = NO_LIMIT if second_estimator else max_total_complexity(version)
    if context.limit is not None and not second_estimator:
        limit = context.limit
    return limit, FAIL_FREE_COMPLEXITY if rules.has(Feature.BLOCK_V5) else limit


def _evaluate_root(
    frame: CallFrame, script: Script, limit: int, free: int, for_payments: int
) -> tuple[Result, int]:
    root = frame.shared.root
    invocation = Invocation(
        root.sender,
        root.sender_public_key,
        root.sender,
        root.sender_public_key,
        root.call.payments,
        root.id,
        root.fee,
        root.fee_asset,
    )

    def failure(message: str, spent: int) -> TransactionRejected:
        if spent > free:
            return failed(message, spent + for_payments)
        return InvocationRejected(message)

    try:
        result, spent = evaluate(frame, script, root.call, invocation, limit, caller_for(frame))
    except Unfinished:
        return Result(()), 0
    except ComplexityExceeded as error:
        if frame.shared.context.limit is not None:
            return Result(()), 0
        raise TransactionRejected(
            f"Evaluation was uncompleted with unused complexity = {limit - error.spent}"
        ) from error
    except FailOrReject as error:
        raise InvocationRejected(error.message) from error
    except EvaluationError as error:
        raise failure(error.message, min(error.spent, limit)) from error
    try:
        check_fields(frame, result)
    except AlwaysRejected as error:
        raise InvocationRejected(str(error)) from error
    except TransactionRejected as error:
        raise failure(f"GenericError({error})", spent) from error
    frame.node.result = result
    return result, spent


def _asset_scripts(payments: tuple[Payment, ...], state: State) -> list[AssetScript]:
    ids = tuple(payment.asset_id for payment in payments if payment.asset_id is not None)
    return [asset_script(asset_id, state) for asset_id in smart_assets(ids, state)]


# --- fees -----------------------------------------------------------------------------------------


def check_fee(frame: CallFrame, result: Result, spent: int, scripted_payments: int) -> None:
    """Raise ``FailedTransaction`` if the fee is too small for the result."""
    shared = frame.shared
    root, rules = shared.root, shared.rules
    step = max_step_complexity(frame.version)
    charged = min(spent, step)
    steps = -(-charged // step)
    scripts = int(has_paid_verifier(root.sender, frame.own, rules))
    if not rules.has(Feature.SYNCHRONOUS_CALLS):
        scripts += len(scripts_of_actions(frame, result)) + scripted_payments
    issues = [action for action in result.actions if isinstance(action, Issue)]
    issues += [issue for call in frame.done for issue in _issues(call.changes)]
    large = sum(
        not is_nft(issue.quantity, issue.decimals, issue.reissuable, rules) for issue in issues
    )
    minimum = (
        rules.fees.base[_INVOKE_SCRIPT] * steps
        + rules.fees.base[_ISSUE] * large
        + rules.fees.script_extra * scripts
    )
    paid = root.fee
    if root.fee_asset is not None:
        sponsorship = sponsor_of(root.fee_asset, frame.own)[1]
        paid = to_waves(root.fee, sponsorship, rules.fees.unit)
    if paid < minimum:
        raise failed(_fee_text(root, rules, minimum, scripts, len(issues)), charged, code=2)


def _issues(changes: StateChanges) -> list[Issue]:
    issues = [action for action in changes.actions if isinstance(action, Issue)]
    for call in changes.invokes:
        issues += _issues(call.changes)
    return issues


def _fee_text(root: RootCall, rules: Rules, minimum: int, scripts: int, issues: int) -> str:
    asset = rules.coin if root.fee_asset is None else base58.encode(root.fee_asset)
    with_scripts = f" with {scripts} total scripts invoked" if scripts else ""
    with_issues = f" with {issues} assets issued" if issues else ""
    return (
        f"Fee in {asset} for InvokeScriptTransaction ({root.fee} in {asset}){with_scripts}"
        f"{with_issues} does not exceed minimal value of {minimum} {rules.coin}."
    )
