"""Calls of dApps by transactions: from the arguments to the actions, and the fee for it.

What lives here: the order of things, what fails and what is refused. What does not: calls that a
dApp makes (``calls``), the steps that all calls have in common (``call_frames``).

Source: wavesplatform/Waves
``node/src/main/scala/com/wavesplatform/state/diffs/invoke/InvokeScriptTransactionDiff.scala``.
"""

from __future__ import annotations

from typing import Final

import msgspec

from soliton.chain.addresses import (
    Address,
    Recipient,
    from_public_key,
)
from soliton.chain.features import Feature
from soliton.chain.networks.model import Functionality
from soliton.crypto import base58
from soliton.ledger import fees
from soliton.ledger.action_limits import (
    allowance,
)
from soliton.ledger.actions import (
    AlwaysRejected,
    failed,
)
from soliton.ledger.call_frames import (
    Note,
    Root,
    Run,
    Shared,
    check_answer,
    check_arguments,
    check_fields,
    dapp_at,
    do_answer,
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
from soliton.ledger.scripts import (
    FAIL_FREE_COMPLEXITY,
    FailedTransaction,
    InvocationRejected,
    has_paid_verifier,
    smart_assets,
)
from soliton.ledger.state import (
    ASSET_SCRIPTS,
    AssetScript,
    Overlay,
    State,
)
from soliton.ledger.state_changes import ErrorMessage, StateChanges
from soliton.ledger.traces import Fault
from soliton.ride.bindings import (
    Invocation,
    check_payment_count,
)
from soliton.ride.environment import Payment
from soliton.ride.errors import (
    ComplexityExceeded,
    EvaluationError,
    FailOrReject,
)
from soliton.ride.evaluator import NO_LIMIT
from soliton.ride.script import Script

_FIRST_PAID_BEFORE: Final = 5
_INVOKE_SCRIPT: Final = 16
_ISSUE: Final = 3


class Invoked(msgspec.Struct, frozen=True):
    """What became of a call: the complexity of all that ran for it, and what it did."""

    complexity: int
    changes: StateChanges


def max_step_complexity(version: int) -> int:
    """The complexity that a fee pays for."""
    return 2_000 if version < 3 else 4_000


def invoke(
    dapp: Address,
    recipient: Recipient,
    root: Root,
    overlay: Overlay,
    context: Context,
    settings: Functionality,
) -> Invoked:
    """Call a dApp for a transaction and write all that follows from it, its fee included.

    ``recipient`` is how the transaction names it. Raises ``FailedTransaction`` or
    ``TransactionRejected``; then ``overlay`` is as before.
    """
    account, script = dapp_at(dapp, overlay)
    shared = Shared(root, script.version, context, settings)
    note = Note(dapp, root.call.function, root.call.arguments, root.call.payments)
    own = Overlay(overlay, context.height)
    run = Run(
        shared,
        dapp,
        account.public_key,
        script.version,
        overlay,
        own,
        frozenset((root.sender,)),
        MAX_CALLS,
        allowance(script.version),
        MAX_PAYMENTS - len(root.call.payments),
        note,
    )
    try:
        invoked = _invoke(run, script, recipient)
    except FailedTransaction as failure:
        failure.changes = StateChanges((), note.calls(), ErrorMessage(failure.code, failure.reason))
        raise
    overlay.merge(own)
    return invoked


def _invoke(run: Run, script: Script, recipient: Recipient) -> Invoked:
    shared, own, version = run.shared, run.own, run.version
    root, context = shared.root, shared.context
    check_arguments(root.call.arguments, shared.rules)
    try:
        multiple = shared.rules.has(Feature.BLOCK_V5)
        check_payment_count(root.call.payments, version, multiple, "DApp")
    except EvaluationError as error:
        raise TransactionRejected(error.message) from error
    paid_before = version >= _FIRST_PAID_BEFORE
    if paid_before:
        pay(root.call.payments, root.sender, run.address).write(own)
    limit, free = _limits(version, context)
    scripted = _asset_scripts(root.call.payments, run.base)
    for_payments = sum(each.complexity for each in scripted)
    limit -= for_payments
    try:
        result, spent = _evaluate_root(run, script, limit, free, for_payments)
    except TransactionRejected as error:
        run.note.fault = Fault(_words(error))
        raise
    finally:
        if context.traces is not None:
            context.traces.append(run.note.trace(recipient))
    fault = limits_fault(run, result)
    if fault is not None:
        raise failed(fault, spent)
    check_answer(run, result, spent, root.sender)
    portfolio = Portfolio() if paid_before else pay(root.call.payments, root.sender, run.address)
    _check_fee(run, result, spent, len(scripted))
    add_fee(root, portfolio, run.base, shared.rules)
    portfolio.write(own)
    complexity = spent + do_answer(run, result, recipient, spent, context)
    return Invoked(complexity, StateChanges(result.actions, tuple(run.done)))


def _words(error: TransactionRejected) -> str:
    """Why a dApp that a transaction called broke off, as traces tell it."""
    if isinstance(error, FailedTransaction):
        return error.detail or error.reason
    words = error.reason if isinstance(error, InvocationRejected) else str(error)
    return f"InvokeRejectError(error = {words})"


def _limits(version: int, context: Context) -> tuple[int, int]:
    """The limit of a transaction's complexity, and up to where errors cost nothing."""
    rules = context.rules
    second_estimator = rules.has(Feature.BLOCK_REWARD) and not rules.has(Feature.BLOCK_V5)
    limit = NO_LIMIT if second_estimator else max_total_complexity(version)
    if context.limit is not None and not second_estimator:
        limit = context.limit
    return limit, FAIL_FREE_COMPLEXITY if rules.has(Feature.BLOCK_V5) else limit


def _evaluate_root(
    run: Run, script: Script, limit: int, free: int, for_payments: int
) -> tuple[Result, int]:
    root = run.shared.root
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

    def failure(words: str, spent: int) -> TransactionRejected:
        if spent > free:
            return failed(words, spent + for_payments)
        return InvocationRejected(words)

    try:
        result, spent = evaluate(run, script, root.call, invocation, limit, caller_for(run))
    except Unfinished:
        return Result(()), 0
    except ComplexityExceeded as error:
        if run.shared.context.limit is not None:
            return Result(()), 0
        raise TransactionRejected(
            f"Evaluation was uncompleted with unused complexity = {limit - error.spent}"
        ) from error
    except FailOrReject as error:
        raise InvocationRejected(error.message) from error
    except EvaluationError as error:
        raise failure(error.message, min(error.spent, limit)) from error
    try:
        check_fields(run, result)
    except AlwaysRejected as error:
        raise InvocationRejected(str(error)) from error
    except TransactionRejected as error:
        raise failure(f"GenericError({error})", spent) from error
    run.note.result = result
    return result, spent


def _asset_scripts(payments: tuple[Payment, ...], state: State) -> list[AssetScript]:
    ids = tuple(payment.asset_id for payment in payments if payment.asset_id is not None)
    scripts = (state.get(ASSET_SCRIPTS, asset_id) for asset_id in smart_assets(ids, state))
    return [script for script in scripts if script is not None]


# --- fees -----------------------------------------------------------------------------------------


def _check_fee(run: Run, result: Result, spent: int, scripted_payments: int) -> None:
    """Raise ``FailedTransaction`` when the fee does not suffice for what was answered."""
    shared = run.shared
    root, rules = shared.root, shared.rules
    step = max_step_complexity(run.version)
    charged = min(spent, step)
    steps = -(-charged // step)
    scripts = int(has_paid_verifier(root.sender, run.own, rules))
    if not rules.has(Feature.SYNCHRONOUS_CALLS):
        scripts += len(scripts_of_actions(run, result)) + scripted_payments
    issues = [action for action in result.actions if isinstance(action, Issue)]
    issues += [issue for call in run.done for issue in _issues(call.changes)]
    large = sum(not _is_nft(issue, rules) for issue in issues)
    least = (
        rules.fees.base[_INVOKE_SCRIPT] * steps
        + rules.fees.base[_ISSUE] * large
        + rules.fees.script_extra * scripts
    )
    paid = root.fee
    if root.fee_asset is not None:
        sponsorship = fees.sponsor_of(root.fee_asset, run.own)[1]
        paid = fees.to_waves(root.fee, sponsorship, rules.fees.unit)
    if paid < least:
        raise failed(_fee_words(root, rules, least, scripts, len(issues)), charged, code=2)


def _is_nft(issue: Issue, rules: Rules) -> bool:
    single = issue.quantity == 1 and issue.decimals == 0 and not issue.reissuable
    return single and rules.has(Feature.REDUCED_NFT_FEE)


def _issues(changes: StateChanges) -> list[Issue]:
    found = [action for action in changes.actions if isinstance(action, Issue)]
    for call in changes.invokes:
        found += _issues(call.changes)
    return found


def _fee_words(root: Root, rules: Rules, least: int, scripts: int, issues: int) -> str:
    asset = rules.coin if root.fee_asset is None else base58.encode(root.fee_asset)
    with_scripts = f" with {scripts} total scripts invoked" if scripts else ""
    with_issues = f" with {issues} assets issued" if issues else ""
    return (
        f"Fee in {asset} for InvokeScriptTransaction ({root.fee} in {asset}){with_scripts}"
        f"{with_issues} does not exceed minimal value of {least} {rules.coin}."
    )


def add_fee(root: Root, portfolio: Portfolio, state: State, rules: Rules, sign: int = 1) -> None:
    """Take the fee from the sender and its sponsor, or give it back (``sign`` -1)."""
    portfolio.add(root.sender, root.fee_asset, -sign * root.fee)
    if root.fee_asset is not None:
        info, sponsorship = fees.sponsor_of(root.fee_asset, state)
        issuer = from_public_key(info.issuer, rules.chain_id)
        waves = fees.to_waves(root.fee, sponsorship, rules.fees.unit)
        portfolio.add(issuer, root.fee_asset, sign * root.fee)
        portfolio.add(issuer, None, -sign * waves)
