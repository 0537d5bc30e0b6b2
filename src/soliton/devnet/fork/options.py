"""The options of a fork."""

from __future__ import annotations

from pathlib import Path

import msgspec


class ForkOptions(msgspec.Struct, frozen=True):
    """The node's URL, the height of the fork (``None``: the last block), the directory of the
    cache, and whether to accept entries that the node has changed since.
    """

    url: str
    height: int | None = None
    cache: Path | None = None
    takes_newer: bool = False
