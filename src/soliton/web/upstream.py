"""A server behind this one, on a unix socket: requests are passed on to it and its answers back.

What lives here: which headers go along, and whose request it is. What does not: connections
(``client``), and what is passed on and why (the applications say that).
"""

from __future__ import annotations

from typing import Final

from soliton.web.client import ClientLimits, HttpClient, Response
from soliton.web.client_http1 import HOP_BY_HOP, WITHOUT_EFFECT, header_lines, request_bytes

MAX_CONNECTIONS: Final = 512
"""Requests under way at the same time; more are refused."""
MAX_IDLE_SECONDS: Final = 1_800.0
"""A connection that has rested for longer is not used again: its server may be closing it. So the
server has to keep idle connections for longer than this.
"""
CLIENT_HEADER: Final = b"x-soliton-client"
"""Whose request it is that is passed on. Only a server that nobody else reaches may believe it."""
_OF_THE_WAY: Final = HOP_BY_HOP | {b"content-length", b"expect", b"te"}


class Upstream(HttpClient):
    """The server that listens on a unix socket; ``HttpBusy`` beyond ``MAX_CONNECTIONS``."""

    def __init__(self, path: str) -> None:
        limits = ClientLimits(MAX_CONNECTIONS, waits=False, keep_alive_seconds=MAX_IDLE_SECONDS)
        super().__init__(f"unix:{path}", limits)

    async def pass_on(
        self,
        method: str,
        path: str,
        query: bytes,
        headers: dict[bytes, bytes],
        body: bytes,
        client: str,
    ) -> Response:
        """``send`` what a client has asked here, and say whose request it is."""
        target = f"{path}?{query.decode('latin-1')}" if query else path
        own = {**headers, CLIENT_HEADER: client.encode("ascii")}
        return await self.send(
            relayed(method, target, own, body),
            has_body=method != "HEAD",
            may_repeat=method in WITHOUT_EFFECT,
        )


def relayed(method: str, target: str, headers: dict[bytes, bytes], body: bytes) -> bytes:
    """A request as it is sent on: with the client's headers, but for those of its connection."""
    kept = [header for header in headers.items() if header[0] not in _OF_THE_WAY]
    return request_bytes(method, target, header_lines(kept), body)
