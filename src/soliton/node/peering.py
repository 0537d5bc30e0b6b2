"""What the node's interfaces may ask about its peers, and do about them.

What lives here: the protocol and its records. What does not: the connections (``soliton.p2p``).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

import msgspec

from soliton.node.network_settings import HostPort
from soliton.sync.peers import Restriction
from soliton.wire.handshake import IpAddress, PeerAddress
from soliton.wire.versions import Version


class ConnectedPeer(msgspec.Struct, frozen=True):
    """A peer, for those who ask about it."""

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
    """A better chain of a peer that was refused: its first bad block, and why."""

    peer: str
    height: int
    block_id: bytes
    reason: str
    at: int


class NetworkFigures(msgspec.Struct, frozen=True):
    """What was counted since the start: messages and their bytes by kind, blocks of peers that are
    on the chain, and how many a second lately; forks by how many own blocks were given up, and
    blames by what became of the peer.
    """

    messages_in: Mapping[str, int]
    messages_out: Mapping[str, int]
    bytes_in: Mapping[str, int]
    bytes_out: Mapping[str, int]
    blocks_received: int
    blocks_per_second: float
    forks: Mapping[int, int]
    blames: Mapping[str, int]


class Peering(Protocol):
    """The connections of a node."""

    @property
    def faulty_forks(self) -> Mapping[str, FaultyFork]:
        """By peer: better chains that were refused."""

    @property
    def port(self) -> int | None:
        """Where peers can dial this node."""

    def connected(self) -> list[ConnectedPeer]:
        """All peers that the node is talking to."""

    def known(self) -> Mapping[PeerAddress, int]:
        """Addresses that have worked: when they were last heard (ms)."""

    def blacklisted(self) -> Mapping[IpAddress, Restriction]:
        """Who is refused, and why."""

    def suspended(self) -> Mapping[IpAddress, Restriction]:
        """Who is not dialled for now, and why."""

    def clear_blacklist(self) -> None:
        """Refuse nobody any more."""

    def ban(self, ip: IpAddress, reason: str) -> None:
        """Refuse an address for a while, and close what is open to it."""

    def begin_to_connect(self, where: HostPort) -> None:
        """Dial somebody now, whatever the book would choose; nobody waits for it."""

    def best_score(self) -> int:
        """The best score that a peer has; 0 when nobody is known to have one."""

    def lag(self) -> int:
        """How many blocks the best peer is ahead, as its score tells: about so many."""

    def figures(self) -> NetworkFigures:
        """What was counted since the start."""
