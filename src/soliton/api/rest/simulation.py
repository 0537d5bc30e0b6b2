"""``/transactions/simulate``: what a transaction would do, signed or not, without sending it. No
other node has it.

What lives here: completing what the client left out, trying, the answer. What does not: running
beside other requests (``soliton.api.workers``), the rules (``soliton.ledger``).
"""

from __future__ import annotations

from typing import Final

import msgspec

from soliton.api.errors import (
    CUSTOM_VALIDATION_ERROR,
    INVALID_ADDRESS,
    SERVER_REQUEST_TIMEOUT,
    UNSUPPORTED_TRANSACTION_TYPE,
    WRONG_JSON,
    WRONG_JSON_DATA,
)
from soliton.api.http import Request
from soliton.api.json_snapshots import snapshot_json
from soliton.api.json_traces import changes_with_leases, trace_json
from soliton.api.json_transactions import APPLICATION_STATUSES, Members, effects_json
from soliton.api.lookup import node_of
from soliton.api.rest import examples
from soliton.api.rest.debug import next_block
from soliton.api.rest.signing import FEE_WHEN_PRICING, read_claimed, read_unsigned
from soliton.api.routes import BOOLEAN, POST, Body, BodyKind, Route, query_parameter
from soliton.api.schemas import (
    STATE_CHANGES,
    TRACE,
    TRANSACTION,
    TRANSACTION_SNAPSHOT,
    UNSIGNED_TRANSACTION,
)
from soliton.api.translate import refusal, state_refusal
from soliton.api.workers import Watch
from soliton.chain.addresses import Address, from_public_key
from soliton.chain.orders import Order
from soliton.chain.transactions.codec import to_json, with_proofs
from soliton.chain.transactions.model import AnyTransaction
from soliton.chain.values import AssetId
from soliton.crypto import base58, curve25519
from soliton.errors import SolitonError
from soliton.ledger import fees
from soliton.ledger.context import Context
from soliton.ledger.errors import TransactionRejected
from soliton.ledger.portfolio import Portfolio
from soliton.ledger.scripts import Estimate, ScriptHead, Scripts
from soliton.ledger.state import AccountScript, AssetScript, Overlay, State
from soliton.ledger.traces import Traces, VerifierTrace
from soliton.ledger.transactions import (
    Applied,
    apply_transaction,
    invalid_signature,
    refuse_failure,
)
from soliton.node.chain import Chain
from soliton.node.node import Node
from soliton.ride.errors import Interrupted

_NO_PROOF: Final = bytes(64)
"""Stands where the signature will be."""


async def simulate(request: Request) -> Members:
    """What would become of a transaction on top of the chain and of what waits for a block."""
    node = node_of(request)
    try:
        transaction, signed = _read(node, request.json())
    except SolitonError as error:
        raise refusal(error, node.network.family) from error
    now = node.clock()
    # Left out only where the client says so: what it sends next comes on top of these.
    alone = request.arguments.get("unconfirmed") is False
    unconfirmed = None if alone else node.pool.kept_state()

    def work(chain: Chain, watch: Watch) -> Members:
        store = chain.store
        state = store if unconfirmed is None else unconfirmed.moved_above(store)
        context = next_block(chain, now, watch)
        return _tried(transaction, chain, state, context, signed=signed)

    return await request.context.workers.ask(node, work, request.charge)


def _read(node: Node, obj: Members) -> tuple[AnyTransaction, bool]:
    """The transaction, and whether it is signed. What has no fee gets the least one, what has no
    timestamp the present time.
    """
    if obj.get("proofs") or obj.get("signature"):
        return read_claimed(obj, node), True
    key = obj.get("senderPublicKey")
    obj = {"timestamp": node.clock(), **obj}
    if obj.get("fee") is None:
        draft = read_unsigned(node, obj | {"fee": FEE_WHEN_PRICING}, key)
        obj["fee"] = node.minimum_fee(draft).amount
    return with_proofs(read_unsigned(node, obj, key), (_NO_PROOF,)), False


class _NotSigned:
    """Scripts, but for the verifier of a transaction's sender: it cannot say yes yet."""

    __slots__ = ("_scripts", "_transaction")

    def __init__(self, scripts: Scripts, transaction: AnyTransaction) -> None:
        self._scripts = scripts
        self._transaction = transaction

    def inspect(self, script: bytes, /) -> ScriptHead:
        return self._scripts.inspect(script)

    def estimate(self, script: bytes, for_asset: bool, context: Context, /) -> Estimate:
        return self._scripts.estimate(script, for_asset, context)

    def run_account(
        self,
        script: AccountScript,
        subject: AnyTransaction | Order,
        state: State,
        context: Context,
        /,
    ) -> int:
        if subject is self._transaction:
            return 0
        return self._scripts.run_account(script, subject, state, context)

    def run_asset(
        self,
        asset_id: AssetId,
        script: AssetScript,
        transaction: AnyTransaction,
        state: State,
        context: Context,
        /,
    ) -> int:
        return self._scripts.run_asset(asset_id, script, transaction, state, context)

    def invoke(
        self,
        dapp: Address,
        transaction: AnyTransaction,
        overlay: Overlay,
        portfolio: Portfolio,
        context: Context,
        /,
    ) -> int:
        return self._scripts.invoke(dapp, transaction, overlay, portfolio, context)


