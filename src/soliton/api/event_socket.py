"""The same events over a WebSocket: each event of the stream is a message.

A message is a JSON object with ``event`` and, as the event has them, ``id`` and ``data``. What is
sent waits until the client has taken what came before, so who reads slowly is served slowly; what
a client says is not wanted, and ends the connection.

What lives here: from server-sent events to messages. What does not: the events (``event_stream``),
who may open one (``soliton.web.cors``), frames (``soliton.web.websocket``).
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Final

from soliton.web.answers import Stream
from soliton.web.websocket import WebSocket, WebSocketClosed

EVENT_STREAM: Final = b"text/event-stream"
POLICY_VIOLATION: Final = 1008
_HEARTBEAT: Final = b'{"event":"heartbeat"}'
_END: Final = b"\n\n"


def is_event_stream(stream: Stream) -> bool:
    """Whether an answer is one whose events can be messages."""
    return (b"content-type", EVENT_STREAM) in stream.headers


async def send_events(chunks: AsyncIterator[bytes], socket: WebSocket) -> None:
    """Send what a stream of events has to say, until it ends or the client goes."""
    tasks = [
        asyncio.ensure_future(_send(chunks, socket)),
        asyncio.ensure_future(_listen(socket)),
    ]
    try:
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in tasks:
            task.cancel()
        found = await asyncio.gather(*tasks, return_exceptions=True)
        await end_of(chunks)
    for each in found:
        if isinstance(each, Exception) and not isinstance(each, WebSocketClosed):
            raise each


async def end_of(chunks: AsyncIterator[bytes]) -> None:
    """Let go of what feeds a stream."""
    close = getattr(chunks, "aclose", None)
    if close is not None:
        await close()


async def _send(chunks: AsyncIterator[bytes], socket: WebSocket) -> None:
    waiting = b""
    async for chunk in chunks:
        *whole, waiting = (waiting + chunk).split(_END)
        for each in whole:
            message = _message(each)
            if message:
                await socket.send(message)


async def _listen(socket: WebSocket) -> None:
    """Return when the client goes, or has said something."""
    await socket.receive()
    socket.close(POLICY_VIOLATION, "nothing is to be said here")


def _message(text: bytes) -> bytes:
    """An event as JSON; empty for what only matters to streams."""
    if text.startswith(b":"):
        return _HEARTBEAT
    fields = dict(line.split(b": ", 1) for line in text.split(b"\n") if b": " in line)
    if b"event" not in fields:
        return b""
    message = b'{"event":"%s"' % fields[b"event"]
    if b"id" in fields:
        message += b',"id":"%s"' % fields[b"id"]
    return message + b',"data":%s}' % fields[b"data"]
