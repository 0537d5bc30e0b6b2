"""The peer book: which peers may connect, which to dial next, which are suspended or blacklisted.

An address is a *candidate* when a peer has named it. It is *known* when a peer connected from that
IP, in either direction, declares it; known addresses are sent to other peers. A *suspended*
IP is not dialled for a minute. A *blacklisted* one is also refused, for longer, with all addresses
of its owner: who has one address of an IPv6 network has the others, too.

Sources: wavesplatform/Waves
``node/src/main/scala/com/wavesplatform/network/{PeerDatabaseImpl,PeerSynchronizer,NetworkServer,
InboundConnectionFilter,HandshakeHandler}.scala``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Final, TypeVar

import msgspec

from soliton.owners import owner_of
from soliton.sync.model import Action, Blame, Joined, Left, PeerId, Received, Send, Tick
from soliton.wire.errors import PeerFault, Verdict
from soliton.wire.handshake import Handshake, IpAddress, PeerAddress
from soliton.wire.messages import GetPeers, Peers

K = TypeVar("K")
V = TypeVar("V")

MAX_KNOWN: Final = 10_000
"""Known addresses; above this number the one heard from least recently is removed."""
MAX_KNOWN_OF_OWNER: Final = 16
"""Known addresses of one owner, who may declare any port; the oldest is removed."""
MAX_RESTRICTIONS: Final = 100_000
"""Suspended addresses, and as many blacklisted ones; the oldest is removed."""


RESERVED: Final = 4
"""Inbound connections beyond the limit, for this machine and the configured peers."""
SILENT_MS: Final = 90_000
"""A peer that has said nothing for so long gives way to a new one where there are too many: each
block changes the score, which peers send.
"""


class PeerSettings(msgspec.Struct, frozen=True):
    """The settings of the section ``network``; times in ms."""

    known_peers: tuple[PeerAddress, ...] = ()
    own_addresses: frozenset[PeerAddress] = frozenset()
    max_inbound: int = 100
    max_outbound: int = 100
    max_of_host: int = 3
    min_connections: int = 0
    max_candidates: int = 100
    residence: int = 86_400_000
    blacklist: int = 900_000
    suspension: int = 60_000
    exchange: bool = True
    blacklisting: bool = True
    ask_every: int = 120_000
    dial_every: int = 5_000
    dial_every_when_few: int = 1_000
    dial_jitter: int = 500


class Dial(msgspec.Struct, frozen=True):
    """Connect to an address."""

    address: PeerAddress


_Actions = list[Action | Dial]


class Restriction(msgspec.Struct, frozen=True):
    """Why an address is suspended or blacklisted, since when and until when."""

    reason: str
    since: int
    until: int


class Connected(msgspec.Struct):
    """A connection: its remote address, its direction, and the peer's handshake."""

    address: PeerAddress
    inbound: bool
    handshake: Handshake | None = None
    last_heard: int = 0
    ask_at: int | None = None
    asked: bool = False

    @property
    def declared_here(self) -> PeerAddress | None:
        """The peer's declared address if its IP is that of the connection, else ``None``: a peer
        must not declare addresses of others.
        """
        declared = None if self.handshake is None else self.handshake.declared
        return declared if declared is not None and declared.ip == self.address.ip else None


