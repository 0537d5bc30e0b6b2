"""The block that does not exist yet, for routes that try things in it.

What lives here: its context. What does not: what is tried (``debug``, ``simulation``,
``evaluation``, ``faults``).
"""

from __future__ import annotations

from soliton.api.thread_pool import Watch
from soliton.ledger.context import Context
from soliton.ledger.environment import pending_environment
from soliton.node.blockchain import Blockchain


def next_block(chain: Blockchain, now: int, watch: Watch | None = None) -> Context:
    """The block after the last one, made now (ms); ``watch`` is called while scripts run."""
    return Context(pending_environment(chain, now), watch=watch)
