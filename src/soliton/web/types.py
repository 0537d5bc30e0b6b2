"""Types shared by the modules of ``soliton.web``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

Headers = tuple[tuple[bytes, bytes], ...]
"""Names, in lower case, and values."""


class HandedOver(Protocol):
    """The owner of a connection."""

    def shutdown(self) -> None:
        """End gracefully, since the server stops."""

    def abort(self) -> None:
        """Abort the connection."""


WhenLost = Callable[[HandedOver], None]
"""Called with the owner at the end of a connection."""
