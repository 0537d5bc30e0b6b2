"""Running verifiers and asset scripts: their limits, and the meaning of their outcomes.

What lives here: limits, and converting an outcome to a complexity or a rejection. What does not:
the objects that scripts see (``script_subjects``), calls of dApps (``invocation``).

Sources: wavesplatform/Waves ``node/src/main/scala/com/wavesplatform/transaction/smart/``
``script/ScriptRunner.scala`` and ``Verifier.scala``.
"""

from __future__ import annotations

from typing import Final

import msgspec

from soliton.chain.addresses import Address
from soliton.chain.features import Feature
from soliton.chain.orders import Order
from soliton.chain.transactions.ethereum import Ethereum, EthereumTransfer
from soliton.chain.transactions.model import AnyTransaction
from soliton.chain.values import AssetId
from soliton.crypto import base58, curve25519
from soliton.ledger import wallet_calls
from soliton.ledger.context import Context
from soliton.ledger.rules_at import Rules
from soliton.ledger.script_environment import NO_ADDRESS, LedgerEnvironment
from soliton.ledger.script_setting import parsed_script
from soliton.ledger.script_subjects import Subject, call_subject, subject_of
from soliton.ledger.scripts import NotAllowedByScript, ScriptExecutionError, asset_script, fault_of
from soliton.ledger.state import ERC20, AccountScript, AssetScript, State
from soliton.ledger.traces import UNKNOWN, AssetTrace, add_trace
from soliton.ride.bindings import (
    View,
    call_of,
    check_payment_count,
    foreign_envelope_of,
    transfer_object,
)
from soliton.ride.compiler.library import ScriptKind
from soliton.ride.environment import Environment
from soliton.ride.errors import ComplexityExceeded, EvaluationError
from soliton.ride.evaluator import NO_LIMIT, Setting, evaluate
from soliton.ride.expressions import DApp
from soliton.ride.functions.printing import plain_text
from soliton.ride.script import Script
from soliton.ride.trace import Step, Trace
from soliton.ride.values import Value

MAX_ACCOUNT_VERIFIER: Final = 2_000
MAX_ASSET_SCRIPT: Final = 4_000
MAX_ASSET_SCRIPT_BEFORE_V3: Final = 2_000
_OLD_OBJECTS_VERSION: Final = 3


class ScriptOutcome(msgspec.Struct, frozen=True):
    """The outcome of a script: a value or an error, the complexity spent, and its steps if
    requested.
    """

    value: Value | None
    complexity: int
    error: str = ""
    steps: tuple[Step, ...] = ()


class ScriptOwner(msgspec.Struct, frozen=True):
    """The owner of a script: an account or an asset."""

    address: Address = NO_ADDRESS
    asset_id: AssetId | None = None


def run_account(
    address: Address,
    script: AccountScript,
    subject: AnyTransaction | Order,
    state: State,
    context: Context,
) -> int:
    """Run the verifier of the sender of a transaction or an order; return the complexity.

    Raises ``NotAllowedByScript`` or ``ScriptExecutionError``.
    """
    parsed = parsed_script(script.script)
    if isinstance(parsed.content, DApp) and parsed.content.verifier is None:
        return check_signature(subject, context.rules)
    outcome = run_script(parsed, subject_of(subject), ScriptOwner(address), state, context)
    if outcome.value is not True:
        raise _refusal(outcome, None)
    return complexity_of(outcome, script.verifier_complexity, context)


def run_asset(
    asset_id: AssetId,
    transaction: AnyTransaction,
    state: State,
    context: Context,
    purpose: str = UNKNOWN,
) -> int:
    """Run the script of a smart asset for a transaction; return the complexity.

    ``purpose`` is for traces. Raises the same errors as ``run_account``.
    """
    script = asset_script(asset_id, state)
    subject = _subject(transaction, state, context.rules)
    return run_asset_script(asset_id, script, subject, state, context, purpose)


def run_asset_script(
    asset_id: AssetId,
    script: AssetScript,
    subject: Subject,
    state: State,
    context: Context,
    purpose: str,
) -> int:
    """The same for any subject."""
    owner = ScriptOwner(asset_id=asset_id)
    outcome = run_script(
        parsed_script(script.script), subject, owner, state, context, context.limit
    )
    if outcome.value is not True:
        refusal = _refusal(outcome, asset_id)
        add_trace(context.traces, AssetTrace(asset_id, purpose, fault_of(refusal)))
        raise refusal
    add_trace(context.traces, AssetTrace(asset_id, purpose))
    return complexity_of(outcome, script.complexity, context)


