"""Applying one transaction to a state: all checks in the reference order, then its changes.

The order determines which error a client sees if several rules are violated: common checks, funds
for the fee, proofs, the type's own rules, balances, asset scripts.

What lives here: the sequence, and the effect of a failed transaction. What does not: the rules of a
type (``ledger.rules``), of balances (``balances``), of fees (``fees``); blocks (``apply``).

Sources: wavesplatform/Waves
``node/src/main/scala/com/wavesplatform/state/diffs/TransactionDiffer.scala``,
``CommonValidation.scala`` and ``transaction/smart/Verifier.scala``.
"""

from __future__ import annotations

from typing import Final

import msgspec

from soliton.chain.addresses import Address, from_public_key
from soliton.chain.errors import UnsupportedTransaction
from soliton.chain.features import Feature
from soliton.chain.transactions import codec
from soliton.chain.transactions.model import AnyTransaction
from soliton.chain.transactions.table import type_by_id
from soliton.chain.values import wrapped
from soliton.crypto import base58, curve25519
from soliton.crypto.curve25519 import SignedMessage
from soliton.ledger import fees, script_runs
from soliton.ledger.actions import error_text
from soliton.ledger.balances import check_balances, check_portfolio
from soliton.ledger.context import Context, TypeRules
from soliton.ledger.errors import (
    AlreadyInState,
    BalanceErrors,
    InvalidSignature,
    Mistiming,
    TransactionRejected,
)
from soliton.ledger.plain_transfers import PlainTransfer, plain_transfer
from soliton.ledger.portfolio import Portfolio
from soliton.ledger.rules import common, rules_of
from soliton.ledger.rules_at import Rules
from soliton.ledger.scripts import (
    FAIL_FREE_COMPLEXITY,
    FailedTransaction,
    InvocationRejected,
    NotAllowedByScript,
    ScriptExecutionError,
    account_script,
    asset_script,
    failed_by_asset,
    fault_of,
    smart_assets,
)
from soliton.ledger.state import WAVES, AccountScript, Overlay, State, Status, locked_balance
from soliton.ledger.state_changes import ErrorMessage, Invoked, StateChanges
from soliton.ledger.traces import MATCHER_FEE, VerifierTrace, add_trace

_FAILED_BY_ASSETS: Final = (3, 4)


class Applied(msgspec.Struct, frozen=True):
    """The effect of a transaction: its changes on top of the state, whether it succeeded or failed
    at the cost of its fee, and the complexity of all scripts that were run.

    ``spent`` is the part of it that clients see: without verifiers and scripts of assets that the
    transaction itself moves, unless it failed. ``state_changes`` are those of a called dApp.
    """

    changes: Overlay
    status: Status = Status.SUCCEEDED
    complexity: int = 0
    spent: int = 0
    state_changes: StateChanges | None = None


def apply_transaction(
    transaction: AnyTransaction, state: State, context: Context, *, verify_signature: bool = True
) -> Applied:
    """Check a transaction against a state and return its changes as an overlay of that state.

    The caller has checked the rules that need no state with ``codec.validate``. Without
    ``verify_signature`` the caller verifies the signatures added to ``context.unverified``. Raises
    ``TransactionRejected`` or another subclass of ``LedgerError`` or ``ChainError``; the state is
    not changed.
    """
    fixed = context.block.rules.fixed_outcomes.get(transaction.id)
    if fixed is not None:
        overlay = Overlay(state, context.height)
        fixed(overlay)
        overlay.record_transaction(transaction.id)
        return Applied(overlay)
    plain = plain_transfer(transaction, state, context)
    if plain is not None:
        return _apply_plain(transaction, plain, state, context, verify_signature)
    try:
        return _apply(transaction, state, context, verify_signature)
    except FailedTransaction as failure:
        rules = context.rules
        cheap = failure.complexity <= FAIL_FREE_COMPLEXITY and rules.has(Feature.RIDE_V6)
        if cheap or not rules.has(Feature.BLOCK_V5):
            raise failure.rejection() from failure
        return _fail(transaction, state, context, failure)


def _apply_plain(
    transaction: AnyTransaction,
    plain: PlainTransfer,
    state: State,
    context: Context,
    verify: bool,
) -> Applied:
    """Apply a plain transfer of which only the signature remains to be checked."""
    block = context.block
    if plain.sender not in block.waived:
        _check_own_signature(transaction, context, verify)
    overlay = Overlay(state, block.height)
    overlay.changes[WAVES] = {plain.sender: plain.left, plain.recipient: plain.received}
    overlay.record_transaction(transaction.id)
    return Applied(overlay)


