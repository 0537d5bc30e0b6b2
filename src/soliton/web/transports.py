"""Transports of asyncio and of uvloop, which differ in what they do when a client has gone.

What lives here: ending one side of a connection. What does not: connections.
"""

from __future__ import annotations

import asyncio


def end_writing(transport: asyncio.Transport) -> None:
    """Close the writing side after all data is sent, or all of it if the client has gone: then
    asyncio raises, where uvloop reports the end later.
    """
    try:
        transport.write_eof()
    except OSError:
        transport.abort()
