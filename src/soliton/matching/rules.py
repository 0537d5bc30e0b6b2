"""Settings that depend on a command's journal offset: fees, tick sizes, the version of exchange
transactions. They are chosen by offset so that a replay decides as the matcher did at the time.

What lives here: the settings that the engine reads. What does not: settings that only the placement
of an order depends on (``placement``), and their names in a configuration file
(``soliton.matcher``).

Sources: wavesplatform/matcher ``dex/src/main/scala/com/wavesplatform/dex/settings``,
``caches/OrderFeeSettingsCache.scala`` and ``model/MatchTimestamp.scala``.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping
from decimal import Decimal
from typing import Final

import msgspec

from soliton.chain.values import MAX_I64
from soliton.matching.arithmetic import normalize_price
from soliton.matching.fees import DynamicFee, FeeFunction, OrderFee, fee_function
from soliton.matching.pairs import AssetPair

NEVER: Final = MAX_I64
"""An offset no journal reaches."""
DEFAULT_TICK_SIZE: Final = 1
LEAST_TICK_SIZE: Final = Decimal("0.00000001")
"""The least tick size of any pair, as a decimal."""
DEFAULT_FEE: Final = DynamicFee(300_000, 300_000)

OffsetSchedule = tuple[tuple[int, OrderFee], ...]
TickSchedule = tuple[tuple[int, int], ...]


class Terms(msgspec.Struct, frozen=True):
    """The rules in force for one pair, up to the command at offset ``until`` (exclusive)."""

    tick_size: int
    fees: FeeFunction
    distinct_timestamps: bool
    until: int


class MatchingSettings(msgspec.Struct, frozen=True):
    """Everything that executions depend on besides the commands.

    ``order_fees`` are fee modes with the offset from which each is in force, ascending.
    ``tick_sizes`` are normalised prices by pair, in the same form. From ``order_v4_start_offset``
    orders of version 4 are accepted and exchange transactions have version 3. From
    ``distinct_timestamps_start_offset`` no two executions of a book share a timestamp. After
    ``pass_execution_parameters_start_offset`` the orders of ``lp_accounts`` (public keys, which
    never pay fees) pass the execution's amount and price to the script of their account.
    """

    order_fees: OffsetSchedule = ((-1, DEFAULT_FEE),)
    tick_sizes: Mapping[AssetPair, TickSchedule] = msgspec.field(default_factory=dict)
    order_v4_start_offset: int = NEVER
    distinct_timestamps_start_offset: int = NEVER
    pass_execution_parameters_start_offset: int = NEVER
    lp_accounts: frozenset[bytes] = frozenset()

    def order_fee_at(self, offset: int) -> OrderFee:
        """The fee mode of a command at an offset."""
        if len(self.order_fees) == 1:
            return self.order_fees[0][1]
        index = bisect_right(self.order_fees, offset, key=_start) - 1
        return self.order_fees[max(index, 0)][1]

    def tick_size_at(self, pair: AssetPair, offset: int) -> int:
        """The normalised tick size of a pair for a command at an offset."""
        schedule = self.tick_sizes.get(pair)
        if schedule is None:
            return DEFAULT_TICK_SIZE
        index = bisect_right(schedule, offset, key=_start) - 1
        size = schedule[index][1] if index >= 0 else DEFAULT_TICK_SIZE
        return max(size, DEFAULT_TICK_SIZE)

    def order_tick_size(
        self, pair: AssetPair, offset: int, amount_decimals: int, price_decimals: int
    ) -> int:
        """The normalised tick size that an order is checked by, and that clients see: at least
        ``LEAST_TICK_SIZE``. Matching need not know of that: prices are multiples of it anyway.
        """
        least = normalize_price(LEAST_TICK_SIZE, amount_decimals, price_decimals)
        return max(self.tick_size_at(pair, offset), least)

    def exchange_version_at(self, offset: int) -> int:
        """The version of the exchange transactions caused by a command at an offset."""
        return 2 if offset < self.order_v4_start_offset else 3

    def passes_parameters_at(self, offset: int, public_key: bytes) -> bool:
        """Whether the proofs of an order carry the execution's parameters."""
        return (
            offset > self.pass_execution_parameters_start_offset and public_key in self.lp_accounts
        )

    def terms_at(self, pair: AssetPair, offset: int) -> Terms:
        """The rules in force for a pair at an offset, and until when."""
        starts = [start for start, _ in self.order_fees]
        starts += [start for start, _ in self.tick_sizes.get(pair, ())]
        starts.append(self.distinct_timestamps_start_offset)
        return Terms(
            tick_size=self.tick_size_at(pair, offset),
            fees=fee_function(self.order_fee_at(offset), pair, self.lp_accounts),
            distinct_timestamps=offset >= self.distinct_timestamps_start_offset,
            until=min((start for start in starts if start > offset), default=NEVER),
        )


def normalized_tick_sizes(
    schedule: tuple[tuple[int, Decimal], ...], amount_decimals: int, price_decimals: int
) -> TickSchedule:
    """Decimal tick sizes as normalised prices, at least one unit each."""
    return tuple(
        (start, max(normalize_price(size, amount_decimals, price_decimals), DEFAULT_TICK_SIZE))
        for start, size in schedule
    )


def _start(entry: tuple[int, object]) -> int:
    return entry[0]
