"""Untrusted text: it is processed in worker processes with their own time and memory.

Compiling, decompiling and estimating are done in a few worker processes (``text_jobs``). A process
is killed at the deadline, or when the client has disconnected.

What lives here: submitting jobs, and the errors when there is no result. What does not: the
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
"""The limit on running and queued jobs; more are refused."""
SECONDS: Final = 10.0
"""The timeout of a job, including its time in the queue."""
_TOO_MUCH: Final = "send a shorter or simpler text"

_PROCESSES: Final = Killable("soliton.api._text_worker")
"""Shared by all APIs of this process, and kept for its lifetime."""
atexit.register(_PROCESSES.close)


class Texts:
    """Runs jobs in the worker processes."""

    def __init__(
        self,
        processes: Killable = _PROCESSES,
        *,
        places: int = PLACES,
        seconds: float = SECONDS,
    ) -> None:
        self._processes = processes
        self._seconds = seconds
        # One thread waits for each process.
        self._threads = ThreadPool(threads=MAX_PROCESSES, places=places, seconds=seconds)

    async def do(self, work: Work[T], charge: Callable[[float], None]) -> T:
        """Return the result of a job. ``charge`` is called with the working time in seconds.

        Raises ``RideError`` when the text is wrong, and ``ApiError`` 5031 when the job takes too
        long or too much memory, or when too many are queued.
        """
        request = encode_work(work)

        def ask(watch: Watch) -> bytes:
            return self._processes.ask(request, self._seconds, watch, charge)

        try:
            response = await self._threads.run(ask)
        except (ProcessLost, MemoryExceeded) as error:
            raise SERVER_REQUEST_TIMEOUT.error().with_hint(_TOO_MUCH) from error
        result = decode_result(response)
        if isinstance(result, Refused):
            raise RideError(result.message)
        return cast("T", result)
