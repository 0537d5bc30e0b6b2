"""A pool that follows the chain and is rechecked at once.

What lives here: both steps as one. What does not: the pool (``soliton.node.pool``).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from soliton.chain.transactions.model import AnyTransaction
from soliton.ledger.state import Changes
from soliton.node.pool import UtxPool


def refresh(
    pool: UtxPool,
    mined: Iterable[bytes] = (),
    unminable: Mapping[bytes, str] | None = None,
    returned: Iterable[AnyTransaction] = (),
    changes: Changes | None = None,
) -> None:
    """Update the pool after a block or a rollback, and recheck it completely."""
    pool.follow(mined, unminable, returned, changes)
    pool.settle()
