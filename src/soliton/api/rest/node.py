"""Routes under ``/node``: status, version, stopping the node.

Source: wavesplatform/Waves
``node/src/main/scala/com/wavesplatform/api/http/NodeApiRoute.scala``.
"""

from __future__ import annotations

from datetime import UTC, datetime
from functools import lru_cache
from typing import Final

import msgspec

from soliton.api.http import Request
from soliton.api.lookup import node_of
from soliton.api.route_table import row, table

_MS: Final = 1_000


class Status(msgspec.Struct, frozen=True, gc=False, rename="camel", omit_defaults=True):
    """Height and time of the last block; for a private chain with edited state, also the height of
    the first edit.
    """

    blockchain_height: int
    state_height: int
    updated_timestamp: int
    updated_date: str
    changed_by_hand: int | None = None


class Version(msgspec.Struct, frozen=True, gc=False):
    """Name and version of the node's interface."""

    version: str


class Stopped(msgspec.Struct, frozen=True, gc=False):
    """The node is stopping."""

    stopped: bool


def status(request: Request) -> Status:
    """Height and time of the last block."""
    chain = node_of(request).chain
    height = chain.height
    timestamp = chain.meta(height).timestamp
    by_hand = chain.store.first_by_hand()
    return Status(height, height, timestamp, iso_time(timestamp), by_hand)


def version(request: Request) -> Version:
    """Name and version of the node's interface, which clients check."""
    return Version(node_of(request).agent)


def stop(request: Request) -> Stopped:
    """Stop the node after this response."""
    node_of(request).request_stop()
    return Stopped(stopped=True)


@lru_cache(maxsize=16)
def iso_time(timestamp: int) -> str:
    """Milliseconds since 1970 as ISO 8601 in UTC; a zero fraction is omitted."""
    seconds, milliseconds = divmod(timestamp, _MS)
    text = datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%S")
    return f"{text}.{milliseconds:03}Z" if milliseconds else f"{text}Z"


ROUTES: Final = table("node", "",
    row("GET /node/status", status, "Height and time of the last block", Status,
        {"blockchainHeight": 3, "stateHeight": 3, "updatedTimestamp": 1566817216027,
         "updatedDate": "2019-08-26T11:00:16.027Z"}),
    row("GET /node/version", version,
        "Name and version of the interface that the network's clients expect", Version,
        {"version": "Waves v1.6.6"}),
    row("POST /node/stop key=operate reads=node", stop, "Stop the node", Stopped,
        {"stopped": True}),
    reads="chain",
)  # fmt: skip
