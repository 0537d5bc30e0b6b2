"""Features of the chain that this version does not implement: warnings, and the stop before them.

What lives here: when the operator is warned, of votes and of an approval, and when the node stops.
What does not: the refusal of blocks to which such a feature applies (``ledger.headers``), what
approves a feature (``ledger.environment``).

Source: wavesplatform/Waves ``node/src/main/scala/com/wavesplatform/state/
BlockchainUpdaterImpl.scala``.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from typing import Final

from soliton.chain.blocks import MAX_VOTE
from soliton.chain.features import DESCRIPTIONS, IMPLEMENTED
from soliton.ledger.rules_at import RuleBook, votes_needed, voting_window
from soliton.node.blockchain import Blockchain

BLOCKS_PER_CHECK: Final = 200
"""How many blocks' votes are counted at once: the window of a network has thousands."""
FIRST_COUNT: Final = 20
"""A window's votes are judged once one of so many parts of it has passed."""
LAST_DATE_MS: Final = 253_402_214_400_000
"""The last day that a date can be of, for chains whose clock is far ahead."""
NOTABLE_SHARE: Final = 10
"""Votes of one block in so many are worth a warning: they are of more than one generator."""

_log = logging.getLogger(__name__)


class VoteCount:
    """Counts the votes of a window, below the last block, for features that nobody implements here.

    It follows the chain in steps, so that a start in the middle of a window costs no pause.
    """

    __slots__ = ("_chain", "_id", "height", "start", "votes")

    def __init__(self, chain: Blockchain) -> None:
        self._chain = chain
        self.start = self.height = 0
        self._id = b""
        self.votes: Counter[int] = Counter()

    def follow(self) -> None:
        """Count further blocks; begin again in a new window, or where blocks were replaced."""
        chain = self._chain
        top = chain.height
        window = voting_window(chain.network.functionality, top)
        start = (top - 1) // window * window + 1
        known = self._id != b"" and self.height < top and self._id == chain.meta(self.height).id
        if start != self.start or not known:
            self.start, self.height = start, start - 1
            self.votes.clear()
        last = min(top - 1, self.height + BLOCKS_PER_CHECK)
        for height in range(self.height + 1, last + 1):
            self.votes.update(
                each
                for each in set(chain.feature_votes(height))
                if 0 < each <= MAX_VOTE and each not in IMPLEMENTED
            )
        self.height = last
        self._id = chain.meta(last).id if last >= start else b""

    @property
    def blocks(self) -> int:
        """How many blocks of the window are counted."""
        return self.height - self.start + 1


class FeatureWatch:
    """Follows which features of a chain are approved. An unknown one is logged once."""

    __slots__ = ("_active", "_chain", "_count", "_rules", "_stop", "_told", "_unknown")

    def __init__(self, chain: Blockchain, stop: Callable[[], None] | None) -> None:
        """``stop`` stops the node; ``None`` if it must stay at its height instead."""
        self._chain = chain
        self._stop = stop
        self._rules: RuleBook | None = None
        self._unknown: dict[int, int] = {}
        self._active: list[int] = []
        self._count = VoteCount(chain)
        self._told: set[tuple[int, int, bool]] = set()

    @property
    def has_stopped(self) -> bool:
        """Whether the node is stopped because the next block needs a newer version."""
        return self._stop is not None and bool(self._active)

    def check(self) -> None:
        """Log unknown features once they are voted for, and once they are approved. Log them, and
        stop the node, once they are active in the block after the last one.
        """
        # A fork would fetch every block of the window; it is not for following a network.
        if self._chain.height > 1 and self._chain.store.below is None:
            self._count.follow()
            for warning in self._new_warnings():
                _log.warning("%s", warning)
        rules = self._chain.rules
        if rules is not self._rules:
            self._rules = rules
            logged = self._unknown.items()
            self._unknown = {
                feature: start
                for feature, start in rules.activations().items()
                if feature not in IMPLEMENTED
            }
            for feature, start in self._unknown.items() - logged:
                _log.warning(
                    "feature %d (%s) is approved and active from height %d on; this version does "
                    "not implement it: update the node before", feature, _name(feature), start,
                )  # fmt: skip
        height = self._chain.height
        active = sorted(each for each, start in self._unknown.items() if start <= height + 1)
        if active and active != self._active:
            _log.error(
                "features %s are active in the next block; this version does not implement them: "
                "the node %s, update it", ", ".join(f"{each} ({_name(each)})" for each in active),
                "stays at this height" if self._stop is None else "stops",
            )  # fmt: skip
            if self._stop is not None:
                self._stop()
        self._active = active

    def _new_warnings(self) -> Iterator[str]:
        """Yield what has not been said of the votes of this window: once when a feature has a
        notable share, and once when that suffices.
        """
        count, chain = self._count, self._chain
        settings = chain.network.functionality
        window = voting_window(settings, count.start)
        if count.blocks * FIRST_COUNT < window:
            return
        self._told = {each for each in self._told if each[0] == count.start}
        needed = votes_needed(settings, count.start)
        for feature, votes in sorted(count.votes.items()):
            if feature in chain.rules.activations() or votes * NOTABLE_SHARE < count.blocks:
                continue
            suffices = votes * window >= needed * count.blocks
            said = count.start, feature, suffices
            if said in self._told:
                continue
            self._told |= {said, (count.start, feature, False)}
            end = count.start + window - 1
            wait_ms = (end + window - count.height) * chain.network.genesis.average_block_delay_ms
            moment_ms = min(chain.meta(count.height).timestamp + wait_ms, LAST_DATE_MS)
            date = datetime.fromtimestamp(moment_ms / 1_000, UTC)
            yield (
                f"feature {feature} ({_name(feature)}), which this version "
                f"does not implement: {100 * votes // count.blocks} % of {count.blocks} blocks "
                f"since height {count.start} vote for it, {100 * needed // window} % approve it; "
                f"{'at this rate' if suffices else 'should it reach that'} by height {end}, it is "
                f"active from height {end + window} on, about {date:%Y-%m-%d}: update the node "
                f"before"
            )


def _name(feature: int) -> str:
    return DESCRIPTIONS.get(feature, "unknown")
