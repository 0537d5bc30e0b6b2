"""What a fork is begun with."""

from __future__ import annotations

from pathlib import Path

import msgspec


class ForkOptions(msgspec.Struct, frozen=True):
    """Which node, from which height on (``None``: its last block), where what was read is kept, and
    whether entries that the node has changed since are taken as they are now.
    """

    url: str
    height: int | None = None
    cache: Path | None = None
    takes_newer: bool = False
