"""The words that all of ``soliton.web`` shares."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

Headers = tuple[tuple[bytes, bytes], ...]
"""Names, in lower case, and values."""


class HandedOver(Protocol):
    """What has a connection."""

    def shutdown(self) -> None:
        """The server stops."""

    def abort(self) -> None:
        """Go without a word."""


WhenLost = Callable[[HandedOver], None]
"""What a connection calls at its end, with itself."""
