"""Traces of scripts in the JSON of the REST API.

What lives here: their JSON. What does not: the traces (``soliton.ledger.traces``), and the routes
(``rest.transactions``, ``rest.debug``, ``rest.evaluation``).

Source: wavesplatform/Waves ``node/src/main/scala/com/wavesplatform/transaction/smart/script/``
``trace/TraceStep.scala``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Final

import msgspec

from soliton.api.json_transactions import Members, lease_json
from soliton.chain.addresses import address_text, recipient_text
from soliton.crypto import base58
from soliton.ledger.script_results import Lease
from soliton.ledger.state import LEASE_INFO, State
from soliton.ledger.state_changes import StateChanges, to_json, value_json
from soliton.ledger.traces import AssetTrace, CallTrace, Fault, ScriptTrace, VerifierTrace
from soliton.ride.functions.printing import nested_text, plain_text
from soliton.ride.trace import INVOKED_DAPP, INVOKED_FUNCTION, STATE_CHANGES, Step

_OMITTED: Final = (INVOKED_DAPP, INVOKED_FUNCTION, STATE_CHANGES)

Changes = Callable[[StateChanges], Members]
"""Converts the state changes of a call to JSON."""
Watch = Callable[[], None]
"""Called with each step: yields to other work, and may raise to cancel."""

MAX_LOG_CHARS: Final = 1_048_576
"""The reference's default of ``max-tx-error-log-size``."""
_FAILED: Final = "FailedTransactionError("
_THROW: Final = "throw.@args"
_THROW_STEPS: Final = 3
"""The steps of a call of ``throw``: arguments, cost, and the complexity left."""

_encode: Final = msgspec.json.Encoder().encode


def trace_json(trace: ScriptTrace, changes: Changes, watch: Watch | None = None) -> Members:
    """The trace of one verifier, asset script or call, with its steps."""
    match trace:
        case VerifierTrace(address, fault):
            return {"type": "verifier", "id": address_text(address)} | _outcome(fault, watch)
        case AssetTrace(asset_id, context, fault):
            shown: Members = {"type": "asset", "context": context, "id": base58.encode(asset_id)}
            return shown | _outcome(fault, watch)
        case CallTrace():
            return _call(trace, changes, watch)


def _call(trace: CallTrace, changes: Changes, watch: Watch | None) -> Members:
    shown: Members = {
        "type": "dApp",
        "id": recipient_text(trace.dapp),
        "function": trace.function,
        "args": [plain_text(argument) for argument in trace.arguments],
        "invocations": [_call(call, changes, watch) for call in trace.calls],
    }
    shown |= _outcome(trace.fault, watch)
    if trace.result is not None and trace.fault is None:
        shown["result"] = changes(StateChanges(trace.result.actions))
    return shown | {"vars": steps_json(trace.steps, watch)}


def _outcome(fault: Fault | None, watch: Watch | None) -> Members:
    if fault is None:
        return {"result": "success", "error": None}
    shown: Members = {"result": "failure"}
    if fault.steps is not None:
        shown["vars"] = steps_json(fault.steps, watch)
    return shown | {"error": fault.message}


def steps_json(steps: Iterable[Step], watch: Watch | None = None) -> msgspec.Raw:
    """The steps of a run: names with values or errors.

    Each step is encoded by itself. Hundreds of thousands of objects would slow down the garbage
    collector, and block the process while they are freed.
    """
    encoded: list[bytes] = []
    for step in steps:
        if watch is not None:
            watch()
        member: Members = {"name": step.name}
        if step.value is None:
            encoded.append(_encode(member | {"error": step.error}))
        elif step.name not in _OMITTED:
            encoded.append(_encode(member | value_json(step.value)))
    return msgspec.Raw(b"[" + b",".join(encoded) + b"]")


def steps_text(steps: Sequence[Step], watch: Watch | None = None, depth: int = 1) -> str:
    """The steps of a run in the text of an error (``ErrorWithLogPrinter`` of the reference)."""
    left, tabs = MAX_LOG_CHARS - 1, "\t" * depth
    parts: list[str] = []
    for number, step in enumerate(steps):
        if watch is not None:
            watch()
        if left < 0:
            break
        if step.value is None:
            line = f"\n{tabs}{step.name} = {_error_text(steps, number, tabs)}"
            parts.append(line if len(line) <= left else "")
            break
        line = f"\n{tabs}{step.name} = {nested_text(step.value, depth, left)}"
        left -= len(line)
        if left >= 0:
            parts.append(line)
    return "".join(parts) + ("\n...\n" if left < 0 else "\n")


def _error_text(steps: Sequence[Step], number: int, tabs: str) -> str:
    """The error of a step. The steps of a failed call are not known: its log is empty."""
    error = steps[number].error or ""
    if error.startswith(_FAILED):
        return f"{error[:-1]}, log = \n{tabs})"
    is_thrown = number >= _THROW_STEPS and steps[number - _THROW_STEPS].name == _THROW
    return f"{'ThrownError' if is_thrown else 'CommonError'}({error})"


def short_changes(changes: StateChanges) -> Members:
    """State changes with leases as the script returned them."""
    return to_json(changes, short_lease)


def short_lease(lease: Lease) -> Members:
    """A lease as the script returned it."""
    return {
        "recipient": recipient_text(lease.recipient),
        "amount": lease.amount,
        "nonce": lease.nonce,
        "id": base58.encode(lease.id),
    }


def changes_with_leases(state: State, chain_id: int) -> Changes:
    """A converter that shows leases with their details in ``state``."""

    def lease(made: Lease) -> Members:
        known = lease_json(made.id, state, chain_id)
        if state.get(LEASE_INFO, made.id) is None:
            known |= {"recipient": recipient_text(made.recipient), "amount": made.amount}
        return known

    def shown(changes: StateChanges) -> Members:
        members = to_json(changes, lease)
        cancels = (base58.decode(each["id"]) for each in members["leaseCancels"])
        ended = [lease_json(lease_id, state, chain_id) for lease_id in cancels]
        return members | {"leaseCancels": ended}

    return shown
