"""The records of orders and executions that are stored and shown to clients.

What lives here: the records. What does not: where they are stored (``orders_db``), and their JSON
(``soliton.matcher.rest``).

Source: wavesplatform/matcher ``dex/src/main/scala/com/wavesplatform/dex/model/OrderInfo.scala``.
"""

from __future__ import annotations

from enum import Enum
from typing import Final

import msgspec

from soliton.chain.addresses import Address
from soliton.chain.orders import PRICE_CONSTANT, Side
from soliton.chain.values import AssetId
from soliton.matching.model import ActiveOrder, OrderStatus
from soliton.matching.pairs import AssetPair

_WORD: Final = 1 << 64


class ServiceStatus(Enum):
    """The lifecycle state of the service."""

    STARTING = "Starting"
    WORKING = "Working"
    STOPPING = "Stopping"


class OrderInfo(msgspec.Struct, frozen=True, gc=False, array_like=True):
    """An order and its executed amounts; ``timestamp`` is the order's, in milliseconds.

    ``price_nominator`` is the sum of executed amounts times their prices. It may exceed 64 bits, so
    it is stored in two words; older records have only the low one.
    """

    id: bytes
    owner: Address
    pair: AssetPair
    side: Side
    is_market: bool
    version: int
    amount: int
    price: int
    fee: int
    fee_asset: AssetId | None
    timestamp: int
    status: OrderStatus
    filled: int
    filled_fee: int
    price_nominator_low: int
    price_nominator_high: int = 0

    @property
    def price_nominator(self) -> int:
        """The sum of executed amounts times their prices."""
        return self.price_nominator_high * _WORD + self.price_nominator_low

    @property
    def average_price(self) -> int:
        """The mean price of its executions, weighted by amount, rounded down; 0 if none."""
        return self.price_nominator // self.filled if self.filled else 0

    @property
    def executed_price_assets(self) -> int:
        """The total of its executions in the price asset."""
        return self.price_nominator // PRICE_CONSTANT


def describe(order: ActiveOrder, status: OrderStatus) -> OrderInfo:
    """The record of an order in its present state."""
    signed = order.order
    high, low = divmod(order.price_nominator, _WORD)
    # Python makes a dictionary for a call with more than 15 keywords, which takes longer.
    return OrderInfo(
        signed.id,
        order.owner,
        pair=order.pair,
        side=signed.side,
        is_market=order.is_market,
        version=signed.version,
        amount=signed.amount,
        price=signed.price,
        fee=signed.matcher_fee,
        fee_asset=signed.matcher_fee_asset,
        timestamp=signed.timestamp,
        status=status,
        filled=order.filled_amount,
        filled_fee=order.filled_fee,
        price_nominator_low=low,
        price_nominator_high=high,
    )


Place = tuple[int, int]
"""The position of an execution: the offset of its command, and its index within that."""


class Trade(msgspec.Struct, frozen=True, gc=False, array_like=True):
    """An execution: ``amount`` at ``price``, in the units of orders; ``side`` is the taker's.

    ``offset`` and ``index`` (within the command) identify the execution; ``timestamp`` in
    milliseconds is that of the exchange transaction.
    """

    offset: int
    index: int
    timestamp: int
    price: int
    amount: int
    side: Side
    taker_order_id: bytes
    maker_order_id: bytes
    transaction_id: bytes | None
    taker_fee: int = 0
    maker_fee: int = 0


class Unsettled(msgspec.Struct, frozen=True, gc=False, array_like=True):
    """An execution that is not on the chain. ``amount`` is in the pair's amount asset;
    ``timestamp`` (ms) is that of its transaction, if it has one. ``given_up`` is true if the
    matcher no longer tries to settle it; ``message`` is the last error.

    ``responsible`` are the accounts because of which it is not settled, as far as is known, and
    ``None`` if an older version has given it up: then it stays as it is. ``is_taken_back`` is true
    after ``CorrectExecution``.
    """

    pair: AssetPair
    amount: int
    buy_order_id: bytes
    sell_order_id: bytes
    transaction_id: bytes | None
    timestamp: int
    given_up: bool
    message: str
    responsible: tuple[Address, ...] | None = None
    is_taken_back: bool = False


class Offsets(msgspec.Struct, frozen=True):
    """Journal offsets: of the last applied and the last stored command, and of the newest and the
    oldest snapshot (-1 if there is none).
    """

    current: int
    last: int
    newest_snapshot: int
    oldest_snapshot: int


class AddressReport(msgspec.Struct, frozen=True):
    """The state of an account, for the operator: amounts by asset, numbers of transactions, and the
    ids of orders that wait for placement.
    """

    regular: dict[AssetId | None, int]
    reserved: dict[AssetId | None, int]
    tradable: dict[AssetId | None, int]
    unconfirmed: dict[AssetId | None, int]
    leased_out: int
    not_observed_transactions: int
    placement_queue: tuple[bytes, ...]
