"""Routes under ``/transactions``: lookup of transactions, and the rows of the whole group.

Sources: wavesplatform/Waves ``node/src/main/scala/com/wavesplatform/api/http/
TransactionsApiRoute.scala``; 0bsnetwork/Zbs ``src/main/scala/com/zbsnetwork/api/http/
TransactionsApiRoute.scala`` for the oldest generation.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable
from functools import partial
from itertools import islice
from typing import Final, NoReturn

import msgspec

from soliton.api import errors
from soliton.api.hints import about_transaction, with_hint
from soliton.api.http import Request, json_answer, next_page
from soliton.api.json_transactions import (
    Members,
    confirmed_json,
    listed_json,
    outcome,
    unconfirmed_json,
)
from soliton.api.lookup import (
    address_argument,
    decode_id,
    is_oldest,
    node_of,
    not_base58,
    transaction_id,
)
from soliton.api.rest import examples
from soliton.api.rest.broadcasting import broadcast
from soliton.api.rest.signing import (
    SignedBytes,
    calculate_fee,
    serialize,
    sign,
    sign_with,
)
from soliton.api.route_table import json_body, row, rows_by_ids, table
from soliton.api.schemas import (
    CONFIRMED_TRANSACTION,
    SIGNED_TRANSACTION,
    TRACED_TRANSACTION,
    TRANSACTION,
    UNSIGNED_TRANSACTION,
)
from soliton.api.streaming import json_stream
from soliton.chain.addresses import Address, address_text
from soliton.chain.json_schemas import list_of, shape
from soliton.chain.transactions.model import AnyTransaction
from soliton.crypto import base58
from soliton.node.node import Node
from soliton.storage import indexes
from soliton.web.answers import Stream, Whole
from soliton.web.types import Headers

_EMPTY_REQUEST: Final = "Empty request"


class Size(msgspec.Struct, frozen=True, gc=False):
    """The number of unconfirmed transactions."""

    size: int


def info(request: Request) -> object:
    """A confirmed transaction."""
    node = node_of(request)
    name = transaction_id(request.text("id"), node)
    found = node.chain.transaction(name)
    if found is not None:
        return confirmed_json(found, node.chain)
    return _missing(request, name, "Transaction is not in blockchain")


def _missing(request: Request, name: bytes, details: str) -> Whole:
    node = node_of(request)
    if is_oldest(node):
        return json_answer({"status": "error", "details": details}, request.accepts, 404)
    raise with_hint(errors.TRANSACTION_DOES_NOT_EXIST.error(), about_transaction(name, node))


def info_of_many(request: Request) -> object:
    """Confirmed transactions by their ids."""
    node = node_of(request)
    texts = request.listed("id", "ids", node.settings.rest_api.transactions_by_address_limit)
    if not texts:
        if is_oldest(node):
            raise errors.INVALID_SIGNATURE.error()
        raise errors.INVALID_TRANSACTION_ID.error(message="Transaction ID was not specified")
    read = partial(_info, node)
    if len(texts) <= _PAGE:
        return [read(text) for text in texts]
    return request.context.time_slices.map(read, texts)


def _info(node: Node, text: str) -> Members:
    name = decode_id(text)
    if name is None:
        raise errors.invalid_request(not_base58(text))
    found = node.chain.transaction(name)
    if found is None:
        raise errors.TRANSACTION_DOES_NOT_EXIST.error()
    return confirmed_json(found, node.chain)


def status(request: Request) -> Members:
    """The status of a transaction: confirmed, unconfirmed, or not found."""
    node = node_of(request)
    return status_of(node, transaction_id(request.text("id"), node))


def status_of(node: Node, name: bytes) -> Members:
    """The status of the transaction with an id."""
    chain = node.chain
    location = chain.store.transaction_location(name)
    members: Members
    if location is not None:
        members = {
            "status": "confirmed",
            "height": location.height,
            "confirmations": max(0, chain.height - location.height),
        } | outcome(location.height, location.status, location.complexity, chain)
    else:
        members = {"status": "not_found" if node.pool.get(name) is None else "unconfirmed"}
    members["id"] = base58.encode(name)
    return members


def status_of_many(request: Request) -> list[Members]:
    """The statuses of transactions by their ids."""
    node = node_of(request)
    texts = request.listed("id", "ids")
    if not texts:
        raise errors.invalid_request(_EMPTY_REQUEST)
    if len(texts) > node.settings.rest_api.transactions_by_address_limit:
        raise errors.TOO_BIG_SEQUENCE.error()
    names = {text: decode_id(text) for text in texts}
    wrong = [text for text in texts if names[text] is None]
    if wrong:
        raise errors.INVALID_IDS.error(ids=wrong)
    return [status_of(node, name) for text in texts if (name := names[text]) is not None]


def status_of_nothing(_request: Request) -> NoReturn:
    """The error for other requests of this path, which in the reference is not a 404."""
    raise errors.invalid_request(_EMPTY_REQUEST)


def unconfirmed(request: Request) -> Stream:
    """All unconfirmed transactions."""
    node = node_of(request)
    return json_stream(request, _shown(node.pool.transactions(), node))


async def _shown(transactions: Iterable[AnyTransaction], node: Node) -> AsyncIterator[object]:
    for number, transaction in enumerate(transactions):
        yield unconfirmed_json(transaction, node.chain)
        if number % _PAGE == 0:
            await asyncio.sleep(0)


def unconfirmed_size(request: Request) -> Size:
    """The number of unconfirmed transactions."""
    return Size(len(node_of(request).pool))


def unconfirmed_info(request: Request) -> object:
    """An unconfirmed transaction."""
    node = node_of(request)
    name = transaction_id(request.text("id"), node)
    found = node.pool.get(name)
    if found is None:
        return _missing(request, name, "Transaction is not in UTX")
    return unconfirmed_json(found, node.chain)


def unconfirmed_info_of_none(_request: Request) -> object:
    """The reference's error for a missing id, in all generations."""
    raise errors.INVALID_SIGNATURE.error()