def _apply(transaction: AnyTransaction, state: State, context: Context, verify: bool) -> Applied:
    of_type = rules_of(transaction.type_id)
    _check_common(transaction, of_type, state, context)
    if of_type.checks_funds and context.rules.has(Feature.BLOCK_V5):
        _check_funds(transaction, of_type, state, context)
    complexity = _check_proofs(transaction, of_type, state, context, verify)
    overlay = Overlay(state, context.height)
    portfolio = Portfolio()
    try:
        done = of_type.apply(transaction, overlay, portfolio, context)
    except FailedTransaction as failure:
        failure.complexity += complexity
        raise
    changes = None
    if isinstance(done, Invoked):
        spent, changes = done.complexity, done.changes
    else:
        spent = done or 0
        take = fees.add_fee if of_type.sponsored else fees.add_unsponsored_fee
        take(transaction, portfolio, state, context.rules)
    complexity += spent
    portfolio.write(overlay)
    try:
        check_balances(overlay, state, context.rules)
    except BalanceErrors as error:
        if of_type.may_fail and _fails_by_balance(complexity, context.rules):
            raise FailedTransaction(1, error_text(error), complexity) from error
        raise
    complexity += _check_assets(transaction, of_type, state, context, complexity)
    overlay.record_transaction(transaction.id)
    return Applied(overlay, Status.SUCCEEDED, complexity, spent, changes)


def _fails_by_balance(complexity: int, rules: Rules) -> bool:
    features = rules.has(Feature.BLOCK_V5) and rules.has(Feature.SYNCHRONOUS_CALLS)
    return features and complexity > FAIL_FREE_COMPLEXITY


def _fail(
    transaction: AnyTransaction, state: State, context: Context, failure: FailedTransaction
) -> Applied:
    """Apply a failed transaction: only the fee is paid.

    The fee of a failed transaction, and the check of funds, follow the rules of sponsorship even
    before that is active.
    """
    overlay = Overlay(state, context.height)
    portfolio = Portfolio()
    fees.add_sponsored_fee(transaction, portfolio, state, context.rules)
    portfolio.write(overlay)
    overlay.record_transaction(transaction.id)
    spent, changes = failure.complexity, failure.changes
    if changes is None:
        changes = StateChanges((), (), ErrorMessage(failure.code, failure.reason))
    return Applied(overlay, Status.FAILED, spent, spent, changes)


def refuse_failure(applied: Applied) -> None:
    """Raise an error for a failed transaction, which is not accepted from clients."""
    if applied.status is Status.SUCCEEDED:
        return
    error = None if applied.state_changes is None else applied.state_changes.error
    if error is None:
        raise InvocationRejected("the transaction fails at the cost of its fee")
    if error.code in _FAILED_BY_ASSETS:
        raise ScriptExecutionError(error.text, b"", applied.complexity)
    raise InvocationRejected(error.text)


def _check_common(
    transaction: AnyTransaction, of_type: TypeRules, state: State, context: Context
) -> None:
    rules = context.rules
    if transaction.chain_id != rules.chain_id:
        raise TransactionRejected(
            "Address belongs to another network: expected: "
            f"{rules.chain_id}({chr(rules.chain_id)}), "
            f"actual: {transaction.chain_id}({chr(transaction.chain_id)})"
        )
    check_time(transaction, context)
    _check_version(transaction, rules)
    of_type.activation(transaction, context)
    codec.check_proofs(transaction.proofs)
    if of_type.unique(rules):
        height = state.transaction_height(transaction.id)
        if height is not None:
            raise AlreadyInState(base58.encode(transaction.id), height)
    if (
        of_type.sending is not None
        and context.timestamp >= rules.temporary_negative_until
        and rules.balances_enforced
    ):
        of_type.sending(transaction, state, context)
    fees.check_fee(transaction, state, rules)


def check_time(transaction: AnyTransaction, context: Context) -> None:
    """Raise ``Mistiming`` if the timestamp is too far from those of the block and its parent.

    The differences are those of 64-bit numbers: the reference node, and so a chain, accepts the
    smallest timestamps, which are before the parent's by more than such a number can say.
    """
    rules, timestamp = context.rules, transaction.timestamp
    ahead = wrapped(timestamp - context.timestamp)
    if timestamp >= rules.future_until and ahead > rules.max_time_forward_ms:
        raise Mistiming(
            f"Transaction timestamp {timestamp} is more than {rules.max_time_forward_ms}ms in the "
            f"future relative to block timestamp {context.timestamp}"
        )
    parent = context.block.parent
    if parent is not None and wrapped(parent.timestamp - timestamp) > rules.max_time_back_ms:
        raise Mistiming(
            f"Transaction timestamp {timestamp} is more than {rules.max_time_back_ms}ms in the "
            f"past relative to previous block timestamp {parent.timestamp}"
        )


def _check_version(transaction: AnyTransaction, rules: Rules) -> None:
    kind = type_by_id(transaction.type_id)
    if not kind.versioned:
        return
    known = 0 < transaction.version <= kind.max_version
    if not known and rules.has(Feature.LIGHT_NODE):
        raise UnsupportedTransaction(transaction.type_id, transaction.version)
    # Before the light node feature, mainnet accepted protobuf versions above the known ones.
    if codec.is_protobuf(kind, transaction.version):
        common.require_feature(Feature.BLOCK_V5, rules)
    elif not known:
        raise UnsupportedTransaction(transaction.type_id, transaction.version)


