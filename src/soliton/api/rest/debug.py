"""Routes under ``/debug`` that are open to all: state hashes, the history of balances, validation,
what calls of dApps did.

What does not live here: those that want the API key (``operations``).

Source: wavesplatform/Waves
``node/src/main/scala/com/wavesplatform/api/http/DebugApiRoute.scala``; what calls did is of the
generation of its version 1.2.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from itertools import islice
from typing import Final

import msgspec

from soliton.api.asgi import NOT_FOUND
from soliton.api.errors import (
    INVALID_ADDRESS,
    INVALID_TRANSACTION_ID,
    SERVER_REQUEST_TIMEOUT,
    TRANSACTION_DOES_NOT_EXIST,
    UNSUPPORTED_TRANSACTION_TYPE,
    WRONG_JSON,
    ApiError,
    RejectionError,
)
from soliton.api.http import JsonStream, Request
from soliton.api.json_traces import changes_with_leases, trace_json
from soliton.api.json_transactions import MIDDLE, Members, confirmed_json, validated_json
from soliton.api.lookup import ADDRESS, address_argument, decode_id, node_of, transaction_id
from soliton.api.rest import examples
from soliton.api.rest.signing import read_claimed
from soliton.api.routes import (
    GET,
    NATURAL,
    POST,
    TEXT,
    Body,
    BodyKind,
    Parameter,
    Route,
    query_parameter,
)
from soliton.api.schemas import CONFIRMED_TRANSACTION, SIGNED_TRANSACTION, TRACE
from soliton.api.translate import OLDEST, refusal, state_refusal
from soliton.api.workers import Watch
from soliton.chain.addresses import Address
from soliton.chain.transactions import invoke_script
from soliton.chain.transactions.codec import to_json
from soliton.chain.transactions.model import AnyTransaction
from soliton.errors import SolitonError
from soliton.ledger.context import Context
from soliton.ledger.hashes import SECTIONS
from soliton.ledger.traces import Traces
from soliton.ledger.transactions import apply_transaction, refuse_failure
from soliton.node.chain import Chain
from soliton.node.node import Node
from soliton.node.state_hash_json import state_hash_json
from soliton.ride.errors import Interrupted
from soliton.storage import indexes

GUARDED: Final = ("/debug",)
FAMILIES: Final = dict.fromkeys(
    ("/debug/stateChanges/info/{id}", "/debug/stateChanges/address/{address}/limit/{limit}"),
    (MIDDLE,),
)
"""Routes that only some families of networks have."""

_TAG: Final = "debug"
_PAGE: Final = 1_000
"""So many changes are read before others get their turn."""
_TRANSACTIONS: Final = 100
"""The same for transactions."""


def state_hash(request: Request) -> object:
    """The state hash of the block at a height."""
    return _state_hash(node_of(request), request.integer("height"))


def last_state_hash(request: Request) -> object:
    """The state hash of the block below the last one, which is the last that cannot grow."""
    node = node_of(request)
    return _state_hash(node, node.chain.height - 1)


def _state_hash(node: Node, height: int) -> object:
    if not node.settings.db.store_state_hashes:
        return NOT_FOUND
    try:
        return state_hash_json(node.chain, height)
    except KeyError:
        return NOT_FOUND


def balance_history(request: Request) -> JsonStream:
    """Every change of an account's balance, the newest first."""
    node = node_of(request)
    return JsonStream(_changes(node, address_argument(request)))


async def _changes(node: Node, address: Address) -> AsyncIterator[object]:
    """Piece by piece: the store may be written between two pieces, not within one.

    The store also notes changes of leases; a balance that stays is shown where it began.
    """
    top = node.chain.height
    waiting: tuple[int, int] | None = None
    while True:
        history = node.chain.store.balance_history(address, top)
        page = [(height, balance) for height, balance, _ in islice(history, _PAGE)]
        for height, balance in page:
            if waiting is not None and waiting[1] != balance:
                yield {"height": waiting[0], "balance": waiting[1]}
            waiting = height, balance
        if len(page) < _PAGE:
            break
        top = page[-1][0] - 1
        await asyncio.sleep(0)
    if waiting is not None:
        yield {"height": waiting[0], "balance": waiting[1]}


