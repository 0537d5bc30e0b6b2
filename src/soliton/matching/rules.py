"""What depends on a command's place in the journal: fees, tick sizes, the form of exchange
transactions. Chosen by offset, so that a replay decides as the matcher did then.

What lives here: the settings that the engine reads. What does not: settings that only placing an
order depends on (``validation``), and their names in a configuration file (``soliton.matcher``).

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
"""An offset that no journal reaches."""
DEFAULT_TICK_SIZE: Final = 1
DEFAULT_FEE: Final = DynamicFee(300_000, 300_000)

OffsetSchedule = tuple[tuple[int, OrderFee], ...]
TickSchedule = tuple[tuple[int, int], ...]


class Terms(msgspec.Struct, frozen=True):
    """What is in force for one pair, until the command at offset ``until`` (exclusive)."""

    tick_size: int
    fees: FeeFunction
    distinct_timestamps: bool
    until: int


class MatchingSettings(msgspec.Struct, frozen=True):
    """Everything that executions depend on besides the commands.

    ``order_fees`` are modes with the offset from which each is in force, ascending.
    ``tick_sizes`` are normalised prices for pairs that have any, likewise. From
    ``order_v4_start_offset`` on orders of version 4 are taken, and exchange transactions are of
    version 3; from ``distinct_timestamps_start_offset`` on no two of a book share a timestamp; from
    ``pass_execution_parameters_start_offset`` on the orders of ``lp_accounts`` (public keys, which
    never pay fees) tell the script of their account what was executed.
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
        place = bisect_right(self.order_fees, offset, key=_start) - 1
        return self.order_fees[max(place, 0)][1]

    def tick_size_at(self, pair: AssetPair, offset: int) -> int:
        """The normalised tick size of a pair for a command at an offset."""
        schedule = self.tick_sizes.get(pair)
        if schedule is None:
            return DEFAULT_TICK_SIZE
        place = bisect_right(schedule, offset, key=_start) - 1
        size = schedule[place][1] if place >= 0 else DEFAULT_TICK_SIZE
        return max(size, DEFAULT_TICK_SIZE)

    def exchange_version_at(self, offset: int) -> int:
        """The version of the exchange transactions that a command at an offset causes."""
        return 2 if offset < self.order_v4_start_offset else 3

    def passes_parameters_at(self, offset: int, public_key: bytes) -> bool:
        """Whether an order's proofs are to tell what was executed."""
        return (
            offset >= self.pass_execution_parameters_start_offset and public_key in self.lp_accounts
        )

    def terms_at(self, pair: AssetPair, offset: int) -> Terms:
        """What is in force for a pair at an offset, and how long it stays so."""
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
    """Tick sizes as a person writes them, in normalised prices; none is below one unit."""
    return tuple(
        (start, max(normalize_price(size, amount_decimals, price_decimals), DEFAULT_TICK_SIZE))
        for start, size in schedule
    )


def _start(entry: tuple[int, object]) -> int:
    return entry[0]
