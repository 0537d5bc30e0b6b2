"""What a server of HTTP/2 takes of strangers: of one connection, and of all together."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

HEADER_LIST_BYTES: Final = 16 * 1024
"""Of the headers of one request, as they are counted by RFC 9113; what is more is refused."""
MOST_HEADER_LIST_BYTES: Final = 64 * 1024
"""Who sends more has its connection closed: reading it costs more than it is worth."""
BLOCK_BYTES: Final = 32 * 1024
"""Of a header block as it is sent."""
CONTINUATIONS: Final = 8
"""Frames that a header block may have behind the first."""
STREAM_WINDOW: Final = 256 * 1024
"""What may come on a stream before the application has taken any of it."""
CONNECTION_WINDOW: Final = 1024 * 1024
OUTPUT_BYTES: Final = 256 * 1024
"""Data that is handed to the system in one go."""
MAX_UNREAD_BYTES: Final = 1024 * 1024
"""What may wait in the connection for a client that does not read: data, and answers to frames that
want one.
"""
BLOCKS_KEPT: Final = 64
"""Header blocks of a connection whose meaning is remembered, if they are short."""
KEPT_BLOCK_BYTES: Final = 1_024
KEPT_LIST_BYTES: Final = 2_048
"""Of their headers: a byte of a block may mean a long one."""
CLOSED_KEPT: Final = 512
"""Streams of which is known how they ended, for what a client had sent before it heard."""

WHOLE_KEPT: Final = 64
"""The same of those of which nothing more may come."""

WINDOW_SECONDS: Final = 10.0
"""The limits below hold for so long, then they begin anew."""
MAX_RESETS: Final = 1_000
"""Streams that end before they are answered: by the client, or for its faults."""
MAX_SETTINGS: Final = 100
MAX_EMPTY: Final = 2_000
"""Frames that say nothing: pings, priorities, frames of unknown kinds, data without bytes."""
MAX_WINDOW_UPDATES: Final = 50_000
BYTES_FOR_UPDATE: Final = 64
"""One more may come for each so many bytes that were sent,"""
BLOCK_WORTH: Final = 256
"""and for a header block as for so many: clients widen the window of each answer."""
PING_STRIKES: Final = 2
"""Pings that come too early; the next one ends the connection. What is sent forgives them."""


@dataclass(frozen=True, slots=True)
class Http2Limits:
    """Connections of one port, and the patience with them."""

    connections: int = 4_096
    """More are closed at once."""
    connections_per_client: int | None = None
    """The same of one client (``clients.client_key``), in all processes that share their counters;
    more are told so.
    """
    counts_local_clients: bool = False
    """Whether that holds for clients on this machine, too."""
    streams: int = 100
    """Of one connection at a time."""
    handshake_seconds: float = 20.0
    """Until a connection has said what it wants."""
    idle_seconds: float = 600.0
    """How long a connection may have no stream."""
    silent_seconds: float = 60.0
    """Who says nothing for so long is asked whether it lives,"""
    answer_seconds: float = 20.0
    """and has so long to say so."""
    write_seconds: float = 120.0
    """How long a client may read nothing at all while something waits for it."""
    ping_seconds: float = 300.0
    """How often clients may ask whether the connection lives."""
