"""The interface to a node's peers, for its APIs.

What lives here: the protocol and its records. What does not: the connections (``soliton.p2p``).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

import msgspec

from soliton.ledger.errors import LedgerError
from soliton.node.network_settings import HostPort
from soliton.sync.peers import Restriction
from soliton.wire.handshake import IpAddress, PeerAddress
from soliton.wire.versions import Version


class ConnectedPeer(msgspec.Struct, frozen=True):
    """A connected peer."""

    address: PeerAddress
    declared: PeerAddress | None
    name: str
    nonce: int
    application: str
    version: Version
    inbound: bool
    score: int | None
    last_heard: int


class FaultyFork(msgspec.Struct, frozen=True):
    """A better chain of a peer that was refused: its first invalid block, and the reason."""

    peer: str
    height: int
    block_id: bytes
    reason: str
    at: int


class NetworkFigures(msgspec.Struct, frozen=True):
    """Counters since the start: messages and bytes by kind, appended blocks of peers and their
    recent rate, forks by the number of own blocks removed, and faults of peers by consequence.
    """

    messages_in: Mapping[str, int]
    messages_out: Mapping[str, int]
    bytes_in: Mapping[str, int]
    bytes_out: Mapping[str, int]
    blocks_received: int
    blocks_per_second: float
    forks: Mapping[int, int]
    blames: Mapping[str, int]


class NotEnoughPeers(LedgerError):
    """The node has fewer peers than ``rest-api.minimum-peers``: a transaction may get lost here."""


class Peering(Protocol):
    """The connections of a node."""

    @property
    def connections(self) -> int:
        """The number of connected peers."""

    @property
    def faulty_forks(self) -> Mapping[str, FaultyFork]:
        """Better chains that were refused, by peer."""

    @property
    def port(self) -> int | None:
        """The port that peers can dial."""

    def connected(self) -> list[ConnectedPeer]:
        """Return all connected peers."""

    def known(self) -> Mapping[PeerAddress, int]:
        """Return known working addresses, with the time (ms) of the last contact."""

    def blacklisted(self) -> Mapping[IpAddress, Restriction]:
        """Return blacklisted addresses, with reasons."""

    def suspended(self) -> Mapping[IpAddress, Restriction]:
        """Return addresses that are temporarily not dialled, with reasons."""

    def clear_blacklist(self) -> None:
        """Remove all addresses from the blacklist."""

    def ban(self, ip: IpAddress, reason: str) -> None:
        """Blacklist an address, and close its connections."""

    def begin_to_connect(self, where: HostPort) -> None:
        """Dial a peer now, in the background."""

    def best_score(self) -> int:
        """Return the best score of a peer; 0 if none is known."""

    def lag(self) -> int:
        """Return about how many blocks the best peer is ahead, estimated from its score."""

    def relay(self, transaction_id: bytes) -> None:
        """Send a transaction of the pool to the peers again, unless they have received it since the
        last block or microblock.
        """

    def figures(self) -> NetworkFigures:
        """Return the counters since the start."""


def check_connected(peering: Peering | None, minimum: int) -> None:
    """Raise ``NotEnoughPeers`` if a node with this minimum accepts no transactions.

    Source: wavesplatform/Waves ``node/src/main/scala/com/wavesplatform/Application.scala``.
    """
    connected = 0 if peering is None or not minimum else peering.connections
    if connected < minimum:
        raise NotEnoughPeers(
            f"There are not enough connections with peers ({connected}) to accept transaction"
        )