def complexity_of(outcome: ScriptOutcome, estimated: int, context: Context) -> int:
    """Return the complexity that counts: the spent one since feature 16, before the estimated."""
    return outcome.complexity if context.rules.has(Feature.SYNCHRONOUS_CALLS) else estimated


def run_script(
    script: Script,
    subject: Subject,
    owner: ScriptOwner,
    state: State,
    context: Context,
    limit: int | None = None,
) -> ScriptOutcome:
    """Run a script for a subject.

    Without ``limit`` the limit is that of the script's version, and exceeding it is an error. If a
    given ``limit`` is exceeded the outcome counts as true.
    """
    environment = LedgerEnvironment(
        state, state, context, subject.id, address=owner.address, asset_id=owner.asset_id
    )
    return run_script_in(environment, script, subject, owner, context, limit)


def run_script_in(
    environment: Environment,
    script: Script,
    subject: Subject,
    owner: ScriptOwner,
    context: Context,
    limit: int | None = None,
) -> ScriptOutcome:
    """The same in a given environment."""
    switches = context.rules.language
    is_asset = owner.asset_id is not None
    effective_limit = _limit(script, is_asset, context) if limit is None else limit
    kind = ScriptKind.ASSET if is_asset else ScriptKind.ACCOUNT
    own = script.version
    old = script.is_dapp and not switches.correct_object_version
    view = View(_OLD_OBJECTS_VERSION if old else own, not is_asset, switches, own)
    try:
        multiple = context.rules.block_v5_approved
        check_payment_count(subject.payments, own, multiple, _title(owner))
    except EvaluationError as error:
        return ScriptOutcome(None, 0, error.message)
    trace = None if context.traces is None else Trace()
    setting = Setting(effective_limit, switches, kind, trace, context.watch, context.observer)
    value: Value | None = None
    message = ""
    try:
        evaluated = evaluate(script, environment, lambda: subject.make(view), setting)
        value, spent = evaluated.value, evaluated.spent
    except ComplexityExceeded as problem:
        spent = problem.spent
        if limit is None:
            message = f"Verifier complexity limit = {effective_limit} is exceeded"
        else:
            value = True
    except EvaluationError as problem:
        spent, message = problem.spent, problem.message
    return ScriptOutcome(value, spent, message, () if trace is None else tuple(trace.steps))


def _limit(script: Script, is_asset: bool, context: Context) -> int:
    if not context.rules.exchange_funds_checked:
        return NO_LIMIT
    if not is_asset:
        return MAX_ACCOUNT_VERIFIER
    return MAX_ASSET_SCRIPT if script.version >= 3 else MAX_ASSET_SCRIPT_BEFORE_V3


def _title(owner: ScriptOwner) -> str:
    if owner.asset_id is not None:
        return f"Attached asset script id={base58.encode(owner.asset_id)}"
    return "Invoker script"


def check_signature(subject: AnyTransaction | Order, rules: Rules) -> int:
    """Check the signature of an account whose dApp has no verifier."""
    proofs, key = subject.proofs, subject.sender_public_key
    if len(proofs) != 1:
        raise ScriptExecutionError(
            "Transactions from non-scripted accounts must have exactly 1 proof"
        )
    weak = rules.has(Feature.RIDE_V6) and curve25519.is_weak(key)
    if weak or not curve25519.verify(key, subject.body, proofs[0]):
        raise ScriptExecutionError("Proof doesn't validate as signature")
    return 0


def _refusal(
    outcome: ScriptOutcome, asset_id: AssetId | None
) -> NotAllowedByScript | ScriptExecutionError:
    if outcome.value is False:
        return NotAllowedByScript(asset_id, outcome.complexity, outcome.steps)
    message = outcome.error
    if outcome.value is not None:
        message = f"Script returned not a boolean result, but {plain_text(outcome.value)}"
    return ScriptExecutionError(message, asset_id, outcome.complexity, outcome.steps)


def _subject(transaction: AnyTransaction, state: State, rules: Rules) -> Subject:
    """Return a transaction as asset scripts see it."""
    payload = transaction.payload
    if not isinstance(payload, Ethereum):
        return subject_of(transaction)
    action = payload.action
    envelope = foreign_envelope_of(transaction)
    if isinstance(action, EthereumTransfer):
        asset_id = None if action.token is None else state.get(ERC20, action.token)
        return Subject(
            transaction.id,
            lambda view: transfer_object(envelope, action.recipient, asset_id, action.amount, view),
        )
    payload = wallet_calls.read_call(action, state, rules)
    return call_subject(envelope, call_of(payload, None))
