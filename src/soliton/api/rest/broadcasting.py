"""Sending signed transactions: what a client has signed is checked, kept and told on.

What lives here: the way from JSON to the pool and the answer. What does not: the rows that lead
here (``transactions``, ``requests``), reading JSON (``soliton.chain``), the checks of the rules.

Source: wavesplatform/Waves ``node/src/main/scala/com/wavesplatform/api/http/BroadcastRoute.scala``.
"""

from __future__ import annotations

from collections.abc import Collection
from functools import partial
from typing import Final

from soliton.api.errors import ApiError
from soliton.api.http import Request, Soon
from soliton.api.json_traces import short_changes, trace_json
from soliton.api.json_transactions import Members
from soliton.api.lookup import node_of
from soliton.api.rest.signing import read_claimed
from soliton.api.translate import refusal, state_refusal
from soliton.chain.transactions.codec import to_json
from soliton.chain.transactions.model import AnyTransaction
from soliton.crypto.curve25519 import SignedMessage
from soliton.errors import SolitonError
from soliton.ledger.traces import Traces
from soliton.node.node import Node
from soliton.node.signatures import signed_messages

SIGNATURE_SECONDS: Final = 60e-6
"""What a client has to pay for the check of a signature, wherever that is done."""
MAX_SOON_BYTES: Final = 16_384
"""What is longer costs more to send to another core and back than the check of a signature."""


def broadcast(request: Request) -> object:
    """Check a signed transaction, keep it for a block, tell the network."""
    if request.flag("trace"):
        return _broadcast_with_trace(request)
    return send_claimed(request, request.json())


def send_claimed(request: Request, obj: dict[str, object]) -> object:
    """Check what a client says it has signed, its signatures on another core, and send it.

    Raises ``ApiError``.
    """
    node, checker = node_of(request), request.context.signatures
    transaction = claimed_transaction(obj, node)
    beside = checker is not None and len(request.body) <= MAX_SOON_BYTES
    signed = signed_messages(transaction) if beside and transaction.id not in node.pool else ()
    if checker is None or not signed:
        return broadcast_signed(node, transaction)

    def keep(is_valid: bool) -> Members:
        # What is wrong with signatures, and what comes before it, is for the rules to say.
        return broadcast_signed(node, transaction, verified=signed if is_valid else ())

    return Soon(partial(checker.ask_all, signed), keep, SIGNATURE_SECONDS * len(signed))


def _broadcast_with_trace(request: Request) -> Members:
    traces: Traces = []
    try:
        shown = broadcast_claimed(node_of(request), request.json(), traces)
    except ApiError as error:
        members = {**error.members, "trace": _trace(traces)}
        raise ApiError(error.kind, error.message, members, error.hint) from error
    shown["trace"] = _trace(traces)
    return shown


def _trace(traces: Traces) -> list[Members]:
    return [trace_json(each, short_changes) for each in traces]


def broadcast_claimed(node: Node, obj: dict[str, object], traces: Traces | None = None) -> Members:
    """Check what a client says it has signed, and send it. Raises ``ApiError``.

    What scripts do is added to ``traces``.
    """
    return broadcast_signed(node, claimed_transaction(obj, node), traces)


def claimed_transaction(obj: dict[str, object], node: Node) -> AnyTransaction:
    """What a client says it has signed; no signature is checked. Raises ``ApiError``."""
    try:
        return read_claimed(obj, node)
    except SolitonError as error:
        raise refusal(error, node.network.family) from error


def broadcast_signed(
    node: Node,
    transaction: AnyTransaction,
    traces: Traces | None = None,
    *,
    verified: Collection[SignedMessage] = (),
) -> Members:
    """Send a transaction; ``verified`` as in ``Node.broadcast``. Raises ``ApiError``."""
    try:
        node.broadcast(transaction, traces, verified=verified)
    except SolitonError as error:
        raise state_refusal(error, transaction, node.network.family) from error
    return to_json(transaction)
