"""The examples of the documentation: requests and responses from a private chain.

What lives here: data. What does not: the routes they belong to.
"""

from __future__ import annotations

from typing import Any, Final

PUBLIC_KEY: Final = "8QUAqtTckM5B8gvcuP7mMswat9SjKUuafJMusEoSn1Gy"
ADDRESS: Final = "3M4qwDomRabJKLZxuXhwfqLApQkU592nWxF"
ASSET: Final = "25FEqEjRkqK6yCkiT7Lz6SAYz7gUFCtxfCChnrVFD5AT"
ORDER_ID: Final = "7VEr4T9icqopHWLawGAZ7AQiJbjAcnzXn65ekYvbpwnN"
_SIGNATURE: Final = (
    "5XSy2YkgFnFLfWAaKUK7RYm5MYBGp1gY5iVcWbBVpcxzMfyHHPHPvLqFbSMBqFGHwGJBk8VGJ6vmiXSVPYAk3Dvh"
)
_MATCHER: Final = "DrrMQVb3MKQyrRKNUBUFJB9kZLFDBRNFD6qRJcUqRxVH"
_PAIR: Final = {"amountAsset": ASSET, "priceAsset": "WAVES"}

ORDER: Final[dict[str, Any]] = {
    "version": 3,
    "senderPublicKey": PUBLIC_KEY,
    "matcherPublicKey": _MATCHER,
    "assetPair": _PAIR,
    "orderType": "buy",
    "amount": 100_000_000,
    "price": 200_000_000,
    "timestamp": 1_700_000_000_000,
    "expiration": 1_702_500_000_000,
    "matcherFee": 300_000,
    "matcherFeeAssetId": None,
    "proofs": [_SIGNATURE],
}
PLACED: Final[dict[str, Any]] = {
    "success": True,
    "status": "OrderAccepted",
    "message": {
        **ORDER,
        "id": ORDER_ID,
        "sender": ADDRESS,
        "signature": _SIGNATURE,
    },
}
CANCEL_REQUEST: Final[dict[str, Any]] = {
    "sender": PUBLIC_KEY,
    "orderId": ORDER_ID,
    "signature": _SIGNATURE,
}
CANCELLED: Final[dict[str, Any]] = {
    "orderId": ORDER_ID,
    "success": True,
    "status": "OrderCanceled",
}
SET_ASIDE: Final[dict[str, Any]] = {
    "offset": 1024,
    "timestamp": 1_700_000_000_000,
    "reason": "it is no command: a command of kind 9",
    "command": "AQk=",
}
UNSETTLED: Final[dict[str, Any]] = {
    "status": "Waiting",
    "transactionId": ORDER_ID,
    "amountAsset": ASSET,
    "priceAsset": "WAVES",
    "amount": 100_000_000,
    "buyOrderId": ORDER_ID,
    "sellOrderId": ORDER_ID,
    "timestamp": 1_700_000_000_000,
    "message": "the node was not asked yet, or has not answered",
}
CANCELLED_MANY: Final[dict[str, Any]] = {
    "success": True,
    "status": "BatchCancelCompleted",
    "message": [[CANCELLED]],
}
_LEVEL: Final = {"price": 200_000_000, "amount": 100_000_000}
BOOK: Final[dict[str, Any]] = {
    "timestamp": 1_700_000_000_000,
    "pair": _PAIR,
    "bids": [_LEVEL],
    "asks": [{"price": 210_000_000, "amount": 50_000_000}],
}
BOOK_IN_TEXT: Final[dict[str, Any]] = {
    "timestamp": 1_700_000_000_000,
    "bids": [["2.00000000", "1.00000000"]],
    "asks": [["2.10000000", "0.50000000"]],
}
BOOK_STATUS: Final[dict[str, Any]] = {
    "success": True,
    "status": "SimpleResponse",
    "lastPrice": 200_000_000,
    "lastAmount": 10_000_000,
    "lastSide": "sell",
    "bid": 200_000_000,
    "bidAmount": 100_000_000,
    "ask": 210_000_000,
    "askAmount": 50_000_000,
}
BOOK_INFO: Final[dict[str, Any]] = {
    "success": True,
    "status": "SimpleResponse",
    "matchingRules": {"tickSize": "0.00000001"},
}
MARKETS: Final[dict[str, Any]] = {
    "success": True,
    "status": "SimpleResponse",
    "matcherPublicKey": _MATCHER,
    "markets": [
        {
            "amountAsset": ASSET,
            "amountAssetName": "Gold",
            "amountAssetInfo": {"decimals": 8},
            "priceAsset": "WAVES",
            "priceAssetName": "WAVES",
            "priceAssetInfo": {"decimals": 8},
            "created": 1_700_000_000_000,
            "matchingRules": {"tickSize": "0.00000001"},
        }
    ],
}
HISTORY_ITEM: Final[dict[str, Any]] = {
    "id": ORDER_ID,
    "type": "buy",
    "orderType": "limit",
    "amount": 100_000_000,
    "filled": 10_000_000,
    "price": 200_000_000,
    "fee": 300_000,
    "filledFee": 30_000,
    "feeAsset": "WAVES",
    "timestamp": 1_700_000_000_000,
    "status": "PartiallyFilled",
    "assetPair": _PAIR,
    "avgWeighedPrice": 200_000_000,
    "version": 3,
    "totalExecutedPriceAssets": 20_000_000,
}
ORDER_STATUS: Final[dict[str, Any]] = {
    "status": "PartiallyFilled",
    "filledAmount": 10_000_000,
    "filledFee": 30_000,
}
TRANSACTION: Final[dict[str, Any]] = {
    "type": 7,
    "version": 2,
    "id": "GJa5rdaZ8xyXgr9sTRbcJPbMRXKzmgKDgzuVtAHaXHCD",
    "amount": 10_000_000,
    "price": 200_000_000,
    "assetDecimalsPrice": 200_000_000,
    "buyMatcherFee": 30_000,
    "sellMatcherFee": 300_000,
    "fee": 300_000,
    "order1": PLACED["message"],
    "order2": {**PLACED["message"], "orderType": "sell"},
}
BALANCES: Final[dict[str, int]] = {"WAVES": 99_999_700_000, ASSET: 100_000_000}
ALL_BALANCES: Final[dict[str, Any]] = {
    "WAVES": {"tradable": "999.997", "reserved": "0.003"},
    ASSET: {"tradable": "1", "reserved": "0"},
}
RATES: Final[dict[str, float]] = {"WAVES": 1, ASSET: 0.5}
SETTINGS: Final[dict[str, Any]] = {
    "success": True,
    "status": "SimpleResponse",
    "matcherPublicKey": _MATCHER,
    "matcherVersion": "1.0.0",
    "priceAssets": ["WAVES"],
    "rates": RATES,
    "orderFee": {"dynamic": {"baseFee": 300_000}},
    "orderVersions": [1, 2, 3, 4],
    "networkByte": 82,
    "tickers": {"Gold": ASSET},
}
FEE_REQUEST: Final[dict[str, Any]] = {
    "orderType": "buy",
    "amount": 100_000_000,
    "price": 200_000_000,
}
FEE: Final[dict[str, Any]] = {"base": {"feeAssetId": "WAVES", "matcherFee": 300_000}}
ADDRESS_STATE: Final[dict[str, Any]] = {
    "regular": BALANCES,
    "reserved": {"WAVES": 300_000},
    "allTradableBalance": BALANCES,
    "unconfirmed": {},
    "outgoingLeasing": 0,
    "notCreatedTxs": 0,
    "notObservedTxs": 0,
    "placementQueue": [],
}
TICKER: Final[dict[str, Any]] = {
    "symbol": f"{ASSET}-WAVES",
    "name": "Gold/WAVES",
    **_PAIR,
    "timestamp": 1_700_000_000_000,
    "bid": "2",
    "bidAmount": "1",
    "ask": "2.1",
    "askAmount": "0.5",
    "open": "1.9",
    "high": "2.2",
    "low": "1.9",
    "last": "2",
    "volume": "12.5",
    "priceVolume": "25.1",
    "trades": 7,
}
TRADES: Final[list[dict[str, Any]]] = [
    {
        "id": "1024-0",
        "timestamp": 1_700_000_000_000,
        "price": "2",
        "amount": "0.1",
        "side": "sell",
        "takerOrderId": ORDER_ID,
        "makerOrderId": ORDER_ID,
        "transactionId": "GJa5rdaZ8xyXgr9sTRbcJPbMRXKzmgKDgzuVtAHaXHCD",
    }
]
CANDLES: Final[list[list[Any]]] = [
    [1_699_999_200_000, "1.9", "2.2", "1.9", "2", "12.5", "25.1", 7],
]


def done(message: str) -> dict[str, Any]:
    """A message in the envelope of success."""
    return {"success": True, "status": "SimpleResponse", "message": message}
