"""The frame of a running dApp function, and the steps that every call takes.

What lives here: the transaction at the root (``RootCall``), limits and effects of one call
(``CallFrame``), evaluating a function and checking its result. What does not: the order of these
steps (``invocation`` for a transaction, ``calls`` for a dApp that calls another one).

Sources: wavesplatform/Waves
``node/src/main/scala/com/wavesplatform/state/diffs/invoke/InvokeDiffsCommon.scala`` and
``transaction/smart/WavesEnvironment.scala`` (``DAppEnvironment``).
"""

from __future__ import annotations

import msgspec

from soliton.chain.addresses import Address, Recipient, address_text
from soliton.chain.features import Feature
from soliton.chain.values import AssetId
from soliton.ledger.action_limits import (
    CallResult,
    Counts,
    bytes_fault,
    count,
    field_fault,
    result_fault,
    total_fault,
)
from soliton.ledger.actions import Actor, AlwaysRejected, apply_actions, failed, resolve
from soliton.ledger.context import Context
from soliton.ledger.errors import TransactionRejected
from soliton.ledger.portfolio import Portfolio
from soliton.ledger.rules_at import Rules
from soliton.ledger.script_environment import Invoke, LedgerEnvironment
from soliton.ledger.script_results import Issue, Reader, Result, Transfer, read_result
from soliton.ledger.scripts import FailedTransaction, account_script
from soliton.ledger.state import ASSET_SCRIPTS, AccountScript, AssetScript, Overlay, State
from soliton.ledger.state_changes import ErrorMessage, InvokedCall, StateChanges
from soliton.ledger.traces import CallTrace, Fault
from soliton.ride.bindings import Call, Invocation, invocation_object
from soliton.ride.environment import Payment
from soliton.ride.errors import EvaluationError, NativeCrash
from soliton.ride.evaluator import Invocation as Function
from soliton.ride.evaluator import Setting
from soliton.ride.evaluator import invoke as run_function
from soliton.ride.script import Script, parse_script
from soliton.ride.trace import Step, Trace
from soliton.ride.values import RideList, Value


class RootCall(msgspec.Struct, frozen=True):
    """A transaction that calls a dApp. ``empty_keys`` is whether its version allows them."""

    id: bytes
    timestamp: int
    sender: Address
    sender_public_key: bytes
    fee: int
    fee_asset: AssetId | None
    call: Call
    empty_keys: bool


class CallNode:
    """A node of the call tree, kept for traces and for the effects of a failed call."""

    __slots__ = (
        "arguments",
        "children",
        "dapp",
        "error",
        "fault",
        "function",
        "payments",
        "result",
        "steps",
    )

    def __init__(
        self,
        dapp: Address,
        function: str,
        arguments: tuple[Value, ...],
        payments: tuple[Payment, ...],
    ) -> None:
        self.dapp = dapp
        self.function = function
        self.arguments = arguments
        self.payments = payments
        self.children: list[CallNode] = []
        self.error: ErrorMessage | None = None
        self.steps: tuple[Step, ...] = ()
        self.result: Result | None = None
        self.fault: Fault | None = None

    def trace(self, recipient: Recipient | None = None) -> CallTrace:
        """Return the trace of the call; ``recipient`` is the dApp as given in the transaction."""
        return CallTrace(
            self.dapp if recipient is None else recipient,
            self.function,
            self.arguments,
            self.steps,
            tuple(node.trace() for node in self.children),
            self.result,
            self.fault,
        )

    def calls(self) -> tuple[InvokedCall, ...]:
        """Return the nested calls of a failed call."""
        return tuple(
            InvokedCall(
                node.dapp,
                node.function,
                node.arguments,
                node.payments,
                StateChanges((), node.calls(), node.own_error()),
            )
            for node in self.children
        )

    def own_error(self) -> ErrorMessage | None:
        """Return the error, unless it comes from a nested call."""
        return None if any(node.error == self.error for node in self.children) else self.error


