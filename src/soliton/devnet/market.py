"""The markets of a scenario: books from the beginning, and somebody who keeps them filled.

Prices move by chance that is the same in each run. What lives here: orders, and when they come.
What does not: the matcher, and the tokens (``playing``).
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
from soliton.matching.pairs import AssetPair

LIFETIME_MS: Final = 86_400_000
_FEE: Final = 300_000
_DRIFT: Final = 0.0015
"""How far a price moves in one round, as a share, at most."""
_DIGITS: Final = 6
"""Of a price."""
_log: Final = logging.getLogger(__name__)


class Markets:
    """Those of one scenario; ``keep`` looks after them."""

    def __init__(self, playing: Playing, matcher: Callable[[], Matcher]) -> None:
        """``matcher`` gives the one that lives: with its chain it goes back, too."""
        self._playing, self._living = playing, matcher
        self._key = self._matcher.settings.account.public_key
        self._made = {each.title: _Kept(each, playing.scenario.name) for each in self._plans()}
        self._last = 0
        self.is_on = True
        """Whether the market makers work."""

    @property
    def _matcher(self) -> Matcher:
        return self._living()

    def _plans(self) -> list[MarketPlan]:
        return self._playing.scenario.markets

    async def open(self) -> int:
        """Place the orders that are there from the beginning: how many there are."""
        orders = [
            self._order(plan, self._playing.people[each.by], each.side, each.amount, each.price)
            for plan in self._plans()
            for each in plan.orders
        ]
        for kept in self._made.values():
            orders += self._ladder(kept)
        return sum(await asyncio.gather(*map(self._place, orders)))

    async def keep(self) -> None:
        """Move prices and trade, for ever."""
        makers = [each for each in self._made.values() if each.plan.maker is not None]
        await asyncio.gather(*(self._keep_one(each) for each in makers))

    async def _keep_one(self, kept: _Kept) -> None:
        maker = kept.maker
        while True:
            await asyncio.sleep(maker.every)
            if self.is_on:
                await self.round(kept)

    async def rounds(self) -> None:
        """One round of each market, at once."""
        for kept in self._made.values():
            if kept.plan.maker is not None:
                await self.round(kept)

    async def round(self, kept: _Kept) -> None:
        """Somebody trades at the best price; then the price moves, and the book with it."""
        maker, chance = kept.maker, kept.chance
        side = chance.choice(("buy", "sell"))
        taker = self._playing.people[maker.taker]
        worst = kept.price * (2 if side == "buy" else Decimal("0.5"))
        amount = Decimal(maker.amount) * Decimal(chance.randint(2, 15)) / 10
        # A part of the first two levels.
        await self._place(self._order(kept.plan, taker, side, str(amount), _price(worst)))
        kept.price *= 1 + Decimal(chance.uniform(-_DRIFT, _DRIFT))
        owner = self._playing.people[maker.account].address_bytes
        try:
            pair = self._pair(kept.plan)
            await self._matcher.canceling.cancel_all(owner, pair)
        except SolitonError as error:
            _log.debug("%s: %s", kept.plan.title, error)
        await asyncio.gather(*map(self._place, self._ladder(kept)))

    def _ladder(self, kept: _Kept) -> list[Order]:
        if kept.plan.maker is None:
            return []
        maker, orders = kept.maker, []
        account = self._playing.people[maker.account]
        for level in range(1, maker.levels + 1):
            away = Decimal(str(maker.step)) / 100 * level
            for side, factor in (("buy", 1 - away), ("sell", 1 + away)):
                price = _price(kept.price * factor)
                orders.append(self._order(kept.plan, account, side, maker.amount, price))
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
        """A time that no order before had: two that say the same would be one."""
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


class _Kept:
    """A market, its price now, and the chance that moves it."""

    __slots__ = ("chance", "plan", "price")

    def __init__(self, plan: MarketPlan, seed: str) -> None:
        self.plan = plan
        self.price = Decimal(plan.start)
        self.chance = random.Random(f"{seed} {plan.title}")  # noqa: S311 - no secret

    @property
    def maker(self) -> MakerPlan:
        """Who keeps it."""
        assert self.plan.maker is not None, "only markets with a maker are kept"
        return self.plan.maker


def price_assets(playing: Playing) -> tuple[bytes | None, ...]:
    """The assets in which prices are, in an order in which all markets stand as they are named.
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


def _price(value: Decimal) -> str:
    """A price with a few digits, as people write it."""
    digits = _DIGITS - value.adjusted() - 1
    return f"{value.quantize(Decimal(1).scaleb(-max(0, min(digits, 8))), ROUND_HALF_EVEN):f}"
