"""The texts of strangers: who works on them gets no time and no memory of this process.

Compiling, decompiling and estimating are done in a few processes besides (``text_jobs``), and one
that has not answered at the deadline, or for whom nobody waits any more, is killed.

What lives here: asking them, and what clients are told when there is no answer. What does not: the
processes (``soliton.parallel.killable``), and work that needs the chain (``thread_pool``).
"""

from __future__ import annotations

import atexit
from collections.abc import Callable
from typing import Final, TypeVar, cast

from soliton.api.errors import SERVER_REQUEST_TIMEOUT
from soliton.api.text_jobs import Refused, Work, decode_result, encode_work
from soliton.api.thread_pool import ThreadPool, Watch
from soliton.parallel.killable import MAX_PROCESSES, Killable, MemoryExceeded, ProcessLost
from soliton.ride.errors import RideError

T = TypeVar("T")

PLACES: Final = 16
"""Texts that are worked on or wait; more are refused."""
SECONDS: Final = 10.0
"""How long one may wait and be worked on."""
_TOO_MUCH: Final = "send a shorter or simpler text"

_PROCESSES: Final = Killable("soliton.api._text_worker")
"""All interfaces of one process share them, and they outlive each of them."""
atexit.register(_PROCESSES.close)


class Texts:
    """The door to the processes."""

    def __init__(
        self,
        processes: Killable = _PROCESSES,
        *,
        places: int = PLACES,
        seconds: float = SECONDS,
    ) -> None:
        self._processes = processes
        self._seconds = seconds
        # They wait for the processes.
        self._threads = ThreadPool(threads=MAX_PROCESSES, places=places, seconds=seconds)

    async def do(self, work: Work[T], charge: Callable[[float], None]) -> T:
        """What a piece of work comes to; ``charge`` is told how long others have worked for it.

        Raises ``RideError`` when the text is wrong, and ``ApiError`` 5031 when it takes too long,
        too much memory, or too many wait.
        """
        question = encode_work(work)

        def ask(watch: Watch) -> bytes:
            return self._processes.ask(question, self._seconds, watch, charge)

        try:
            answer = await self._threads.run(ask)
        except (ProcessLost, MemoryExceeded) as error:
            raise SERVER_REQUEST_TIMEOUT.error().with_hint(_TOO_MUCH) from error
        result = decode_result(answer)
        if isinstance(result, Refused):
            raise RideError(result.message)
        return cast("T", result)
