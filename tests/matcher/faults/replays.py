"""What the journal of a matcher says, when nothing else is asked."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from soliton.matcher.settings import MatcherSettings
from soliton.matcher.stores import reading
from soliton.matching.commands import PlaceMarketOrder, PlaceOrder, decode
from soliton.matching.engine import Engine
from soliton.matching.events import ExecutionCorrected, OrderExecuted


@dataclass
class Replayed:
    """What a journal says: how often each order was placed, what was executed and not
    taken back, who still waits.
    """

    engine: Engine
    placed: Counter[bytes]
    amounts: dict[bytes, int]
    executions: list[OrderExecuted]

    @property
    def waiting(self) -> set[bytes]:
        """The orders in the books."""
        return {order.id for book in self.engine.books() for order in book.orders()}


async def replayed(settings: MatcherSettings) -> Replayed:
    """The journal of a matcher, applied to empty books."""
    engine = Engine(settings.trading.matching(lambda _: 8))
    found = Replayed(engine, Counter(), {}, [])
    places: dict[tuple[int, int], OrderExecuted] = {}
    taken_back: set[tuple[int, int]] = set()
    async with reading(settings) as (first, batches):
        assert first == 0
        async for batch in batches:
            for offset, timestamp, payload in batch:
                command = decode(payload)
                if isinstance(command, PlaceOrder | PlaceMarketOrder):
                    found.placed[command.order.id] += 1
                    found.amounts[command.order.id] = command.order.amount
                events = engine.apply(offset, timestamp, command)
                executed = [each for each in events if isinstance(each, OrderExecuted)]
                places |= {(offset, index): each for index, each in enumerate(executed)}
                for event in events:
                    if isinstance(event, ExecutionCorrected):
                        place = event.execution_offset, event.index
                        (taken_back.discard if event.stands else taken_back.add)(place)
    found.executions += [each for place, each in places.items() if place not in taken_back]
    return found