class _Validated(msgspec.Struct, frozen=True):
    """What came of a transaction: what is shown of it or what is wrong with it, and its traces."""

    trace: list[Members] = []
    members: Members = {}
    error: ApiError | None = None


async def validate(request: Request) -> Members:
    """What would become of a signed transaction on top of the chain, without sending it."""
    node, obj = node_of(request), request.json()
    started = time.perf_counter()
    now, height = node.clock(), node.chain.height
    try:
        claimed = read_claimed(obj, node)
    except SolitonError as problem:
        shown, found = obj, _Validated(error=refusal(problem, node.network.family))
    else:

        def work(chain: Chain, watch: Watch) -> _Validated:
            return _validated(claimed, chain, next_block(chain, now, watch))

        shown = to_json(claimed)
        found = await request.context.workers.ask(node, work, request.charge)
    answer: Members = {
        "valid": found.error is None,
        "validationTime": int((time.perf_counter() - started) * 1_000),
        "trace": found.trace,
        "height": height,
    }
    if found.error is not None:
        return answer | {"error": found.error.message, "transaction": shown}
    return answer | found.members


def _validated(transaction: AnyTransaction, chain: Chain, context: Context) -> _Validated:
    family, chain_id = chain.network.family, chain.network.chain_id
    traces: Traces = []
    context = msgspec.structs.replace(context, traces=traces)
    try:
        applied = apply_transaction(transaction, chain.store, context)
        refuse_failure(applied)
    except Interrupted:
        raise
    except SolitonError as problem:
        changes = changes_with_leases(chain.store, chain_id)
        shown = [trace_json(each, changes) for each in traces]
        return _Validated(shown, error=state_refusal(problem, transaction, family))
    changes = changes_with_leases(applied.changes, chain_id)
    shown = [trace_json(each, changes) for each in traces]
    if family == OLDEST:
        return _Validated(shown)
    return _Validated(shown, validated_json(transaction, applied, chain))


def state_changes(request: Request) -> Members:
    """A call of a dApp with what it did."""
    node = node_of(request)
    found = node.chain.transaction(transaction_id(request.text("id"), node))
    if found is None:
        raise TRANSACTION_DOES_NOT_EXIST.error()
    if found.transaction.type_id != invoke_script.TYPE.type_id:
        raise UNSUPPORTED_TRANSACTION_TYPE.error()
    return confirmed_json(found, node.chain)


def state_changes_of_address(request: Request) -> JsonStream:
    """The transactions of an account, the newest first; calls with what they did."""
    node, address = node_of(request), address_argument(request)
    limit, after = request.integer("limit"), request.optional_text("after")
    if limit > node.settings.rest_api.transactions_by_address_limit:
        raise RejectionError("limit")
    start = None
    if after is not None:
        name = decode_id(after)
        if name is None:
            raise RejectionError("after")
        location = node.chain.store.transaction_location(name)
        start = None if location is None else (location.height, location.index)
    # The index is read at once: it may change while the answer is on its way.
    found = indexes.address_transactions(node.chain.store, address, start)
    return JsonStream(_confirmed(node, [name for _, _, name in islice(found, limit)]))


async def _confirmed(node: Node, names: list[bytes]) -> AsyncIterator[object]:
    for number, name in enumerate(names):
        found = node.chain.transaction(name)
        if found is not None:
            yield confirmed_json(found, node.chain)
        if number % _TRANSACTIONS == 0:
            await asyncio.sleep(0)


def next_block(chain: Chain, now: int, watch: Watch | None = None) -> Context:
    """The block after the last one, made now (ms); ``watch`` is called while scripts run."""
    height = chain.height + 1
    return Context(
        height,
        now,
        chain.last_block.header.timestamp,
        chain.rules.at(height),
        chain.scripts,
        chain.view.block(chain.height),
        chain=chain.view,
        watch=watch,
    )


