"""Taking connections: all who wait, and not one in each round of the event loop.

The loop that we use (uvloop, with libuv since 1.51) takes one connection whenever it looks. On a
busy server, whose rounds take milliseconds, whoever comes behind two hundred others would wait for
a third of a second before anything of it is read.

What lives here: the listening. What does not: what becomes of a connection (``connection``).
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
import ssl
from collections.abc import Callable
from typing import Final

from soliton.web.limits import BACKLOG

MAX_TAKEN: Final = 64
"""Connections that are taken in one round: each costs some twenty microseconds."""


async def listen(
    listener: socket.socket,
    make: Callable[[], asyncio.BaseProtocol],
    tls: ssl.SSLContext | None = None,
) -> asyncio.Server:
    """Serve what connects to a socket that is bound, each connection with a protocol of its own;
    ``tls`` encrypts them. Raises ``OSError``.
    """
    loop = asyncio.get_running_loop()
    beginning: set[asyncio.Task[None]] = set()
    is_due = False

    async def begin(plug: socket.socket) -> None:
        # Its client may have gone, or speak no TLS.
        with contextlib.suppress(OSError):
            await loop.connect_accepted_socket(make, plug, ssl=tls)

    def take_others() -> None:
        nonlocal is_due
        is_due = False
        for _ in range(MAX_TAKEN):
            try:
                plug, _ = listener.accept()
            except OSError:
                # Nobody else waits, or the server has closed; what else is wrong the loop says.
                return
            plug.setblocking(False)
            task = loop.create_task(begin(plug))
            beginning.add(task)
            task.add_done_callback(beginning.discard)

    def make_first() -> asyncio.BaseProtocol:
        nonlocal is_due
        if not is_due:
            is_due = True
            loop.call_soon(take_others)
        return make()

    listener.setblocking(False)
    listener.listen(BACKLOG)
    return await loop.create_server(make_first, sock=listener, backlog=BACKLOG, ssl=tls)
