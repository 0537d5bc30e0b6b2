"""``/livez``, ``/readyz`` and ``/metrics``, for monitoring. No other node has them.

What lives here: the responses. What does not: the metrics (``soliton.api.metrics``).
"""

from __future__ import annotations

from typing import Final

import msgspec

from soliton.api.http import Request, json_answer
from soliton.api.lookup import node_of
from soliton.api.metrics import all_figures
from soliton.api.route_table import row, table
from soliton.storage.errors import StoreFull
from soliton.web.answers import Whole
from soliton.web.monitoring import READY, UNAVAILABLE, UNREADY
from soliton.web.prometheus import CONTENT_TYPE, text_form

_MS: Final = 1_000


class Alive(msgspec.Struct, frozen=True, gc=False):
    """The status of the process."""

    status: str


class Readiness(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    """Whether the node is ready for requests, and why not; the age of its last block in seconds,
    and by how many blocks its best peer is ahead.
    """

    status: str
    reasons: list[str]
    height: int
    last_block_age: int
    lag: int


def livez(_request: Request) -> Alive:
    """Report that the process answers requests."""
    return Alive("alive")


def readyz(request: Request) -> object:
    """Whether the node is not stopping, can write, has room in its pool and is up to date: its last
    block is not older than ``maxAge`` or, without that, than ``rest-api.max-block-age``, and no
    peer is ahead by more than ``rest-api.max-lag`` blocks.
    """
    node = node_of(request)
    age = max(0, node.clock() - node.chain.last_block.header.timestamp) // _MS
    limit = request.optional_integer("maxAge")
    reasons = []
    if node.is_stopping:
        reasons.append("the node stops")
    problem = node.disk.problem
    if problem is not None:
        why = "no space left" if isinstance(problem, StoreFull) else "it refuses, the log says why"
        reasons.append(f"the disk cannot be written, mining pauses: {why}")
    if node.pool.is_full:
        reasons.append("the pool of unconfirmed transactions is full")
    oldest = node.settings.rest_api.max_block_age_ms // _MS
    if limit is not None and age > limit:
        reasons.append(f"the last block is {age} s old")
    elif limit is None and 0 < oldest < age:
        reasons.append(
            f"the last block is {age} s old, and rest-api.max-block-age is {oldest} s: the node is "
            "behind its network, or nobody makes blocks"
        )
    lag = 0 if node.peering is None else node.peering.lag()
    most = node.settings.rest_api.max_lag
    if 0 < most < lag:
        reasons.append(
            f"the best peer is about {lag} blocks ahead, and rest-api.max-lag is {most}: the node "
            "is syncing"
        )
    answer = Readiness(UNREADY if reasons else READY, reasons, node.chain.height, age, lag)
    return json_answer(answer, request.accepts, UNAVAILABLE) if reasons else answer


def metrics(request: Request) -> Whole:
    """All metrics."""
    return Whole(text_form(all_figures(request.context, node_of(request))), CONTENT_TYPE)


ROUTES: Final = table("health", """
maxAge | natural | The maximum age of the last block in seconds | 120
""",
    row("GET /livez reads=chain", livez, "Whether the process answers", Alive, {"status": "alive"}),
    row("GET /readyz?maxAge", readyz,
        "Whether the node is ready for requests: it is not stopping, its disk and pool have room, "
        "its last block is not old, and no peer is far ahead",
        Readiness, {"status": "ready", "reasons": [], "height": 2, "lastBlockAge": 0, "lag": 0},
        statuses=((UNAVAILABLE, "It is not; `reasons` says why"),), own=True),
    row("GET /metrics", metrics, "Metrics of the running node, for Prometheus",
        {"type": "string", "description": "The text format of Prometheus"},
        "# HELP soliton_chain_height Height of the last block\n"
        "# TYPE soliton_chain_height gauge\nsoliton_chain_height 2\n",
        content_type="text/plain"),
)  # fmt: skip
