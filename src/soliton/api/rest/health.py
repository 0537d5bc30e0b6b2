"""``/livez``, ``/readyz`` and ``/metrics``: for whoever watches over the node. No other node has
them.

What lives here: the answers. What does not: the figures (``soliton.api.metrics``).
"""

from __future__ import annotations

from typing import Final

import msgspec

from soliton.api.http import Json, Raw, Request
from soliton.api.lookup import node_of
from soliton.api.metrics import figures
from soliton.api.routes import GET, NATURAL, Route, query_parameter
from soliton.storage.errors import StoreFull
from soliton.web.exposition import CONTENT_TYPE, exposition

_TAG: Final = "health"
_MS: Final = 1_000
_UNAVAILABLE: Final = 503


class Alive(msgspec.Struct, frozen=True, gc=False):
    """The process answers."""

    status: str


class Readiness(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    """Whether the node wants requests, and why not; the age of its last block in seconds."""

    status: str
    reasons: list[str]
    height: int
    last_block_age: int


def livez(_request: Request) -> Alive:
    """That there is an answer is the answer."""
    return Alive("alive")


def readyz(request: Request) -> object:
    """Whether the node does not stop, can write, has room in its pool and is up to date: its last
    block not older than asked for or, without that, than ``rest-api.max-block-age``.
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
    usual = node.settings.rest_api.max_block_age_ms // _MS
    if limit is not None and age > limit:
        reasons.append(f"the last block is {age} s old")
    elif limit is None and 0 < usual < age:
        reasons.append(
            f"the last block is {age} s old, and rest-api.max-block-age is {usual} s: the node is "
            "behind its network, or nobody makes blocks"
        )
    answer = Readiness("unready" if reasons else "ready", reasons, node.chain.height, age)
    return Json(answer, _UNAVAILABLE) if reasons else answer


def metrics(request: Request) -> Raw:
    """All figures."""
    return Raw(exposition(figures(request.context, node_of(request))), CONTENT_TYPE)


ROUTES: tuple[Route, ...] = (
    Route(
        methods=GET,
        path="/livez",
        handler=livez,
        tag=_TAG,
        summary="Whether the process answers",
        response=Alive,
        example={"status": "alive"},
    ),
    Route(
        methods=GET,
        path="/readyz",
        handler=readyz,
        tag=_TAG,
        summary="Whether the node wants requests: it does not stop, its disk and pool have room, "
        "its last block is not old",
        parameters=(
            query_parameter("maxAge", NATURAL, "How old the last block may be, in seconds", 120),
        ),
        response=Readiness,
        example={"status": "ready", "reasons": [], "height": 2, "lastBlockAge": 0},
        statuses=((_UNAVAILABLE, "It does not; `reasons` says why"),),
    ),
    Route(
        methods=GET,
        path="/metrics",
        handler=metrics,
        tag=_TAG,
        summary="Figures about the running node, for Prometheus",
        response={"type": "string", "description": "The text format of Prometheus"},
        example="# HELP soliton_chain_height Height of the last block\n"
        "# TYPE soliton_chain_height gauge\nsoliton_chain_height 2\n",
        content_type="text/plain",
    ),
)