_STATE_HASH_SCHEMA: Final = {
    "type": "object",
    "properties": {
        "stateHash": {"type": "string", "description": "Hexadecimal"},
        **{section: {"type": "string", "description": "Hexadecimal"} for section in SECTIONS},
        "snapshotHash": {"type": "string", "description": "Base58"},
        "blockId": {"type": "string"},
        "baseTarget": {"type": "integer"},
        "height": {"type": "integer"},
        "version": {"type": "string"},
    },
}

ROUTES: tuple[Route, ...] = (
    Route(
        methods=GET,
        path="/debug/stateHash/last",
        handler=last_state_hash,
        tag=_TAG,
        summary="State hash of the block below the last one",
        response=_STATE_HASH_SCHEMA,
        example=examples.STATE_HASH,
        statuses=((404, "State hashes are not kept, or the chain has one block only"),),
    ),
    Route(
        methods=GET,
        path="/debug/stateHash/{height}",
        handler=state_hash,
        tag=_TAG,
        summary="State hash of the block at a height",
        parameters=(Parameter("height", NATURAL, "Height, 1 for the genesis block", 1),),
        response=_STATE_HASH_SCHEMA,
        example=examples.STATE_HASH,
        statuses=((404, "There is no such block, or state hashes are not kept"),),
    ),
    Route(
        methods=GET,
        path="/debug/balances/history/{address}",
        handler=balance_history,
        tag=_TAG,
        summary="Every change of an account's balance, the newest first",
        parameters=(ADDRESS,),
        response={
            "type": "array",
            "items": {
                "type": "object",
                "properties": {"height": {"type": "integer"}, "balance": {"type": "integer"}},
            },
        },
        example=[{"height": 1, "balance": examples.AMOUNT}],
        errors=(INVALID_ADDRESS,),
    ),
    Route(
        methods=GET,
        path="/debug/stateChanges/info/{id}",
        handler=state_changes,
        tag=_TAG,
        summary="A call of a dApp with what it did",
        parameters=(
            Parameter("id", TEXT, "Id of a transaction in base58", examples.TRANSACTION_ID),
        ),
        response=CONFIRMED_TRANSACTION,
        example=examples.CONFIRMED,
        errors=(INVALID_TRANSACTION_ID, TRANSACTION_DOES_NOT_EXIST, UNSUPPORTED_TRANSACTION_TYPE),
    ),
    Route(
        methods=GET,
        path="/debug/stateChanges/address/{address}/limit/{limit}",
        handler=state_changes_of_address,
        tag=_TAG,
        summary="The transactions of an account, the newest first; calls with what they did",
        parameters=(
            ADDRESS,
            Parameter("limit", NATURAL, "How many, at most 1000", 10),
            query_parameter(
                "after", TEXT, "Id of the transaction to go on after", examples.TRANSACTION_ID
            ),
        ),
        response={"type": "array", "items": CONFIRMED_TRANSACTION},
        example=[examples.CONFIRMED],
        errors=(INVALID_ADDRESS,),
    ),
    Route(
        methods=POST,
        path="/debug/validate",
        handler=validate,
        tag=_TAG,
        summary="What would become of a signed transaction, without sending it",
        body=Body(
            BodyKind.JSON,
            "A signed transaction",
            examples.TRANSACTION,
            SIGNED_TRANSACTION,
            get_is_405=True,
        ),
        response={
            "type": "object",
            "properties": {
                "valid": {"type": "boolean"},
                "validationTime": {"type": "integer", "description": "Milliseconds"},
                "trace": {"type": "array", "items": TRACE},
                "height": {"type": "integer"},
                "error": {"type": "string"},
                "transaction": {"type": "object"},
            },
            "required": ["valid", "validationTime"],
        },
        example={
            "valid": False,
            "validationTime": 1,
            "trace": [],
            "height": 2,
            "error": "State check failed. Reason: Accounts balance errors",
            "transaction": examples.TRANSACTION,
        },
        errors=(WRONG_JSON, SERVER_REQUEST_TIMEOUT),
    ),
)
