"""The stream of one account: its balances and orders, then their changes.

What lives here: accumulating an account's changes, and the messages to its subscribers. What does
not: tokens and limits (``subscriptions``), balances themselves (``Queries``).

Sources: wavesplatform/matcher
``dex/src/main/scala/com/wavesplatform/dex/api/ws/state/WsAddressState.scala``,
``entities/WsOrder.scala``.
"""

from __future__ import annotations

import asyncio
from collections.abc import Collection
from typing import Any, Final

from soliton.chain.addresses import Address, address_text
from soliton.chain.orders import PRICE_CONSTANT
from soliton.chain.transactions.exchange import Exchange
from soliton.chain.transactions.model import AnyTransaction
from soliton.chain.values import AssetId
from soliton.crypto import base58
from soliton.matcher.errors import NodeUnavailable
from soliton.matcher.records import OrderInfo, describe
from soliton.matcher.service import Matcher
from soliton.matcher.websocket.connection import Connection
from soliton.matcher.websocket.messages import encode, next_update_id, numbered
from soliton.matcher.websocket.numbers import amount_text, price_text
from soliton.matching.events import (
    Event,
    ExecutionCorrected,
    OrderAdded,
    OrderCanceled,
    OrderExecuted,
)
from soliton.matching.pairs import asset_text

WITHOUT_NFTS: Final = "-nft"
"""The flag of a subscriber that excludes non-fungible assets."""
_NOTHING: Final = (amount_text(0, 0), amount_text(0, 0))


class Decimals:
    """A cache of the decimals of assets, and of which are non-fungible."""

    __slots__ = ("_core", "_known", "nfts")

    def __init__(self, core: Matcher) -> None:
        self._core = core
        self._known: dict[AssetId | None, int] = {}
        self.nfts: set[str] = set()
        """Non-fungible assets, by the text of their ids."""

    async def of(self, asset: AssetId | None) -> int:
        """The number of decimal places of an asset's amounts."""
        decimals = self._known.get(asset)
        if decimals is None:
            described = await self._core.queries.asset(asset)
            decimals = self._known[asset] = described.decimals
            if described.nft:
                self.nfts.add(asset_text(asset))
        return decimals


Amounts = dict[str, tuple[str, str]]
"""The tradable and the reserved amounts, by the text of the asset."""


class _Change:
    """The changes of an order since the last message."""

    __slots__ = ("info", "is_new", "matches", "only_status")

    def __init__(self, info: OrderInfo) -> None:
        self.info = info
        self.is_new = False
        self.only_status = True
        self.matches: list[tuple[OrderExecuted, bool]] = []

    def merged(self, later: _Change) -> _Change:
        """The combination of this change and a later one."""
        merged = _Change(later.info)
        merged.is_new = self.is_new or later.is_new
        merged.only_status = self.only_status and later.only_status
        merged.matches = self.matches + later.matches
        return merged


