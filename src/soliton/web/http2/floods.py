"""Flood protection: counts frames that cost the server more than the client.

What lives here: counting for one connection. What does not: the limits (``limits``).
"""

from __future__ import annotations

from soliton.web.http2 import frames
from soliton.web.http2.limits import (
    BYTES_FOR_UPDATE,
    MAX_EMPTY,
    MAX_RESETS,
    MAX_SETTINGS,
    MAX_WINDOW_UPDATES,
    PING_STRIKES,
    WINDOW_SECONDS,
)


class Fault(Exception):
    """Ends the connection with an error code of HTTP/2, and debug data."""

    def __init__(self, code: int, words: bytes = b"") -> None:
        super().__init__(code, words)
        self.code = code
        self.words = words


class Floods:
    """The counters of a connection. ``now`` is the time in seconds."""

    __slots__ = (
        "_empty",
        "_next_ping",
        "_ping_seconds",
        "_resets",
        "_sent",
        "_settings",
        "_since",
        "_strikes",
        "_updates",
        "now",
    )

    def __init__(self, ping_seconds: float) -> None:
        self.now = 0.0
        self._ping_seconds = ping_seconds
        self._next_ping = 0.0
        self._strikes = 0
        self._begin(0)

    def _begin(self, sent: int) -> None:
        self._since = self.now
        self._resets = self._settings = self._empty = self._updates = 0
        self._sent = sent

    def tick(self, now: float, sent: int) -> None:
        """Set the time, and the number of sent bytes."""
        self.now = now
        if now - self._since > WINDOW_SECONDS:
            self._begin(sent)

    def reset(self) -> None:
        """Count a stream that has ended before its answer; raises ``Fault`` above the limit."""
        self._resets += 1
        if self._resets > MAX_RESETS:
            raise Fault(frames.ENHANCE_YOUR_CALM, b"too_many_resets")

    def settings(self) -> None:
        """Count a SETTINGS frame."""
        self._settings += 1
        if self._settings > MAX_SETTINGS:
            raise Fault(frames.ENHANCE_YOUR_CALM, b"too_many_settings")

    def empty(self) -> None:
        """Count a frame without effect."""
        self._empty += 1
        if self._empty > MAX_EMPTY:
            raise Fault(frames.ENHANCE_YOUR_CALM, b"too_many_frames")

    def update(self, sent: int) -> None:
        """Count a WINDOW_UPDATE frame."""
        self._updates += 1
        if self._updates > MAX_WINDOW_UPDATES + (sent - self._sent) // BYTES_FOR_UPDATE:
            raise Fault(frames.ENHANCE_YOUR_CALM, b"too_many_window_updates")

    def ping(self, *, forgives: bool) -> None:
        """Count a PING frame; ``forgives`` resets the strikes for early ones."""
        self.empty()
        if forgives:
            self._strikes, self._next_ping = 0, 0.0
        if self.now < self._next_ping:
            self._strikes += 1
            if self._strikes > PING_STRIKES:
                raise Fault(frames.ENHANCE_YOUR_CALM, b"too_many_pings")
        self._next_ping = self.now + self._ping_seconds
