"""``/transactions/simulate``: a dry run of a transaction, signed or not. No other node has it.

What lives here: default members, the dry run, the response. What does not: threads
(``soliton.api.thread_pool``), the rules (``soliton.ledger``).
"""

from __future__ import annotations

from typing import Final

import msgspec

from soliton.api.http import Request
from soliton.api.json_snapshots import snapshot_json
from soliton.api.json_traces import changes_with_leases, trace_json
from soliton.api.json_transactions import Members, effects_json
from soliton.api.lookup import node_of
from soliton.api.rest import examples
from soliton.api.rest.pending import next_block
from soliton.api.rest.signing import FEE_WHEN_PRICING, read_claimed, read_unsigned
from soliton.api.route_table import json_body, row, table
from soliton.api.schemas import (
    STATE_CHANGES,
    TRACE,
    TRANSACTION,
    TRANSACTION_SNAPSHOT,
    UNSIGNED_TRANSACTION,
)
from soliton.api.state_schemas import APPLICATION_STATUSES
from soliton.api.thread_pool import Watch
from soliton.api.translate import refusal, state_refusal
from soliton.chain.json_schemas import (
    BOOLEAN_SCHEMA,
    INTEGER_SCHEMA,
    LONG_SCHEMA,
    described,
    list_of,
    or_null,
    shape,
)
from soliton.chain.transactions.codec import to_json, with_proofs
from soliton.chain.transactions.model import AnyTransaction
from soliton.crypto import base58, curve25519
from soliton.errors import SolitonError
from soliton.ledger import fees
from soliton.ledger.context import Context
from soliton.ledger.errors import TransactionRejected
from soliton.ledger.state import State
from soliton.ledger.traces import Traces
from soliton.ledger.transactions import (
    Applied,
    apply_transaction,
    invalid_signature,
    refuse_failure,
)
from soliton.node.blockchain import Blockchain
from soliton.node.node import Node
from soliton.ride.errors import Interrupted
from soliton.storage.errors import NotBelow
from soliton.web.openapi import ref

_NO_PROOF: Final = bytes(64)
"""A placeholder for the signature."""


async def simulate(request: Request) -> Members:
    """Dry-run a transaction on top of the chain and, by default, of the pool."""
    node = node_of(request)
    try:
        transaction, signed = read_transaction(node, request.json())
    except SolitonError as error:
        raise refusal(error, node.network.family) from error
    now = node.clock()
    without_pool = request.arguments.get("unconfirmed") is False
    unconfirmed = None if without_pool else node.pool.kept_state()

    def work(chain: Blockchain, watch: Watch) -> Members:
        store = chain.store
        state = store if unconfirmed is None else unconfirmed.moved_above(store)
        context = next_block(chain, now, watch)
        return _dry_run(transaction, chain, state, context, signed=signed)

    return await request.context.workers.ask(node, work, request.charge)


def read_transaction(node: Node, obj: Members) -> tuple[AnyTransaction, bool]:
    """The transaction, and whether it is signed. The default fee of an unsigned one is the minimum
    fee, and its default timestamp the current time.
    """
    if obj.get("proofs") or obj.get("signature"):
        return read_claimed(obj, node), True
    key = obj.get("senderPublicKey")
    obj = {"timestamp": node.clock(), **obj}
    if obj.get("fee") is None:
        draft = read_unsigned(node, obj | {"fee": FEE_WHEN_PRICING}, key)
        obj["fee"] = node.minimum_fee(draft).amount
    return with_proofs(read_unsigned(node, obj, key), (_NO_PROOF,)), False


