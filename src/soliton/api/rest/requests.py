"""Routes of the older interfaces that make a transaction of one type each: from an unsigned request
with a key of the wallet, or from a signed one.

The newer interface has ``/transactions/sign`` and ``/transactions/broadcast`` for all of them.

Source: 0bsnetwork/Zbs ``src/main/scala/com/zbsnetwork/api/http/assets/AssetsApiRoute.scala``,
``AssetsBroadcastApiRoute.scala``, ``alias/AliasApiRoute.scala``, ``leasing/LeaseApiRoute.scala``,
``PaymentApiRoute.scala`` and ``ApiRoute.scala``.
"""

from __future__ import annotations

from importlib.resources import files
from typing import Final

import msgspec

from soliton.api.errors import (
    CUSTOM_VALIDATION_ERROR,
    DISCONTINUED_API,
    INVALID_ADDRESS,
    MISSING_SENDER_PRIVATE_KEY,
    MISTIMING,
    STATE_CHECK_FAILED,
    WRONG_JSON,
    WRONG_JSON_DATA,
    ApiError,
)
from soliton.api.http import Request
from soliton.api.json_reader import parse_json, wrong_json
from soliton.api.lookup import node_of
from soliton.api.rest import examples
from soliton.api.rest.broadcasting import broadcast_claimed, broadcast_signed, send_claimed
from soliton.api.rest.signing import signed_by_wallet
from soliton.api.routes import POST, Body, BodyKind, Handler, Route
from soliton.api.schemas import TRANSACTION, ref, request_of
from soliton.api.translate import refusal
from soliton.chain import orders
from soliton.chain.addresses import from_public_key
from soliton.chain.errors import JsonFieldError, JsonFieldErrors

MAX_BATCH: Final = 1_000
"""Transfers of one request; the body's limit leaves room for hardly more."""

_OLD: Final = ("zbs", "tn")
_OLDEST: Final = ("zbs",)

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
"""Path to transaction type, tag and summary: signed with the wallet, then sent."""

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
    def handler(request: Request) -> dict[str, object]:
        node = node_of(request)
        obj = request.json() | {"type": type_id}
        return broadcast_signed(node, signed_by_wallet(node, obj))

    return handler


def _send(type_id: int) -> Handler:
    def handler(request: Request) -> object:
        return send_claimed(request, request.json() | {"type": type_id})

    return handler


def batch_transfer(request: Request) -> list[dict[str, object]]:
    """Send signed transfers: for each the transaction, or why it was refused."""
    node = node_of(request)
    items = parse_json(request.body)
    if not isinstance(items, list) or len(items) > MAX_BATCH:
        raise wrong_json(f"an array of at most {MAX_BATCH} transfers is expected")
    answers: list[dict[str, object]] = []
    for item in items:
        if not isinstance(item, dict):
            raise wrong_json("each transfer is an object")
        try:
            answers.append(broadcast_claimed(node, item | {"type": 4}))
        except ApiError as error:
            answers.append(error.body())
    return answers


def sign_order(request: Request) -> dict[str, object]:
    """Sign an order with the key of its sender."""
    node = node_of(request)
    chain_id = node.network.chain_id
    try:
        order = orders.from_json({**request.json(), "proofs": []}, chain_id)
    except JsonFieldError as error:
        faults = JsonFieldErrors([("obj" + error.path, error.expected)])
        raise refusal(faults, node.network.family) from error
    keys = node.wallet.private_key(from_public_key(order.sender_public_key, chain_id))
    if keys is None:
        raise MISSING_SENDER_PRIVATE_KEY.error()
    return orders.to_json(orders.sign(order, keys.private_key))


def discontinued(_request: Request) -> object:
    """What there was before transfers."""
    raise DISCONTINUED_API.error()