class CallContext(msgspec.Struct, frozen=True):
    """What all calls of a transaction share."""

    root: RootCall
    version: int
    context: Context

    @property
    def rules(self) -> Rules:
        """The rules of the block."""
        return self.context.rules


def max_total_complexity(version: int) -> int:
    """Return the limit for all calls of a transaction; ``version`` is that of its dApp."""
    return 26_000 if version < 3 or version == 5 else 52_000


def dapp_at(address: Address, state: State) -> tuple[AccountScript, Script]:
    """Return the dApp of an account; raise ``TransactionRejected`` if it has none."""
    account = account_script(address, state)
    if account is None:
        raise TransactionRejected(f"No contract at address {address_text(address)}")
    script = parse_script(account.script)
    if not script.is_dapp:
        raise TransactionRejected("Trying to call dApp on the account with expression script")
    return account, script


class CallFrame:
    """A running function of a dApp, and what it has left of the limits."""

    __slots__ = (
        "address",
        "base",
        "blocked",
        "calls_left",
        "done",
        "left",
        "node",
        "own",
        "payments_left",
        "public_key",
        "shared",
        "version",
    )

    def __init__(
        self,
        shared: CallContext,
        address: Address,
        public_key: bytes,
        version: int,
        base: Overlay,
        own: Overlay,
        blocked: frozenset[Address],
        calls_left: int,
        left: Counts,
        payments_left: int,
        node: CallNode,
    ) -> None:
        self.shared = shared
        self.address = address
        self.public_key = public_key
        self.version = version
        self.base = base
        self.own = own
        self.blocked = blocked
        self.calls_left = calls_left
        self.left = left
        self.payments_left = payments_left
        self.node = node
        self.done: list[InvokedCall] = []

    def environment(self, invoke: Invoke) -> LedgerEnvironment:
        """Return the environment of the function; ``invoke`` calls other dApps for it."""
        shared = self.shared
        return LedgerEnvironment(
            self.own,
            self.base,
            shared.context,
            shared.root.id,
            address=self.address,
            invoke=invoke,
        )

    def actor(self, called: Recipient, context: Context) -> Actor:
        """Return the dApp as the performer of its actions."""
        root = self.shared.root
        return Actor(
            self.address,
            self.public_key,
            root.id,
            root.timestamp,
            called,
            context,
        )


# --- steps of every call -------------------------------------------------------------------------


def evaluate(
    frame: CallFrame, script: Script, call: Call, invocation: Invocation, limit: int, invoke: Invoke
) -> tuple[Result, int]:
    """Return the result of a function and the complexity spent; raise ``EvaluationError``."""
    shared = frame.shared
    environment = frame.environment(invoke)
    trace = None if shared.context.traces is None else Trace()
    context = shared.context
    setting = Setting(
        limit, shared.rules.language, trace=trace, watch=context.watch, observer=context.observer
    )
    function = Function(call.function, call.arguments, invocation_object(invocation, frame.version))
    try:
        outcome = run_function(script, environment, function, setting)
    finally:
        if trace is not None:
            frame.node.steps = tuple(trace.steps)
    reader = Reader(frame.version, environment, shared.root.id, shared.rules.block_v5_approved)
    try:
        return read_result(outcome.value, reader), outcome.spent
    except EvaluationError as error:
        error.spent = limit if isinstance(error, NativeCrash) else outcome.spent
        raise


def check_fields(frame: CallFrame, result: Result) -> None:
    """Raise ``TransactionRejected`` for an action with an invalid field, or ``AlwaysRejected`` at
    heights where the complexity spent does not matter.
    """
    fault = field_fault(result.actions) if frame.version >= 4 else None
    if fault is None:
        return
    if frame.shared.rules.has(Feature.RIDE_V6):
        raise TransactionRejected(fault)
    if frame.shared.rules.dapp_actions_checked:
        raise AlwaysRejected(fault)


