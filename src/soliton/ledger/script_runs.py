"""Running verifiers and scripts of assets: what they are asked about, and what the answer costs.

What lives here: subjects, limits, and the rules of the language at a height. What does not: what an
answer means for a transaction (``ride_scripts``, ``actions``), calls of dApps (``invocation``).

Source: wavesplatform/Waves
``node/src/main/scala/com/wavesplatform/transaction/smart/script/ScriptRunner.scala``.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Final

import msgspec

from soliton.chain.addresses import Address
from soliton.chain.features import Feature
from soliton.chain.function_calls import DEFAULT_CALL, Argument
from soliton.chain.networks.model import Functionality
from soliton.chain.orders import Order
from soliton.chain.transactions.invoke_script import InvokeScript
from soliton.chain.transactions.model import AnyTransaction
from soliton.chain.values import AssetId
from soliton.crypto import base58
from soliton.ledger.context import Context
from soliton.ledger.script_environment import NOBODY, LedgerEnvironment
from soliton.ledger.state import State
from soliton.ride.bindings import (
    Call,
    Envelope,
    View,
    check_payment_count,
    envelope_of,
    invoke_object,
    order_object,
    transaction_object,
)
from soliton.ride.environment import Payment, Switches
from soliton.ride.errors import ComplexityExceeded, EvaluationError
from soliton.ride.evaluator import NO_LIMIT, Setting, evaluate
from soliton.ride.evaluator_library import Kind
from soliton.ride.script import Script
from soliton.ride.trace import Step, Trace
from soliton.ride.values import Value, ride_list

MAX_ACCOUNT_VERIFIER: Final = 2_000
MAX_ASSET_SCRIPT: Final = 4_000
MAX_ASSET_SCRIPT_BEFORE_V3: Final = 2_000
_OLD_OBJECTS_VERSION: Final = 3


class Subject(msgspec.Struct, frozen=True):
    """What a script is asked about. ``make`` gives the object that it sees, ``payments`` are those
    of a call, whose number not every script can be shown.
    """

    id: bytes
    make: Callable[[View], Value]
    payments: tuple[Payment, ...] = ()


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


def subject_of(subject: AnyTransaction | Order) -> Subject:
    """A transaction (of any type that has one form only) or an order as a subject."""
    if isinstance(subject, Order):
        order = subject
        return Subject(b"", lambda view: order_object(order, view))
    transaction = subject
    if isinstance(transaction.payload, InvokeScript):
        call = call_of(transaction.payload, transaction.fee_asset_id)
        return call_subject(envelope_of(transaction), call)
    return Subject(transaction.id, lambda view: transaction_object(transaction, view))


def call_subject(envelope: Envelope, call: Call) -> Subject:
    """A call of a dApp as a subject."""
    return Subject(envelope.id, lambda view: invoke_object(envelope, call, view), call.payments)


def call_of(payload: InvokeScript, fee_asset: AssetId | None) -> Call:
    """A call in a transaction as scripts know it."""
    call = DEFAULT_CALL if payload.call is None else payload.call
    return Call(
        payload.d_app,
        call.function,
        tuple(map(argument_value, call.args)),
        tuple(Payment(payment.asset_id, payment.amount) for payment in payload.payments),
        fee_asset,
    )


def argument_value(argument: Argument) -> Value:
    """An argument of a call as a script gets it."""
    if isinstance(argument, tuple):
        return ride_list(map(argument_value, argument))
    return argument


def ask(
    script: Script,
    subject: Subject,
    asked: Asked,
    state: State,
    context: Context,
    settings: Functionality,
    limit: int | None = None,
) -> Answer:
    """Ask a script about a subject.

    Without ``limit`` the limit is that of the version, and going beyond it is an error; beyond a
    given limit the answer counts as yes.
    """
    switches = switches_at(context, settings)
    environment = LedgerEnvironment(
        state, state, context, subject.id, address=asked.address, asset_id=asked.asset_id
    )
    is_asset = asked.asset_id is not None
    most = _limit(script, is_asset, context) if limit is None else limit
    kind = Kind.ASSET if is_asset else Kind.ACCOUNT
    own = script.version
    old = script.is_dapp and not switches.correct_object_version
    view = View(_OLD_OBJECTS_VERSION if old else own, not is_asset, switches, own)
    try:
        multiple = context.rules.has(Feature.BLOCK_V5)
        check_payment_count(subject.payments, own, multiple, _title(script, asked))
    except EvaluationError as error:
        return Answer(None, 0, error.message)
    trace = None if context.traces is None else Trace()
    setting = Setting(most, switches, kind, trace, context.watch)
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


def switches_at(context: Context, settings: Functionality) -> Switches:
    """The rules of the language at a height."""
    rules = context.rules
    return _switches(
        rules.features,
        rules.exchange_funds_checked,
        context.height > settings.enforce_transfer_validation_after,
    )


@lru_cache(64)
def _switches(features: frozenset[int], lexical: bool, transfers_validated: bool) -> Switches:
    calls = Feature.SYNCHRONOUS_CALLS in features
    ride_v6 = Feature.RIDE_V6 in features
    return Switches(
        new_complexity=ride_v6,
        lexical_scope=lexical,
        fixed_thrown_error=Feature.LIGHT_NODE in features,
        code_points=calls and transfers_validated,
        new_pow_precision=calls and transfers_validated,
        whole_script_field=Feature.CONSENSUS_IMPROVEMENTS in features,
        correct_object_version=calls,
        vrf=Feature.BLOCK_V5 in features,
        light_node=Feature.LIGHT_NODE in features,
    )
