"""Routes under ``/transactions``: signing and finding transactions, and all their rows.

Sources: wavesplatform/Waves ``node/src/main/scala/com/wavesplatform/api/http/
TransactionsApiRoute.scala``; 0bsnetwork/Zbs ``src/main/scala/com/zbsnetwork/api/http/
TransactionsApiRoute.scala`` for the oldest generation.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable
from dataclasses import replace
from itertools import islice
from typing import Any, Final, NoReturn

import msgspec

from soliton.api.errors import (
    ACCOUNT_BALANCE_ERRORS,
    ALREADY_IN_STATE,
    CUSTOM_VALIDATION_ERROR,
    INSUFFICIENT_FEE,
    INVALID_ADDRESS,
    INVALID_CHAIN_ID,
    INVALID_IDS,
    INVALID_PROOFS,
    INVALID_PUBLIC_KEY,
    INVALID_SIGNATURE,
    INVALID_TRANSACTION_ID,
    INVOKE_EXECUTION_ERROR,
    MISSING_SENDER_PRIVATE_KEY,
    MISTIMING,
    NEGATIVE_AMOUNT,
    NON_POSITIVE_AMOUNT,
    SCRIPT_EXECUTION_ERROR,
    STATE_CHECK_FAILED,
    TOO_BIG_IN_BYTES,
    TOO_BIG_SEQUENCE,
    TOO_BIG_SEQUENCE_WITH_LIMIT,
    TRANSACTION_DOES_NOT_EXIST,
    TRANSACTION_NOT_ALLOWED_BY_ACCOUNT_SCRIPT,
    TRANSACTION_NOT_ALLOWED_BY_ASSET_SCRIPT,
    UNSUPPORTED_TRANSACTION_TYPE,
    WRONG_JSON,
    WRONG_JSON_DATA,
    invalid_request,
)
from soliton.api.hints import about_transaction, with_hint
from soliton.api.http import Json, JsonStream, Request, next_page
from soliton.api.json_transactions import (
    Members,
    confirmed_json,
    listed_json,
    outcome,
    unconfirmed_json,
)
from soliton.api.lookup import (
    ADDRESS,
    address_argument,
    decode_id,
    id_list,
    id_query,
    is_oldest,
    node_of,
    not_base58,
    order_query,
    transaction_id,
    with_slash,
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
from soliton.api.routes import (
    ANY_METHOD,
    BOOLEAN,
    GET,
    NATURAL,
    POST,
    TEXT,
    Body,
    BodyKind,
    Parameter,
    Route,
    query_parameter,
)
from soliton.api.schemas import (
    CONFIRMED_TRANSACTION,
    SIGNED_TRANSACTION,
    TRACED_TRANSACTION,
    TRANSACTION,
    UNSIGNED_TRANSACTION,
)
from soliton.chain.addresses import Address, address_text
from soliton.chain.transactions.model import AnyTransaction
from soliton.crypto import base58
from soliton.node.node import Node
from soliton.storage import indexes
from soliton.web.types import Headers

_EMPTY_REQUEST: Final = "Empty request"
_TAG: Final = "transactions"


class Size(msgspec.Struct, frozen=True, gc=False):
    """How many transactions wait for a block."""

    size: int


def info(request: Request) -> object:
    """A transaction of the chain."""
    node = node_of(request)
    name = transaction_id(request.text("id"), node)
    found = node.chain.transaction(name)
    if found is not None:
        return confirmed_json(found, node.chain)
    return _missing(node, name, "Transaction is not in blockchain")


def _missing(node: Node, name: bytes, details: str) -> Json:
    if is_oldest(node):
        return Json({"status": "error", "details": details}, 404)
    raise with_hint(TRANSACTION_DOES_NOT_EXIST.error(), about_transaction(name, node))


def info_of_many(request: Request) -> list[Members]:
    """Transactions of the chain by their ids."""
    node = node_of(request)
    texts = request.listed("id", "ids")
    limit = node.settings.rest_api.transactions_by_address_limit
    if len(texts) > limit:
        raise TOO_BIG_SEQUENCE_WITH_LIMIT.error(limit=limit)
    if not texts:
        if is_oldest(node):
            raise INVALID_SIGNATURE.error()
        raise INVALID_TRANSACTION_ID.error(message="Transaction ID was not specified")
    found = []
    for text in texts:
        name = decode_id(text)
        if name is None:
            raise invalid_request(not_base58(text))
        transaction = node.chain.transaction(name)
        if transaction is None:
            raise TRANSACTION_DOES_NOT_EXIST.error()
        found.append(confirmed_json(transaction, node.chain))
    return found


def status(request: Request) -> Members:
    """Where a transaction is: on the chain, waiting, or unknown."""
    node = node_of(request)
    return status_of(node, transaction_id(request.text("id"), node))


def status_of(node: Node, name: bytes) -> Members:
    """Where the transaction with an id is."""
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
    """Where transactions are, by their ids."""
    node = node_of(request)
    texts = request.listed("id", "ids")
    if not texts:
        raise invalid_request(_EMPTY_REQUEST)
    if len(texts) > node.settings.rest_api.transactions_by_address_limit:
        raise TOO_BIG_SEQUENCE.error()
    names = {text: decode_id(text) for text in texts}
    wrong = [text for text in texts if names[text] is None]
    if wrong:
        raise INVALID_IDS.error(ids=wrong)
    return [status_of(node, name) for text in texts if (name := names[text]) is not None]


def status_of_nothing(_request: Request) -> NoReturn:
    """Requests that no other route of this path takes are refused in its own words."""
    raise invalid_request(_EMPTY_REQUEST)


def unconfirmed(request: Request) -> JsonStream:
    """All transactions that wait for a block."""
    node = node_of(request)
    return JsonStream(_shown(node.pool.transactions(), node))


async def _shown(transactions: Iterable[AnyTransaction], node: Node) -> AsyncIterator[object]:
    for number, transaction in enumerate(transactions):
        yield unconfirmed_json(transaction, node.chain)
        if number % _PAGE == 0:
            await asyncio.sleep(0)


def unconfirmed_size(request: Request) -> Size:
    """How many transactions wait for a block."""
    return Size(len(node_of(request).pool))


def unconfirmed_info(request: Request) -> object:
    """A transaction that waits for a block."""
    node = node_of(request)
    name = transaction_id(request.text("id"), node)
    found = node.pool.get(name)
    if found is None:
        return _missing(node, name, "Transaction is not in UTX")
    return unconfirmed_json(found, node.chain)


def unconfirmed_info_of_none(_request: Request) -> object:
    """The reference answers a missing id so, in all generations."""
    raise INVALID_SIGNATURE.error()


def of_address(request: Request) -> JsonStream:
    """The transactions of an account, the newest first, as a list in a list."""
    node = node_of(request)
    address, limit = address_argument(request), request.integer("limit")
    after, order = request.optional_text("after"), request.optional_text("order")
    start = None if after is None else _place(node, after)
    if limit > node.settings.rest_api.transactions_by_address_limit:
        raise TOO_BIG_SEQUENCE.error()
    # The index is read at once: it may change while the answer is on its way.
    oldest_first = order == "asc"
    found = indexes.address_transactions(
        node.chain.store, address, start, oldest_first=oldest_first
    )
    names = [name for _, _, name in islice(found, limit + 1)]
    headers: Headers = ()
    if 0 < limit < len(names):
        path = f"/transactions/address/{address_text(address)}/limit/{limit}"
        headers = next_page(path, after=base58.encode(names[limit - 1]), order=order)
    return JsonStream(_confirmed(node, names[:limit], address), b"[[", b"]]", headers)


def _place(node: Node, text: str) -> tuple[int, int] | None:
    name = decode_id(text)
    if name is None:
        raise invalid_request(f"Unable to decode transaction id {text}")
    location = node.chain.store.transaction_location(name)
    if location is None:
        if is_oldest(node):
            raise invalid_request(f"Transaction {text} does not exist")
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
"""So many transactions are shown before others get their turn."""

_ID: Final = Parameter("id", TEXT, "Id of a transaction in base58", examples.TRANSACTION_ID)
_IDS: Final = id_query("Ids of transactions in base58")
_ID_LIST: Final = id_list()
_UNSIGNED: Final = Body(
    BodyKind.JSON,
    "A transaction without proofs: `type`, `sender` (an account of the node's wallet), the "
    "type's own members, `fee`; `version` is 1 and `timestamp` now where they are left out",
    examples.UNSIGNED,
    UNSIGNED_TRANSACTION,
    get_is_405=True,
)
_FEE_REQUEST: Final = Body(
    BodyKind.JSON,
    "A transaction with `senderPublicKey`, without fee and proofs",
    examples.FEE_REQUEST,
    UNSIGNED_TRANSACTION,
    get_is_405=True,
)
_SIGNED: Final = Body(
    BodyKind.JSON, "A signed transaction", examples.TRANSACTION, SIGNED_TRANSACTION
)
_MANY: Final = {"type": "array", "items": CONFIRMED_TRANSACTION}
STATUS_SCHEMA: Final[dict[str, Any]] = {
    "type": "object",
    "properties": {
        "status": {"type": "string", "enum": ["confirmed", "unconfirmed", "not_found"]},
        "height": {"type": "integer"},
        "confirmations": {"type": "integer"},
        "applicationStatus": {"type": "string"},
        "spentComplexity": {"type": "integer"},
        "id": {"type": "string"},
    },
    "required": ["status", "id"],
}
_VALUE_ERRORS: Final = (
    WRONG_JSON,
    WRONG_JSON_DATA,
    INVALID_ADDRESS,
    TOO_BIG_SEQUENCE,
    TOO_BIG_IN_BYTES,
    INSUFFICIENT_FEE,
    NEGATIVE_AMOUNT,
    NON_POSITIVE_AMOUNT,
    UNSUPPORTED_TRANSACTION_TYPE,
    INVALID_CHAIN_ID,
    CUSTOM_VALIDATION_ERROR,
)
_SIGN_ERRORS: Final = (*_VALUE_ERRORS, MISSING_SENDER_PRIVATE_KEY)

ROUTES: tuple[Route, ...] = (
    Route(
        methods=POST,
        path="/transactions/broadcast",
        handler=broadcast,
        tag=_TAG,
        summary="Send a signed transaction; sending it twice is no error",
        parameters=(query_parameter("trace", BOOLEAN, "Add what scripts did, as `trace`", False),),
        body=_SIGNED,
        response=TRACED_TRANSACTION,
        example=examples.TRANSACTION,
        errors=(
            *_VALUE_ERRORS,
            STATE_CHECK_FAILED,
            MISTIMING,
            INVALID_PROOFS,
            ALREADY_IN_STATE,
            ACCOUNT_BALANCE_ERRORS,
            SCRIPT_EXECUTION_ERROR,
            INVOKE_EXECUTION_ERROR,
            TRANSACTION_NOT_ALLOWED_BY_ACCOUNT_SCRIPT,
            TRANSACTION_NOT_ALLOWED_BY_ASSET_SCRIPT,
        ),
    ),
    *with_slash(
        Route(
            methods=POST,
            path="/transactions/sign",
            handler=sign,
            tag=_TAG,
            summary="Sign a transaction with the sender's key from the node's wallet",
            body=_UNSIGNED,
            key=True,
            response=TRANSACTION,
            example=examples.TRANSACTION,
            errors=_SIGN_ERRORS,
        )
    ),
    Route(
        methods=POST,
        path="/transactions/sign/{signerAddress}",
        handler=sign_with,
        tag=_TAG,
        summary="Sign a transaction with the key of another account of the node's wallet",
        parameters=(Parameter("signerAddress", TEXT, "Whose key signs", ADDRESS.example),),
        body=_UNSIGNED,
        key=True,
        response=TRANSACTION,
        example=examples.TRANSACTION,
        errors=_SIGN_ERRORS,
    ),
    Route(
        methods=POST,
        path="/transactions/calculateFee",
        handler=calculate_fee,
        tag=_TAG,
        summary="The least fee of a transaction",
        body=_FEE_REQUEST,
        response={
            "type": "object",
            "properties": {
                "feeAssetId": {"type": ["string", "null"]},
                "feeAmount": {"type": "integer"},
            },
        },
        example={"feeAssetId": None, "feeAmount": 100000},
        errors=_VALUE_ERRORS,
    ),
    Route(
        methods=POST,
        path="/utils/transactionSerialize",
        handler=serialize,
        tag="utils",
        summary="The bytes that are signed of a transaction",
        body=replace(
            _FEE_REQUEST,
            description="A transaction with `senderPublicKey`, without proofs",
            example={**examples.FEE_REQUEST, "fee": 100000, "timestamp": 1795174397440},
        ),
        response=SignedBytes,
        example={"bytes": [8, 82, 18, 32]},
        errors=(*_VALUE_ERRORS, INVALID_PUBLIC_KEY),
    ),
    Route(
        methods=GET,
        path="/transactions/info/{id}",
        handler=info,
        tag=_TAG,
        summary="A transaction of the chain",
        parameters=(_ID,),
        response=CONFIRMED_TRANSACTION,
        example=examples.CONFIRMED,
        errors=(INVALID_TRANSACTION_ID, INVALID_SIGNATURE, TRANSACTION_DOES_NOT_EXIST),
    ),
    *(
        each
        for methods, parameters, body in ((GET, (_IDS,), None), (POST, (), _ID_LIST))
        for each in with_slash(
            Route(
                methods=methods,
                path="/transactions/info",
                handler=info_of_many,
                tag=_TAG,
                summary="Transactions of the chain by their ids",
                parameters=parameters,
                body=body,
                response=_MANY,
                example=[examples.CONFIRMED],
                errors=(
                    TOO_BIG_SEQUENCE_WITH_LIMIT,
                    INVALID_TRANSACTION_ID,
                    CUSTOM_VALIDATION_ERROR,
                    INVALID_SIGNATURE,
                    TRANSACTION_DOES_NOT_EXIST,
                ),
            )
        )
    ),
    Route(
        methods=ANY_METHOD,
        path="/transactions/status/{id}",
        handler=status,
        tag=_TAG,
        summary="Where a transaction is",
        parameters=(_ID,),
        response=STATUS_SCHEMA,
        example=examples.STATUS,
        errors=(INVALID_TRANSACTION_ID,),
    ),
    *(
        each
        for methods, parameters, body in ((GET, (_IDS,), None), (POST, (), _ID_LIST))
        for each in with_slash(
            Route(
                methods=methods,
                path="/transactions/status",
                handler=status_of_many,
                tag=_TAG,
                summary="Where transactions are, by their ids",
                parameters=parameters,
                body=body,
                response={"type": "array", "items": STATUS_SCHEMA},
                example=[examples.STATUS],
                errors=(CUSTOM_VALIDATION_ERROR, TOO_BIG_SEQUENCE, INVALID_IDS),
            )
        )
    ),
    *with_slash(
        Route(
            methods=ANY_METHOD,
            path="/transactions/status",
            handler=status_of_nothing,
            tag=_TAG,
            summary="What comes without ids, however it is asked",
            response={"type": "array", "items": STATUS_SCHEMA},
            example=[examples.STATUS],
            errors=(CUSTOM_VALIDATION_ERROR,),
            documented=False,
        )
    ),
    *with_slash(
        Route(
            methods=GET,
            path="/transactions/unconfirmed",
            handler=unconfirmed,
            tag=_TAG,
            summary="All transactions that wait for a block",
            response={"type": "array", "items": TRANSACTION},
            example=[examples.TRANSACTION],
        )
    ),
    Route(
        methods=GET,
        path="/transactions/unconfirmed/size",
        handler=unconfirmed_size,
        tag=_TAG,
        summary="How many transactions wait for a block",
        response=Size,
        example={"size": 1},
    ),
    *with_slash(
        Route(
            methods=GET,
            path="/transactions/unconfirmed/info",
            handler=unconfirmed_info_of_none,
            tag=_TAG,
            summary="Always an error: the id is missing",
            response={"type": "object"},
            example=INVALID_SIGNATURE.error().body(),
            errors=(INVALID_SIGNATURE,),
            documented=False,
        )
    ),
    Route(
        methods=GET,
        path="/transactions/unconfirmed/info/{id}",
        handler=unconfirmed_info,
        tag=_TAG,
        summary="A transaction that waits for a block",
        parameters=(_ID,),
        response=TRANSACTION,
        example=examples.TRANSACTION,
        errors=(INVALID_TRANSACTION_ID, INVALID_SIGNATURE, TRANSACTION_DOES_NOT_EXIST),
    ),
    Route(
        methods=GET,
        path="/transactions/address/{address}/limit/{limit}",
        handler=of_address,
        tag=_TAG,
        summary="The transactions of an account, the newest first, as a list in a list",
        parameters=(
            ADDRESS,
            Parameter("limit", NATURAL, "At most so many; 1000, or 10000 on zbs networks", 10),
            query_parameter(
                "after", TEXT, "Begin after the transaction with this id", examples.TRANSACTION_ID
            ),
            order_query("desc"),
        ),
        response={"type": "array", "items": _MANY},
        example=[[examples.CONFIRMED]],
        errors=(INVALID_ADDRESS, TOO_BIG_SEQUENCE, CUSTOM_VALIDATION_ERROR),
    ),
)
