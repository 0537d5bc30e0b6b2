"""The limits of an HTTP/2 server on clients: of one connection, and of all together."""

from __future__ import annotations

from typing import Final

import msgspec

from soliton.proxies import NO_PROXIES, TrustedProxies

HEADER_LIST_BYTES: Final = 16 * 1024
"""The size of the headers of one request, by RFC 9113; requests above it are refused."""
MOST_HEADER_LIST_BYTES: Final = 64 * 1024
"""The size above which the connection is closed, since decoding is too expensive."""
BLOCK_BYTES: Final = 32 * 1024
"""The size of an encoded header block."""
CONTINUATIONS: Final = 8
"""CONTINUATION frames of a header block."""
STREAM_WINDOW: Final = 256 * 1024
"""Bytes that a stream may receive before the application has taken any of them."""
CONNECTION_WINDOW: Final = 1024 * 1024
OUTPUT_BYTES: Final = 256 * 1024
"""Data written to the transport at once."""
MAX_UNREAD_BYTES: Final = 1024 * 1024
"""Unsent bytes of a connection whose client does not read: data, and replies to control frames."""
BLOCKS_KEPT: Final = 64
"""Decoded header blocks in a connection's cache, if they are short."""
KEPT_BLOCK_BYTES: Final = 1_024
KEPT_LIST_BYTES: Final = 2_048
"""The size of their headers: one byte of a block may stand for a long header."""
CLOSED_KEPT: Final = 512
"""Closed streams that are kept, for frames that the client has sent before it noticed."""

WHOLE_KEPT: Final = 64
"""The same for streams on which the client may send nothing more."""

WINDOW_SECONDS: Final = 10.0
"""The time window of the limits below."""
MAX_RESETS: Final = 1_000
"""Streams that end before their answers: by the client, or for its faults."""
MAX_SETTINGS: Final = 100
MAX_EMPTY: Final = 2_000
"""Frames without effect: pings, priorities, unknown frames, empty data."""
MAX_WINDOW_UPDATES: Final = 50_000
BYTES_FOR_UPDATE: Final = 64
"""One more window update is allowed for each so many sent bytes,"""
BLOCK_WORTH: Final = 256
"""and a header block counts as so many: clients enlarge the window with each answer."""
PING_STRIKES: Final = 2
"""Early pings that are tolerated; the next one ends the connection. Sent data resets them."""


class Http2Limits(msgspec.Struct, frozen=True):
    """Limits on the connections of one port, and timeouts."""

    connections: int = 4_096
    """Beyond these, the connection that has been without a stream for longest is closed for each
    new one; if all are in use, further ones are closed at once.
    """
    reserved: int = 16
    """Connections beyond that limit, for clients on this machine."""
    connections_per_client: int | None = None
    """The same for one client (``clients.client_key``), over all processes that share their
    counters; further connections get a GOAWAY frame.
    """
    counts_local_clients: bool = False
    """Whether that limit also holds for clients on this machine."""
    streams: int = 100
    """Concurrent streams of one connection."""
    handshake_seconds: float = 20.0
    """The timeout of the client's preface and SETTINGS."""
    idle_seconds: float = 600.0
    """How long a connection may have no stream."""
    silent_seconds: float = 60.0
    """After so long without input a PING is sent,"""
    answer_seconds: float = 20.0
    """and the client has so long to answer."""
    write_seconds: float = 120.0
    """How long a client may not read while data is pending."""
    ping_seconds: float = 300.0
    """The minimum interval of clients' pings."""
    proxies: TrustedProxies = NO_PROXIES
    """Reverse proxies: their connections are not limited by address, their clients' requests are.
    """
