"""The metrics and the readiness of a program that follows the chain: an export, or notices.

What lives here: the figures that the loop notes, their metrics, and why a program is not ready.
What does not: the loop (``running``), and serving (``soliton.cli.watching``).
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Final

from soliton.web.monitoring import Health, Metric, one
from soliton.web.prometheus import COUNTER, GAUGE, Sample

READY_LAG: Final = 10
"""A program that is more blocks behind its chain is not ready."""
SLOW_SECONDS: Final = 60.0
"""A program whose step takes longer is not ready."""


class Progress:
    """What the loop has done. Written by its thread, read by others: each attribute by itself."""

    def __init__(self) -> None:
        self.height = 0
        """The height of the last block that was written."""
        self.chain_height = 0
        self.steps = 0
        self.blocks = 0
        self.transactions = 0
        self.failures = 0
        self.doing = ""
        """The step under way."""
        self.trouble = ""
        """Why the loop waits before it tries again; empty unless it does."""
        self.step_since: float | None = None
        """The start of the step under way, on the monotonic clock."""
        self.notices_waiting: int | None = None
        """Notices without a confirmation of their receiver; ``None`` for an export."""
        self.notices_failed = 0
        self.notices_delivered = 0
        self.receiver_trouble = ""

    @property
    def lag(self) -> int:
        """By how many blocks the chain is ahead."""
        return max(0, self.chain_height - self.height)

    @property
    def step_seconds(self) -> float:
        """For how long the step under way has lasted."""
        since = self.step_since
        return 0.0 if since is None else time.monotonic() - since

    async def check(self) -> Health:
        """Not ready: source, destination or receiver fails, a step hangs, or the chain is ahead."""
        reasons = []
        if self.trouble:
            reasons.append(f"waiting: {self.trouble}")
        elif not self.chain_height:
            reasons.append("the chain has not been read yet")
        if self.step_seconds > SLOW_SECONDS:
            reasons.append(f"no answer for {self.step_seconds:.0f} s, while {self.doing}")
        if self.lag > READY_LAG:
            reasons.append(f"{self.lag} blocks are to be written")
        if self.receiver_trouble:
            reasons.append(f"the receiver of notices: {self.receiver_trouble}")
        return Health(reasons, {"height": self.height, "lag": self.lag})


def _waiting(progress: Progress) -> Iterator[Sample]:
    if progress.notices_waiting is not None:
        yield Sample(progress.notices_waiting)


def _deliveries(progress: Progress) -> Iterator[Sample]:
    if progress.notices_waiting is not None:
        yield Sample(progress.notices_delivered, {"result": "confirmed"})
        yield Sample(progress.notices_failed, {"result": "failed"})


METRICS: Final[tuple[Metric[Progress], ...]] = (
    Metric("soliton_follower_height", GAUGE, "Height of the last block that was written",
           one(lambda it: it.height)),
    Metric("soliton_follower_chain_height", GAUGE, "Height of the chain, as last read",
           one(lambda it: it.chain_height)),
    Metric("soliton_follower_lag_blocks", GAUGE, "Blocks that are to be written",
           one(lambda it: it.lag)),
    Metric("soliton_follower_steps_total", COUNTER, "Steps written, each in one transaction",
           one(lambda it: it.steps)),
    Metric("soliton_follower_blocks_total", COUNTER, "Blocks written",
           one(lambda it: it.blocks)),
    Metric("soliton_follower_transactions_total", COUNTER, "Transactions written",
           one(lambda it: it.transactions)),
    Metric("soliton_follower_failures_total", COUNTER,
           "Attempts that failed because the source or the destination was away",
           one(lambda it: it.failures)),
    Metric("soliton_follower_step_seconds", GAUGE,
           "For how long the step under way has lasted; 0 between steps",
           one(lambda it: it.step_seconds)),
    Metric("soliton_notify_waiting", GAUGE, "Notices that their receiver has not confirmed",
           _waiting),
    Metric("soliton_notify_deliveries_total", COUNTER, "Attempts to deliver a notice, by result",
           _deliveries, ("result",)),
)  # fmt: skip