EXAMPLES: Final[dict[int, dict[str, object]]] = {
    int(type_id): transaction
    for type_id, transaction in msgspec.json.decode(
        files("soliton.api.rest").joinpath("older_examples.json").read_bytes()
    ).items()
}
"""A transaction of each type as these routes answer it, made on a private chain."""
_NOT_ASKED: Final = (
    "type", "id", "feeAssetId", "senderPublicKey", "proofs", "signature", "feeAsset",
    "transferCount", "totalAmount", "timestamp",
)  # fmt: skip
_ERRORS: Final = (WRONG_JSON, INVALID_ADDRESS, STATE_CHECK_FAILED, MISTIMING)
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
    return {name: value for name, value in EXAMPLES[type_id].items() if name not in _NOT_ASKED}


def _claim(type_id: int) -> dict[str, object]:
    return {name: value for name, value in EXAMPLES[type_id].items() if name != "type"}


def _to_sign(path: str, type_id: int, tag: str, summary: str) -> Route:
    return Route(
        methods=POST,
        path=path,
        handler=_sign_and_send(type_id),
        tag=tag,
        summary=f"{summary}, signed with the node's wallet",
        body=Body(
            BodyKind.JSON,
            "The members of the type, `sender` and `fee`; `timestamp` is now where it is left out",
            _request(type_id),
            request_of(type_id, signed=False),
        ),
        key=True,
        response=TRANSACTION,
        example=EXAMPLES[type_id],
        errors=(*_ERRORS, WRONG_JSON_DATA, MISSING_SENDER_PRIVATE_KEY, CUSTOM_VALIDATION_ERROR),
    )


def _signed(path: str, type_id: int, tag: str, summary: str) -> Route:
    return Route(
        methods=POST,
        path=path,
        handler=_send(type_id),
        tag=tag,
        summary=summary,
        body=Body(
            BodyKind.JSON,
            "The members of the type, signed",
            _claim(type_id),
            request_of(type_id, signed=True),
        ),
        response=TRANSACTION,
        example=EXAMPLES[type_id],
        errors=(*_ERRORS, WRONG_JSON_DATA, CUSTOM_VALIDATION_ERROR),
    )


ROUTES: tuple[Route, ...] = (
    *(_to_sign(path, *what) for path, what in _TO_SIGN.items()),
    *(_signed(path, *what) for path, what in _SIGNED.items()),
    Route(
        methods=POST,
        path="/assets/broadcast/batch-transfer",
        handler=batch_transfer,
        tag="assets",
        summary="Send signed transfers: for each the transaction, or an error object",
        body=Body(
            BodyKind.JSON,
            "Signed transfers",
            [_claim(4)],
            {"type": "array", "items": request_of(4, signed=True)},
        ),
        response={"type": "array", "items": {"anyOf": [TRANSACTION, ref("Error")]}},
        example=[EXAMPLES[4]],
        errors=(WRONG_JSON,),
    ),
    Route(
        methods=POST,
        path="/assets/order",
        handler=sign_order,
        tag="assets",
        summary="Sign an order with the key of its sender from the node's wallet",
        body=Body(BodyKind.JSON, "An order without signature", _ORDER, ref("OrderToSend")),
        key=True,
        response=ref("Order"),
        example=_SIGNED_ORDER,
        errors=(WRONG_JSON, MISSING_SENDER_PRIVATE_KEY),
    ),
    *(
        Route(
            methods=POST,
            path=path,
            handler=discontinued,
            tag="payment",
            summary="Always an error: the route is a thing of the past",
            response={"type": "object"},
            example=DISCONTINUED_API.error().body(),
            errors=(DISCONTINUED_API,),
            documented=False,
        )
        for path in _DISCONTINUED
    ),
)

FAMILIES: Final = {
    **{route.path: _OLD for route in ROUTES},
    **dict.fromkeys(
        ("/payment", "/zbs/payment", "/assets/broadcast/batch-transfer", *_DISCONTINUED), _OLDEST
    ),
}
"""Routes that only some families of networks have."""
