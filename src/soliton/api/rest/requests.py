"""Routes of the older generations for single transaction types: one signs with a key of the wallet
and broadcasts, another broadcasts a signed transaction.

The newer generation has ``/transactions/sign`` and ``/transactions/broadcast`` for all types.

Source: 0bsnetwork/Zbs ``src/main/scala/com/zbsnetwork/api/http/assets/AssetsApiRoute.scala``,
``AssetsBroadcastApiRoute.scala``, ``alias/AliasApiRoute.scala``, ``leasing/LeaseApiRoute.scala``,
``PaymentApiRoute.scala`` and ``ApiRoute.scala``.
"""

from __future__ import annotations

from importlib.resources import files
from typing import Final

import msgspec

from soliton.api import errors
from soliton.api.http import Request
from soliton.api.json_reader import parse_json, wrong_json
from soliton.api.lookup import node_of
from soliton.api.rest import examples
from soliton.api.rest.broadcasting import claimed_transaction, send_claimed, submitted
from soliton.api.rest.signing import key_of, signature_of, signed_by_wallet
from soliton.api.route_table import Row, json_body, row, table
from soliton.api.routes import Handler
from soliton.api.schemas import TRANSACTION, request_of
from soliton.api.translate import refusal
from soliton.chain import orders
from soliton.chain.addresses import from_public_key
from soliton.chain.errors import JsonFieldError, JsonFieldErrors
from soliton.chain.json_schemas import list_of
from soliton.chain.transactions.codec import to_json
from soliton.crypto.keys import KeyPair
from soliton.web.openapi import ref

MAX_BATCH: Final = 1_000
"""The limit on transfers of a request; the body's limit admits hardly more."""

_TO_SIGN: Final = {
    "/assets/transfer": (4, "assets", "Transfer an asset or the coin"),
    "/assets/masstransfer": (11, "assets", "Transfer to many accounts"),
    "/assets/issue": (3, "assets", "Issue an asset"),
    "/assets/reissue": (5, "assets", "Issue more of an asset"),
    "/assets/burn": (6, "assets", "Destroy some of an asset"),
    "/assets/sponsor": (14, "assets", "Allow fees in an asset"),
    "/alias/create": (10, "alias", "Take an alias"),
    "/leasing/lease": (8, "leasing", "Lease coins"),
    "/leasing/cancel": (9, "leasing", "End a lease"),
    "/addresses/data": (12, "addresses", "Write data entries"),
    "/payment": (4, "payment", "Transfer the coin"),
    "/zbs/payment": (4, "payment", "Transfer the coin"),
}
"""Transaction type, tag and summary by path: signed with the wallet and broadcast."""

_SIGNED: Final = {
    "/assets/broadcast/issue": (3, "assets", "Send a signed issue"),
    "/assets/broadcast/reissue": (5, "assets", "Send a signed reissue"),
    "/assets/broadcast/burn": (6, "assets", "Send a signed burn"),
    "/assets/broadcast/transfer": (4, "assets", "Send a signed transfer"),
    "/assets/broadcast/exchange": (7, "assets", "Send a signed exchange"),
    "/alias/broadcast/create": (10, "alias", "Send a signed alias"),
    "/leasing/broadcast/lease": (8, "leasing", "Send a signed lease"),
    "/leasing/broadcast/cancel": (9, "leasing", "Send a signed end of a lease"),
}
_DISCONTINUED: Final = (
    "/zbs/payment/signature",
    "/zbs/create-signed-payment",
    "/zbs/external-payment",
    "/zbs/broadcast-signed-payment",
)


def _sign_and_send(type_id: int) -> Handler:
    async def handler(request: Request) -> dict[str, object]:
        node = node_of(request)
        obj = request.json() | {"type": type_id}
        transaction = await signed_by_wallet(node, obj)
        await submitted(request, transaction)
        return to_json(transaction)

    return handler


def _send(type_id: int) -> Handler:
    def handler(request: Request) -> object:
        return send_claimed(request, request.json() | {"type": type_id})

    return handler


async def batch_transfer(request: Request) -> list[dict[str, object]]:
    """Broadcast signed transfers; return the transaction or the error of each."""
    node = node_of(request)
    items = parse_json(request.body)
    if not isinstance(items, list) or len(items) > MAX_BATCH:
        raise wrong_json(f"an array of at most {MAX_BATCH} transfers is expected")
    results: list[dict[str, object]] = []
    for item in items:
        if not isinstance(item, dict):
            raise wrong_json("each transfer is an object")
        try:
            transaction = claimed_transaction(item | {"type": 4}, node)
            await submitted(request, transaction)
            results.append(to_json(transaction))
        except errors.ApiError as error:
            results.append(error.body())
    return results


