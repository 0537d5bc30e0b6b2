"""Information about the matcher: its key, its rules, rates, and the minimum fee of an order.

What lives here: the routes, and fee modes as JSON. What does not: computing fees
(``soliton.matching.fees``).

Sources: wavesplatform/matcher
``dex/src/main/scala/com/wavesplatform/dex/api/http/routes/v0/{MatcherInfoRoute,RatesRoute,
MarketsRoute}.scala``, ``entities/HttpOrderFeeMode.scala``.
"""

from __future__ import annotations

import math
from typing import Any, Final

import msgspec

from soliton import __version__
from soliton.chain.orders import Side
from soliton.chain.values import AssetId
from soliton.crypto import base58
from soliton.matcher.rest import examples
from soliton.matcher.rest.answers import (
    CREATED,
    OK,
    Answer,
    Refusal,
    bounded,
    envelope,
    message,
    number,
    plain,
    refuse,
)
from soliton.matcher.rest.forms import Form
from soliton.matcher.rest.requests import (
    MAX_LONG,
    NOT_JSON,
    Request,
    check_content_type,
    invalid_json,
    read_asset,
    read_pair,
    traded_pair,
)
from soliton.matcher.rest.routes import row, table
from soliton.matcher.websocket.numbers import double_text
from soliton.matching.errors import INVALID_ASSET_RATE, MatcherError
from soliton.matching.fees import CompositeFee, DynamicFee, FixedFee, OrderFee, PercentFee
from soliton.matching.pairs import asset_text
from soliton.matching.placement import PlacementSettings


async def public_key(request: Request) -> Answer:
    """The matcher's public key, as a JSON string."""
    return plain(base58.encode(request.core.public_key))


async def settings(request: Request) -> Answer:
    """Everything a client needs to know to make an order."""
    core = request.core
    fee = core.engine.settings.order_fee_at(core.engine.last_offset + 1)
    return envelope(
        {
            "matcherPublicKey": base58.encode(core.public_key),
            "matcherVersion": __version__,
            "priceAssets": _price_assets_json(core.placement),
            "rates": _rates_json(core.rates.latest()),
            "orderFee": fee_json(fee, core.queries.account_fee()),
            "orderVersions": list(core.queries.order_versions()),
            "networkByte": core.settings.network.chain_id,
            "tickers": {code: asset_text(each) for code, each in core.settings.tickers.items()},
        }
    )


def _price_assets_json(placement: PlacementSettings) -> list[str]:
    return [
        asset_text(asset)
        for asset in placement.price_assets
        if asset is None or asset not in placement.blacklisted_assets
    ]


def fee_json(fee: OrderFee, account_fee: int) -> dict[str, Any]:
    """A fee mode; ``account_fee`` is what the script of the matcher's account adds to it."""
    match fee:
        case DynamicFee(base_fee=least):
            return {"dynamic": {"baseFee": least + account_fee}}
        case FixedFee(asset=asset, min_fee=least):
            return {"fixed": {"assetId": asset_text(asset), "minFee": least}}
        case PercentFee(asset_type=kind, min_fee=percent, min_fee_in_waves=least):
            return {
                "percent": {
                    "type": kind.value,
                    "minFee": number(float(percent)),
                    "minFeeInWaves": least,
                }
            }
        case CompositeFee(default=default, custom=custom, discount=discount):
            body: dict[str, Any] = {
                "default": fee_json(default, account_fee),
                "custom": {pair.key: fee_json(mode, account_fee) for pair, mode in custom.items()},
            }
            if discount is not None:
                value = number(float(discount.value))
                body["discount"] = {"assetId": asset_text(discount.asset), "value": value}
            return {"composite": body}


# --- rates ----------------------------------------------------------------------------------------


async def rates(request: Request) -> Answer:
    """The price of one native coin in other assets."""
    return plain(_rates_json(request.core.rates.latest()))


def _rates_json(found: dict[AssetId | None, float]) -> dict[str, float | int]:
    return {asset_text(asset): number(rate) for asset, rate in found.items()}


_decode_rate: Final = msgspec.json.Decoder(float_hook=float).decode


