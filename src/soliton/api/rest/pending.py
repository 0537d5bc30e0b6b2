"""The next block, for routes with dry runs.

What lives here: its context. What does not: the dry runs (``debug``, ``simulation``,
``evaluation``, ``faults``).
"""

from __future__ import annotations

from soliton.api.thread_pool import Watch
from soliton.ledger.context import Context
from soliton.ledger.environment import pending_environment
from soliton.node.blockchain import Blockchain


def next_block(chain: Blockchain, now: int, watch: Watch | None = None) -> Context:
    """The context of the next block at ``now`` (ms); ``watch`` is called while scripts run."""
    return Context(pending_environment(chain, now), watch=watch)