class AddressFeed:
    """The subscribers of one account."""

    def __init__(self, core: Matcher, address: Address, decimals: Decimals) -> None:
        self._core = core
        self._address = address
        self._decimals = decimals
        self._updates: dict[Connection, int] = {}
        self._assets: set[AssetId | None] = set()
        self._changes: dict[bytes, _Change] = {}
        self._balances: Amounts = {}
        self._without_nfts: set[Connection] = set()
        self._exchanges: dict[bytes, list[AnyTransaction]] = {}
        # Building a message awaits: each must be based on the one before.
        self._building = asyncio.Lock()
        self._joining = 0

    def __len__(self) -> int:
        """The number of subscribers, including those that are being added."""
        return len(self._updates) + self._joining

    @property
    def has_changes(self) -> bool:
        """Whether there is something to send."""
        return bool(self._assets or self._changes)

    async def add(self, connection: Connection, flags: Collection[str] = ()) -> None:
        """Add a subscriber, and send it all balances and active orders."""
        self._joining += 1
        try:
            async with self._building:
                await self._flush()
                await self._add(connection, flags)
        finally:
            self._joining -= 1

    async def _add(self, connection: Connection, flags: Collection[str]) -> None:
        balances = await self._balances_of(None)
        # The other subscribers receive what changed since the last message.
        self._send_changed(balances, [])
        self._balances = dict(balances)
        active = self._core.queries.history(self._address, None, active=True, closed=False)
        # A change to nothing is told, an asset that the account has nothing of is not.
        balances = {asset: both for asset, both in balances.items() if both != _NOTHING}
        if WITHOUT_NFTS in flags:
            balances = self._fungible(balances)
        body = self._body(balances, [await self._full(info) for info in active])
        if WITHOUT_NFTS in flags:
            self._without_nfts.add(connection)
        self._updates[connection] = 0
        connection.push(numbered(0, encode(body)))

    def remove(self, connection: Connection) -> None:
        """Remove a subscriber."""
        self._updates.pop(connection, None)
        self._without_nfts.discard(connection)

    def on_balances(self, assets: frozenset[AssetId | None]) -> None:
        """Note that the balances of these assets may have changed."""
        self._assets |= assets

    def on_event(self, event: Event) -> None:
        """Note an event of an order of the account."""
        match event:
            case OrderAdded(order=order):
                self._assets |= order.reservable_balance().keys()
                self._change(describe(order, order.status)).is_new = True
            case OrderCanceled(order=order):
                self._assets |= order.reservable_balance().keys()
                self._change(describe(order, event.status))
            case OrderExecuted():
                for order, is_taker in ((event.taker, True), (event.maker, False)):
                    info = describe(order, order.status)
                    if info.owner == self._address:
                        self._assets |= {
                            info.pair.amount_asset,
                            info.pair.price_asset,
                            info.fee_asset,
                        }
                        change = self._change(info)
                        change.only_status = False
                        change.matches.append((event, is_taker))
            case ExecutionCorrected():
                for order in (event.taker, event.maker):
                    info = describe(order, order.status)
                    if info.owner == self._address:
                        self._assets |= order.reservable_balance().keys()
                        change = self._change(info)
                        change.only_status = False
                        change.matches = [
                            match for match in change.matches if not _is_of(event, match[0])
                        ]
            case _:
                pass

    def _change(self, info: OrderInfo) -> _Change:
        change = self._changes.setdefault(info.id, _Change(info))
        change.info = info
        return change

    async def flush(self) -> None:
        """Send the changes since the last time. Raises ``MatcherError``, and ``NodeUnavailable``;
        then the changes are sent the next time.
        """
        async with self._building:
            await self._flush()

    async def _flush(self) -> None:
        if not self.has_changes:
            return
        assets, self._assets = self._assets, set()
        changes, self._changes = self._changes, {}
        if not self._updates:
            return
        try:
            amounts = await self._balances_of(assets)
            self._exchanges.clear()
            orders = [await self._changed(change) for change in changes.values()]
        except NodeUnavailable:
            self._assets |= assets
            for order_id, change in self._changes.items():
                earlier = changes.get(order_id)
                changes[order_id] = change if earlier is None else earlier.merged(change)
            self._changes = changes
            raise
        self._send_changed(amounts, orders)

    def _send_changed(self, amounts: Amounts, orders: list[dict[str, Any]]) -> None:
        balances = {
            key: value for key, value in amounts.items() if self._balances.get(key) != value
        }
        self._balances |= balances
        self._send(balances, orders, self._updates.keys() - self._without_nfts)
        self._send(self._fungible(balances), orders, self._without_nfts)

    def _fungible(self, balances: Amounts) -> Amounts:
        return {key: value for key, value in balances.items() if key not in self._decimals.nfts}

    def _send(
        self, balances: Amounts, orders: list[dict[str, Any]], to: Collection[Connection]
    ) -> None:
        if to and (balances or orders):
            encoded = encode(self._body(balances, orders))
            for connection in to:
                update_id = self._updates[connection] = next_update_id(self._updates[connection])
                connection.push(numbered(update_id, encoded))

    def _body(self, balances: Amounts, orders: list[dict[str, Any]]) -> dict[str, Any]:
        body: dict[str, Any] = {
            "T": "au",
            "_": self._core.now(),
            "S": address_text(self._address),
            "N": self._core.engine.last_offset,
        }
        if balances:
            body["b"] = balances
        if orders:
            body["o"] = orders
        return body

    async def _balances_of(self, assets: set[AssetId | None] | None) -> Amounts:
        report = await self._core.queries.report(self._address)
        out = {}
        for asset in {*report.regular, *report.reserved} if assets is None else assets:
            decimals = await self._decimals.of(asset)
            tradable, reserved = report.tradable.get(asset, 0), report.reserved.get(asset, 0)
            pair = (amount_text(tradable, decimals), amount_text(reserved, decimals))
            out[asset_text(asset)] = pair
        return out

    async def _changed(self, change: _Change) -> dict[str, Any]:
        info = change.info
        if change.is_new:
            body = await self._full(info)
        else:
            body = {**_identity(info), "s": info.status.value}
            if not change.only_status:
                body |= await self._filling(info)
        matches = [await self._match(info, *match) for match in change.matches]
        if matches:
            body["m"] = matches
        return body

    async def _full(self, info: OrderInfo) -> dict[str, Any]:
        amount, price = await self._pair_decimals(info)
        return {
            **_identity(info),
            "t": info.timestamp,
            "T": "market" if info.is_market else "limit",
            "p": price_text(info.price, amount, price),
            "a": amount_text(info.amount, amount),
            "f": amount_text(info.fee, await self._decimals.of(info.fee_asset)),
            "s": info.status.value,
            **await self._filling(info),
        }

    async def _filling(self, info: OrderInfo) -> dict[str, str]:
        amount, price = await self._pair_decimals(info)
        return {
            "q": amount_text(info.filled, amount),
            "Q": amount_text(info.filled_fee, await self._decimals.of(info.fee_asset)),
            "r": price_text(info.average_price, amount, price),
            "E": price_text(info.executed_price_assets, amount, price),
        }

    async def _match(
        self, info: OrderInfo, executed: OrderExecuted, is_taker: bool
    ) -> dict[str, Any]:
        amount, price = await self._pair_decimals(info)
        volume = executed.amount * executed.price // PRICE_CONSTANT
        body: dict[str, Any] = {
            "t": executed.timestamp,
            "p": price_text(executed.price, amount, price),
            "A": amount_text(executed.amount, amount),
            "P": amount_text(volume, price),
            "mt": "t" if is_taker else "m",
        }
        transaction = self._transaction_of(executed)
        return body if transaction is None else {"i": base58.encode(transaction), **body}

    def _transaction_of(self, executed: OrderExecuted) -> bytes | None:
        orders = {executed.taker.id, executed.maker.id}
        # Search by the taker, all of whose executions are of one command. A maker may have many.
        found = self._exchanges.get(executed.taker.id)
        if found is None:
            found = list(self._core.database.transactions_of(executed.taker.id))
            self._exchanges[executed.taker.id] = found
        for transaction in found:
            payload = transaction.payload
            if (
                isinstance(payload, Exchange)
                and {payload.order1.id, payload.order2.id} == orders
                and payload.amount == executed.amount
            ):
                return transaction.id
        return None

    async def _pair_decimals(self, info: OrderInfo) -> tuple[int, int]:
        pair = info.pair
        return await self._decimals.of(pair.amount_asset), await self._decimals.of(pair.price_asset)


def _is_of(event: ExecutionCorrected, executed: OrderExecuted) -> bool:
    """Whether an execution that was not sent yet is the one that was taken back."""
    both = {event.taker.id, event.maker.id}
    return not event.stands and {executed.taker.id, executed.maker.id} == both


def _identity(info: OrderInfo) -> dict[str, str]:
    return {
        "i": base58.encode(info.id),
        "A": asset_text(info.pair.amount_asset),
        "P": asset_text(info.pair.price_asset),
        "S": info.side.name.lower(),
        "F": asset_text(info.fee_asset),
    }
