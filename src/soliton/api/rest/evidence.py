"""Routes ``/transactions/merkleProof`` and ``/transactions/snapshot``: that a transaction is in a
block, and what it wrote to the state.

Source: wavesplatform/Waves ``node/src/main/scala/com/wavesplatform/api/http/
TransactionsApiRoute.scala``.
"""

from __future__ import annotations

from typing import Final

import msgspec

from soliton.api.errors import (
    CUSTOM_VALIDATION_ERROR,
    INVALID_IDS,
    INVALID_TRANSACTION_ID,
    TOO_BIG_SEQUENCE_WITH_LIMIT,
    TRANSACTION_DOES_NOT_EXIST,
    invalid_request,
)
from soliton.api.http import Request
from soliton.api.json_snapshots import snapshot_json
from soliton.api.json_transactions import Members
from soliton.api.lookup import (
    decode_id,
    id_list,
    id_query,
    node_of,
    not_base58,
    transaction_id,
    with_slash,
)
from soliton.api.rest import examples
from soliton.api.routes import GET, POST, TEXT, Parameter, Route
from soliton.api.schemas import TRANSACTION_SNAPSHOT
from soliton.chain.blocks import PROTOBUF_VERSION, Block
from soliton.chain.transactions.codec import merkle_leaf
from soliton.crypto import base58, merkle
from soliton.node.node import Node

_TAG: Final = "transactions"

FAMILIES: Final = {
    **dict.fromkeys(("/transactions/merkleProof", "/transactions/merkleProof/"), ("waves", "tn")),
    **dict.fromkeys(
        ("/transactions/snapshot/{id}", "/transactions/snapshot", "/transactions/snapshot/"),
        ("waves",),
    ),
}
"""Routes that only some families of networks have."""


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
        raise INVALID_IDS.error(ids=wrong)
    found = [proof for _, name in names if name and (proof := _proof(node, name)) is not None]
    if not found:
        raise invalid_request("transactions do not exist or block version < 5")
    return found


def _names(request: Request, limit: int) -> list[tuple[str, bytes | None]]:
    texts = request.listed("id", "ids")
    if len(texts) > limit:
        raise TOO_BIG_SEQUENCE_WITH_LIMIT.error(limit=limit)
    if not texts:
        raise INVALID_TRANSACTION_ID.error(message="Transaction ID was not specified")
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
            raise invalid_request(not_base58(text))
        found.append(_snapshot(node, name))
    return found


def _snapshot(node: Node, name: bytes) -> Members:
    store = node.chain.store
    location = store.transaction_location(name)
    changes = None if location is None else store.transaction_changes(location)
    if location is None or changes is None:
        raise TRANSACTION_DOES_NOT_EXIST.error()
    return snapshot_json(changes, name, location.height, location.status)


_LISTS: Final = (
    "balances",
    "leaseBalances",
    "assetStatics",
    "assetVolumes",
    "assetNamesAndDescriptions",
    "assetScripts",
    "sponsorships",
    "newLeases",
    "cancelledLeases",
    "aliases",
    "orderFills",
    "accountScripts",
    "accountData",
)
_EXAMPLE: Final = {
    "applicationStatus": "succeeded",
    **{name: [] for name in _LISTS},
    "balances": [{"address": examples.ADDRESS, "asset": None, "balance": 10000000000000000}],
}

ROUTES: tuple[Route, ...] = (
    *(
        each
        for methods, parameters, body in (
            (GET, (id_query("Ids of transactions in base58"),), None),
            (POST, (), id_list()),
        )
        for each in with_slash(
            Route(
                methods=methods,
                path="/transactions/merkleProof",
                handler=merkle_proof,
                tag=_TAG,
                summary="Proofs that transactions are in their blocks",
                parameters=parameters,
                body=body,
                response=list[MerkleProof],
                example=[
                    {
                        "id": "93iMf1WCQf6GjPoxjKjzRZwQmF4m1botLx2dsbWWqeS4",
                        "transactionIndex": 0,
                        "merkleProof": ["D4bn122GiEqs99z526GdhYETJqctLHGSmWokypEo9qu"],
                    }
                ],
                errors=(
                    INVALID_TRANSACTION_ID,
                    INVALID_IDS,
                    TOO_BIG_SEQUENCE_WITH_LIMIT,
                    CUSTOM_VALIDATION_ERROR,
                ),
            )
        )
    ),
    Route(
        methods=GET,
        path="/transactions/snapshot/{id}",
        handler=snapshot,
        tag=_TAG,
        summary="What a transaction wrote to the state",
        parameters=(
            Parameter("id", TEXT, "Id of a transaction in base58", examples.TRANSACTION_ID),
        ),
        response=TRANSACTION_SNAPSHOT,
        example=_EXAMPLE,
        errors=(INVALID_TRANSACTION_ID, TRANSACTION_DOES_NOT_EXIST),
    ),
    *(
        each
        for methods, parameters, body in (
            (GET, (id_query("Ids of transactions in base58"),), None),
            (POST, (), id_list()),
        )
        for each in with_slash(
            Route(
                methods=methods,
                path="/transactions/snapshot",
                handler=snapshot_of_many,
                tag=_TAG,
                summary="What transactions wrote to the state, at most 100 of them",
                parameters=parameters,
                body=body,
                response={"type": "array", "items": TRANSACTION_SNAPSHOT},
                example=[_EXAMPLE],
                errors=(
                    INVALID_TRANSACTION_ID,
                    TOO_BIG_SEQUENCE_WITH_LIMIT,
                    TRANSACTION_DOES_NOT_EXIST,
                    CUSTOM_VALIDATION_ERROR,
                ),
            )
        )
    ),
)
