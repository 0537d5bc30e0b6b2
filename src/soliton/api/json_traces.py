"""Traces of scripts as the REST API shows them.

What lives here: their JSON. What does not: what is in them (``soliton.ledger.traces``), and who may
ask for them (``rest.transactions``, ``rest.debug``, ``rest.evaluation``).

Source: wavesplatform/Waves ``node/src/main/scala/com/wavesplatform/transaction/smart/script/``
``trace/TraceStep.scala``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Final

import msgspec

from soliton.api.json_transactions import Members, lease_json
from soliton.chain.addresses import address_text, recipient_text
from soliton.crypto import base58
from soliton.ledger.script_results import Lease
from soliton.ledger.state import LEASE_INFO, State
from soliton.ledger.state_changes import StateChanges, to_json, value_json
from soliton.ledger.traces import AssetTrace, CallTrace, Fault, ScriptTrace, VerifierTrace
from soliton.ride.functions.printing import plain_text
from soliton.ride.trace import INVOKED_DAPP, INVOKED_FUNCTION, STATE_CHANGES, Step

_LEFT_OUT: Final = (INVOKED_DAPP, INVOKED_FUNCTION, STATE_CHANGES)

Changes = Callable[[StateChanges], Members]
"""How what a dApp answered is shown."""
Watch = Callable[[], None]
"""Called with each step: lets others pass where this runs beside them, and may raise."""

_encode: Final = msgspec.json.Encoder().encode


def trace_json(trace: ScriptTrace, changes: Changes, watch: Watch | None = None) -> Members:
    """One script that was asked or called, with its steps."""
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
    return shown | {"error": fault.words}


def steps_json(steps: Iterable[Step], watch: Watch | None = None) -> msgspec.Raw:
    """The steps of a run: names, and what became of them.

    They are written one by one. All of them as objects would be hundreds of thousands, through
    which the search for cycles goes, and which are freed at once while everything waits.
    """
    written: list[bytes] = []
    for step in steps:
        if watch is not None:
            watch()
        member: Members = {"name": step.name}
        if step.value is None:
            written.append(_encode(member | {"error": step.error}))
        elif step.name not in _LEFT_OUT:
            written.append(_encode(member | value_json(step.value)))
    return msgspec.Raw(b"[" + b",".join(written) + b"]")


def short_changes(changes: StateChanges) -> Members:
    """What a dApp answered, as it stands there."""
    return to_json(changes, short_lease)


def short_lease(lease: Lease) -> Members:
    """A lease that there would be."""
    return {
        "recipient": recipient_text(lease.recipient),
        "amount": lease.amount,
        "nonce": lease.nonce,
        "id": base58.encode(lease.id),
    }


def changes_with_leases(state: State, chain_id: int) -> Changes:
    """What a dApp answered, with all that a state knows about leases."""

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
