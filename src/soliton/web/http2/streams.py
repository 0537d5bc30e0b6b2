"""One stream of a connection: a request and its answer.

What lives here: its state. What does not: its transitions (``machine``, ``sending``).
"""

from __future__ import annotations

from collections import deque
from typing import Any


class Stream:
    """An open stream. ``owner`` is for the application."""

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
        """The send window; negative after the client has reduced it."""
        self.room = room
        """The receive window."""
        self.waiting: deque[memoryview] | None = None
        """Pending data."""
        self.size = 0
        """The size of the pending data."""
        self.trailers: bytes | None = None
        """The header block that ends the answer after the pending data."""
        self.in_line = False
        self.has_begun = False
        """Whether an answer has begun."""
        self.client_is_done = False
        self.is_closed = False
        self.is_held = False
        """Whether the window is not enlarged until the application has taken the data."""
        self.left: int | None = None
        """The rest of the content length."""
        self.owner: Any = None
