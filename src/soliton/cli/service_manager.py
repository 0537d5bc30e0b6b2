"""What a service tells systemd: that it is ready, that it still runs, that it stops.

What lives here: the datagrams of ``sd_notify(3)``, without libsystemd. What does not: when a
program is ready (``process``), the units (``deploy/systemd``). Without ``NOTIFY_SOCKET`` nothing
happens.
"""

from __future__ import annotations

import asyncio
import os
import socket
from collections.abc import Mapping
from typing import Final

READY: Final = "READY=1"
STOPPING: Final = "STOPPING=1"
STILL_RUNNING: Final = "WATCHDOG=1"
MESSAGES_PER_PERIOD: Final = 3
"""Signs of life within the time after which the manager takes the service for dead."""
_MICROSECONDS: Final = 1_000_000

_watchdogs: set[asyncio.Task[None]] = set()


def notify(state: str) -> None:
    """Send a state; a manager that is gone, or overloaded, does not end the service."""
    address = os.environ.get("NOTIFY_SOCKET", "")
    if address[:1] not in ("/", "@"):
        return
    # The name of an abstract socket begins with a zero byte.
    name = f"\0{address[1:]}" if address.startswith("@") else address
    try:
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC) as sender:
            sender.setblocking(False)
            sender.sendto(state.encode("utf-8"), name)
    except OSError:
        return


def start_watchdog() -> None:
    """Send signs of life from the running event loop, if the manager wants any: they stop when the
    loop does.
    """
    seconds = watchdog_seconds(os.environ)
    if seconds is not None:
        task = asyncio.create_task(_send_signs(seconds / MESSAGES_PER_PERIOD))
        _watchdogs.add(task)
        task.add_done_callback(_watchdogs.discard)


async def _send_signs(seconds: float) -> None:
    while True:
        notify(STILL_RUNNING)
        await asyncio.sleep(seconds)


def watchdog_seconds(environment: Mapping[str, str]) -> float | None:
    """Return the time after which the manager ends a silent service; None if it waits for no sign
    of this process.
    """
    period = environment.get("WATCHDOG_USEC", "")
    process = environment.get("WATCHDOG_PID") or str(os.getpid())
    if not (period.isascii() and period.isdigit()) or process != str(os.getpid()):
        return None
    return int(period) / _MICROSECONDS or None
