"""HTTP requests of the asyncio clients, over a pool of connections.

What lives here: the library's errors and limits on top of ``soliton.web.client``. What does not:
the requests (``steps``), and the blocking counterpart (``transport``).
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from http import HTTPStatus
from typing import Final

import msgspec

from soliton.client.errors import NodeBroken, NodeTimeout, NodeUnreachable
from soliton.client.steps import Answer, Request
from soliton.client.transport import (
    ANSWER_SECONDS,
    CONNECT_SECONDS,
    MAX_ANSWER_BYTES,
    READ_BYTES,
    common_headers,
    encoded,
    origin_of,
)
from soliton.web.client import (
    ClientLimits,
    HttpClient,
    HttpTooLarge,
    HttpTrouble,
    HttpUnreachable,
)
from soliton.web.client_http1 import header_lines

CONNECTIONS: Final = 64
"""Limit on concurrent requests; further ones wait."""
KEPT_SECONDS: Final = 30.0
"""An idle connection is not reused after this: the server may be closing it."""


class AsyncTransport:
    """A pool of connections to one server, for one event loop."""

    def __init__(self, url: str, *, timeout: float = ANSWER_SECONDS) -> None:
        """Raises ``InputError`` for an invalid URL."""
        self.origin = origin_of(url)
        self.timeout = timeout
        self._url = url
        self._client: HttpClient | None = None
        self._common = header_lines(
            (name.encode(), text.encode()) for name, text in common_headers(self.origin)
        )

    async def exchange(self, request: Request) -> Answer:
        """Return the response to a request; raises the errors of ``Transport.exchange``."""
        client = self._connected()
        data = encoded(self.origin, self._common, request)
        try:
            async with asyncio.timeout(request.seconds or self.timeout):
                response = await client.send(data, may_repeat=request.repeatable)
                body = await response.read(MAX_ANSWER_BYTES)
        except TimeoutError:
            raise NodeTimeout("the server did not respond in time") from None
        except HttpUnreachable as error:
            raise NodeUnreachable(f"{self.origin.name}: {error}") from error
        except HttpTooLarge as error:
            raise NodeBroken(f"a response of more than {MAX_ANSWER_BYTES} bytes") from error
        except HttpTrouble as error:
            raise NodeBroken(str(error)) from error
        return Answer(response.status, body, dict(response.headers))

    async def stream(self, request: Request) -> AsyncGenerator[Answer | bytes, None]:
        """Yield the response without its body, then chunks of the body, as ``Transport.stream``."""
        client = self._connected()
        data = encoded(self.origin, self._common, request)
        silence = request.seconds or self.timeout
        try:
            async with asyncio.timeout(silence):
                response = await client.send(data)
            answer, body = Answer(response.status, b"", dict(response.headers)), b""
            if is_stream := answer.status == HTTPStatus.OK:
                yield answer
            chunks = response.chunks()
            try:
                while True:
                    async with asyncio.timeout(silence):
                        chunk = await anext(chunks, None)
                    if is_stream and chunk is not None:
                        yield chunk
                        continue
                    body += chunk or b""
                    if chunk is None or len(body) >= READ_BYTES:
                        break
                if not is_stream:
                    yield msgspec.structs.replace(answer, body=body)
            finally:
                response.drop()
        except TimeoutError:
            raise NodeTimeout("the stream is silent") from None
        except HttpUnreachable as error:
            raise NodeUnreachable(f"{self.origin.name}: {error}") from error
        except HttpTrouble as error:
            raise NodeBroken(f"the stream is lost: {error}") from error

    def close(self) -> None:
        """Close all connections."""
        client, self._client = self._client, None
        if client is not None:
            client.close()

    def _connected(self) -> HttpClient:
        if self._client is None:
            limits = ClientLimits(
                CONNECTIONS, connect_seconds=CONNECT_SECONDS, keep_alive_seconds=KEPT_SECONDS
            )
            self._client = HttpClient(self._url, limits)
        return self._client
