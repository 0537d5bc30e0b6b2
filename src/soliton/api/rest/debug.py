"""Routes under ``/debug`` without an API key: state hashes, balance history, validation, state
changes of calls.

What does not live here: the routes that require the API key (``operations``).

Source: wavesplatform/Waves
``node/src/main/scala/com/wavesplatform/api/http/DebugApiRoute.scala``; state changes are those of
its version 1.2.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Iterable
from itertools import islice
from operator import itemgetter
from typing import Final

import msgspec

from soliton.api import errors
from soliton.api.application import NOT_FOUND
from soliton.api.http import Request
from soliton.api.json_traces import changes_with_leases, trace_json
from soliton.api.json_transactions import Members, confirmed_json, validated_json
from soliton.api.lookup import address_argument, decode_id, node_of, transaction_id
from soliton.api.paging import in_pages
from soliton.api.rest import examples
from soliton.api.rest.faults import BY_SCRIPTS, FAULT_SCHEMA, MEMBER, fault_members, observed
from soliton.api.rest.pending import next_block
from soliton.api.rest.signing import read_claimed
from soliton.api.route_table import json_body, row, table
from soliton.api.schemas import CONFIRMED_TRANSACTION, SIGNED_TRANSACTION, TRACE
from soliton.api.streaming import json_stream
from soliton.api.thread_pool import Watch
from soliton.api.translate import OLDEST, refusal, state_refusal
from soliton.chain.addresses import Address
from soliton.chain.errors import JsonFieldErrors
from soliton.chain.json_schemas import list_of, shape
from soliton.chain.transactions import invoke_script
from soliton.chain.transactions.codec import to_json
from soliton.chain.transactions.model import AnyTransaction
from soliton.errors import SolitonError
from soliton.ledger.context import Context
from soliton.ledger.hashes import SECTIONS
from soliton.ledger.traces import Traces
from soliton.ledger.transactions import apply_transaction, refuse_failure
from soliton.node.blockchain import Blockchain
from soliton.node.node import Node
from soliton.node.state_hash_json import state_hash_json
from soliton.ride.errors import Interrupted
from soliton.ride.observation import RunFault
from soliton.storage import indexes
from soliton.storage.errors import NotBelow
from soliton.web.answers import Stream

GUARDED: Final = ("/debug",)

_PAGE: Final = 1_000
"""Changes read before yielding to the event loop."""
_TRANSACTIONS: Final = 100
"""Transactions read before yielding to the event loop."""


def state_hash(request: Request) -> object:
    """The state hash of the block at a height."""
    return _state_hash(node_of(request), request.integer("height"))


def last_state_hash(request: Request) -> object:
    """The state hash of the block before the last one, which cannot grow any more."""
    node = node_of(request)
    return _state_hash(node, node.chain.height - 1)


def _state_hash(node: Node, height: int) -> object:
    if not node.settings.db.store_state_hashes:
        return NOT_FOUND
    try:
        return state_hash_json(node.chain, height)
    except KeyError:
        return NOT_FOUND


def balance_history(request: Request) -> Stream:
    """All changes of an account's balance, the newest first."""
    node = node_of(request)
    return json_stream(request, _changes(node, address_argument(request)))


async def _changes(node: Node, address: Address) -> AsyncIterator[object]:
    """The store also records changes of leases, which leave the balance as it is. Such a balance is
    shown at the height where it began.
    """
    top = node.chain.height
    last: tuple[int, int] | None = None

    def read(above: int | None) -> Iterable[tuple[int, int, int]]:
        return node.chain.store.balance_history(address, top if above is None else above - 1)

    async for page in in_pages(read, itemgetter(0), _PAGE):
        for height, balance, _ in page:
            if last is not None and last[1] != balance:
                yield {"height": last[0], "balance": last[1]}
            last = height, balance
    if last is not None:
        yield {"height": last[0], "balance": last[1]}


class _Validated(msgspec.Struct, frozen=True):
    """The outcome of a dry run: members of the transaction or an error, and traces."""

    trace: list[Members] = []
    members: Members = {}
    error: errors.ApiError | None = None
    fault: RunFault | None = None


async def validate(request: Request) -> Members:
    """Validate a signed transaction on top of the chain without broadcasting it."""
    node, obj = node_of(request), request.json()
    started = time.perf_counter()
    now, height = node.clock(), node.chain.height
    try:
        claimed = read_claimed(obj, node)
    except JsonFieldErrors as problem:
        # Members of a wrong type are an error of the request, not of a transaction.
        raise refusal(problem, node.network.family) from problem
    except SolitonError as problem:
        shown, found = obj, _Validated(error=refusal(problem, node.network.family))
    else:

        def work(chain: Blockchain, watch: Watch) -> _Validated:
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
        answer |= {"error": found.error.message, "transaction": shown}
        return answer | await fault_members(request, found.fault)
    return answer | found.members


