"""Routes ``/transactions/merkleProof`` and ``/transactions/snapshot``: proofs that transactions are
in blocks, and their state changes.

Source: wavesplatform/Waves ``node/src/main/scala/com/wavesplatform/api/http/
TransactionsApiRoute.scala``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
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
from soliton.api.thread_pool import Watch
from soliton.chain.blocks import PROTOBUF_VERSION
from soliton.chain.json_schemas import list_of
from soliton.chain.transactions.codec import merkle_leaf
from soliton.crypto import base58, merkle
from soliton.node.blockchain import Blockchain
from soliton.node.node import Node

FEW_TRANSACTIONS: Final = 64
"""Proofs in blocks with more transactions, all blocks together, are made in a thread."""


class MerkleProof(msgspec.Struct, frozen=True, rename="camel"):
    """The siblings on the path from a transaction to the root of its block's transactions."""

    id: str
    transaction_index: int
    merkle_proof: list[str]


def merkle_proof(request: Request) -> object:
    """Proofs that transactions are in their blocks; transactions without a proof are omitted."""
    node = node_of(request)
    names = _names(request, node.settings.rest_api.transactions_by_address_limit)
    wrong = [text for text, name in names if name is None]
    if wrong:
        raise errors.INVALID_IDS.error(ids=wrong)
    ids = [name for _, name in names if name]
    count = sum(node.chain.meta(height).transaction_count for height in _by_height(node.chain, ids))
    if count <= FEW_TRANSACTIONS:
        return _proofs(node.chain, ids)

    def work(chain: Blockchain, watch: Watch) -> list[MerkleProof]:
        return _proofs(chain, ids, watch)

    return request.context.workers.ask(node, work, request.charge)


def _by_height(chain: Blockchain, ids: Iterable[bytes]) -> dict[int, dict[bytes, int]]:
    """The indexes of the confirmed transactions in their blocks, by height and id."""
    found: dict[int, dict[bytes, int]] = {}
    for name in ids:
        location = chain.store.transaction_location(name)
        if location is not None:
            found.setdefault(location.height, {})[name] = location.index
    return found


def _proofs(
    chain: Blockchain, ids: list[bytes], watch: Callable[[], None] = lambda: None
) -> list[MerkleProof]:
    proofs: dict[bytes, MerkleProof] = {}
    # Block by block, so that each is decoded once and only one is in memory.
    for height, indexes in _by_height(chain, ids).items():
        watch()
        block = chain.block_at(height)
        if block.header.version < PROTOBUF_VERSION:
            continue
        leaves = [merkle_leaf(item) for item in block.transactions]
        for name, index in indexes.items():
            watch()
            siblings = [base58.encode(item) for item in reversed(merkle.proof(leaves, index))]
            proofs[name] = MerkleProof(base58.encode(name), index, siblings)
    if not proofs:
        raise errors.invalid_request("transactions do not exist or block version < 5")
    return [proofs[name] for name in ids if name in proofs]


def _names(request: Request, limit: int) -> list[tuple[str, bytes | None]]:
    texts = request.listed("id", "ids", limit)
    if not texts:
        raise errors.INVALID_TRANSACTION_ID.error(message="Transaction ID was not specified")
    return [(text, decode_id(text)) for text in texts]


def snapshot(request: Request) -> Members:
    """The state changes of a transaction."""
    node = node_of(request)
    return _snapshot(node, transaction_id(request.text("id"), node))


def snapshot_of_many(request: Request) -> list[Members]:
    """The state changes of several transactions."""
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
        "INVALID_TRANSACTION_ID INVALID_IDS TOO_BIG_SEQUENCE_WITH_LIMIT CUSTOM_VALIDATION_ERROR "
        "SERVER_REQUEST_TIMEOUT"),
    row("GET /transactions/snapshot/{id.transaction}", snapshot,
        "The state changes of a transaction", TRANSACTION_SNAPSHOT, _EXAMPLE,
        "INVALID_TRANSACTION_ID TRANSACTION_DOES_NOT_EXIST"),
    rows_by_ids("/transactions/snapshot?id.transactions", snapshot_of_many,
        "The state changes of several transactions, at most 100", list_of(TRANSACTION_SNAPSHOT),
        [_EXAMPLE], "INVALID_TRANSACTION_ID TOO_BIG_SEQUENCE_WITH_LIMIT TRANSACTION_DOES_NOT_EXIST "
        "CUSTOM_VALIDATION_ERROR"),
    reads="state", family="waves",
)  # fmt: skip
