"""Routes under ``/peers``: who else is on the network.

Source: wavesplatform/Waves ``node/src/main/scala/com/wavesplatform/api/http/PeersApiRoute.scala``.
"""

from __future__ import annotations

from itertools import islice
from typing import Final

import msgspec

from soliton.api.http import Request
from soliton.api.lookup import node_of
from soliton.api.route_table import json_body, row, table
from soliton.chain.json_schemas import list_of, shape
from soliton.node.network_settings import HostPort
from soliton.node.peering import ConnectedPeer, Peering
from soliton.wire.handshake import MAX_PORT

MOST: Final = 1_000
"""Of each list, how many are told."""
MAX_HOST_CHARS: Final = 255


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


def _peering(request: Request) -> Peering | None:
    return node_of(request).peering


def known(request: Request) -> Peers:
    """Addresses that have worked."""
    peering = _peering(request)
    found = {} if peering is None else peering.known()
    newest = sorted(found.items(), key=lambda item: -item[1])[:MOST]
    return Peers([{"address": f"/{address}", "lastSeen": at} for address, at in newest])


def connected(request: Request) -> Peers:
    """Whom the node is talking to."""
    peering = _peering(request)
    return Peers([_connected(each) for each in (() if peering is None else peering.connected())])


def _connected(peer: ConnectedPeer) -> dict[str, str | int]:
    return {
        "address": f"/{peer.address}",
        "declaredAddress": "N/A" if peer.declared is None else f"/{peer.declared}",
        "peerName": peer.name,
        "peerNonce": peer.nonce,
        "applicationName": peer.application,
        "applicationVersion": str(peer.version),
    }


def blacklisted(request: Request) -> list[dict[str, str | int]]:
    """Who is refused."""
    peering = _peering(request)
    found = {} if peering is None else peering.blacklisted()
    return [
        {"hostname": f"/{ip}", "timestamp": each.since, "reason": each.reason}
        for ip, each in islice(found.items(), MOST)
    ]


def suspended(request: Request) -> list[dict[str, str | int]]:
    """Who is let alone for a while."""
    peering = _peering(request)
    found = {} if peering is None else peering.suspended()
    return [
        {"hostname": f"/{ip}", "timestamp": each.since} for ip, each in islice(found.items(), MOST)
    ]


def connect(request: Request) -> Connecting:
    """Dial a peer."""
    reader = request.reader()
    host = reader.text("host")
    port = reader.int32("port")
    reader.finish()
    peering = _peering(request)
    if peering is not None and 0 < port <= MAX_PORT and len(host) <= MAX_HOST_CHARS:
        peering.begin_to_connect(HostPort(host, port))
    return Connecting(host, "Trying to connect")


def clear_blacklist(request: Request) -> Cleared:
    """Refuse nobody any more."""
    peering = _peering(request)
    if peering is not None:
        peering.clear_blacklist()
    return Cleared("blacklist cleared")


_HOSTS: Final = list_of({"type": "object"})
_PEER: Final = {
    "address": "/1.2.3.4:51234",
    "declaredAddress": "/1.2.3.4:6868",
    "peerName": "My node",
    "peerNonce": 75687,
    "applicationName": "wavesR",
    "applicationVersion": "1.5.7",
}

ROUTES: Final = table("peers", "",
    row("GET /peers/all", known, "Peers that the node has heard of, at most 1000", Peers,
        {"peers": [{"address": "/1.2.3.4:6868", "lastSeen": 1795174397440}]}),
    row("GET /peers/connected", connected, "Peers that the node is talking to", Peers,
        {"peers": [_PEER]}),
    row("GET /peers/blacklisted", blacklisted, "Hosts that the node refuses, at most 1000", _HOSTS,
        [{"hostname": "/1.2.3.4", "timestamp": 1795174397440, "reason": "bad block"}]),
    row("GET /peers/suspended", suspended,
        "Hosts that the node lets alone for a while, at most 1000",
        _HOSTS, [{"hostname": "/1.2.3.4", "timestamp": 1795174397440}]),
    row("POST /peers/connect key=operate", connect, "Talk to a peer", Connecting,
        {"hostname": "localhost", "status": "Trying to connect"}, "WRONG_JSON WRONG_JSON_DATA",
        body=json_body("Host name or IP address, and port", {"host": "127.0.0.1", "port": 6868},
            shape("host: string, port: integer"), get_is_405=True)),
    row("POST /peers/clearblacklist key=operate", clear_blacklist, "Refuse nobody any more",
        Cleared, {"result": "blacklist cleared"}),
)  # fmt: skip
