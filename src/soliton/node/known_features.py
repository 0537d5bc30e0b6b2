"""Features of the chain that this version does not implement: a warning, and the stop before them.

What lives here: when the operator is warned, and when the node stops. What does not: the refusal of
blocks to which such a feature applies (``ledger.headers``), votes.

Source: wavesplatform/Waves ``node/src/main/scala/com/wavesplatform/state/
BlockchainUpdaterImpl.scala``.
"""

from __future__ import annotations

import logging
from collections.abc import Callable

from soliton.chain.features import IMPLEMENTED
from soliton.ledger.rules_at import RuleBook
from soliton.node.blockchain import Blockchain

_log = logging.getLogger(__name__)


class FeatureWatch:
    """Follows which features of a chain are approved. An unknown one is logged once."""

    __slots__ = ("_active", "_chain", "_rules", "_stop", "_unknown")

    def __init__(self, chain: Blockchain, stop: Callable[[], None] | None) -> None:
        """``stop`` stops the node; ``None`` if it must stay at its height instead."""
        self._chain = chain
        self._stop = stop
        self._rules: RuleBook | None = None
        self._unknown: dict[int, int] = {}
        self._active: list[int] = []

    @property
    def has_stopped(self) -> bool:
        """Whether the node is stopped because the next block needs a newer version."""
        return self._stop is not None and bool(self._active)

    def check(self) -> None:
        """Log unknown features once they are approved. Log them, and stop the node, once they are
        active in the block after the last one.
        """
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
                    "feature %d is approved and active from height %d on; this version does not "
                    "implement it: update the node before", feature, start,
                )  # fmt: skip
        height = self._chain.height
        active = sorted(each for each, start in self._unknown.items() if start <= height + 1)
        if active and active != self._active:
            _log.error(
                "features %s are active in the next block; this version does not implement them: "
                "the node %s, update it", active,
                "stays at this height" if self._stop is None else "stops",
            )  # fmt: skip
            if self._stop is not None:
                self._stop()
        self._active = active
