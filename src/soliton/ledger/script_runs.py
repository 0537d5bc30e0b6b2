"""Running verifiers and scripts of assets: what they may take, and what their answers mean.

What lives here: limits, and turning an answer into a complexity or a refusal. What does not: what
scripts are asked about (``script_subjects``), calls of dApps (``invocation``).

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
from soliton.ledger.script_environment import NOBODY, LedgerEnvironment
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
from soliton.ride.script import Script
from soliton.ride.trace import Step, Trace
from soliton.ride.values import Value, type_name

MAX_ACCOUNT_VERIFIER: Final = 2_000
MAX_ASSET_SCRIPT: Final = 4_000
MAX_ASSET_SCRIPT_BEFORE_V3: Final = 2_000
_OLD_OBJECTS_VERSION: Final = 3


class Answer(msgspec.Struct, frozen=True):
    """What a script said: a value, or why it broke off, the complexity that this took, and its
    steps where they are wanted.
    """

    value: Value | None
    complexity: int
    error: str = ""
    steps: tuple[Step, ...] = ()


class Asked(msgspec.Struct, frozen=True):
    """Whose script is asked: that of an account, or that of an asset."""

    address: Address = NOBODY
    asset_id: AssetId | None = None


def run_account(
    address: Address,
    script: AccountScript,
    subject: AnyTransaction | Order,
    state: State,
    context: Context,
) -> int:
    """Ask the verifier of the account that sends a transaction or an order; the complexity.

    Raises ``NotAllowedByScript`` or ``ScriptExecutionError``.
    """
    parsed = parsed_script(script.script)
    if isinstance(parsed.content, DApp) and parsed.content.verifier is None:
        return check_signature(subject, context.rules)
    answer = ask(parsed, subject_of(subject), Asked(address), state, context)
    if answer.value is not True:
        raise _refusal(answer, None)
    return complexity_of(answer, script.verifier_complexity, context)


def run_asset(
    asset_id: AssetId,
    transaction: AnyTransaction,
    state: State,
    context: Context,
    purpose: str = UNKNOWN,
) -> int:
    """Ask the script of a smart asset about a transaction; the complexity.

    ``purpose`` is what traces tell of it. Raises as ``run_account`` does.
    """
    script = asset_script(asset_id, state)
    subject = _subject(transaction, state, context.rules)
    return ask_asset(asset_id, script, subject, state, context, purpose)


def ask_asset(
    asset_id: AssetId,
    script: AssetScript,
    subject: Subject,
    state: State,
    context: Context,
    purpose: str,
) -> int:
    """The same about any subject."""
    asked = Asked(asset_id=asset_id)
    answer = ask(parsed_script(script.script), subject, asked, state, context, context.limit)
    if answer.value is not True:
        refusal = _refusal(answer, asset_id)
        add_trace(context.traces, AssetTrace(asset_id, purpose, fault_of(refusal)))
        raise refusal
    add_trace(context.traces, AssetTrace(asset_id, purpose))
    return complexity_of(answer, script.complexity, context)


def complexity_of(answer: Answer, estimated: int, context: Context) -> int:
    """What counts of an answer: since feature 16 what it took, before that what was estimated."""
    return answer.complexity if context.rules.has(Feature.SYNCHRONOUS_CALLS) else estimated


def ask(
    script: Script,
    subject: Subject,
    asked: Asked,
    state: State,
    context: Context,
    limit: int | None = None,
) -> Answer:
    """Ask a script about a subject.

    Without ``limit`` the limit is that of the version, and going beyond it is an error; beyond a
    given limit the answer counts as yes.
    """
    environment = LedgerEnvironment(
        state, state, context, subject.id, address=asked.address, asset_id=asked.asset_id
    )
    return ask_in(environment, script, subject, asked, context, limit)


def ask_in(
    environment: Environment,
    script: Script,
    subject: Subject,
    asked: Asked,
    context: Context,
    limit: int | None = None,
) -> Answer:
    """The same of a script that sees what an environment shows it."""
    switches = context.rules.language
    is_asset = asked.asset_id is not None
    most = _limit(script, is_asset, context) if limit is None else limit
    kind = ScriptKind.ASSET if is_asset else ScriptKind.ACCOUNT
    own = script.version
    old = script.is_dapp and not switches.correct_object_version
    view = View(_OLD_OBJECTS_VERSION if old else own, not is_asset, switches, own)
    try:
        multiple = context.rules.has(Feature.BLOCK_V5)
        check_payment_count(subject.payments, own, multiple, _title(script, asked))
    except EvaluationError as error:
        return Answer(None, 0, error.message)
    trace = None if context.traces is None else Trace()
    setting = Setting(most, switches, kind, trace, context.watch, context.observer)
    value: Value | None = None
    words = ""
    try:
        outcome = evaluate(script, environment, lambda: subject.make(view), setting)
        value, spent = outcome.value, outcome.spent
    except ComplexityExceeded as problem:
        spent = problem.spent
        if limit is None:
            words = f"Verifier complexity limit = {most} is exceeded"
        else:
            value = True
    except EvaluationError as problem:
        spent, words = problem.spent, problem.message
    return Answer(value, spent, words, () if trace is None else tuple(trace.steps))


def _limit(script: Script, is_asset: bool, context: Context) -> int:
    if not context.rules.exchange_funds_checked:
        return NO_LIMIT
    if not is_asset:
        return MAX_ACCOUNT_VERIFIER
    return MAX_ASSET_SCRIPT if script.version >= 3 else MAX_ASSET_SCRIPT_BEFORE_V3


def _title(script: Script, asked: Asked) -> str:
    if asked.asset_id is not None:
        return f"Attached asset script id={base58.encode(asked.asset_id)}"
    return "DApp" if script.is_dapp else "Invoker script"


def check_signature(subject: AnyTransaction | Order, rules: Rules) -> int:
    """What a dApp without verifier stands for: the signature of the account."""
    proofs, key = subject.proofs, subject.sender_public_key
    if len(proofs) != 1:
        raise ScriptExecutionError(
            "Transactions from non-scripted accounts must have exactly 1 proof"
        )
    weak = rules.has(Feature.RIDE_V6) and curve25519.is_weak(key)
    if weak or not curve25519.verify(key, subject.body, proofs[0]):
        raise ScriptExecutionError("Proof doesn't validate as signature")
    return 0


def _refusal(answer: Answer, asset_id: AssetId | None) -> NotAllowedByScript | ScriptExecutionError:
    if answer.value is False:
        return NotAllowedByScript(asset_id, answer.complexity, answer.steps)
    words = answer.error
    if answer.value is not None:
        words = f"Script returned not a boolean result, but {type_name(answer.value)}"
    return ScriptExecutionError(words, asset_id, answer.complexity, answer.steps)


def _subject(transaction: AnyTransaction, state: State, rules: Rules) -> Subject:
    """A transaction as scripts of assets see it."""
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
