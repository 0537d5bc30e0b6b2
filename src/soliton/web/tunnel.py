"""WebSocket connections that another server has: their bytes go there and back as they are.

What lives here: both ends of one connection, neither of which gets ahead of the other. What does
not: the handshake (the server behind this one makes it), HTTP (``upstream``).
"""

from __future__ import annotations

import asyncio
import contextlib
import os
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, cast

from soliton.web.clients import client_key

if TYPE_CHECKING:
    from uvicorn import Config
    from uvicorn.server import ServerState

_NOBODY_THERE: Final = (
    b"HTTP/1.1 503 Service Unavailable\r\ncontent-length: 0\r\nconnection: close\r\n\r\n"
)
_LINE_END: Final = b"\r\n"
_READ_BYTES: Final = 64 * 1024


@dataclass(frozen=True, slots=True)
class Tunnel:
    """Where connections lead: a unix socket, and the header in which the server there is told whose
    they are. What a client says in that header itself does not count.
    """

    path: str
    client_header: bytes


class TunnelledWebSocket(asyncio.Protocol):
    """One connection, from its request on; ``when_lost`` is called at its end.

    The server that stops aborts its ``transport``, which leads to the client.
    """

    when_lost: Callable[[], None] | None = None
    write_seconds = 30.0
    """How long either end may read nothing of what waits for it."""

    def __init__(
        self,
        config: Config,
        server_state: ServerState,
        app_state: dict[str, object],
        *,
        tunnel: Tunnel,
    ) -> None:
        del config, app_state
        self._tunnel = tunnel
        self._connections = cast("set[object]", server_state.connections)
        self.transport: asyncio.Transport | None = None
        self._far: asyncio.Transport | None = None
        self._digging: asyncio.Task[None] | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._rest: list[bytes] = []

    # --- what the client does ---------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Take over a connection; nothing more is read of it until the other end is there."""
        self.transport = cast("asyncio.Transport", transport)
        self.transport.pause_reading()
        self._connections.add(self)

    def data_received(self, data: bytes) -> None:
        """First the request, then whatever follows."""
        if self._digging is None:
            self._digging = asyncio.get_running_loop().create_task(self._dig(data))
        elif self._far is None:
            self._rest.append(data)
        else:
            self._far.write(data)

    def connection_lost(self, exc: Exception | None) -> None:
        del exc
        self._connections.discard(self)
        self.transport = None
        self._stop_timer()
        if self._digging is not None:
            self._digging.cancel()
        if self._far is not None:
            # What the client said last is still passed on.
            self._far.close()
            self._give_time(self._far)
        if self.when_lost is not None:
            self.when_lost()

    def eof_received(self) -> None:
        """The client says no more. What waits for it is still sent, then the transport closes."""
        self._give_time(self.transport)

    def pause_writing(self) -> None:
        """The client is slower than what comes for it."""
        if self._far is not None:
            self._far.pause_reading()
        self._give_time(self.transport)

    def resume_writing(self) -> None:
        """It has caught up; one that has to go has only this much time for all of the rest."""
        if self.transport is not None and not self.transport.is_closing():
            self._stop_timer()
        if self._far is not None:
            self._far.resume_reading()

    def shutdown(self) -> None:
        """The server stops."""
        if self.transport is not None:
            self.transport.close()
            self._give_time(self.transport)

    def _give_time(self, end: asyncio.Transport | None) -> None:
        if self._timer is None and end is not None:
            loop = asyncio.get_running_loop()
            self._timer = loop.call_later(self.write_seconds, end.abort)

    def _stop_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    # --- what the server behind does --------------------------------------------------------------

    async def _dig(self, head: bytes) -> None:
        loop = asyncio.get_running_loop()
        client = self.transport
        assert client is not None
        try:
            far, _ = await loop.create_unix_connection(
                lambda: _FarEnd(self, client), self._tunnel.path
            )
        except OSError:
            client.write(_NOBODY_THERE)
            self.shutdown()
            return
        self._far = far
        # In this order: what is written may be enough to pause the client again.
        client.resume_reading()
        far.writelines([self._with_client(head, client), *self._rest])
        self._rest.clear()

    def _with_client(self, head: bytes, client: asyncio.Transport) -> bytes:
        """The request as it is sent on. Names of headers are in lower case by now."""
        name = self._tunnel.client_header + b":"
        lines = [line for line in head.split(_LINE_END) if not line.startswith(name)]
        peer = client.get_extra_info("peername")
        host = client_key(peer[0] if peer else "").encode("ascii")
        return _LINE_END.join((lines[0], name + b" " + host, *lines[1:]))

    def far_end_lost(self) -> None:
        """The server behind has said all that it had to say."""
        self._far = None
        if self.transport is None:
            self._stop_timer()
        else:
            self.shutdown()


class _FarEnd(asyncio.Protocol):
    """The connection to the server behind."""

    def __init__(self, near: TunnelledWebSocket, client: asyncio.Transport) -> None:
        self._near = near
        self._client = client
        self._descriptor = -1

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._descriptor = transport.get_extra_info("socket").fileno()

    def data_received(self, data: bytes) -> None:
        self._client.write(data)

    def connection_lost(self, exc: Exception | None) -> None:
        if exc is not None and not self._client.is_closing():
            self._read_rest()
        self._near.far_end_lost()

    def _read_rest(self) -> None:
        """What the server behind said last: the transport gave up when it could write no more."""
        with contextlib.suppress(OSError):
            while data := os.read(self._descriptor, _READ_BYTES):
                self._client.write(data)

    def pause_writing(self) -> None:
        self._client.pause_reading()

    def resume_writing(self) -> None:
        self._client.resume_reading()
