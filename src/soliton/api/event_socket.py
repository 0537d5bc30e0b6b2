"""Event streams over a WebSocket: each event is one message.

A message is a JSON object with ``event`` and, if the event has them, ``id`` and ``data``. Sending
applies backpressure: a slow client is served slowly. A message from the client ends the
connection.

What lives here: conversion of server-sent events to messages. What does not: the events
(``event_stream``), allowed origins (``soliton.web.cors``), frames (``soliton.web.websocket``).
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
    """Whether a response is a stream of server-sent events."""
    return (b"content-type", EVENT_STREAM) in stream.headers


async def send_events(chunks: AsyncIterator[bytes], socket: WebSocket) -> None:
    """Send the events of a stream until it ends or the client disconnects."""
    tasks = [
        asyncio.ensure_future(_send(chunks, socket)),
        asyncio.ensure_future(_listen(socket)),
    ]
    try:
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in tasks:
            task.cancel()
        results = await asyncio.gather(*tasks, return_exceptions=True)
        await end_of(chunks)
    for each in results:
        if isinstance(each, Exception) and not isinstance(each, WebSocketClosed):
            raise each


async def end_of(chunks: AsyncIterator[bytes]) -> None:
    """Close the generator of a stream."""
    close = getattr(chunks, "aclose", None)
    if close is not None:
        await close()


async def _send(chunks: AsyncIterator[bytes], socket: WebSocket) -> None:
    buffer = b""
    async for chunk in chunks:
        *events, buffer = (buffer + chunk).split(_END)
        for each in events:
            message = _message(each)
            if message:
                await socket.send(message)


async def _listen(socket: WebSocket) -> None:
    """Wait for a message of the client, and close the connection."""
    await socket.receive()
    socket.close(POLICY_VIOLATION, "nothing is to be said here")


def _message(text: bytes) -> bytes:
    """An event as JSON; empty for a field like ``retry``, which has no event."""
    if text.startswith(b":"):
        return _HEARTBEAT
    fields = dict(line.split(b": ", 1) for line in text.split(b"\n") if b": " in line)
    if b"event" not in fields:
        return b""
    message = b'{"event":"%s"' % fields[b"event"]
    if b"id" in fields:
        message += b',"id":"%s"' % fields[b"id"]
    return message + b',"data":%s}' % fields[b"data"]
