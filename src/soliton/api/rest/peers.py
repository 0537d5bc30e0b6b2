"""Routes under ``/peers``: known, connected and banned peers.

Source: wavesplatform/Waves ``node/src/main/scala/com/wavesplatform/api/http/PeersApiRoute.scala``.
"""

from __future__ import annotations

from itertools import islice
from typing import Final

import msgspec

from soliton.api import errors
from soliton.api.http import Request
from soliton.api.lookup import node_of
from soliton.api.route_table import json_body, row, table
from soliton.chain.json_schemas import list_of, shape
from soliton.node.network_settings import HostPort
from soliton.node.peering import ConnectedPeer, Peering
from soliton.wire.handshake import MAX_PORT

MAX_LISTED: Final = 1_000
"""The limit on the items of a list."""
MAX_HOST_CHARS: Final = 255


class Peers(msgspec.Struct, frozen=True):
    """Peers, each as an object."""

    peers: list[dict[str, str | int]]


class Connecting(msgspec.Struct, frozen=True):
    """The node tries to connect."""

    hostname: str
    status: str


class Cleared(msgspec.Struct, frozen=True):
    """The blacklist is empty."""

    result: str


def _peering(request: Request) -> Peering | None:
    return node_of(request).peering


def known(request: Request) -> Peers:
    """Addresses of known peers, the newest first."""
    peering = _peering(request)
    found = {} if peering is None else peering.known()
    newest = sorted(found.items(), key=lambda item: -item[1])[:MAX_LISTED]
    return Peers([{"address": f"/{address}", "lastSeen": at} for address, at in newest])


def connected(request: Request) -> Peers:
    """The connected peers."""
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
    """The banned hosts."""
    peering = _peering(request)
    found = {} if peering is None else peering.blacklisted()
    return [
        {"hostname": f"/{ip}", "timestamp": each.since, "reason": each.reason}
        for ip, each in islice(found.items(), MAX_LISTED)
    ]


def suspended(request: Request) -> list[dict[str, str | int]]:
    """The hosts that are temporarily suspended."""
    peering = _peering(request)
    found = {} if peering is None else peering.suspended()
    return [
        {"hostname": f"/{ip}", "timestamp": each.since}
        for ip, each in islice(found.items(), MAX_LISTED)
    ]


def connect(request: Request) -> Connecting:
    """Connect to a peer."""
    reader = request.reader()
    host = reader.text("host")
    port = reader.int32("port")
    reader.finish()
    if not 0 <= port <= MAX_PORT:
        raise errors.invalid_request(f"port out of range:{port}")
    peering = _peering(request)
    if peering is not None and port and len(host) <= MAX_HOST_CHARS:
        peering.begin_to_connect(HostPort(host, port))
    return Connecting(host, "Trying to connect")


def clear_blacklist(request: Request) -> Cleared:
    """Lift all bans."""
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
    "applicationVersion": "1.6.6",
}

ROUTES: Final = table("peers", "",
    row("GET /peers/all", known, "Known peers, the newest first, at most 1000", Peers,
        {"peers": [{"address": "/1.2.3.4:6868", "lastSeen": 1795174397440}]}),
    row("GET /peers/connected", connected, "Connected peers", Peers, {"peers": [_PEER]}),
    row("GET /peers/blacklisted", blacklisted, "Banned hosts, at most 1000", _HOSTS,
        [{"hostname": "/1.2.3.4", "timestamp": 1795174397440, "reason": "bad block"}]),
    row("GET /peers/suspended", suspended, "Temporarily suspended hosts, at most 1000",
        _HOSTS, [{"hostname": "/1.2.3.4", "timestamp": 1795174397440}]),
    row("POST /peers/connect key=operate", connect, "Connect to a peer", Connecting,
        {"hostname": "localhost", "status": "Trying to connect"}, "WRONG_JSON WRONG_JSON_DATA "
        "CUSTOM_VALIDATION_ERROR",
        body=json_body("Host name or IP address, and port", {"host": "127.0.0.1", "port": 6868},
            shape("host: string, port: integer"), get_is_405=True)),
    row("POST /peers/clearblacklist key=operate", clear_blacklist, "Lift all bans", Cleared,
        {"result": "blacklist cleared"}),
)  # fmt: skip