def _dry_run(
    transaction: AnyTransaction, chain: Blockchain, state: State, context: Context, *, signed: bool
) -> Members:
    traces: Traces = []
    context = msgspec.structs.replace(context, traces=traces, draft=not signed)
    members: Members = {"valid": True, "signed": signed, "height": context.height}
    applied: Applied | None = None
    try:
        applied = apply_transaction(transaction, state, context, verify_signature=signed)
        _check_order_signatures(transaction, context)
        refuse_failure(applied)
    except (Interrupted, NotBelow):
        # These say nothing about the transaction.
        raise
    except SolitonError as problem:
        error = state_refusal(problem, transaction, chain.network.family)
        members |= {"valid": False, "error": error.body()}
    members["transaction"] = _shown(transaction, signed=signed)
    members["fee"] = _fee(transaction, state, context)
    if applied is not None:
        state = applied.changes
        members |= {
            "applicationStatus": APPLICATION_STATUSES[applied.status],
            "complexity": applied.complexity,
            "spentComplexity": applied.spent,
            "changes": snapshot_json(
                applied.changes.changes, transaction.id, context.height, applied.status
            ),
            **effects_json(transaction, applied, chain),
        }
    shown = changes_with_leases(state, chain.network.chain_id)
    members["trace"] = [trace_json(trace, shown, context.watch) for trace in traces]
    return members


def _check_order_signatures(transaction: AnyTransaction, context: Context) -> None:
    """Check the signatures of orders in an unsigned transaction."""
    for key, body, proof in context.unverified:
        if proof != _NO_PROOF and not curve25519.verify(key, body, proof):
            raise invalid_signature(transaction)


def _shown(transaction: AnyTransaction, *, signed: bool) -> Members:
    return to_json(transaction if signed else with_proofs(transaction, ()))


def _fee(transaction: AnyTransaction, state: State, context: Context) -> Members:
    """The fee and the minimum fee."""
    try:
        least = fees.minimum_fee(transaction, state, context.rules)
    except TransactionRejected:
        # No fee is enough, because the asset is not sponsored.
        return {"amount": transaction.fee, "least": None, "assetId": _name(transaction)}
    return {"amount": transaction.fee, "least": least.amount, "assetId": _name(transaction)}


def _name(transaction: AnyTransaction) -> str | None:
    asset_id = transaction.fee_asset_id
    return None if asset_id is None else base58.encode(asset_id)


_UNCONFIRMED: Final = (
    "Whether the transactions of the pool are applied first, as for a broadcast; a transaction "
    "that is in the pool already is rejected then"
)
_RESPONSE: Final = shape(
    "valid, signed, height, error?, transaction, fee, applicationStatus?, complexity?, "
    "spentComplexity?, changes?, stateChanges?, trace",
    valid=described(BOOLEAN_SCHEMA, "Whether the node would accept it"),
    signed=described(BOOLEAN_SCHEMA, "Whether its proofs were checked"),
    height=described(INTEGER_SCHEMA, "The height of the next block"),
    error=ref("Error"),
    transaction=TRANSACTION,
    fee=shape(
        "amount?, least?, assetId?: string|null", amount=LONG_SCHEMA, least=or_null(LONG_SCHEMA)
    ),
    applicationStatus={"type": "string", "enum": list(APPLICATION_STATUSES)},
    complexity=described(INTEGER_SCHEMA, "Of all scripts that were run"),
    spentComplexity=described(INTEGER_SCHEMA, "As `/transactions/info` shows it"),
    changes=TRANSACTION_SNAPSHOT,
    stateChanges={"anyOf": [STATE_CHANGES, {"type": "null"}]},
    trace=list_of(TRACE),
)

ROUTES: Final = table("transactions", f"""
unconfirmed | boolean | {_UNCONFIRMED} | true
""",
    row("POST /transactions/simulate?unconfirmed", simulate,
        "Dry-run a transaction, signed or not, without broadcasting it", _RESPONSE,
        examples.SIMULATED,
        "UNSUPPORTED_TRANSACTION_TYPE WRONG_JSON WRONG_JSON_DATA INVALID_ADDRESS "
        "CUSTOM_VALIDATION_ERROR SERVER_REQUEST_TIMEOUT",
        body=json_body(
            "A transaction. Without `proofs` it needs `senderPublicKey`, and the signature or the "
            "verifier of its sender is not checked. The default of `fee` is the minimum fee, that "
            "of `timestamp` is now", examples.FEE_REQUEST, UNSIGNED_TRANSACTION, get_is_405=True)),
    own=True,
)  # fmt: skip
