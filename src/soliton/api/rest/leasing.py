"""Routes under ``/leasing``: leases that are in force, and what became of one.

Source: wavesplatform/Waves ``node/src/main/scala/com/wavesplatform/api/http/leasing/
LeaseApiRoute.scala``; 0bsnetwork/Zbs ``src/main/scala/com/zbsnetwork/api/http/leasing/
LeaseApiRoute.scala`` for the older generations.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from itertools import islice
from typing import Final

from soliton.api.errors import (
    INVALID_ADDRESS,
    INVALID_IDS,
    INVALID_TRANSACTION_ID,
    TOO_BIG_SEQUENCE_WITH_LIMIT,
    TRANSACTION_DOES_NOT_EXIST,
)
from soliton.api.http import JsonStream, Request
from soliton.api.json_transactions import MIDDLE, Members, lease_json
from soliton.api.lookup import (
    ADDRESS,
    address_argument,
    decode_id,
    id_list,
    id_query,
    node_of,
    transaction_id,
    with_slash,
)
from soliton.api.rest import examples
from soliton.api.routes import GET, POST, TEXT, Parameter, Route
from soliton.api.schemas import LEASE
from soliton.api.translate import OLDEST
from soliton.chain.addresses import Address
from soliton.chain.transactions.codec import to_json
from soliton.ledger.state import LEASE_INFO, LEASE_STATES
from soliton.node.node import Node
from soliton.storage import indexes

_TAG: Final = "leasing"
_PAGE: Final = 200
"""So many leases are read before others get their turn."""

FAMILIES: Final = dict.fromkeys(
    ("/leasing/info/{id}", "/leasing/info", "/leasing/info/"), ("waves",)
)
"""Routes that only some families of networks have."""


def active(request: Request) -> JsonStream:
    """The leases from and to an account that are in force."""
    node = node_of(request)
    return JsonStream(_active(node, address_argument(request)))


async def _active(node: Node, address: Address) -> AsyncIterator[object]:
    """Piece by piece: the store may be written between two pieces, not within one."""
    place: bytes | None = None
    while True:
        page = list(islice(indexes.leases_of(node.chain.store, address, place), _PAGE))
        for _, lease_id in page:
            state = node.chain.store.get(LEASE_STATES, lease_id)
            if state is not None and state.active:
                yield _shown(node, lease_id)
        if len(page) < _PAGE:
            return
        place = page[-1][0]
        await asyncio.sleep(0)


def _shown(node: Node, lease_id: bytes) -> Members:
    chain = node.chain
    if node.network.family in (OLDEST, MIDDLE):
        # Older generations show the transaction, which in them has always the id of the lease.
        found = chain.transaction(lease_id)
        if found is not None:
            return {**to_json(found.transaction), "height": found.height}
    return lease_json(lease_id, chain.store, node.network.chain_id)


def info(request: Request) -> Members:
    """A lease and what became of it."""
    node = node_of(request)
    found = _find(node, transaction_id(request.text("id"), node))
    if found is None:
        raise TRANSACTION_DOES_NOT_EXIST.error()
    return found


def info_of_many(request: Request) -> list[Members]:
    """Leases by their ids."""
    node = node_of(request)
    texts = request.listed("id", "ids")
    limit = node.settings.rest_api.transactions_by_address_limit
    if len(texts) > limit:
        raise TOO_BIG_SEQUENCE_WITH_LIMIT.error(limit=limit)
    found = [_find(node, decode_id(text)) for text in texts]
    unknown = [text for text, members in zip(texts, found, strict=True) if members is None]
    if unknown:
        raise INVALID_IDS.error(ids=unknown)
    return [members for members in found if members is not None]


def _find(node: Node, lease_id: bytes | None) -> Members | None:
    store = node.chain.store
    if lease_id is None or store.get(LEASE_INFO, lease_id[:_MAX_ID_BYTES]) is None:
        return None
    return lease_json(lease_id, store, node.network.chain_id)


_MAX_ID_BYTES: Final = 64
_EXAMPLE: Final = {
    "id": "DWNGckUUGqpufgzZrMN5WH7MiU8GjysoMF7qZXdE3CAm",
    "originTransactionId": "DWNGckUUGqpufgzZrMN5WH7MiU8GjysoMF7qZXdE3CAm",
    "sender": "3MJyvXeiuhfYUovPsXTW2XtYfGVT577tDW6",
    "recipient": "3MAacUAFdvw46CyP3uhu4LgEH4P6KCSS9Ve",
    "amount": 200000000,
    "height": 14,
    "status": "active",
    "cancelHeight": None,
    "cancelTransactionId": None,
}
_MANY: Final = {"type": "array", "items": LEASE}

ROUTES: tuple[Route, ...] = (
    Route(
        methods=GET,
        path="/leasing/active/{address}",
        handler=active,
        tag=_TAG,
        summary="The leases from and to an account that are in force",
        parameters=(ADDRESS,),
        response=_MANY,
        example=[_EXAMPLE],
        errors=(INVALID_ADDRESS,),
    ),
    Route(
        methods=GET,
        path="/leasing/info/{id}",
        handler=info,
        tag=_TAG,
        summary="A lease and what became of it",
        parameters=(Parameter("id", TEXT, "Id of a lease in base58", examples.TRANSACTION_ID),),
        response=LEASE,
        example=_EXAMPLE,
        errors=(INVALID_TRANSACTION_ID, TRANSACTION_DOES_NOT_EXIST),
    ),
    *(
        each
        for methods, parameters, body in (
            (GET, (id_query("Ids of leases in base58"),), None),
            (POST, (), id_list()),
        )
        for each in with_slash(
            Route(
                methods=methods,
                path="/leasing/info",
                handler=info_of_many,
                tag=_TAG,
                summary="Leases by their ids",
                parameters=parameters,
                body=body,
                response=_MANY,
                example=[_EXAMPLE],
                errors=(TOO_BIG_SEQUENCE_WITH_LIMIT, INVALID_IDS),
            )
        )
    ),
)