class PeerBook:
    """All peers that are known, connected or restricted."""

    def __init__(
        self,
        settings: PeerSettings,
        choose: Callable[[Sequence[PeerAddress]], PeerAddress],
        jitter: Callable[[int], int],
    ) -> None:
        """``choose`` picks an address at random, ``jitter`` a number from 0 to its argument."""
        self.settings = settings
        self._choose = choose
        self._jitter = jitter
        self._known: dict[PeerAddress, int] = {}
        self._candidates: dict[PeerAddress, None] = {}
        self._suspended: dict[IpAddress, Restriction] = {}
        self._blacklisted: dict[str, tuple[IpAddress, Restriction]] = {}
        """By owner; the IP is the one that broke the rules."""
        self._connections: dict[PeerId, Connected] = {}
        self._dialled: set[PeerAddress] = set()
        self._dial_at = 0

    # --- queries ----------------------------------------------------------------------------------

    @property
    def connections(self) -> dict[PeerId, Connected]:
        """All connections, including those without a handshake."""
        return self._connections

    @property
    def talking(self) -> int:
        """The number of connections with a handshake."""
        return sum(each.handshake is not None for each in self._connections.values())

    def known(self, now: int) -> dict[PeerAddress, int]:
        """Return the known addresses that are not blacklisted, with their last message's time."""
        oldest = now - self.settings.residence
        return {
            address: at
            for address, at in self._known.items()
            if at > oldest and not (self._blacklisted and self.is_blacklisted(address.ip, now))
        }

    def blacklisted(self, now: int) -> dict[IpAddress, Restriction]:
        """Return the blacklisted addresses."""
        return {ip: each for ip, each in self._blacklisted.values() if each.until > now}

    def suspended(self, now: int) -> dict[IpAddress, Restriction]:
        """Return the suspended addresses."""
        return {ip: each for ip, each in self._suspended.items() if each.until > now}

    def is_blacklisted(self, ip: IpAddress, now: int) -> bool:
        """Whether connections of this address are refused, as those of all of its owner."""
        found = self._blacklisted.get(owner_of(ip))
        return found is not None and found[1].until > now

    def clear_blacklist(self) -> None:
        """Remove all addresses from the blacklist."""
        self._blacklisted.clear()

    def remember(self, addresses: Iterable[PeerAddress]) -> None:
        """Add addresses, of an earlier run or given by the operator, as candidates."""
        for address in addresses:
            self._add_candidate(address)

    # --- connections ------------------------------------------------------------------------------

    def admit(self, ip: IpAddress, now: int) -> str | None:
        """Return why an incoming connection is refused; ``None`` if it is accepted."""
        if self.is_blacklisted(ip, now):
            return "it is blacklisted"
        inbound = [each for each in self._connections.values() if each.inbound]
        if len(inbound) >= self._most_inbound(ip) and self.gives_way(ip, now) is None:
            return "there are too many connections"
        owner = owner_of(ip)
        if sum(owner_of(each.address.ip) == owner for each in inbound) >= self.settings.max_of_host:
            return "there are too many connections from its address"
        return None

    def gives_way(self, ip: IpAddress, now: int) -> PeerId | None:
        """Return the inbound peer whose place a new connection of an address takes: the oldest one
        without a handshake, or one that has been silent for long. ``None`` if there is room, or all
        are active. Those that have reserved places give way to each other only.
        """
        inbound = {peer: each for peer, each in self._connections.items() if each.inbound}
        if len(inbound) < self._most_inbound(ip):
            return None
        if not self._is_ours(ip):
            inbound = {
                peer: each for peer, each in inbound.items() if not self._is_ours(each.address.ip)
            }
        strangers = (peer for peer, each in inbound.items() if each.handshake is None)
        found = next(strangers, None)
        if found is not None:
            return found
        quietest = min(inbound, key=lambda peer: inbound[peer].last_heard, default=None)
        if quietest is None or now - inbound[quietest].last_heard < SILENT_MS:
            return None
        return quietest

    def _most_inbound(self, ip: IpAddress) -> int:
        most = self.settings.max_inbound
        return most + RESERVED if most and self._is_ours(ip) else most

    def _is_ours(self, ip: IpAddress) -> bool:
        return ip.is_loopback or any(each.ip == ip for each in self.settings.known_peers)

    def opened(self, peer: PeerId, address: PeerAddress, *, inbound: bool) -> None:
        """A connection was opened; its handshake follows."""
        if not inbound:
            # An inbound connection may come from the port that is being dialled.
            self._dialled.discard(address)
        self._connections[peer] = Connected(address, inbound)

    def not_opened(self, address: PeerAddress, now: int) -> None:
        """Dialling an address failed."""
        self._dialled.discard(address)
        self._known.pop(address, None)
        self._suspend(address.ip, "the connection failed", now)

    def introduced(self, peer: PeerId, handshake: Handshake, now: int) -> None:
        """A handshake was received; raise ``PeerFault`` if the peer is connected already."""
        connection = self._connections[peer]
        key = (connection.address.ip, handshake.nonce)
        for each in self._connections.values():
            other = each.handshake
            if other is not None and (each.address.ip, other.nonce) == key:
                raise PeerFault("it is connected already", Verdict.CLOSE)
        connection.handshake = handshake
        connection.last_heard = now
        if not connection.inbound:
            self._candidates.pop(connection.address, None)
        self._touch(connection, now)

    def _touch(self, connection: Connected, now: int) -> None:
        address = connection.declared_here
        if address is None or not address.port or address in self.settings.own_addresses:
            return
        self._candidates.pop(address, None)
        if self._known.pop(address, None) is None:
            owner = owner_of(address.ip)
            of_owner = [each for each in self._known if owner_of(each.ip) == owner]
            if len(of_owner) >= MAX_KNOWN_OF_OWNER:
                del self._known[of_owner[0]]
        self._known[address] = now
        if len(self._known) > MAX_KNOWN:
            del self._known[next(iter(self._known))]

    # --- events -----------------------------------------------------------------------------------

    @property
    def wake_at(self) -> int:
        """When the next address is dialled, or the next request for addresses sent."""
        requests = [e.ask_at for e in self._connections.values() if e.ask_at is not None]
        return min((self._dial_at, *requests))

    def handle(self, event: Joined | Left | Received | Blame | Tick, now: int) -> _Actions:
        """Process an event and return the actions. After ``Blame`` the caller disconnects."""
        match event:
            case Joined(peer=peer) if self.settings.exchange:
                return self._request_peers(peer, now)
            case Left(peer=peer):
                self._closed(peer, now)
            case Received(peer=peer, message=message):
                return self._receive(peer, message, now)
            case Blame(peer=peer, reason=reason, verdict=verdict):
                self._blame(peer, reason, verdict, now)
            case Tick():
                return self._tick(now)
            case _:
                pass
        return []

    def _receive(self, peer: PeerId, message: object, now: int) -> _Actions:
        connection = self._connections[peer]
        connection.last_heard = now
        self._touch(connection, now)
        if not self.settings.exchange:
            return []
        match message:
            case GetPeers():
                return [Send(peer, Peers(tuple(self.known(now))))]
            case Peers(addresses=addresses) if connection.asked:
                connection.asked = False
                for address in addresses:
                    self._add_candidate(address)
            case _:
                pass
        return []

    def _add_candidate(self, address: PeerAddress) -> None:
        settings = self.settings
        unusable = address.ip.is_unspecified or address.ip.is_multicast or not address.port
        if unusable or address in settings.own_addresses or address in self._known:
            return
        self._candidates.pop(address, None)
        self._candidates[address] = None
        if len(self._candidates) > settings.max_candidates:
            del self._candidates[next(iter(self._candidates))]

    def _request_peers(self, peer: PeerId, now: int) -> _Actions:
        connection = self._connections[peer]
        connection.asked = True
        connection.ask_at = now + self.settings.ask_every
        return [Send(peer, GetPeers())]

    def _closed(self, peer: PeerId, now: int) -> None:
        connection = self._connections.pop(peer, None)
        if connection is not None and not connection.inbound:
            self._suspend(connection.address.ip, "its connection has ended", now)

    def _blame(self, peer: PeerId, reason: str, verdict: Verdict, now: int) -> None:
        connection = self._connections.get(peer)
        if connection is None:
            return
        ip, settings = connection.address.ip, self.settings
        if verdict is Verdict.BLACKLIST and settings.blacklisting:
            self.ban(ip, reason, now)
            owner = owner_of(ip)
            for address in [each for each in self._candidates if owner_of(each.ip) == owner]:
                del self._candidates[address]
        elif verdict is not Verdict.CLOSE:
            self._suspend(ip, reason, now)

    def ban(self, ip: IpAddress, reason: str, now: int) -> None:
        """Blacklist an address, and with it all of its owner."""
        restriction = Restriction(reason, now, now + self.settings.blacklist)
        _put_last(self._blacklisted, owner_of(ip), (ip, restriction))

    def _suspend(self, ip: IpAddress, reason: str, now: int) -> None:
        _put_last(self._suspended, ip, Restriction(reason, now, now + self.settings.suspension))

    # --- dialling ---------------------------------------------------------------------------------

    def _tick(self, now: int) -> _Actions:
        actions: _Actions = []
        for peer, connection in self._connections.items():
            if connection.ask_at is not None and connection.ask_at <= now:
                actions += self._request_peers(peer, now)
        if self._dial_at <= now:
            settings, talking = self.settings, self.talking
            few = talking == 0 or talking < settings.min_connections
            every = settings.dial_every_when_few if few else settings.dial_every
            jitter = settings.dial_jitter
            self._dial_at = now + every - jitter + self._jitter(2 * jitter)
            address = self._next_address(now)
            if address is not None:
                self._dialled.add(address)
                actions.append(Dial(address))
        return actions

    def _next_address(self, now: int) -> PeerAddress | None:
        outbound = sum(not each.inbound for each in self._connections.values())
        if outbound + len(self._dialled) >= self.settings.max_outbound:
            return None
        suspended = self.suspended(now)
        taken = {each.address for each in self._connections.values()} | self._dialled
        # A peer that has dialled us would refuse a second connection.
        taken |= {each.declared_here for each in self._connections.values() if each.declared_here}
        taken |= self.settings.own_addresses

        def free(addresses: Iterable[PeerAddress]) -> list[PeerAddress]:
            return [
                each
                for each in addresses
                if each not in taken
                and each.ip not in suspended
                and not (self._blacklisted and self.is_blacklisted(each.ip, now))
            ]

        configured = free(self.settings.known_peers)
        if configured:
            return configured[0]
        candidates = free(self._candidates)
        if candidates:
            # The oldest candidate; it is removed whether dialling succeeds or not.
            del self._candidates[candidates[0]]
            return candidates[0]
        known = free(self.known(now))
        return self._choose(known) if known else None


def _put_last(where: dict[K, V], key: K, value: V) -> None:
    """Set an entry as the newest one; remove the oldest of too many."""
    where.pop(key, None)
    where[key] = value
    if len(where) > MAX_RESTRICTIONS:
        del where[next(iter(where))]
