"""Bodies of requests, collected from an ASGI server.

What lives here: reading one within its limit. What does not: how long that may take, and what
clients are told (the applications say that).
"""

from __future__ import annotations

from typing import cast

from soliton.web.types import Receive


class BodyTooLongError(Exception):
    """The body is longer than it may be."""


class ClientGoneError(Exception):
    """The client has gone before the end of its body: what has come may mean something else than
    the whole.
    """


async def read_body(receive: Receive, limit: int) -> bytes:
    """The whole body, never more than ``limit`` bytes and one message of it in memory.

    Raises ``BodyTooLongError`` or ``ClientGoneError``.
    """
    collected, more = bytearray(), True
    while more:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise ClientGoneError
        collected += cast("bytes", message.get("body", b""))
        if len(collected) > limit:
            raise BodyTooLongError
        more = bool(message.get("more_body"))
    return bytes(collected)