def _tried(
    transaction: AnyTransaction, chain: Chain, state: State, context: Context, *, signed: bool
) -> Members:
    traces: Traces = []
    scripts = context.scripts if signed else _NotSigned(context.scripts, transaction)
    context = msgspec.structs.replace(context, traces=traces, scripts=scripts)
    members: Members = {"valid": True, "signed": signed, "height": context.height}
    applied: Applied | None = None
    try:
        applied = apply_transaction(transaction, state, context, verify_signature=signed)
        _check_others(transaction, context)
        refuse_failure(applied)
    except Interrupted:
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
    sender = from_public_key(transaction.sender_public_key, transaction.chain_id)
    members["trace"] = [
        trace_json(trace, shown)
        for trace in traces
        if signed or not (isinstance(trace, VerifierTrace) and trace.address == sender)
    ]
    return members


def _check_others(transaction: AnyTransaction, context: Context) -> None:
    """Check the signatures inside of an unsigned transaction, those of orders."""
    for key, body, proof in context.unverified:
        if proof != _NO_PROOF and not curve25519.verify(key, body, proof):
            raise invalid_signature(transaction)


def _shown(transaction: AnyTransaction, *, signed: bool) -> Members:
    return to_json(transaction if signed else with_proofs(transaction, ()))


def _fee(transaction: AnyTransaction, state: State, context: Context) -> Members:
    """What is paid, and the least that would do."""
    try:
        least = fees.minimum_fee(transaction, state, context.rules)
    except TransactionRejected:
        # Nothing would do: the asset pays for nobody.
        return {"amount": transaction.fee, "least": None, "assetId": _name(transaction)}
    return {"amount": transaction.fee, "least": least.amount, "assetId": _name(transaction)}


def _name(transaction: AnyTransaction) -> str | None:
    asset_id = transaction.fee_asset_id
    return None if asset_id is None else base58.encode(asset_id)


_RESPONSE: Final = {
    "type": "object",
    "properties": {
        "valid": {"type": "boolean", "description": "Whether the node would take it"},
        "signed": {"type": "boolean", "description": "Whether its proofs were checked"},
        "height": {"type": "integer", "description": "The block that it would be in"},
        "error": {"$ref": "#/components/schemas/Error"},
        "transaction": TRANSACTION,
        "fee": {
            "type": "object",
            "properties": {
                "amount": {"type": "integer", "format": "int64"},
                "least": {"type": ["integer", "null"], "format": "int64"},
                "assetId": {"type": ["string", "null"]},
            },
        },
        "applicationStatus": {"type": "string", "enum": list(APPLICATION_STATUSES)},
        "complexity": {"type": "integer", "description": "Of all scripts that were run"},
        "spentComplexity": {"type": "integer", "description": "As `/transactions/info` shows it"},
        "changes": TRANSACTION_SNAPSHOT,
        "stateChanges": {"anyOf": [STATE_CHANGES, {"type": "null"}]},
        "trace": {"type": "array", "items": TRACE},
    },
    "required": ["valid", "signed", "height", "transaction", "fee", "trace"],
}

ROUTES: tuple[Route, ...] = (
    Route(
        methods=POST,
        path="/transactions/simulate",
        handler=simulate,
        tag="transactions",
        summary="What a transaction would do, signed or not, without sending it",
        parameters=(
            query_parameter(
                "unconfirmed",
                BOOLEAN,
                "Whether it comes on top of the transactions that wait for a block, as one that "
                "is sent does; one of these is refused then as being there already",
                True,
            ),
        ),
        body=Body(
            BodyKind.JSON,
            "A transaction. Without `proofs` it needs `senderPublicKey`; its sender's signature "
            "or verifier counts as given, `fee` is the least one and `timestamp` now where they "
            "are left out",
            examples.FEE_REQUEST,
            UNSIGNED_TRANSACTION,
            get_is_405=True,
        ),
        response=_RESPONSE,
        example=examples.SIMULATED,
        errors=(
            UNSUPPORTED_TRANSACTION_TYPE,
            WRONG_JSON,
            WRONG_JSON_DATA,
            INVALID_ADDRESS,
            CUSTOM_VALIDATION_ERROR,
            SERVER_REQUEST_TIMEOUT,
        ),
    ),
)
