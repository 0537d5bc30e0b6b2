"""ccxt 4.0 and its class of the ecosystem's exchange: `python old_ccxt.py V0 ADDRESS KEY MARKET`.

Markets come from another service of that exchange, so they are given: MARKET is a JSON object with
the ids of both assets. It runs in an environment of its own and prints one JSON object per line.
"""

from __future__ import annotations

import json
import sys

import ccxt


def tell(name: str, value: object) -> None:
    print(json.dumps({"name": name, "value": value}), flush=True)


def main(url: str, address: str, key: str, given: str) -> None:
    market = json.loads(given)
    exchange = ccxt.wavesexchange({"enableRateLimit": False})
    exchange.urls["api"]["public"] = url
    exchange.apiKey = key
    exchange.get_waves_address = lambda: address
    row = {
        "amountAssetID": market["base"],
        "priceAssetID": market["quote"],
        "symbol": "SILVER/WAVES",
        "amountAssetDecimals": 2,
        "priceAssetDecimals": 8,
    }
    exchange.marketGetTickers = lambda *_: [row]
    symbol = "SILVER/WAVES"
    tell("trades", [shown(each) for each in exchange.fetch_trades(symbol)])
    tell("my trades", [shown(each) for each in exchange.fetch_my_trades(symbol)])
    tell("ticker", exchange.fetch_ticker(symbol))
    tell("candles", exchange.fetch_ohlcv(symbol, "1m", None, 100))
    ids = {"ids": [market["base"], "WAVES"]}
    tell("assets", exchange.publicGetAssets(ids)["data"])


def shown(trade: dict[str, object]) -> dict[str, object]:
    return {name: trade[name] for name in ("id", "side", "price", "amount")}


main(*sys.argv[1:])