def of_address(request: Request) -> Stream:
    """The transactions of an account, the newest first, as a nested list."""
    node = node_of(request)
    address, limit = address_argument(request), request.integer("limit")
    after, order = request.optional_text("after"), request.optional_text("order")
    start = None if after is None else _place(node, after)
    if limit > node.settings.rest_api.transactions_by_address_limit:
        raise errors.TOO_BIG_SEQUENCE.error()
    # Read the index at once, because it may change while the answer is streamed.
    oldest_first = order == "asc"
    found = indexes.address_transactions(
        node.chain.store, address, start, oldest_first=oldest_first
    )
    names = [name for _, _, name in islice(found, limit + 1)]
    headers: Headers = ()
    if 0 < limit < len(names):
        path = f"/transactions/address/{address_text(address)}/limit/{limit}"
        headers = next_page(path, after=base58.encode(names[limit - 1]), order=order)
    return json_stream(request, _confirmed(node, names[:limit], address), b"[[", b"]]", headers)


def _place(node: Node, text: str) -> tuple[int, int] | None:
    name = decode_id(text)
    if name is None:
        raise errors.invalid_request(f"Unable to decode transaction id {text}")
    location = node.chain.store.transaction_location(name)
    if location is None:
        if is_oldest(node):
            raise errors.invalid_request(f"Transaction {text} does not exist")
        return None
    return location.height, location.index


async def _confirmed(node: Node, names: list[bytes], address: Address) -> AsyncIterator[object]:
    for number, name in enumerate(names):
        found = node.chain.transaction(name)
        if found is not None:
            yield listed_json(found, node.chain, address)
        if number % _PAGE == 0:
            await asyncio.sleep(0)


_PAGE: Final = 100
"""Transactions encoded before yielding to the event loop."""

_UNSIGNED: Final = json_body(
    "A transaction without proofs: `type`, `sender` (an account of the node's wallet), the "
    "type's own members, `fee`; the default of `version` is 1, that of `timestamp` is now",
    examples.UNSIGNED,
    UNSIGNED_TRANSACTION,
    get_is_405=True,
)
_FEE_REQUEST: Final = json_body(
    "A transaction with `senderPublicKey`, without fee and proofs",
    examples.FEE_REQUEST,
    UNSIGNED_TRANSACTION,
    get_is_405=True,
)
_TO_SERIALIZE: Final = msgspec.structs.replace(
    _FEE_REQUEST,
    description="A transaction with `senderPublicKey`, without proofs",
    example={**examples.FEE_REQUEST, "fee": 100000, "timestamp": 1795174397440},
)
_SIGNED: Final = json_body("A signed transaction", examples.TRANSACTION, SIGNED_TRANSACTION)
_MANY: Final = list_of(CONFIRMED_TRANSACTION)
STATUS_SCHEMA: Final = shape(
    "status, height?: integer, confirmations?: integer, applicationStatus?: string, "
    "spentComplexity?: integer, id: string",
    status={"type": "string", "enum": ["confirmed", "unconfirmed", "not_found"]},
)
_VALUE_ERRORS: Final = (
    "WRONG_JSON WRONG_JSON_DATA INVALID_ADDRESS TOO_BIG_SEQUENCE TOO_BIG_IN_BYTES "
    "INSUFFICIENT_FEE NEGATIVE_AMOUNT NON_POSITIVE_AMOUNT UNSUPPORTED_TRANSACTION_TYPE "
    "INVALID_CHAIN_ID CUSTOM_VALIDATION_ERROR"
)
_SIGN_ERRORS: Final = f"{_VALUE_ERRORS} MISSING_SENDER_PRIVATE_KEY SIGNER_REFUSES"

