"""The markets of a scenario: their initial orders, and a market maker that keeps them filled.

Prices follow a random walk that is the same in each run.

What lives here: orders and their timing. What does not: the matcher, and the tokens (``playing``).
"""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import Callable
from decimal import ROUND_HALF_EVEN, Decimal
from graphlib import CycleError, TopologicalSorter
from typing import Final

from soliton.client.account import Account
from soliton.client.order import Order
from soliton.crypto import base58
from soliton.devnet.playing import Playing
from soliton.devnet.scenario import MakerPlan, MarketPlan, ScenarioRefused
from soliton.errors import SolitonError
from soliton.matcher.service import Matcher
from soliton.matcher.trading_settings import TICKER
from soliton.matching.pairs import AssetPair

LIFETIME_MS: Final = 86_400_000
_FEE: Final = 300_000
_DRIFT: Final = 0.0015
"""Largest change of a price in one round, as a share."""
_DIGITS: Final = 6
"""Significant digits of a price."""
_log: Final = logging.getLogger(__name__)


class Markets:
    """The markets of one scenario."""

    def __init__(self, playing: Playing, matcher: Callable[[], Matcher]) -> None:
        """``matcher`` returns the present matcher, which is replaced on a rollback."""
        self._playing, self._get_matcher = playing, matcher
        self._key = self._matcher.settings.account.public_key
        self._markets = {each.title: _Market(each, playing.scenario.name) for each in self._plans()}
        self._last = 0
        self.is_on = True
        """Whether the market makers are active."""

    @property
    def _matcher(self) -> Matcher:
        return self._get_matcher()

    def _plans(self) -> list[MarketPlan]:
        return self._playing.scenario.markets

    async def open(self) -> int:
        """Place the initial orders and return their number."""
        orders = [
            self._order(plan, self._playing.people[each.by], each.side, each.amount, each.price)
            for plan in self._plans()
            for each in plan.orders
        ]
        for market in self._markets.values():
            orders += self._ladder(market)
        return sum(await asyncio.gather(*map(self._place, orders)))

    async def keep(self) -> None:
        """Run the market makers; never returns."""
        makers = [each for each in self._markets.values() if each.plan.maker is not None]
        await asyncio.gather(*(self._keep_one(each) for each in makers))

    async def _keep_one(self, market: _Market) -> None:
        maker = market.maker
        while True:
            await asyncio.sleep(maker.every)
            if self.is_on:
                await self.round(market)

    async def rounds(self) -> None:
        """Run one round of each market."""
        for market in self._markets.values():
            if market.plan.maker is not None:
                await self.round(market)

    async def round(self, market: _Market) -> None:
        """Trade at the best price, then move the price and replace the maker's orders."""
        maker, chance = market.maker, market.chance
        side = chance.choice(("buy", "sell"))
        taker = self._playing.people[maker.taker]
        worst = market.price * (2 if side == "buy" else Decimal("0.5"))
        amount = Decimal(maker.amount) * Decimal(chance.randint(2, 15)) / 10
        # A part of the first two levels.
        await self._place(self._order(market.plan, taker, side, str(amount), _price(worst)))
        market.price *= 1 + Decimal(chance.uniform(-_DRIFT, _DRIFT))
        owner = self._playing.people[maker.account].address_bytes
        try:
            pair = self._pair(market.plan)
            await self._matcher.canceling.cancel_all(owner, pair)
        except SolitonError as error:
            _log.debug("%s: %s", market.plan.title, error)
        await asyncio.gather(*map(self._place, self._ladder(market)))

    def _ladder(self, market: _Market) -> list[Order]:
        if market.plan.maker is None:
            return []
        maker, orders = market.maker, []
        account = self._playing.people[maker.account]
        for level in range(1, maker.levels + 1):
            offset = Decimal(str(maker.step)) / 100 * level
            for side, factor in (("buy", 1 - offset), ("sell", 1 + offset)):
                price = _price(market.price * factor)
                orders.append(self._order(market.plan, account, side, maker.amount, price))
        return orders

    def _order(self, plan: MarketPlan, by: Account, side: str, amount: str, price: str) -> Order:
        tokens, now = self._playing.tokens, self._matcher.settings.clock()
        first, second = tokens[plan.amount], tokens[plan.price]
        whole = Decimal(amount).quantize(Decimal(1).scaleb(-first.decimals))
        return by.order(
            side,
            f"{whole:f}",
            first.asset,
            price,
            second.asset,
            matcher=self._key,
            matcher_fee=_FEE,
            timestamp=self._stamp(now),
            expiration=now + LIFETIME_MS,
        )

    def _stamp(self, now: int) -> int:
        """Return a new timestamp: two equal orders would be one."""
        self._last = max(now, self._last + 1)
        return self._last

    async def _place(self, order: Order) -> bool:
        try:
            await self._matcher.placing.place(order.inner, market=False)
        except SolitonError as error:
            _log.debug("an order was refused: %s", error)
            return False
        return True

    def _pair(self, plan: MarketPlan) -> AssetPair:
        first, second = (self._playing.tokens[each].id for each in (plan.amount, plan.price))
        return AssetPair(
            None if first is None else base58.decode(first),
            None if second is None else base58.decode(second),
        )


class _Market:
    """A market, its present price, and the random generator of its changes."""

    __slots__ = ("chance", "plan", "price")

    def __init__(self, plan: MarketPlan, seed: str) -> None:
        self.plan = plan
        self.price = Decimal(plan.start)
        self.chance = random.Random(f"{seed} {plan.title}")  # noqa: S311 - not a secret

    @property
    def maker(self) -> MakerPlan:
        """The market maker."""
        assert self.plan.maker is not None, "only markets with a maker have rounds"
        return self.plan.maker


def price_assets(playing: Playing) -> tuple[bytes | None, ...]:
    """Return the price assets in an order of priority that gives every market's pair its direction.
    Raises ``ScenarioRefused``.
    """
    plans = playing.scenario.markets
    prices = dict.fromkeys(each.price for each in plans)
    below: dict[str, list[str]] = {
        ticker: [each.price for each in plans if each.amount == ticker] for ticker in prices
    }
    try:
        ordered = list(TopologicalSorter(below).static_order())
    except CycleError as error:
        raise ScenarioRefused(f"markets contradict one another: {error.args[1]}") from error
    found = (playing.tokens[ticker].id for ticker in ordered)
    return tuple(None if each is None else base58.decode(each) for each in found)


def codes(playing: Playing) -> dict[str, bytes]:
    """Return the ids of the tokens by their tickers, as far as these can be codes of a matcher."""
    return {
        each.ticker: base58.decode(each.id)
        for each in playing.tokens.values()
        if each.id is not None and TICKER.fullmatch(each.ticker)
    }


def _price(value: Decimal) -> str:
    """Return a price with a few significant digits."""
    digits = _DIGITS - value.adjusted() - 1
    return f"{value.quantize(Decimal(1).scaleb(-max(0, min(digits, 8))), ROUND_HALF_EVEN):f}"
