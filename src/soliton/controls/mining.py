"""The mining modes of a private chain, which can change while it runs.

What lives here: the modes, and the task that mines. What does not: making blocks
(``soliton.node.mining``).
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Iterator
from typing import Final

import msgspec

from soliton.controls.errors import ControlRefused
from soliton.crypto.keys import KeyPair
from soliton.node.mining import mine_in_rhythm, mine_on_demand
from soliton.node.node import Node

MAX_SECONDS: Final = 86_400.0
LEAST_SECONDS: Final = 0.01


class MiningMode(msgspec.Struct, frozen=True, rename="camel"):
    """``manual``: only on request; ``instant``: at once for each transaction, and an empty block
    after ``seconds`` without one (0: never); ``interval``: every ``seconds``.
    """

    mode: str
    seconds: float = 0


MANUAL: Final = MiningMode("manual")
INSTANT: Final = MiningMode("instant")


def checked_mode(mode: str, seconds: float) -> MiningMode:
    """Validate a mode; raises ``ControlRefused``."""
    if mode not in ("manual", "instant", "interval"):
        raise ControlRefused(f"there is no mining {mode!r}: manual, instant or interval")
    least = LEAST_SECONDS if mode == "interval" else 0
    if not least <= seconds <= MAX_SECONDS:
        raise ControlRefused(f"{seconds} seconds: {least} to {MAX_SECONDS:g} are allowed")
    return MiningMode(mode, 0 if mode == "manual" else float(seconds))


class Mining:
    """The mining of one node with one account; without ``run`` only control calls make blocks."""

    def __init__(self, node: Node, account: KeyPair, mode: MiningMode) -> None:
        self._node, self._account = node, account
        self._mode = mode
        self._work: asyncio.Task[None] | None = None
        self._changed = asyncio.Event()
        self._runs = False

    @property
    def mode(self) -> MiningMode:
        """The current mode."""
        return self._mode

    @property
    def is_running(self) -> bool:
        """Whether the mining task runs."""
        return self._runs

    def change(self, mode: MiningMode) -> None:
        """Switch to another mode."""
        if mode != self._mode:
            self._mode = mode
            self._restart()

    @contextlib.contextmanager
    def paused(self) -> Iterator[None]:
        """Abandon the block under construction, because its parent changes."""
        self._restart()
        yield

    def _restart(self) -> None:
        if self._work is not None:
            self._work.cancel()
        self._changed.set()

    async def run(self) -> None:
        """Mine until cancelled."""
        self._runs = True
        try:
            while True:
                self._changed.clear()
                self._work = asyncio.create_task(self._follow(self._mode))
                changed = asyncio.create_task(self._changed.wait())
                try:
                    await asyncio.wait((self._work, changed), return_when=asyncio.FIRST_COMPLETED)
                    if self._work.done() and not self._work.cancelled():
                        # It ends only with an exception.
                        self._work.result()
                finally:
                    changed.cancel()
                    self._work.cancel()
        finally:
            self._runs = False

    async def _follow(self, mode: MiningMode) -> None:
        if mode.mode == "instant":
            await mine_on_demand(self._node, self._account, mode.seconds)
        elif mode.mode == "interval":
            await mine_in_rhythm(self._node, self._account, mode.seconds)
        else:
            await asyncio.Event().wait()
