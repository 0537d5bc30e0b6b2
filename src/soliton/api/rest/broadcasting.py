"""Broadcasting signed transactions.

What lives here: the way from JSON to the pool and the response. What does not: the rows
(``transactions``, ``requests``), parsing JSON (``soliton.chain``), validation by the rules.

Source: wavesplatform/Waves ``node/src/main/scala/com/wavesplatform/api/http/BroadcastRoute.scala``.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Final

from soliton.api.errors import TOO_MANY_LONG_ANSWERS, ApiError
from soliton.api.http import Request
from soliton.api.json_traces import short_changes, trace_json
from soliton.api.json_transactions import Members
from soliton.api.lookup import node_of
from soliton.api.rest.faults import explained, explained_at_once
from soliton.api.rest.signing import SHORT_BYTES, in_turns, read_claimed
from soliton.api.translate import refusal, state_refusal
from soliton.chain.transactions.codec import to_json
from soliton.chain.transactions.model import AnyTransaction
from soliton.crypto.curve25519 import SignedMessage
from soliton.errors import SolitonError
from soliton.ledger.traces import Traces
from soliton.node.node import Node
from soliton.node.signatures import signed_messages
from soliton.node.turns import TooBusy, Turn
from soliton.web.answers import Deferred

SIGNATURE_SECONDS: Final = 60e-6
"""The cost of a signature check for the client, on whichever core it runs."""


def broadcast(request: Request) -> object:
    """Check a signed transaction, add it to the pool, and relay it to the network."""
    if request.flag("trace"):
        return _traced(request)
    return send_claimed(request, request.json())


async def _send_long(request: Request, obj: dict[str, object]) -> Members:
    """``send_claimed`` for a transaction that may have a long script, which is read in turns."""
    transaction = await claimed_in_turns(request, obj)
    with _explaining(request, transaction):
        await submitted(request, transaction)
    return to_json(transaction)


async def _traced(request: Request) -> Members:
    traces: Traces = []
    transaction: AnyTransaction | None = None
    try:
        transaction = await claimed_in_turns(request, request.json())
        await submitted(request, transaction, traces=traces)
    except ApiError as error:
        members = {**error.members, "trace": _shown(traces)}
        traced = ApiError(error.kind, error.message, members, error.hint)
        # With the position in the script that caused it.
        raise await explained(request, transaction, traced) from error
    return {**to_json(transaction), "trace": _shown(traces)}


def _shown(traces: Traces) -> list[Members]:
    return [trace_json(each, short_changes) for each in traces]


def send_claimed(request: Request, obj: dict[str, object]) -> object:
    """Parse a signed transaction, check its signatures (on another core if there is a checker), and
    ``submit`` it. Raises ``ApiError``.
    """
    if len(request.body) > SHORT_BYTES:
        return _send_long(request, obj)
    node, checker = node_of(request), request.context.signatures
    transaction = claimed_transaction(obj, node)
    is_checked = checker is None or transaction.id in node.pool
    signed = () if is_checked else signed_messages(transaction)

    if checker is None or not signed:
        turn = node.turns.begin(partial(submit, node, transaction))
        if turn.is_done:
            return _answer(request, transaction, turn)
        return Deferred(turn.when_done, partial(_answer, request, transaction))

    def ask(callback: Callable[[Turn[None]], None]) -> None:
        def begin(is_valid: bool) -> None:
            # If a signature is wrong, the rules check again and choose the first error.
            verified = signed if is_valid else ()
            since = time.perf_counter()
            turn = node.turns.begin(partial(submit, node, transaction, verified=verified))
            request.charge(time.perf_counter() - since + SIGNATURE_SECONDS * len(signed))
            turn.when_done(callback)

        checker.submit_all(signed, begin)

    return Deferred(ask, partial(_answer, request, transaction))


def _answer(request: Request, transaction: AnyTransaction, turn: Turn[None]) -> Members:
    request.charge(turn.later_seconds)
    with _explaining(request, transaction):
        finish(node_of(request), transaction, turn)
    return to_json(transaction)


async def submitted(
    request: Request, transaction: AnyTransaction, *, traces: Traces | None = None
) -> None:
    """``submit`` for a request that is answered by a coroutine."""
    node = node_of(request)
    turn = node.turns.begin(partial(submit, node, transaction, traces=traces))
    await turn.wait()
    request.charge(turn.later_seconds)
    finish(node, transaction, turn)


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


async def claimed_in_turns(request: Request, obj: dict[str, object]) -> AnyTransaction:
    """``claimed_transaction`` for a body that may be long."""
    return await in_turns(request, partial(claimed_transaction, obj, node_of(request)))


def submit(
    node: Node,
    transaction: AnyTransaction,
    *,
    traces: Traces | None = None,
    verified: Collection[SignedMessage] = (),
) -> None:
    """Add a transaction to the pool and relay it. All broadcasts end here: direct ones, with a
    signature check on another core, from a worker process (``readers``), with a trace. They call
    it in ``Node.turns``, since scripts may take long.

    Traces of scripts are appended to ``traces``; ``verified`` is that of ``Node.broadcast``. Raises
    ``ApiError``.
    """
    try:
        is_new = node.broadcast(transaction, traces, verified=verified)
    except SolitonError as error:
        raise state_refusal(error, transaction, node.network.family) from error
    if not is_new and node.peering is not None and node.settings.synchronization.relay.again:
        node.peering.relay(transaction.id)


def finish(node: Node, transaction: AnyTransaction, turn: Turn[None]) -> None:
    """Raise the error of a ``submit`` that is done, as ``ApiError`` if it is one of ours."""
    try:
        turn.result()
    except ApiError:
        raise
    except TooBusy as error:
        raise TOO_MANY_LONG_ANSWERS.error() from error
    except SolitonError as error:
        raise state_refusal(error, transaction, node.network.family) from error