def _validated(transaction: AnyTransaction, chain: Blockchain, context: Context) -> _Validated:
    family, chain_id = chain.network.family, chain.network.chain_id
    traces: Traces = []
    context = msgspec.structs.replace(context, traces=traces)
    try:
        applied = apply_transaction(transaction, chain.store, context)
        refuse_failure(applied)
    except (Interrupted, NotBelow):
        # These say nothing about the transaction.
        raise
    except SolitonError as problem:
        changes = changes_with_leases(chain.store, chain_id)
        shown = [trace_json(each, changes, context.watch) for each in traces]
        error = state_refusal(problem, transaction, family)
        fault = observed(transaction, chain.store, context) if error.kind in BY_SCRIPTS else None
        return _Validated(shown, error=error, fault=fault)
    changes = changes_with_leases(applied.changes, chain_id)
    shown = [trace_json(each, changes, context.watch) for each in traces]
    if family == OLDEST:
        return _Validated(shown)
    return _Validated(shown, validated_json(transaction, applied, chain))


def state_changes(request: Request) -> Members:
    """A call of a dApp with its state changes."""
    node = node_of(request)
    found = node.chain.transaction(transaction_id(request.text("id"), node))
    if found is None:
        raise errors.TRANSACTION_DOES_NOT_EXIST.error()
    if found.transaction.type_id != invoke_script.TYPE.type_id:
        raise errors.UNSUPPORTED_TRANSACTION_TYPE.error()
    node.chain.store.kept.need_calls()
    return confirmed_json(found, node.chain)


def state_changes_of_address(request: Request) -> Stream:
    """The transactions of an account, the newest first, with the state changes of calls."""
    node, address = node_of(request), address_argument(request)
    limit, after = request.integer("limit"), request.optional_text("after")
    if limit > node.settings.rest_api.transactions_by_address_limit:
        raise errors.RejectionError("limit")
    start = None
    if after is not None:
        name = decode_id(after)
        if name is None:
            raise errors.RejectionError("after")
        location = node.chain.store.transaction_location(name)
        start = None if location is None else (location.height, location.index)
    # Read the index at once, because it may change while the answer is streamed.
    found = indexes.address_transactions(node.chain.store, address, start)
    return json_stream(request, _confirmed(node, [name for _, _, name in islice(found, limit)]))


async def _confirmed(node: Node, names: list[bytes]) -> AsyncIterator[object]:
    for number, name in enumerate(names):
        found = node.chain.transaction(name)
        if found is not None:
            yield confirmed_json(found, node.chain)
        if number % _TRANSACTIONS == 0:
            await asyncio.sleep(0)


_HEX: Final = {"type": "string", "description": "Hexadecimal"}
_STATE_HASH_SCHEMA: Final = shape(
    f"stateHash?, {'?, '.join(SECTIONS)}?, snapshotHash?, blockId?: string, baseTarget?: integer, "
    "height?: integer, version?: string",
    stateHash=_HEX,
    snapshotHash={"type": "string", "description": "Base58"},
    **dict.fromkeys(SECTIONS, _HEX),
)
_VALIDATION: Final = shape(
    "valid: boolean, validationTime, trace?, height?: integer, error?: string, "
    f"transaction?: object, {MEMBER}?",
    validationTime={"type": "integer", "description": "Milliseconds"},
    trace=list_of(TRACE),
    **{MEMBER: FAULT_SCHEMA},
)
_VALIDATION_EXAMPLE: Final = {
    "valid": False,
    "validationTime": 1,
    "trace": [],
    "height": 2,
    "error": "State check failed. Reason: Accounts balance errors",
    "transaction": examples.TRANSACTION,
}
_TO_VALIDATE: Final = json_body(
    "A signed transaction", examples.TRANSACTION, SIGNED_TRANSACTION, get_is_405=True
)

ROUTES: Final = table("debug", f"""
height.of | natural | Height, 1 for the genesis block      | 1
limit     | natural | How many, at most 1000               | 10
after     | text    | Begin after this transaction's id    | {examples.TRANSACTION_ID}
""",
    row("GET /debug/stateHash/last reads=state", last_state_hash,
        "State hash of the block before the last one", _STATE_HASH_SCHEMA, examples.STATE_HASH,
        statuses=((404, "State hashes are not kept, or the chain has one block only"),)),
    row("GET /debug/stateHash/{height.of} reads=state", state_hash,
        "State hash of the block at a height", _STATE_HASH_SCHEMA, examples.STATE_HASH,
        statuses=((404, "There is no such block, or state hashes are not kept"),)),
    row("GET /debug/balances/history/{address} reads=state", balance_history,
        "All changes of an account's balance, the newest first",
        list_of(shape("height?: integer, balance?: integer")),
        [{"height": 1, "balance": examples.AMOUNT}], "INVALID_ADDRESS"),
    row("GET /debug/stateChanges/info/{id.transaction} family=tn", state_changes,
        "A call of a dApp with its state changes", CONFIRMED_TRANSACTION, examples.CONFIRMED,
        "INVALID_TRANSACTION_ID TRANSACTION_DOES_NOT_EXIST UNSUPPORTED_TRANSACTION_TYPE"),
    row("GET /debug/stateChanges/address/{address}/limit/{limit}?after family=tn",
        state_changes_of_address,
        "The transactions of an account, the newest first, with the state changes of calls",
        list_of(CONFIRMED_TRANSACTION), [examples.CONFIRMED], "INVALID_ADDRESS"),
    row("POST /debug/validate", validate,
        "Validate a signed transaction without broadcasting it",
        _VALIDATION, _VALIDATION_EXAMPLE, "WRONG_JSON WRONG_JSON_DATA SERVER_REQUEST_TIMEOUT",
        body=_TO_VALIDATE),
)  # fmt: skip
