"""Reverse proxy to a server behind this one, on a unix socket.

What lives here: the forwarded headers, and the client's identity. What does not: connections
(``client``), and which requests are forwarded (the applications).
"""

from __future__ import annotations

from typing import Final

from soliton.web.client import ClientLimits, HttpClient, Response
from soliton.web.client_http1 import HOP_BY_HOP, WITHOUT_EFFECT, header_lines, request_bytes

MAX_CONNECTIONS: Final = 512
"""Concurrent requests; more are refused."""
MAX_IDLE_SECONDS: Final = 1_800.0
"""An idle connection is not reused after this time, since its server may be closing it: the server
has to keep idle connections for longer.
"""
CLIENT_HEADER: Final = b"x-soliton-client"
"""The client of a forwarded request. Only a server that no one else can reach may trust it."""
_NOT_FORWARDED: Final = HOP_BY_HOP | {b"content-length", b"expect", b"te"}


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
        """Forward a client's request, with the client's identity."""
        target = f"{path}?{query.decode('latin-1')}" if query else path
        own = {**headers, CLIENT_HEADER: client.encode("ascii")}
        return await self.send(
            relayed(method, target, own, body),
            has_body=method != "HEAD",
            may_repeat=method in WITHOUT_EFFECT,
        )


def relayed(method: str, target: str, headers: dict[bytes, bytes], body: bytes) -> bytes:
    """Encode a forwarded request, with the client's headers except those of its connection.

    The host is empty if there is none, which HTTP/1.0 permits.
    """
    sent = {b"host": b"", **headers}
    kept = [header for header in sent.items() if header[0] not in _NOT_FORWARDED]
    return request_bytes(method, target, header_lines(kept), body)
