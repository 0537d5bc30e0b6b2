"""What an API has been asked: how often each route answered, and with which errors.

What lives here: the counts. What does not: counting (``asgi``), showing them (``metrics``).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from soliton.api.routes import CompiledRoute


class Traffic:
    """The counts of one application; each of its routes has its own."""

    __slots__ = ("errors", "routes")

    def __init__(self) -> None:
        self.routes: Sequence[CompiledRoute] = ()
        self.errors: Counter[int] = Counter()
