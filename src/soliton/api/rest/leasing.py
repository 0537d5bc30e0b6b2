"""Routes under ``/leasing``: active leases of an account, and details of leases.

Source: wavesplatform/Waves ``node/src/main/scala/com/wavesplatform/api/http/leasing/
LeaseApiRoute.scala``; 0bsnetwork/Zbs ``src/main/scala/com/zbsnetwork/api/http/leasing/
LeaseApiRoute.scala`` for the older generations.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from functools import partial
from operator import itemgetter
from typing import Final

from soliton.api import errors
from soliton.api.http import Request
from soliton.api.json_transactions import MIDDLE, Members, lease_json
from soliton.api.lookup import (
    address_argument,
    decode_id,
    node_of,
    transaction_id,
)
from soliton.api.paging import in_pages
from soliton.api.rest import examples
from soliton.api.route_table import row, rows_by_ids, table
from soliton.api.schemas import LEASE
from soliton.api.streaming import json_stream
from soliton.api.translate import OLDEST
from soliton.chain.addresses import Address
from soliton.chain.json_schemas import list_of
from soliton.chain.transactions.codec import to_json
from soliton.ledger.state import LEASE_INFO, LEASE_STATES
from soliton.node.node import Node
from soliton.storage import indexes
from soliton.web.answers import Stream

_PAGE: Final = 200
"""Leases read before yielding to the event loop."""


def active(request: Request) -> Stream:
    """The active leases from and to an account."""
    node = node_of(request)
    return json_stream(request, _active(node, address_argument(request)))


async def _active(node: Node, address: Address) -> AsyncIterator[object]:
    node.chain.store.kept.need_by_lease()
    records = partial(indexes.leases_of, node.chain.store, address)
    async for page in in_pages(records, itemgetter(0), _PAGE):
        for _, lease_id in page:
            state = node.chain.store.get(LEASE_STATES, lease_id)
            if state is not None and state.active:
                yield _shown(node, lease_id)


def _shown(node: Node, lease_id: bytes) -> Members:
    chain = node.chain
    if node.network.family in (OLDEST, MIDDLE):
        # Older generations show the transaction, whose id is that of the lease.
        found = chain.transaction(lease_id)
        if found is not None:
            return {**to_json(found.transaction), "height": found.height}
    return lease_json(lease_id, chain.store, node.network.chain_id)


def info(request: Request) -> Members:
    """The details of a lease."""
    node = node_of(request)
    found = _find(node, transaction_id(request.text("id"), node))
    if found is None:
        raise errors.TRANSACTION_DOES_NOT_EXIST.error()
    return found


def info_of_many(request: Request) -> list[Members]:
    """Leases by their ids."""
    node = node_of(request)
    texts = request.listed("id", "ids", node.settings.rest_api.transactions_by_address_limit)
    found = [_find(node, decode_id(text)) for text in texts]
    unknown = [text for text, members in zip(texts, found, strict=True) if members is None]
    if unknown:
        raise errors.INVALID_IDS.error(ids=unknown)
    return [members for members in found if members is not None]


def _find(node: Node, lease_id: bytes | None) -> Members | None:
    store = node.chain.store
    if lease_id is None or store.get(LEASE_INFO, lease_id[:_MAX_ID_BYTES]) is None:
        return None
    members = lease_json(lease_id, store, node.network.chain_id)
    if members["status"] == _CANCELED and members["cancelTransactionId"] is None:
        # Only here the reference distinguishes what a rule of the network has ended.
        members["status"] = "expired"
    return members


_CANCELED: Final = "canceled"
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
_MANY: Final = list_of(LEASE)

ROUTES: Final = table("leasing", f"""
id      | text  | Id of a lease in base58  | {examples.TRANSACTION_ID}
id.many | text* | Ids of leases in base58  | {examples.TRANSACTION_ID}
""",
    row("GET /leasing/active/{address} family=", active,
        "The active leases from and to an account", _MANY, [_EXAMPLE],
        "INVALID_ADDRESS"),
    row("GET /leasing/info/{id}", info, "The details of a lease", LEASE, _EXAMPLE,
        "INVALID_TRANSACTION_ID TRANSACTION_DOES_NOT_EXIST"),
    rows_by_ids("/leasing/info?id.many", info_of_many, "Leases by their ids", _MANY, [_EXAMPLE],
        "TOO_BIG_SEQUENCE_WITH_LIMIT INVALID_IDS"),
    reads="state", family="waves",
)  # fmt: skip