async def put_rate(request: Request) -> Answer:
    """Set a rate."""
    check_content_type(request.headers)
    try:
        value = _decode_rate(request.body)
    except NOT_JSON:
        raise invalid_json() from None
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise invalid_json("")
    rate = float(value)
    if not math.isfinite(rate) or rate <= 0:
        raise refuse(INVALID_ASSET_RATE, "RateError")
    asset = await _traded(request)
    try:
        before = request.core.rates.put(asset, rate)
    except MatcherError as error:
        raise Refusal(error, "RateError") from None
    name = asset_text(asset)
    if before is None:
        return message(f"The rate {double_text(rate)} for the asset {name} added", CREATED)
    both = f"old value = {double_text(before)}, new value = {double_text(rate)}"
    return message(f"The rate for the asset {name} updated, {both}")


async def delete_rate(request: Request) -> Answer:
    """Delete a rate."""
    asset = await _traded(request)
    try:
        before = request.core.rates.delete(asset)
    except MatcherError as error:
        raise Refusal(error, "RateError") from None
    name = asset_text(asset)
    return message(f"The rate for the asset {name} deleted, old value = {double_text(before)}")


async def _traded(request: Request) -> AssetId | None:
    asset = read_asset(request.segments[3])
    try:
        await request.core.queries.check_asset(asset)
    except MatcherError as error:
        raise Refusal(error, "InfoNotFound") from None
    return asset


# --- fees -----------------------------------------------------------------------------------------


class FeeRequest(msgspec.Struct, frozen=True):
    """The body of a request for the minimum fee of an order."""

    orderType: str  # noqa: N815 - the member's name
    amount: int
    price: int


_FEE_REQUEST: Final = Form(FeeRequest)
_SIDES: Final = {"buy": Side.BUY, "sell": Side.SELL}


async def calculate_fee(request: Request) -> Answer:
    """The minimum fees of an order with this amount and price, which may be zero."""
    check_content_type(request.headers)
    core = request.core
    body = _FEE_REQUEST.read(request.body)
    side = _SIDES.get(body.orderType)
    wrong = [
        f"/{name}"
        for name in ("amount", "price")
        if not -MAX_LONG - 1 <= getattr(body, name) <= MAX_LONG
    ]
    if side is None:
        raise invalid_json(*wrong, "/orderType")
    if wrong:
        raise invalid_json(*wrong)
    pair = await traded_pair(core, read_pair(*request.segments[2:4]))
    base, discount = await core.queries.minimum_fee(pair, side, body.amount, body.price)
    fees = {"base": base, "discount": discount}
    return plain({name: _fee_json(fee) for name, fee in fees.items() if fee is not None})


def _fee_json(fee: tuple[AssetId | None, int]) -> dict[str, Any]:
    asset, amount = fee
    return {"feeAssetId": asset_text(asset), "matcherFee": bounded(amount)}


_RATED: Final = list(examples.RATES)[1]
ROUTES: Final = table("info", "",
    row("GET /matcher when=always", public_key, "The matcher's public key", examples.PUBLIC_KEY),
    row("GET /matcher/settings when=always", settings, "The rules for orders",
        examples.SETTINGS),
    row("GET /matcher/settings/rates when=always tag=rates", rates, "Rates of fee assets",
        examples.RATES,
        description="The price of one native coin in whole units of each asset."),
    row("PUT /matcher/settings/rates/{asset} auth=key tag=rates", put_rate, "Set a rate",
        examples.done(f"The rate 0.5 for the asset {_RATED} added"), body=0.5,
        status=CREATED, statuses={OK: "There was one already, which is replaced."}),
    row("DELETE /matcher/settings/rates/{asset} auth=key tag=rates", delete_rate, "Delete a rate",
        examples.done(f"The rate for the asset {_RATED} deleted, old value = 0.5")),
    row("POST /matcher/orderbook/{amount}/{price}/calculateFee tag=markets", calculate_fee,
        "The minimum fee of an order", examples.FEE, body=examples.FEE_REQUEST),
)  # fmt: skip
