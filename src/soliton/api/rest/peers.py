"""Routes under ``/peers``: who else is on the network.

This node talks to no others yet, so the lists are empty; what is asked for is checked all the same.

Source: wavesplatform/Waves ``node/src/main/scala/com/wavesplatform/api/http/PeersApiRoute.scala``.
"""

from __future__ import annotations

from typing import Final

import msgspec

from soliton.api.errors import WRONG_JSON, WRONG_JSON_DATA
from soliton.api.http import Request
from soliton.api.routes import GET, POST, Body, BodyKind, Route

_TAG: Final = "peers"


class Peers(msgspec.Struct, frozen=True):
    """Peers, each as an object."""

    peers: list[dict[str, str | int]]


class Connecting(msgspec.Struct, frozen=True):
    """The node has understood whom to talk to."""

    hostname: str
    status: str


class Cleared(msgspec.Struct, frozen=True):
    """Nobody is refused any more."""

    result: str


def peers(_request: Request) -> Peers:
    """Nobody."""
    return Peers([])


def hosts(_request: Request) -> list[dict[str, str | int]]:
    """Nobody."""
    return []


def connect(request: Request) -> Connecting:
    """Take note of a peer's address."""
    reader = request.reader()
    host = reader.text("host")
    reader.int32("port")
    reader.finish()
    return Connecting(host, "Trying to connect")


def clear_blacklist(_request: Request) -> Cleared:
    """Refuse nobody any more."""
    return Cleared("blacklist cleared")


_HOSTS: Final = {"type": "array", "items": {"type": "object"}}

ROUTES: tuple[Route, ...] = (
    Route(
        methods=GET,
        path="/peers/all",
        handler=peers,
        tag=_TAG,
        summary="Peers that the node has heard of, at most 1000",
        response=Peers,
        example={"peers": [{"address": "/1.2.3.4:6868", "lastSeen": 1795174397440}]},
    ),
    Route(
        methods=GET,
        path="/peers/connected",
        handler=peers,
        tag=_TAG,
        summary="Peers that the node is talking to",
        response=Peers,
        example={
            "peers": [
                {
                    "address": "/1.2.3.4:51234",
                    "declaredAddress": "/1.2.3.4:6868",
                    "peerName": "My node",
                    "peerNonce": 75687,
                    "applicationName": "wavesR",
                    "applicationVersion": "1.5.7",
                }
            ]
        },
    ),
    Route(
        methods=GET,
        path="/peers/blacklisted",
        handler=hosts,
        tag=_TAG,
        summary="Hosts that the node refuses, at most 1000",
        response=_HOSTS,
        example=[{"hostname": "/1.2.3.4", "timestamp": 1795174397440, "reason": "bad block"}],
    ),
    Route(
        methods=GET,
        path="/peers/suspended",
        handler=hosts,
        tag=_TAG,
        summary="Hosts that the node lets alone for a while, at most 1000",
        response=_HOSTS,
        example=[{"hostname": "/1.2.3.4", "timestamp": 1795174397440}],
    ),
    Route(
        methods=POST,
        path="/peers/connect",
        handler=connect,
        tag=_TAG,
        summary="Talk to a peer",
        body=Body(
            BodyKind.JSON,
            "Host name or IP address, and port",
            {"host": "127.0.0.1", "port": 6868},
            {
                "type": "object",
                "properties": {"host": {"type": "string"}, "port": {"type": "integer"}},
                "required": ["host", "port"],
            },
            get_is_405=True,
        ),
        key=True,
        response=Connecting,
        example={"hostname": "localhost", "status": "Trying to connect"},
        errors=(WRONG_JSON, WRONG_JSON_DATA),
    ),
    Route(
        methods=POST,
        path="/peers/clearblacklist",
        handler=clear_blacklist,
        tag=_TAG,
        summary="Refuse nobody any more",
        key=True,
        response=Cleared,
        example={"result": "blacklist cleared"},
    ),
)