def _check_funds(
    transaction: AnyTransaction, of_type: TypeRules, state: State, context: Context
) -> None:
    """Check that the fee alone can be paid, and the type's further conditions."""
    if not _has_free_coins(transaction, state, context.rules):
        portfolio = Portfolio()
        fees.add_sponsored_fee(transaction, portfolio, state, context.rules)
        check_portfolio(portfolio, state, context.rules)
    if of_type.funds is not None:
        of_type.funds(transaction, state, context)


def _has_free_coins(transaction: AnyTransaction, state: State, rules: Rules) -> bool:
    """Whether the fee is in the chain's coin and covered by coins that are not leased out. This is
    the common case, and needs no further check.
    """
    if transaction.fee_asset_id is not None or not transaction.sender_public_key:
        return False
    sender = from_public_key(transaction.sender_public_key, rules.chain_id)
    left = state.get(WAVES, sender) - transaction.fee
    return left >= locked_balance(state, sender)


def _check_proofs(
    transaction: AnyTransaction, of_type: TypeRules, state: State, context: Context, verify: bool
) -> int:
    """Check the sender's proofs and all others; return the complexity of verifiers."""
    if not transaction.sender_public_key or not of_type.proven:
        return 0
    complexity = 0
    sender = from_public_key(transaction.sender_public_key, transaction.chain_id)
    if sender in context.block.waived:
        return 0
    script = account_script(sender, state)
    if script is None:
        _check_own_signature(transaction, context, verify)
    elif transaction.version in type_by_id(transaction.type_id).signature_versions:
        raise TransactionRejected("Can't process transaction with signature from scripted account")
    elif not context.draft:
        complexity = _run_verifier(sender, script, transaction, state, context)
    if of_type.proofs is not None:
        complexity += of_type.proofs(transaction, state, context, verify)
    return complexity


def _run_verifier(
    sender: Address,
    script: AccountScript,
    transaction: AnyTransaction,
    state: State,
    context: Context,
) -> int:
    try:
        complexity = script_runs.run_account(sender, script, transaction, state, context)
    except (NotAllowedByScript, ScriptExecutionError) as error:
        add_trace(context.traces, VerifierTrace(sender, fault_of(error)))
        raise
    add_trace(context.traces, VerifierTrace(sender))
    return complexity


def _check_own_signature(transaction: AnyTransaction, context: Context, verify: bool) -> None:
    check_signature(transaction, context.rules, verify=verify)
    if not verify:
        context.unverified.append(signed_message(transaction))


def _check_assets(
    transaction: AnyTransaction, of_type: TypeRules, state: State, context: Context, spent: int
) -> int:
    """Run the scripts of the assets that the transaction moves; return their complexity."""
    may_fail = of_type.may_fail and context.rules.has(Feature.BLOCK_V5)
    complexity = 0
    for asset_id in smart_assets(of_type.assets(transaction, state), state):
        try:
            left = context.left_after(spent + complexity)
            complexity += script_runs.run_asset(
                asset_id, transaction, state, left, of_type.purpose(transaction, asset_id)
            )
        except (NotAllowedByScript, ScriptExecutionError) as error:
            if not may_fail:
                raise
            estimated = asset_script(asset_id, state).complexity
            raise failed_by_asset(error, spent + complexity + estimated) from error
    for asset_id in smart_assets(of_type.fee_assets(transaction), state):
        try:
            script_runs.run_asset(asset_id, transaction, state, context, MATCHER_FEE)
        except (NotAllowedByScript, ScriptExecutionError) as error:
            if not may_fail:
                raise
            raise failed_by_asset(error, spent + complexity) from error
    return complexity


def check_signature(transaction: AnyTransaction, rules: Rules, *, verify: bool = True) -> None:
    """Raise ``TransactionRejected`` unless the only proof is a signature of the sender.

    Without ``verify`` only the number of proofs and weak keys are checked.
    """
    if len(transaction.proofs) != 1:
        raise TransactionRejected(
            "Transactions from non-scripted accounts must have exactly 1 proof"
        )
    weak = rules.has(Feature.RIDE_V6) and curve25519.is_weak(transaction.sender_public_key)
    if weak or (verify and not curve25519.verify(*signed_message(transaction))):
        raise invalid_signature(transaction)


def signed_message(transaction: AnyTransaction) -> SignedMessage:
    """Return key, message and signature of a transaction with one proof."""
    return transaction.sender_public_key, transaction.body, transaction.proofs[0]


def invalid_signature(transaction: AnyTransaction) -> InvalidSignature:
    """Return the error for an invalid signature, with the transaction in its message."""
    text = msgspec.json.encode(codec.to_json(transaction)).decode()
    return InvalidSignature(f"Proof doesn't validate as signature for {text}")
