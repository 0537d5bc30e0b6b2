"""The ports of processes that have not started yet, kept from other programs.

What lives here: choosing and keeping them. What does not: listening (the processes).
"""

from __future__ import annotations

import socket
from typing import Final

from soliton.errors import EnvironmentProblem
from soliton.web.ports import holder
from soliton.web.server import PortTaken, bind


class HeldPorts:
    """Ports of a host. A socket on each of them, which does not listen, keeps the system from
    giving the port away before its process listens on it, or while that is started again.
    """

    def __init__(self, host: str) -> None:
        self._host: Final = host
        self._held: list[socket.socket] = []

    def take(self, requested: int, option: str) -> int:
        """Take the port that an option requests, or a free one for 0; raises
        ``EnvironmentProblem``.
        """
        try:
            held = bind(self._host, requested)
        except PortTaken as error:
            other = holder(requested)
            by = f" by {other}" if other else ""
            raise EnvironmentProblem(
                f"cannot listen on {self._host}: Address already in use: {option} {requested}{by}"
            ) from error
        port: int = held.getsockname()[1]
        try:
            bind(self._host, port).close()
        except PortTaken:
            # This system allows one socket only: the process itself needs it.
            held.close()
        else:
            self._held.append(held)
        return port

    def close(self) -> None:
        """Give all ports back."""
        while self._held:
            self._held.pop().close()
