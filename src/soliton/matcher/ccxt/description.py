"""The description of the matcher for ccxt: capabilities, endpoints, and the mapping of errors.

What lives here: data, and raising ccxt's errors. What does not: requests (``steps``).
"""

from __future__ import annotations

import json
from typing import Any, Final

from ccxt.base import errors

_SUPPORTED: Final = (
    *("cancelAllOrders", "cancelOrder", "createLimitOrder", "createMarketOrder", "createOrder"),
    *("fetchBalance", "fetchClosedOrders", "fetchMarkets", "fetchOHLCV", "fetchOpenOrders"),
    *("fetchOrder", "fetchOrderBook", "fetchOrders", "fetchOrderTrades", "fetchTicker"),
    *("fetchTickers", "fetchTrades", "spot"),
)
_MISSING: Final = (
    *("CORS", "editOrder", "fetchCurrencies", "fetchDeposits", "fetchMyTrades", "future", "margin"),
    *("option", "swap", "withdraw"),
)
TIMEFRAMES: Final = ("1m", "5m", "15m", "30m", "1h", "2h", "4h", "6h", "12h", "1d")

DESCRIPTION: Final[dict[str, Any]] = {
    "id": "soliton",
    "name": "Soliton matcher",
    "countries": [],
    "rateLimit": 5,
    "version": "v1",
    "has": dict.fromkeys(_SUPPORTED, True) | dict.fromkeys(_MISSING, False),
    "timeframes": {name: name for name in TIMEFRAMES},
    "urls": {"api": "http://127.0.0.1:6886", "www": "", "doc": []},
    "api": {
        "public": {
            "get": {
                "api/v1/candles/{base}/{quote}": 1,
                "api/v1/tickers": 1,
                "api/v1/tickers/{base}/{quote}": 1,
                "api/v1/trades/{base}/{quote}": 1,
                "matcher/orderbook": 1,
                "matcher/orderbook/{base}/{quote}": 1,
                "matcher/orderbook/{base}/{quote}/info": 1,
                "matcher/settings": 1,
                "matcher/transactions/{orderId}": 1,
            },
            "post": {
                "matcher/orderbook": 1,
                "matcher/orderbook/market": 1,
                "matcher/orderbook/cancel": 1,
                "matcher/orderbook/{base}/{quote}/cancel": 1,
                "matcher/orderbook/{base}/{quote}/calculateFee": 1,
            },
        },
        "private": {
            "get": {
                "api/v1/balances/{publicKey}": 1,
                "matcher/orderbook/{publicKey}": 1,
                "matcher/orderbook/{publicKey}/{orderId}": 1,
                "matcher/orderbook/{base}/{quote}/publicKey/{publicKey}": 1,
            }
        },
    },
    "requiredCredentials": {"apiKey": False, "secret": True},
    "precisionMode": 4,  # ticks
    # Numbers in responses are whole; decimals are text already.
    "quoteJsonNumbers": False,
    "options": {
        "orderLifetimeMs": 28 * 24 * 60 * 60 * 1_000,
        "orderVersion": 3,
        # The tolerance of a market order without a price beyond the levels it needs.
        "marketSlippage": 0.05,
        # The user's own codes of assets, by code; they come before those of the matcher.
        "tickers": {},
        # The highest fees that are signed when the matcher names them: in units by asset (ten times
        # the reference's least fee), and as a share of what the order trades.
        "maxMatcherFees": {"WAVES": 3_000_000},
        "maxMatcherFeeShare": 0.01,
        # What is signed for, and in which units: the chain (a number, or its character), the
        # matcher's public key, and the decimals of assets by their ids. What is not given is taken
        # from the matcher's first answer; another answer later is an error.
        "chainId": None,
        "matcherPublicKey": None,
        "assetDecimals": {"WAVES": 8},
        # By which share of it the matcher's tick size may change a price.
        "maxPriceRounding": 0.01,
    },
}


class MatcherFeeTooHigh(errors.InvalidOrder):
    """The matcher names a higher fee than the options allow; nothing was signed."""


class AnswerChanged(errors.BadResponse):
    """The matcher names another chain, public key or number of decimals than the options or its own
    first answer; nothing was signed.
    """


ERRORS: Final[dict[int, type[Exception]]] = {
    4: errors.ExchangeNotAvailable,
    13: errors.OnMaintenance,
    14: errors.OnMaintenance,
    3_076: errors.InvalidOrder,
    25_601: errors.ExchangeNotAvailable,
    1_048_576: errors.BadRequest,
    1_048_577: errors.BadRequest,
    1_048_590: errors.RequestTimeout,
    1_051_904: errors.AuthenticationError,
    1_076_224: errors.BadRequest,
    3_145_733: errors.PermissionDenied,
    3_147_015: errors.PermissionDenied,
    5_244_422: errors.ExchangeNotAvailable,
    3_147_270: errors.InsufficientFunds,
    3_148_039: errors.RateLimitExceeded,
    3_148_040: errors.DuplicateOrderId,
    3_148_801: errors.AuthenticationError,
    4_194_304: errors.InvalidAddress,
    8_388_609: errors.BadSymbol,
    9_437_184: errors.InvalidOrder,
    9_437_185: errors.BadRequest,
    9_437_191: errors.OrderNotFillable,
    9_437_193: errors.OrderNotFound,
    9_437_194: errors.OrderNotFound,
    9_437_195: errors.OrderNotFound,
    9_439_746: errors.InvalidOrder,
    9_439_747: errors.InvalidOrder,
    9_440_512: errors.AuthenticationError,
    9_440_770: errors.BadSymbol,
    9_440_771: errors.BadSymbol,
    9_440_776: errors.BadSymbol,
    9_441_026: errors.InvalidOrder,
    9_441_282: errors.InvalidOrder,
    9_441_284: errors.InvalidOrder,
    9_441_286: errors.InvalidOrder,
    9_441_295: errors.InvalidOrder,
    9_441_540: errors.InvalidOrder,
    9_441_542: errors.InvalidOrder,
    9_441_551: errors.InvalidOrder,
    9_441_798: errors.InvalidOrder,
    11_534_337: errors.BadSymbol,
    11_534_345: errors.BadSymbol,
    19_922_960: errors.InvalidOrder,
    19_927_055: errors.OrderNotFillable,
    105_906_177: errors.ExchangeNotAvailable,
    106_954_752: errors.AuthenticationError,
}


_BODY_INDEX: Final = 5
"""The index of the response body among the arguments of ccxt's ``handle_errors``."""


def raise_for(arguments: tuple[object, ...]) -> None:
    """Raise ccxt's error for an error response of the matcher; ``arguments`` are those of
    ``handle_errors``.
    """
    body = arguments[_BODY_INDEX]
    try:
        response = json.loads(body) if isinstance(body, str) else None
    except ValueError:
        return
    if isinstance(response, dict) and isinstance(response.get("error"), int):
        kind = ERRORS.get(response["error"], errors.ExchangeError)
        raise kind(f"soliton {response['error']}: {response.get('message')}")
