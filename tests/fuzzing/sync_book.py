"""Made-up events for the book of peers; ``sync_events`` runs them with those of others."""

from __future__ import annotations

import ipaddress
import random
from typing import Any, Final

from soliton.sync.model import Blame, Joined, Left, Received, Send, Tick
from soliton.sync.peers import RESERVED, Dial, PeerBook, PeerSettings
from soliton.wire.errors import PeerFault, Verdict
from soliton.wire.handshake import Handshake, PeerAddress
from soliton.wire.messages import GetPeers, Peers
from soliton.wire.versions import Version

FEW: Final = 3
"""What the limits of some machines are set to: made-up events are too few for the real ones."""
PORT: Final = 6_868
VERSION: Final = Version(1, 5, 7)
ADDRESSES: Final = [
    PeerAddress(ipaddress.ip_address(f"10.0.0.{last}"), port)
    for last in range(1, 6)
    for port in (PORT, PORT + 1)
]


class Book:
    """Limits hold whatever happens, and nobody is dialled who must not be."""

    def __init__(self, chance: random.Random) -> None:
        self.chance = chance
        settings = PeerSettings(
            known_peers=tuple(chance.sample(ADDRESSES, 2)),
            max_inbound=2,
            max_outbound=2,
            max_of_host=1,
            max_candidates=3,
            exchange=chance.random() < 0.9,
            blacklisting=chance.random() < 0.9,
        )
        self.made = PeerBook(settings, chance.choice, lambda most: chance.randint(0, most))
        self.dialled: set[PeerAddress] = set()
        self.number = 0
        self.count = 0

    def hear(self, event: Any, now: int) -> None:
        """Let something happen, and look at what is wanted then."""
        made = self.made
        for action in made.handle(event, now):
            if isinstance(action, Dial):
                kept = {*made.blacklisted(now), *made.suspended(now)}
                there = {each.address for each in made.connections.values()}
                assert action.address.ip not in kept
                assert action.address not in there | self.dialled
                self.dialled.add(action.address)
                self.count += 1
            else:
                assert isinstance(action, Send)
                assert isinstance(action.message, GetPeers | Peers)
                assert action.peer in made.connections

    def step(self, now: int) -> None:
        chance, made = self.chance, self.made
        address = chance.choice(ADDRESSES)
        peer = chance.choice(list(made.connections)) if made.connections else 0
        match chance.randrange(10):
            case 0 if made.admit(address.ip, now) is None:
                idle = made.gives_way(address.ip, now)
                if idle is not None:
                    self.hear(Left(idle), now)
                self.open(address, inbound=True)
            case 1 if self.dialled:
                self.open(self.dialled.pop(), inbound=False)
            case 2 if self.dialled:
                made.not_opened(self.dialled.pop(), now)
            case 3 | 4 | 5 if peer:
                self.say(peer, address, now)
            case 6 if peer:
                self.hear(Blame(peer, "why", chance.choice(list(Verdict))), now)
                self.hear(Left(peer), now)
            case 7 if peer:
                self.hear(Left(peer), now)
            case 8 if chance.random() < 0.1:
                made.ban(address.ip, "the operator", now)
            case _:
                self.hear(Tick(), now)
        self.check()

    def open(self, address: PeerAddress, *, inbound: bool) -> None:
        self.number += 1
        self.made.opened(self.number, address, inbound=inbound)

    def say(self, peer: int, address: PeerAddress, now: int) -> None:
        """A handshake, or what comes after it."""
        chance, there = self.chance, self.made.connections[peer]
        if there.handshake is not None:
            named = tuple(chance.choice(ADDRESSES) for _ in range(chance.randrange(5)))
            self.hear(Received(peer, chance.choice((GetPeers(), Peers(named)))), now)
            return
        declared = chance.choice((None, there.address, address))
        shake = Handshake("wavesR", VERSION, "n", chance.randrange(3), declared, 0)
        try:
            self.made.introduced(peer, shake, now)
        except PeerFault:
            self.hear(Left(peer), now)
        else:
            self.hear(Joined(peer, VERSION), now)

    def check(self) -> None:
        made = self.made
        inbound = [each.address.ip for each in made.connections.values() if each.inbound]
        known = {each.ip for each in made.settings.known_peers}
        assert len(inbound) <= 2 + RESERVED
        assert len([ip for ip in inbound if ip not in known]) <= 2
        assert len(set(inbound)) == len(inbound)
        assert len(made.connections) - len(inbound) + len(self.dialled) <= 2
        assert len(made._candidates) <= 3
        assert max(len(made._known), len(made._blacklisted), len(made._suspended)) <= FEW

    def end(self, now: int) -> None:
        for peer in list(self.made.connections):
            self.hear(Left(peer), now)
        assert not self.made.connections
        assert self.made._dialled == self.dialled