ROUTES: Final = table("transactions", f"""
trace         | boolean | Add the traces of scripts as `trace` | false
signerAddress | text    | The account that signs | {examples.ADDRESS}
limit         | natural | At most 1000, or 10000 on zbs networks | 10
after         | text    | Begin after the transaction with this id | {examples.TRANSACTION_ID}
""",
    row("POST /transactions/broadcast?trace", broadcast,
        "Broadcast a signed transaction; idempotent", TRACED_TRANSACTION,
        examples.TRANSACTION,
        f"{_VALUE_ERRORS} STATE_CHECK_FAILED MISTIMING INVALID_PROOFS ALREADY_IN_STATE "
        "ACCOUNT_BALANCE_ERRORS SCRIPT_EXECUTION_ERROR INVOKE_EXECUTION_ERROR "
        "TRANSACTION_NOT_ALLOWED_BY_ACCOUNT_SCRIPT TRANSACTION_NOT_ALLOWED_BY_ASSET_SCRIPT",
        body=_SIGNED),
    row("POST /transactions/sign[/] key=sign", sign,
        "Sign a transaction with the sender's key from the node's wallet", TRANSACTION,
        examples.TRANSACTION, _SIGN_ERRORS, body=_UNSIGNED),
    row("POST /transactions/sign/{signerAddress} key=sign", sign_with,
        "Sign a transaction with the key of another account of the node's wallet", TRANSACTION,
        examples.TRANSACTION, _SIGN_ERRORS, body=_UNSIGNED),
    row("POST /transactions/calculateFee", calculate_fee, "The minimum fee of a transaction",
        shape("feeAssetId?: string|null, feeAmount?: integer"),
        {"feeAssetId": None, "feeAmount": 100000}, _VALUE_ERRORS, body=_FEE_REQUEST),
    row("POST /utils/transactionSerialize reads=chain tag=utils", serialize,
        "The signed bytes of a transaction", SignedBytes, {"bytes": [8, 82, 18, 32]},
        f"{_VALUE_ERRORS} INVALID_PUBLIC_KEY",
        body=_TO_SERIALIZE),
    row("GET /transactions/info/{id.transaction} reads=state", info, "A confirmed transaction",
        CONFIRMED_TRANSACTION, examples.CONFIRMED,
        "INVALID_TRANSACTION_ID INVALID_SIGNATURE TRANSACTION_DOES_NOT_EXIST"),
    rows_by_ids("/transactions/info?id.transactions reads=state", info_of_many,
        "Confirmed transactions by their ids", _MANY, [examples.CONFIRMED],
        "TOO_BIG_SEQUENCE_WITH_LIMIT INVALID_TRANSACTION_ID CUSTOM_VALIDATION_ERROR "
        "INVALID_SIGNATURE TRANSACTION_DOES_NOT_EXIST"),
    row("ANY /transactions/status/{id.transaction}", status, "The status of a transaction",
        STATUS_SCHEMA, examples.STATUS, "INVALID_TRANSACTION_ID"),
    rows_by_ids("/transactions/status?id.transactions", status_of_many,
        "The statuses of transactions by their ids", list_of(STATUS_SCHEMA), [examples.STATUS],
        "CUSTOM_VALIDATION_ERROR TOO_BIG_SEQUENCE INVALID_IDS"),
    row("ANY /transactions/status[/]", status_of_nothing,
        "Always an error: there are no ids", list_of(STATUS_SCHEMA),
        [examples.STATUS], "CUSTOM_VALIDATION_ERROR", documented=False),
    row("GET /transactions/unconfirmed[/]", unconfirmed, "All unconfirmed transactions",
        list_of(TRANSACTION), [examples.TRANSACTION]),
    row("GET /transactions/unconfirmed/size[/]", unconfirmed_size,
        "The number of unconfirmed transactions", Size, {"size": 1}),
    row("GET /transactions/unconfirmed/info[/]", unconfirmed_info_of_none,
        "Always an error: the id is missing", {"type": "object"},
        errors.INVALID_SIGNATURE.error().body(), "INVALID_SIGNATURE", documented=False),
    row("GET /transactions/unconfirmed/info/{id.transaction}", unconfirmed_info,
        "An unconfirmed transaction", TRANSACTION, examples.TRANSACTION,
        "INVALID_TRANSACTION_ID INVALID_SIGNATURE TRANSACTION_DOES_NOT_EXIST"),
    row("GET /transactions/address/{address}/limit/{limit}?after&order.desc reads=state",
        of_address, "The transactions of an account, the newest first, as a nested list",
        list_of(_MANY), [[examples.CONFIRMED]],
        "INVALID_ADDRESS TOO_BIG_SEQUENCE CUSTOM_VALIDATION_ERROR"),
)  # fmt: skip
