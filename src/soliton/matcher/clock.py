"""The matcher's clock: the machine's, unless that deviates from the node's.

Transactions with a wrong timestamp cannot be mined: the network accepts them from two hours back to
one and a half ahead. So the matcher ignores a jump of the machine's clock until the node confirms
it, and corrects a clock that is wrong from the start by the node's.

What lives here: the clock, and its comparison with the node's. What does not: the uses of the time.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from collections.abc import Callable
from typing import Final

from soliton.matcher.errors import NodeUnavailable
from soliton.matcher.node_client import NodeClient
from soliton.web.clock import wall_clock

MAX_STEP_MS: Final = 30_000
"""The largest adjustment of the clock, or difference from the node's, that is accepted as is."""
COMPARE_SECONDS: Final = 5.0
"""How often the clock is compared with the node's."""

_log = logging.getLogger(__name__)


class SteadyClock:
    """A callable that returns milliseconds since 1970."""

    __slots__ = ("_doubted", "_monotonic", "_offset", "_wall")

    def __init__(
        self,
        wall: Callable[[], int] = wall_clock,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        """``monotonic`` returns seconds since an arbitrary moment, and never jumps."""
        self._wall = wall
        self._monotonic = monotonic
        self._offset = wall() - self._passed()
        self._doubted = False

    def _passed(self) -> int:
        return int(self._monotonic() * 1000)

    def __call__(self) -> int:
        """The time."""
        wall, steady = self._wall(), self._passed() + self._offset
        if abs(wall - steady) > MAX_STEP_MS:
            if not self._doubted:
                self._doubted = True
                _log.warning(
                    "the clock of this machine jumped by %+.0f s: ignored unless the node's did, "
                    "too",
                    (wall - steady) / 1000,
                )
            return steady
        self._offset += wall - steady
        return wall

    def compare(self, node: int) -> None:
        """Adjust to the time of the node's clock."""
        wall, steady = self._wall(), self._passed() + self._offset
        if abs(wall - node) <= MAX_STEP_MS:
            if self._doubted or abs(wall - steady) > MAX_STEP_MS:
                _log.info("the clock of this machine agrees with the node's")
            self._doubted = False
            self._offset += wall - steady
        elif abs(steady - node) > MAX_STEP_MS:
            _log.warning(
                "the clock of this machine is %+.0f s off the node's: using the node's",
                (wall - node) / 1000,
            )
            self._doubted = True
            self._offset += node - steady


async def compare_clocks(clock: Callable[[], int], node: NodeClient) -> None:
    """Compare an adjustable clock with the node's, if the node is reachable."""
    if isinstance(clock, SteadyClock):
        with contextlib.suppress(NodeUnavailable):
            clock.compare(await node.now())


async def keep_time(clock: Callable[[], int], node: NodeClient) -> None:
    """Compare the clocks periodically, forever."""
    while True:
        await asyncio.sleep(COMPARE_SECONDS)
        await compare_clocks(clock, node)
