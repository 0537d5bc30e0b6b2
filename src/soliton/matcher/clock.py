"""The matcher's time: that of the machine, unless it jumps away from the node's.

What a matcher writes with a wrong time can be mined by nobody: the network takes transactions of
two hours back and one and a half ahead. So a jump of the machine's clock is not followed before
the node confirms it, and a clock that is wrong from the start is put right by the node's.

What lives here: the judgement, and asking the node. What does not: what is done with the time.
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
"""What a clock may be put right by, or differ from the node's, without being doubted."""
COMPARE_SECONDS: Final = 5.0
"""How often the clock is compared with the node's."""

_log = logging.getLogger(__name__)


class SteadyClock:
    """Milliseconds since 1970, by calling it."""

    __slots__ = ("_doubted", "_monotonic", "_offset", "_wall")

    def __init__(
        self,
        wall: Callable[[], int] = wall_clock,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        """``monotonic`` gives seconds since any moment, and never jumps."""
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
                    "the clock of this machine has moved by %+.0f s: not followed until the node's "
                    "has, too",
                    (wall - steady) / 1000,
                )
            return steady
        self._offset += wall - steady
        return wall

    def compare(self, node: int) -> None:
        """The node's clock shows this time."""
        wall, steady = self._wall(), self._passed() + self._offset
        if abs(wall - node) <= MAX_STEP_MS:
            if self._doubted or abs(wall - steady) > MAX_STEP_MS:
                _log.info("the clock of this machine agrees with the node's")
            self._doubted = False
            self._offset += wall - steady
        elif abs(steady - node) > MAX_STEP_MS:
            _log.warning(
                "the clock of this machine is %+.0f s away from the node's: the node's counts",
                (wall - node) / 1000,
            )
            self._doubted = True
            self._offset += node - steady


async def compare_clocks(clock: Callable[[], int], node: NodeClient) -> None:
    """Let a clock that can be put right know what the node's shows, if the node tells."""
    if isinstance(clock, SteadyClock):
        with contextlib.suppress(NodeUnavailable):
            clock.compare(await node.now())


async def keep_time(clock: Callable[[], int], node: NodeClient) -> None:
    """Compare clocks for ever."""
    while True:
        await asyncio.sleep(COMPARE_SECONDS)
        await compare_clocks(clock, node)
