"""Generation periods: the spans of blocks for which generators commit in advance.

The first period begins where deterministic finality becomes active, and has one block more than the
others. Nobody can have committed to it, because a commitment is always to the next period.

What lives here: the arithmetic. What does not: who has committed, and who may mine
(``soliton.ledger``).

Source: wavesplatform/Waves
``node/src/main/scala/com/wavesplatform/state/GenerationPeriod.scala``.
"""

from __future__ import annotations

from typing import NamedTuple


class GenerationPeriod(NamedTuple):
    """A period: its first and last height. ``length`` is that of all periods but the first."""

    start: int
    end: int
    length: int

    @property
    def next(self) -> GenerationPeriod:
        """The period after this one, to which generators can commit now."""
        return GenerationPeriod(self.end + 1, self.end + self.length, self.length)


def period_at(height: int, activation: int, length: int) -> GenerationPeriod | None:
    """Return the period of a height, ``None`` before the activation of deterministic finality."""
    if height < activation:
        return None
    number = max(0, height - activation - 1) // length
    end = activation + (number + 1) * length
    return GenerationPeriod(end - length + 1 if number else activation, end, length)