async def sign_order(request: Request) -> dict[str, object]:
    """Sign an order with the key of its sender."""
    node = node_of(request)
    chain_id = node.network.chain_id
    try:
        order = orders.from_json({**request.json(), "proofs": []}, chain_id)
    except JsonFieldError as error:
        faults = JsonFieldErrors([error.below("obj")])
        raise refusal(faults, node.network.family) from error
    keys = key_of(node, from_public_key(order.sender_public_key, chain_id))
    if isinstance(keys, KeyPair):
        return orders.to_json(orders.sign(order, keys.private_key))
    signature = await signature_of(keys.signer.order(keys.public_key, order))
    return orders.to_json(msgspec.structs.replace(order, proofs=(signature,)))


def discontinued(_request: Request) -> object:
    """A payment route that no longer exists."""
    raise errors.DISCONTINUED_API.error()


EXAMPLES: Final[dict[int, dict[str, object]]] = {
    int(type_id): transaction
    for type_id, transaction in msgspec.json.decode(
        files("soliton.api.rest").joinpath("older_examples.json").read_bytes()
    ).items()
}
"""A transaction of each type as these routes return it, made on a private chain."""
_NOT_IN_REQUESTS: Final = (
    "type", "id", "feeAssetId", "senderPublicKey", "proofs", "signature", "feeAsset",
    "transferCount", "totalAmount", "timestamp",
)  # fmt: skip
_ERRORS: Final = "WRONG_JSON INVALID_ADDRESS STATE_CHECK_FAILED MISTIMING"
_ORDER: Final[dict[str, object]] = {
    "version": 3,
    "senderPublicKey": examples.PUBLIC_KEY,
    "matcherPublicKey": "9cpfKN9suPNvfeUNphzxXMjcnn974eme8ZhWUjaktzU5",
    "assetPair": {"amountAsset": examples.ASSET_ID, "priceAsset": None},
    "orderType": "buy",
    "amount": 100000000,
    "price": 1000000,
    "timestamp": 1795174397440,
    "expiration": 1795260797440,
    "matcherFee": 300000,
}
_SIGNED_ORDER: Final[dict[str, object]] = {
    "version": 3,
    "id": "6ZLLt6rr4fxYxHAVBZ7wqYzqnqSPHqmVwPxBGDPXcbjq",
    "sender": examples.ADDRESS,
    **_ORDER,
    "matcherFeeAssetId": None,
    "signature": examples.SIGNATURE,
    "proofs": [examples.SIGNATURE],
}


def _request(type_id: int) -> dict[str, object]:
    example = EXAMPLES[type_id]
    return {name: value for name, value in example.items() if name not in _NOT_IN_REQUESTS}


def _claim(type_id: int) -> dict[str, object]:
    return {name: value for name, value in EXAMPLES[type_id].items() if name != "type"}


def _to_sign(path: str, type_id: int, tag: str, summary: str) -> Row:
    description = "The members of the type, `sender` and `fee`; `timestamp` is by default now"
    body = json_body(description, _request(type_id), request_of(type_id, signed=False))
    return row(
        f"POST {path} key=sign tag={tag}{_family(path)}", _sign_and_send(type_id),
        f"{summary}, signed with the node's wallet", TRANSACTION, EXAMPLES[type_id],
        f"{_ERRORS} WRONG_JSON_DATA MISSING_SENDER_PRIVATE_KEY SIGNER_REFUSES "
        "CUSTOM_VALIDATION_ERROR", body=body,
    )  # fmt: skip


def _signed(path: str, type_id: int, tag: str, summary: str) -> Row:
    request = request_of(type_id, signed=True)
    body = json_body("The members of the type, signed", _claim(type_id), request)
    return row(
        f"POST {path} tag={tag}", _send(type_id), summary, TRANSACTION, EXAMPLES[type_id],
        f"{_ERRORS} WRONG_JSON_DATA CUSTOM_VALIDATION_ERROR", body=body,
    )  # fmt: skip


def _family(path: str) -> str:
    return " family=zbs" if path.endswith("payment") else ""


ROUTES: Final = table("assets", "",
    *(_to_sign(path, *fields) for path, fields in _TO_SIGN.items()),
    *(_signed(path, *fields) for path, fields in _SIGNED.items()),
    row("POST /assets/broadcast/batch-transfer family=zbs", batch_transfer,
        "Send signed transfers: for each the transaction, or an error object",
        list_of({"anyOf": [TRANSACTION, ref("Error")]}), [EXAMPLES[4]], "WRONG_JSON",
        body=json_body("Signed transfers", [_claim(4)], list_of(request_of(4, signed=True)))),
    row("POST /assets/order key=sign", sign_order,
        "Sign an order with the key of its sender from the node's wallet", ref("Order"),
        _SIGNED_ORDER, "WRONG_JSON MISSING_SENDER_PRIVATE_KEY SIGNER_REFUSES",
        body=json_body("An order without signature", _ORDER, ref("OrderToSend"))),
    *(
        row(f"POST {path} family=zbs tag=payment", discontinued,
            "Always an error: the route is discontinued", {"type": "object"},
            errors.DISCONTINUED_API.error().body(), "DISCONTINUED_API", documented=False)
        for path in _DISCONTINUED
    ),
    family="zbs,tn",
)  # fmt: skip
