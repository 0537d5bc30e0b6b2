"""One stream of a connection: a request and its answer.

What lives here: what is kept of it. What does not: what happens to it (``machine``, ``sending``).
"""

from __future__ import annotations

from collections import deque
from typing import Any


class Stream:
    """A stream that is open. ``owner`` is whatever the application keeps of it."""

    __slots__ = (
        "client_is_done",
        "has_begun",
        "in_line",
        "is_closed",
        "is_held",
        "left",
        "number",
        "owner",
        "room",
        "size",
        "trailers",
        "waiting",
        "window",
    )

    def __init__(self, number: int, window: int, room: int) -> None:
        self.number = number
        self.window = window
        """How many bytes the client still takes; below 0 after it has changed its mind."""
        self.room = room
        """How many bytes it may still send."""
        self.waiting: deque[memoryview] | None = None
        """What is to be sent, once it may."""
        self.size = 0
        """How much that is."""
        self.trailers: bytes | None = None
        """The header block that ends the answer behind all that waits."""
        self.in_line = False
        self.has_begun = False
        """Whether an answer has."""
        self.client_is_done = False
        self.is_closed = False
        self.is_held = False
        """Whether no more may come until the application takes what has."""
        self.left: int | None = None
        """How many of the announced bytes are still to come."""
        self.owner: Any = None
