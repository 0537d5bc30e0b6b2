"""Rates: the value of an asset in another, from the latest trades.

What lives here: the algorithm. What does not: candles and pairs, which it reads.

Source: wavesplatform/data-service ``src/services/rates``.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime
from decimal import ROUND_FLOOR, Context, Decimal
from typing import Final, NamedTuple

from soliton.data_service.assets import Assets
from soliton.data_service.errors import BadRequest, WrongValue
from soliton.data_service.formats import Format, listed, one, scaled
from soliton.data_service.pairs import read_pairs, wrong_pairs
from soliton.data_service.parameters import Query
from soliton.data_service.pool import Pool

MAX_PAIRS: Final = 100
_PRICE: Final = 8
_EXACT: Final = Context(prec=64)

_DIRECT: Final = """
SELECT w.amount, w.price,
    (SELECT floor(sum(c.weighted_average_price * c.volume) / sum(c.volume)) FROM (
        SELECT weighted_average_price, volume FROM candles
        WHERE interval = '1m' AND matcher_address = %(matcher)s AND amount_asset_id = w.amount
            AND price_asset_id = w.price AND time_start <= %(time)s AND volume > 0
        ORDER BY time_start DESC LIMIT 5
    ) c) AS rate,
    (SELECT volume_waves FROM pairs p WHERE p.matcher_address = %(matcher)s
        AND p.amount_asset_id = w.amount AND p.price_asset_id = w.price) AS volume_waves
FROM unnest(%(amounts)s::varchar[], %(prices)s::varchar[]) AS w (amount, price)
"""

Pair = tuple[str, str]


class RateSettings(NamedTuple):
    """``base`` is the asset that all others are compared with; ``threshold`` is the volume (in
    ``measure``) from which on a pair's own trades count.
    """

    base: str = "WAVES"
    measure: str = ""
    threshold: Decimal = Decimal(0)


class Rates:
    """The rates of one database."""

    def __init__(self, pool: Pool, assets: Assets, settings: RateSettings) -> None:
        self._pool = pool
        self._assets = assets
        self._settings = settings

    async def many(self, matcher: str, query: Query, shape: Format) -> object:
        """Return the rates of pairs, now or at a time."""
        texts = query.listed("pairs")
        pairs = read_pairs(texts)
        if not pairs:
            raise wrong_pairs(texts)
        if len(pairs) > MAX_PAIRS:
            message = f"Max limit {MAX_PAIRS} exceeded"
            raise WrongValue(message, "pairs", f"{len(pairs)} pairs", f"at most {MAX_PAIRS}")
        names = {name for pair in pairs for name in pair}
        known = await self._assets.find(list(names))
        if missing := sorted(names - known.keys()):
            raise BadRequest(
                "Some of the assets of specified pairs do not exist in the blockchain", ids=missing
            )
        time = query.moment("timestamp") or datetime.now(UTC)
        table = await self._table(pairs, matcher, time)
        decimals = await self._assets.decimals(names)
        items = []
        for amount, price in pairs:
            rate = table.rate(amount, price)
            places = decimals[amount] - decimals[price] - _PRICE
            shown = rate if shape.long else scaled(rate, places)
            data = {"rate": shape.number(shown)}
            items.append(one("rate", data, amountAsset=amount, priceAsset=price))
        return listed(items)

    async def _table(self, pairs: Iterable[Pair], matcher: str, time: datetime) -> _Table:
        base, measure = self._settings.base, self._settings.measure
        needed: dict[Pair, None] = {}
        for amount, price in (*pairs, *(((base, measure),) if measure else ())):
            for pair in ((amount, price), (amount, base), (price, base)):
                needed |= dict.fromkeys((pair, pair[::-1]))
        rows = await self._pool.fetch(
            _DIRECT,
            {
                "amounts": [pair[0] for pair in needed],
                "prices": [pair[1] for pair in needed],
                "matcher": matcher,
                "time": time.replace(tzinfo=None),
            },
        )
        names = {name for pair in needed for name in pair}
        return _Table(
            {(row["amount"], row["price"]): row["rate"] for row in rows if row["rate"]},
            {(row["amount"], row["price"]): row["volume_waves"] or Decimal(0) for row in rows},
            await self._assets.decimals(names),
            self._settings,
        )


class _Table(NamedTuple):
    """Prices of traded pairs, in the smallest units, and their volumes."""

    prices: dict[Pair, Decimal]
    volumes: dict[Pair, Decimal]
    decimals: dict[str, int]
    settings: RateSettings

    def rate(self, amount: str, price: str) -> Decimal:
        """Return the rate of a pair in the units of its price, 0 if it is unknown."""
        if amount == price:
            return Decimal(1)
        base = self.settings.base
        own = self._own(amount, price)
        if base in (amount, price):
            found = own
        else:
            over = self._over_base(amount, price)
            found = (
                own if over is None or (own is not None and self._counts(amount, price)) else over
            )
        if found is None:
            return Decimal(0)
        return scaled(found, self._places(amount, price)).to_integral_value(ROUND_FLOOR)

    def _places(self, amount: str, price: str) -> int:
        return _PRICE + self.decimals[price] - self.decimals[amount]

    def _own(self, amount: str, price: str) -> Decimal | None:
        """Return the rate from trades of the pair or of its inverse, in whole units."""
        direct = self.prices.get((amount, price))
        if direct is not None:
            return scaled(direct, -self._places(amount, price))
        flipped = self.prices.get((price, amount))
        if flipped is None:
            return None
        return _EXACT.divide(Decimal(1), scaled(flipped, -self._places(price, amount)))

    def _over_base(self, amount: str, price: str) -> Decimal | None:
        base = self.settings.base
        first, second = self._own(amount, base), self._own(price, base)
        if first is None or not second:
            return None
        return _EXACT.divide(first, second)

    def _counts(self, amount: str, price: str) -> bool:
        """Whether the volume of a pair is sufficient for its own price to count."""
        settings = self.settings
        worth = self._own(settings.base, settings.measure) if settings.measure else None
        if not worth:
            return False
        volume = max(
            self.volumes.get(pair, Decimal(0)) for pair in ((amount, price), (price, amount))
        )
        return scaled(volume, -_PRICE) >= _EXACT.divide(settings.threshold, worth)