def check_arguments(arguments: tuple[Value, ...], rules: Rules) -> None:
    """Raise ``TransactionRejected`` for arguments of types that calls cannot have."""
    lists = rules.has(Feature.BLOCK_V5)
    exactly = rules.has(Feature.RIDE_V6)
    for argument in arguments:
        if isinstance(argument, (bool, int, bytes, str)):
            continue
        items = argument.items if isinstance(argument, RideList) else None
        fits = items is not None and lists
        if fits and exactly and items is not None:
            fits = all(isinstance(item, (bool, int, bytes, str)) for item in items)
        if not fits:
            types = "Int, ByteVector, Boolean, String"
            types += ", List[Int], List[ByteVector], List[Boolean], List[String]" if lists else ""
            raise TransactionRejected(
                f"All arguments of InvokeScript must be one of the types: {types}"
            )


def pay(payments: tuple[Payment, ...], sender: Address, dapp: Address) -> Portfolio:
    """Return the balance changes of payments."""
    portfolio = Portfolio()
    for payment in payments:
        portfolio.add(sender, payment.asset_id, -payment.amount)
        portfolio.add(dapp, payment.asset_id, payment.amount)
    return portfolio


def limits_fault(frame: CallFrame, result: Result) -> str | None:
    """Return why a result exceeds what the transaction has left, or ``None``. At some heights raise
    ``AlwaysRejected`` if data entries are too large.
    """
    rules = frame.shared.rules
    counts = count(result, rules)
    by_root = rules.has(Feature.BLOCK_REWARD_DISTRIBUTION)
    message = bytes_fault(counts, frame.left)
    if message is None:
        return total_fault(counts, frame.left, frame.shared.version if by_root else frame.version)
    if rules.has(Feature.RIDE_V6):
        return message
    if rules.has(Feature.SYNCHRONOUS_CALLS) and rules.dapp_actions_checked:
        raise AlwaysRejected(message)
    return None


def check_result(frame: CallFrame, result: Result, spent: int, sender: Address) -> None:
    """Raise ``FailedTransaction`` if a result exceeds a limit by itself."""
    shared = frame.shared
    call = CallResult(
        result,
        frame.address,
        frame.version,
        shared.version,
        shared.root.empty_keys,
        bool(frame.node.payments) and sender == frame.address,
    )
    fault = result_fault(call, shared.rules)
    if fault is not None:
        raise failed(fault, spent)
    limit = max_total_complexity(shared.version)
    scripts = sum(script.complexity for script in scripts_of_actions(frame, result))
    if scripts + spent > limit and shared.context.limit is None:
        raise failed(f"Invoke complexity limit = {limit} is exceeded", spent, code=2)


def scripts_of_actions(frame: CallFrame, result: Result) -> list[AssetScript]:
    """Return the scripts of the assets that the actions move or change, one per action."""
    found = []
    for action in result.actions:
        asset_id = None if isinstance(action, Issue) else getattr(action, "asset_id", None)
        if asset_id is not None:
            script = frame.own.get(ASSET_SCRIPTS, asset_id)
            if script is not None:
                found.append(script)
    return found


def apply_result(
    frame: CallFrame,
    result: Result,
    called: Recipient,
    spent: int,
    context: Context,
    before: Portfolio | None = None,
) -> int:
    """Apply the actions of a result, after the balance changes of ``before``, and return the
    complexity of asset scripts.
    """
    rules = frame.shared.rules
    actor = frame.actor(called, context.left_after(spent))
    # Scripts of assets see the state before the actions below that of the actions.
    acting = Overlay(frame.own, context.height)
    if before is not None:
        before.write(acting)
    try:
        complexity = apply_actions(result.actions, actor, acting)
        frame.own.merge(acting)
        for action in result.actions:
            if isinstance(action, Transfer):
                resolve(action.address, rules)
    except FailedTransaction as failure:
        failure.complexity += spent
        raise
    return complexity
