"""Sending signed transactions: what a client has signed is checked, kept and told on.

What lives here: the way from JSON to the pool and the answer. What does not: the rows that lead
here (``transactions``, ``requests``), reading JSON (``soliton.chain``), the checks of the rules.

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
"""What a client has to pay for the check of a signature, wherever that is done."""
MAX_BESIDE_BYTES: Final = 16_384
"""What is longer costs more to send to another core and back than the check of a signature."""


def broadcast(request: Request) -> object:
    """Check a signed transaction, keep it for a block, tell the network."""
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
        return _refused(request, transaction, traced)
    return {**to_json(transaction), "trace": _shown(traces)}


async def _refused(
    request: Request, transaction: AnyTransaction | None, error: ApiError
) -> Members:
    """Raise a refusal, with the place in the script that is to blame."""
    raise await explained(request, transaction, error)


def _shown(traces: Traces) -> list[Members]:
    return [trace_json(each, short_changes) for each in traces]


def send_claimed(request: Request, obj: dict[str, object]) -> object:
    """Check what a client says it has signed, its signatures on another core if there is one for
    that, and ``submit`` it. Raises ``ApiError``.
    """
    node, checker = node_of(request), request.context.signatures
    transaction = claimed_transaction(obj, node)
    beside = checker is not None and len(request.body) <= MAX_BESIDE_BYTES
    signed = signed_messages(transaction) if beside and transaction.id not in node.pool else ()

    if checker is None or not signed:
        with _explaining(request, transaction):
            submit(node, transaction)
        return to_json(transaction)

    def keep(is_valid: bool) -> Members:
        request.charge(SIGNATURE_SECONDS * len(signed))
        # What is wrong with signatures, and what comes before it, is for the rules to say.
        with _explaining(request, transaction):
            submit(node, transaction, verified=signed if is_valid else ())
        return to_json(transaction)

    return Deferred(partial(checker.submit_all, signed), keep)


@contextmanager
def _explaining(request: Request, transaction: AnyTransaction) -> Iterator[None]:
    """A private chain that obeys says where in a script a refusal comes from."""
    try:
        yield
    except ApiError as error:
        if not request.context.obeys:
            raise
        raise explained_at_once(request, transaction, error) from error


def claimed_transaction(obj: dict[str, object], node: Node) -> AnyTransaction:
    """What a client says it has signed; no signature is checked. Raises ``ApiError``."""
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
    """Keep a transaction for a block; tell the network. All ways to send one lead here: at once,
    behind a check on another core, from another process (``readers``), with a trace.

    What scripts do is added to ``traces``; ``verified`` as in ``Node.broadcast``. Raises
    ``ApiError``.
    """
    try:
        node.broadcast(transaction, traces, verified=verified)
    except SolitonError as error:
        raise state_refusal(error, transaction, node.network.family) from error
