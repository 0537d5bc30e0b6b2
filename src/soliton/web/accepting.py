"""Accepting all pending connections at once, not one in each iteration of the event loop.

The event loop in use (uvloop, with libuv since 1.51) accepts one connection in each iteration. On a
busy server, whose iterations take milliseconds, a client behind two hundred others would wait for a
third of a second before its first byte is read.

What lives here: listening. What does not: the connections (``connection``).
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
import ssl
from collections.abc import Callable
from typing import Final

from soliton.web.limits import BACKLOG

HANDSHAKE_SECONDS: Final = 10.0
"""The timeout of a TLS handshake."""
MAX_TAKEN: Final = 64
"""Connections accepted in one iteration: each takes some twenty microseconds."""


async def listen(
    listener: socket.socket,
    make: Callable[[], asyncio.BaseProtocol],
    tls: ssl.SSLContext | None = None,
) -> asyncio.Server:
    """Listen on a bound socket; ``make`` returns the protocol of each connection. ``tls`` encrypts
    them. Raises ``OSError``.
    """
    loop = asyncio.get_running_loop()
    handshake_seconds = None if tls is None else HANDSHAKE_SECONDS
    beginning: set[asyncio.Task[None]] = set()
    is_due = False

    async def begin(plug: socket.socket) -> None:
        # The client may be gone, or not speak TLS.
        with contextlib.suppress(OSError):
            await loop.connect_accepted_socket(
                make, plug, ssl=tls, ssl_handshake_timeout=handshake_seconds
            )

    def take_others() -> None:
        nonlocal is_due
        is_due = False
        for _ in range(MAX_TAKEN):
            try:
                plug, _ = listener.accept()
            except OSError:
                # No more pending connections, or the server is closed.
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
    return await loop.create_server(
        make_first,
        sock=listener,
        backlog=BACKLOG,
        ssl=tls,
        ssl_handshake_timeout=handshake_seconds,
    )
