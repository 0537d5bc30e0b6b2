"""Routes under ``/debug`` that are open to all: state hashes, the history of balances, validation.

What does not live here: those that want the API key (``operations``).

Source: wavesplatform/Waves
``node/src/main/scala/com/wavesplatform/api/http/DebugApiRoute.scala``.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from itertools import islice
from typing import Final

from soliton.api.asgi import NOT_FOUND
from soliton.api.errors import INVALID_ADDRESS, WRONG_JSON, ApiError
from soliton.api.http import JsonStream, Request
from soliton.api.json_transactions import Members, validated_json
from soliton.api.lookup import ADDRESS, address_argument, node_of
from soliton.api.rest import examples
from soliton.api.rest.signing import read_claimed
from soliton.api.routes import GET, NATURAL, POST, Body, BodyKind, Parameter, Route
from soliton.api.translate import OLDEST, refusal, state_refusal
from soliton.chain.addresses import Address
from soliton.chain.transactions.codec import to_json
from soliton.chain.transactions.model import AnyTransaction
from soliton.errors import SolitonError
from soliton.ledger.context import Context
from soliton.ledger.hashes import SECTIONS
from soliton.ledger.transactions import Applied, apply_transaction, refuse_failure
from soliton.node.node import Node
from soliton.node.state_hash_json import state_hash_json

GUARDED: Final = ("/debug",)

_TAG: Final = "debug"
_PAGE: Final = 1_000
"""So many changes are read before others get their turn."""


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


def validate(request: Request) -> Members:
    """What would become of a signed transaction on top of the chain, without sending it."""
    node, obj = node_of(request), request.json()
    chain, family = node.chain, node.network.family
    started = time.perf_counter()
    transaction, error = _claimed(obj, node)
    applied: Applied | None = None
    if transaction is not None:
        try:
            applied = apply_transaction(transaction, chain.store, next_block(node))
            refuse_failure(applied)
        except SolitonError as problem:
            error = state_refusal(problem, transaction, family)
    answer: Members = {
        "valid": error is None,
        "validationTime": int((time.perf_counter() - started) * 1_000),
        "trace": [],
        "height": chain.height,
    }
    if error is not None:
        shown = obj if transaction is None else to_json(transaction)
        return answer | {"error": error.message, "transaction": shown}
    if transaction is None or applied is None or family == OLDEST:
        return answer
    return answer | validated_json(transaction, applied, chain)


def _claimed(obj: Members, node: Node) -> tuple[AnyTransaction | None, ApiError | None]:
    try:
        return read_claimed(obj, node), None
    except SolitonError as error:
        return None, refusal(error, node.network.family)


def next_block(node: Node) -> Context:
    """The block after the last one, made now."""
    chain = node.chain
    height = chain.height + 1
    timestamp = chain.last_block.header.timestamp
    return Context(
        height,
        node.clock(),
        timestamp,
        chain.rules.at(height),
        chain.scripts,
        chain.view.block(chain.height),
        chain=chain.view,
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
        methods=POST,
        path="/debug/validate",
        handler=validate,
        tag=_TAG,
        summary="What would become of a signed transaction, without sending it",
        body=Body(
            BodyKind.JSON,
            "A signed transaction",
            examples.TRANSACTION,
            examples.TRANSACTION_SCHEMA,
            get_is_405=True,
        ),
        response={
            "type": "object",
            "properties": {
                "valid": {"type": "boolean"},
                "validationTime": {"type": "integer", "description": "Milliseconds"},
                "trace": {"type": "array", "items": {"type": "object"}},
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
        errors=(WRONG_JSON,),
    ),
)
