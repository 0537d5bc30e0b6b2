"""Routes ``/transactions/merkleProof`` and ``/transactions/snapshot``: that a transaction is in a
block, and what it wrote to the state.

Source: wavesplatform/Waves ``node/src/main/scala/com/wavesplatform/api/http/
TransactionsApiRoute.scala``.
"""

from __future__ import annotations

from typing import Final

import msgspec

from soliton.api import errors
from soliton.api.http import Request
from soliton.api.json_snapshots import snapshot_json
from soliton.api.json_transactions import Members
from soliton.api.lookup import (
    decode_id,
    node_of,
    not_base58,
    transaction_id,
)
from soliton.api.rest import examples
from soliton.api.route_table import row, rows_by_ids, table
from soliton.api.schemas import TRANSACTION_SNAPSHOT
from soliton.chain.blocks import PROTOBUF_VERSION, Block
from soliton.chain.json_schemas import list_of
from soliton.chain.transactions.codec import merkle_leaf
from soliton.crypto import base58, merkle
from soliton.node.node import Node


class MerkleProof(msgspec.Struct, frozen=True, rename="camel"):
    """The neighbours on the way from a transaction to the root of its block's transactions."""

    id: str
    transaction_index: int
    merkle_proof: list[str]


def merkle_proof(request: Request) -> list[MerkleProof]:
    """Proofs that transactions are in their blocks; those without one are left out."""
    node = node_of(request)
    names = _names(request, node.settings.rest_api.transactions_by_address_limit)
    wrong = [text for text, name in names if name is None]
    if wrong:
        raise errors.INVALID_IDS.error(ids=wrong)
    found = [proof for _, name in names if name and (proof := _proof(node, name)) is not None]
    if not found:
        raise errors.invalid_request("transactions do not exist or block version < 5")
    return found


def _names(request: Request, limit: int) -> list[tuple[str, bytes | None]]:
    texts = request.listed("id", "ids")
    if len(texts) > limit:
        raise errors.TOO_BIG_SEQUENCE_WITH_LIMIT.error(limit=limit)
    if not texts:
        raise errors.INVALID_TRANSACTION_ID.error(message="Transaction ID was not specified")
    return [(text, decode_id(text)) for text in texts]


def _proof(node: Node, name: bytes) -> MerkleProof | None:
    location = node.chain.store.transaction_location(name)
    if location is None:
        return None
    block: Block = node.chain.block_at(location.height)
    if block.header.version < PROTOBUF_VERSION:
        return None
    leaves = [merkle_leaf(item) for item in block.transactions]
    neighbours = merkle.proof(leaves, location.index)
    return MerkleProof(
        base58.encode(name), location.index, [base58.encode(item) for item in reversed(neighbours)]
    )


def snapshot(request: Request) -> Members:
    """What a transaction wrote to the state."""
    node = node_of(request)
    return _snapshot(node, transaction_id(request.text("id"), node))


def snapshot_of_many(request: Request) -> list[Members]:
    """What transactions wrote to the state."""
    node = node_of(request)
    names = _names(request, node.settings.rest_api.transaction_snapshots_limit)
    found = []
    for text, name in names:
        if name is None:
            raise errors.invalid_request(not_base58(text))
        found.append(_snapshot(node, name))
    return found


def _snapshot(node: Node, name: bytes) -> Members:
    store = node.chain.store
    location = store.transaction_location(name)
    changes = None if location is None else store.transaction_changes(location)
    if location is None or changes is None:
        raise errors.TRANSACTION_DOES_NOT_EXIST.error()
    return snapshot_json(changes, name, location.height, location.status)


_EXAMPLE: Final = {
    "applicationStatus": "succeeded",
    "balances": [{"address": examples.ADDRESS, "asset": None, "balance": 10000000000000000}],
    **{name: [] for name in examples.NOTHING_WRITTEN},
}

_PROOF_EXAMPLE: Final = {
    "id": "93iMf1WCQf6GjPoxjKjzRZwQmF4m1botLx2dsbWWqeS4",
    "transactionIndex": 0,
    "merkleProof": ["D4bn122GiEqs99z526GdhYETJqctLHGSmWokypEo9qu"],
}
ROUTES: Final = table("transactions", "",
    rows_by_ids("/transactions/merkleProof?id.transactions family=waves,tn", merkle_proof,
        "Proofs that transactions are in their blocks", list[MerkleProof], [_PROOF_EXAMPLE],
        "INVALID_TRANSACTION_ID INVALID_IDS TOO_BIG_SEQUENCE_WITH_LIMIT CUSTOM_VALIDATION_ERROR"),
    row("GET /transactions/snapshot/{id.transaction}", snapshot,
        "What a transaction wrote to the state", TRANSACTION_SNAPSHOT, _EXAMPLE,
        "INVALID_TRANSACTION_ID TRANSACTION_DOES_NOT_EXIST"),
    rows_by_ids("/transactions/snapshot?id.transactions", snapshot_of_many,
        "What transactions wrote to the state, at most 100 of them", list_of(TRANSACTION_SNAPSHOT),
        [_EXAMPLE], "INVALID_TRANSACTION_ID TOO_BIG_SEQUENCE_WITH_LIMIT TRANSACTION_DOES_NOT_EXIST "
        "CUSTOM_VALIDATION_ERROR"),
    reads="state", family="waves",
)  # fmt: skip
