"""``waves.node.grpc.TransactionsApi``: transactions of the chain and the pool, and broadcasting.

Source: wavesplatform/Waves ``grpc-server/src/main/scala/com/wavesplatform/api/grpc/
TransactionsApiGrpcImpl.scala``.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from functools import partial
from typing import Final

from soliton.chain import snapshots
from soliton.chain.addresses import Address, from_public_key
from soliton.chain.proto.transaction_pb2 import SignedTransaction
from soliton.chain.transactions import codec, ethereum, invoke_script
from soliton.chain.transactions.model import AnyTransaction
from soliton.chain.transactions.table import type_by_id
from soliton.grpc_api.errors import Code, Refused, numbered
from soliton.grpc_api.invoke_results import invoke_result
from soliton.grpc_api.link import MAX_IDS, FindUnconfirmed, NodeLink, Unconfirmed
from soliton.grpc_api.messages import signed_transaction
from soliton.grpc_api.proto import transactions_api_pb2 as pb
from soliton.grpc_api.proto.invoke_script_result_pb2 import InvokeScriptResult
from soliton.grpc_api.reading import resolved, stream_address
from soliton.grpc_api.sending import NOT_REACHABLE, VALIDATION, send
from soliton.ledger.snapshots import snapshot_of
from soliton.ledger.state import Status
from soliton.node.blockchain import Blockchain, FoundTransaction
from soliton.storage import indexes

SERVICE: Final = pb.DESCRIPTOR.services_by_name["TransactionsApi"]

_NO_ETHEREUM: Final = "ETH transactions should not be broadcasted over gRPC"


def get_transactions(
    chain: Blockchain, request: pb.TransactionsRequest
) -> Iterator[pb.TransactionResponse | None]:
    """Return transactions of the chain: of an account, the newest first, or with given ids."""
    chain_id, ids = chain.network.chain_id, set(request.transaction_ids)
    sender = stream_address(request.sender, chain_id) if request.sender else None
    subject = sender
    if request.HasField("recipient"):
        subject = resolved(request.recipient, chain)
    if subject is None:
        for name in request.transaction_ids:
            found = chain.transaction(name)
            # A missing one is a step without a message, too: other calls get their turn.
            yield None if found is None else _response(chain, found)
        return
    for _, _, name in indexes.address_transactions(chain.store, subject):
        found = None if ids and name not in ids else chain.transaction(name)
        wanted = found is not None and (sender is None or _sender(found.transaction) == sender)
        # One that is left out is a step without a message.
        yield _response(chain, found) if found is not None and wanted else None


def _sender(transaction: AnyTransaction) -> Address | None:
    key = transaction.sender_public_key
    return from_public_key(key, transaction.chain_id) if key else None


def _response(chain: Blockchain, found: FoundTransaction) -> pb.TransactionResponse:
    transaction = found.transaction
    response = pb.TransactionResponse(
        id=transaction.id, height=found.height, application_status=_STATUSES[Status(found.status)]
    )
    response.transaction.CopyFrom(signed_transaction(transaction))
    result = call_result(chain, found)
    if result is not None:
        response.invoke_script_result.CopyFrom(result)
    return response


_STATUSES: Final = {
    Status.SUCCEEDED: pb.SUCCEEDED,
    Status.FAILED: pb.SCRIPT_EXECUTION_FAILED,
    Status.ELIDED: pb.ELIDED,
}


def call_result(chain: Blockchain, found: FoundTransaction) -> InvokeScriptResult | None:
    """Return the result of a transaction's dApp call, ``None`` if there is none. Calls of Ethereum
    transactions are not included, as in the reference; updates include them.
    """
    if found.transaction.type_id == ethereum.TYPE_ID:
        return None
    return stored_result(chain, found.transaction)


def stored_result(chain: Blockchain, transaction: AnyTransaction) -> InvokeScriptResult | None:
    """Return the stored result of any call."""
    if type_by_id(transaction.type_id).calls(transaction.payload) is None:
        return None
    location = chain.store.transaction_location(transaction.id)
    record = None if location is None else chain.store.call_record(location)
    changes = None if record is None else record.get("stateChanges")
    if not isinstance(changes, dict):
        return None
    return invoke_result(changes, chain.store, chain.network.chain_id)


def get_transaction_snapshots(
    chain: Blockchain, request: pb.TransactionSnapshotsRequest
) -> Iterator[pb.TransactionSnapshotResponse | None]:
    """Return the state changes of those transactions that the chain has, in the given order."""
    for name in request.transaction_ids:
        location = chain.store.transaction_location(name)
        changes = None if location is None else chain.store.transaction_changes(location)
        if location is None or changes is None:
            yield None
            continue
        snapshot = snapshot_of(changes, location.status)
        response = pb.TransactionSnapshotResponse(id=name)
        response.snapshot.CopyFrom(snapshots.to_message(snapshot))
        yield response


def get_state_changes(
    chain: Blockchain, request: pb.TransactionsRequest
) -> Iterator[pb.InvokeScriptResultResponse | None]:
    """Return those of the transactions that call a dApp, with their results; an elided one has
    none.
    """
    for name in request.transaction_ids:
        found = chain.transaction(name)
        if found is None or found.transaction.type_id != invoke_script.TYPE.type_id:
            yield None
            continue
        result = call_result(chain, found)
        response = pb.InvokeScriptResultResponse(result=result)
        response.transaction.CopyFrom(signed_transaction(found.transaction))
        yield response


async def get_statuses(
    node: NodeLink, chain: Blockchain, request: pb.TransactionsByIdRequest
) -> AsyncIterator[pb.TransactionStatus]:
    """Return the status of each transaction."""
    if not request.transaction_ids:
        return
    ids = list(request.transaction_ids)
    waiting = set(await _waiting(node, FindUnconfirmed(b"", ids, only_ids=True)))
    for name in ids:
        location = chain.store.transaction_location(name)
        if name in waiting:
            yield pb.TransactionStatus(id=name, status=pb.TransactionStatus.UNCONFIRMED)
        elif location is None:
            yield pb.TransactionStatus(id=name)
        else:
            yield pb.TransactionStatus(
                id=name,
                status=pb.TransactionStatus.CONFIRMED,
                height=location.height,
                application_status=_STATUSES[Status(location.status)],
            )


async def get_unconfirmed(
    node: NodeLink, chain: Blockchain, request: pb.TransactionsRequest
) -> AsyncIterator[pb.TransactionResponse]:
    """Return the pool's transactions of a sender, or with given ids."""
    chain_id, ids = chain.network.chain_id, list(request.transaction_ids)
    sender = stream_address(request.sender, chain_id) if request.sender else b""
    if not sender and not ids:
        return
    if sender:
        ids = await _waiting(node, FindUnconfirmed(sender, []))
    for start in range(0, len(ids), MAX_IDS):
        part = ids[start : start + MAX_IDS]
        # A repeated id is answered repeatedly, but requested once.
        found = await _waiting(node, FindUnconfirmed(b"", list(dict.fromkeys(part))))
        by_id = {codec.decode_trusted(data, chain_id).id: data for data in found}
        for name in part:
            if name in by_id:
                response = pb.TransactionResponse(id=name)
                response.transaction.CopyFrom(SignedTransaction.FromString(by_id[name]))
                yield response


async def _waiting(node: NodeLink, request: FindUnconfirmed) -> list[bytes]:
    answer = await node.ask(request)
    if isinstance(answer, Unconfirmed):
        return answer.found
    raise Refused(Code.UNAVAILABLE, NOT_REACHABLE)


def sign(_request: pb.SignRequest) -> SignedTransaction:
    """Refuse: keys stay in the node's wallet."""
    raise Refused(Code.UNIMPLEMENTED, "")


async def broadcast(
    node: NodeLink, chain: Blockchain, request: SignedTransaction
) -> SignedTransaction:
    """Add a transaction to the pool and return it."""
    if request.HasField("ethereum_transaction"):
        raise numbered(VALIDATION, _NO_ETHEREUM)
    await send(node, chain, request)
    return request


def methods(node: NodeLink) -> dict[str, object]:
    """Return the calls; ``node`` has the pool."""
    return {
        "GetTransactions": get_transactions,
        "GetTransactionSnapshots": get_transaction_snapshots,
        "GetStateChanges": get_state_changes,
        "GetStatuses": partial(get_statuses, node),
        "GetUnconfirmed": partial(get_unconfirmed, node),
        "Sign": sign,
        "Broadcast": partial(broadcast, node),
    }
