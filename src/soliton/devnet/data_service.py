"""The data service of a private chain: ``soliton data-service --from-node`` in its own process.

What lives here: starting, watching and ending it. What does not: the program of that process
(``beside``), the data service (``soliton.data_service``), and its database (``soliton.cli``).
"""

from __future__ import annotations

import asyncio
import contextlib
import sys
from typing import Final

from soliton.errors import EnvironmentProblem
from soliton.web.server import bind

START_SECONDS: Final = 120.0
"""Time limit for the export of the chain and the first response."""
STOP_SECONDS: Final = 30.0
_PAUSE_SECONDS: Final = 0.05
_PROGRAM: Final = "soliton.devnet.beside"


class NoDataService(EnvironmentProblem):
    """The data service did not start; its own output says why."""


class DataServiceProcess:
    """A running data service at ``host`` and ``port``."""

    def __init__(self, host: str, port: int, process: asyncio.subprocess.Process) -> None:
        self.host = host
        self.port = port
        self._process = process

    async def answers(self) -> None:
        """Wait until it accepts connections; raises ``NoDataService``."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(START_SECONDS):
                while self._process.returncode is None:
                    try:
                        _, writer = await asyncio.open_connection(self.host, self.port)
                    except OSError:
                        await asyncio.sleep(_PAUSE_SECONDS)
                    else:
                        writer.close()
                        return
        raise NoDataService(f"the data service does not answer on port {self.port}")

    async def ended(self) -> None:
        """Wait until it ends by itself."""
        await self._process.wait()

    async def stop(self) -> None:
        """Stop it."""
        if self._process.returncode is None:
            assert self._process.stdin is not None
            self._process.stdin.close()
            try:
                async with asyncio.timeout(STOP_SECONDS):
                    await self._process.wait()
            except TimeoutError:
                self._process.kill()
                await self._process.wait()


async def start(node_url: str, matcher: str, host: str, port: int) -> DataServiceProcess:
    """Serve a node's chain; ``matcher`` is the default matcher of pairs."""
    with contextlib.closing(bind(host, port)) as free:
        port = free.getsockname()[1]
    arguments = (
        *("--from-node", node_url, "--host", host, "--port", str(port)),
        *("--matcher", matcher, "--log-level", "warning"),
    )
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-P", "-m", _PROGRAM, "data-service", *arguments),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.DEVNULL,
        # Keep Ctrl-C away from it: the chain's process stops it.
        start_new_session=True,
    )
    made = DataServiceProcess(host, port, process)
    try:
        await made.answers()
    except BaseException:
        await made.stop()
        raise
    return made
