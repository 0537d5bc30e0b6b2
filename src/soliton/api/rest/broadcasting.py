"""Broadcasting signed transactions.

What lives here: the way from JSON to the pool and the response. What does not: the rows
(``transactions``, ``requests``), parsing JSON (``soliton.chain``), validation by the rules.

Source: wavesplatform/Waves ``node/src/main/scala/com/wavesplatform/api/http/BroadcastRoute.scala``.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Final

from soliton.api.errors import ApiError
from soliton.api.http import Request
from soliton.api.json_traces import short_changes, trace_json
from soliton.api.json_transactions import Members
from soliton.api.lookup import node_of
from soliton.api.rest.faults import explained, explained_at_once
from soliton.api.rest.signing import read_claimed
from soliton.api.translate import refusal, state_refusal
from soliton.chain.transactions.codec import to_json
from soliton.chain.transactions.model import AnyTransaction
from soliton.crypto.curve25519 import SignedMessage
from soliton.errors import SolitonError
from soliton.ledger.traces import Traces
from soliton.node.node import Node
from soliton.node.signatures import signed_messages
from soliton.web.answers import Deferred

SIGNATURE_SECONDS: Final = 60e-6
"""The cost of a signature check for the client, on whichever core it runs."""
MAX_OFF_LOOP_BYTES: Final = 16_384
"""Sending a longer body to another core would cost more than its signature check."""


def broadcast(request: Request) -> object:
    """Check a signed transaction, add it to the pool, and relay it to the network."""
    if not request.flag("trace"):
        return send_claimed(request, request.json())
    node = node_of(request)
    traces: Traces = []
    transaction: AnyTransaction | None = None
    try:
        transaction = claimed_transaction(request.json(), node)
        submit(node, transaction, traces=traces)
    except ApiError as error:
        members = {**error.members, "trace": _shown(traces)}
        traced = ApiError(error.kind, error.message, members, error.hint)
        return _raise_explained(request, transaction, traced)
    return {**to_json(transaction), "trace": _shown(traces)}


async def _raise_explained(
    request: Request, transaction: AnyTransaction | None, error: ApiError
) -> Members:
    """Raise an error with the position in the script that caused it."""
    raise await explained(request, transaction, error)


def _shown(traces: Traces) -> list[Members]:
    return [trace_json(each, short_changes) for each in traces]


def send_claimed(request: Request, obj: dict[str, object]) -> object:
    """Parse a signed transaction, check its signatures (on another core if there is a checker), and
    ``submit`` it. Raises ``ApiError``.
    """
    node, checker = node_of(request), request.context.signatures
    transaction = claimed_transaction(obj, node)
    off_loop = checker is not None and len(request.body) <= MAX_OFF_LOOP_BYTES
    signed = signed_messages(transaction) if off_loop and transaction.id not in node.pool else ()

    if checker is None or not signed:
        with _explaining(request, transaction):
            submit(node, transaction)
        return to_json(transaction)

    def finish(is_valid: bool) -> Members:
        request.charge(SIGNATURE_SECONDS * len(signed))
        # If a signature is wrong, the rules check again and choose the first error.
        with _explaining(request, transaction):
            submit(node, transaction, verified=signed if is_valid else ())
        return to_json(transaction)

    return Deferred(partial(checker.submit_all, signed), finish)


@contextmanager
def _explaining(request: Request, transaction: AnyTransaction) -> Iterator[None]:
    """On a private chain, add the position in the script to an error."""
    try:
        yield
    except ApiError as error:
        if not request.context.obeys:
            raise
        raise explained_at_once(request, transaction, error) from error


def claimed_transaction(obj: dict[str, object], node: Node) -> AnyTransaction:
    """Parse a signed transaction without checking signatures. Raises ``ApiError``."""
    try:
        return read_claimed(obj, node)
    except SolitonError as error:
        raise refusal(error, node.network.family) from error


def submit(
    node: Node,
    transaction: AnyTransaction,
    *,
    traces: Traces | None = None,
    verified: Collection[SignedMessage] = (),
) -> None:
    """Add a transaction to the pool and relay it. All broadcasts end here: direct ones, with a
    signature check on another core, from a worker process (``readers``), with a trace.

    Traces of scripts are appended to ``traces``; ``verified`` is that of ``Node.broadcast``. Raises
    ``ApiError``.
    """
    try:
        is_new = node.broadcast(transaction, traces, verified=verified)
    except SolitonError as error:
        raise state_refusal(error, transaction, node.network.family) from error
    if not is_new and node.peering is not None and node.settings.synchronization.relay.again:
        node.peering.relay(transaction.id)
