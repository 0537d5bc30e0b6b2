"""The network between the hosts: connections that behave like TCP on a lossy line.

Bytes in one direction of a connection arrive in order; different connections overtake each other. A
lost segment delays all that follows by the retransmission timeout, which doubles with each further
loss; too many losses break the connection. A partition loses everything: sent data is delayed until
it ends, and connections that wait too long break.

What lives here: delays, losses, partitions, and the two ends of a connection. What does not: the
meaning of the bytes (``soliton.p2p``), the schedule of partitions (``world``).
"""

from __future__ import annotations

import random
from collections import deque
from collections.abc import Callable
from typing import Final, Protocol

import msgspec

from soliton.p2p.sockets import WRITE_LIMIT
from soliton.simulation.loop import Loop
from soliton.wire.handshake import IpAddress, PeerAddress

RESEND_MS: Final = 200
"""TCP's first retransmission timeout."""
MAX_SENDINGS: Final = 8
"""A segment lost so often breaks its connection, after some 25 s."""
GIVE_UP_MS: Final = 30_000
"""A connection without progress for so long is broken."""
SPLIT_SHARE: Final = 0.05
"""The share of writes that arrive in two pieces."""
_FIRST_PORT: Final = 32_768
_PORTS: Final = 28_000


class LinkSettings(msgspec.Struct, frozen=True):
    """``latency`` and up to ``jitter`` more, in ms, for one way; ``loss`` of segments, 0 to 1."""

    latency: int = 40
    jitter: int = 40
    loss: float = 0.0


class Party(Protocol):
    """A host, as the network sees it."""

    @property
    def address(self) -> PeerAddress:
        """The address at which it can be dialled."""

    def accepted(self, end: End) -> None:
        """Handle an inbound connection."""

    def received(self, end: End, data: bytes) -> None:
        """Handle bytes."""

    def closed(self, end: End) -> None:
        """Handle a connection closed by the other side, or broken."""


class End:
    """One end of a connection."""

    def __init__(self, owner: Party, address: PeerAddress) -> None:
        """``address`` is that of the other end, as this one sees it."""
        self.owner = owner
        self.address = address
        self.other: End
        self.peer = 0
        self.is_open = True
        self.in_flight = 0
        self.queue: deque[tuple[bytes, int]] = deque()
        self.arrives = 0
        """The expected arrival time of the last sent bytes."""


class Links:
    """All connections of a network."""

    def __init__(self, loop: Loop, rng: random.Random, settings: LinkSettings) -> None:
        self._loop = loop
        self._rng = rng
        self.settings = settings
        self._listening: dict[PeerAddress, Party] = {}
        self._cuts: dict[int, tuple[frozenset[IpAddress], frozenset[IpAddress], int]] = {}
        self._number = 0
        self.segments = 0
        self.lost = 0
        self.bytes = 0
        self.broken = 0
        self.most_in_flight = 0

    # --- partitions -------------------------------------------------------------------------------

    def cut(
        self, group: frozenset[IpAddress], until: int, bridges: frozenset[IpAddress] = frozenset()
    ) -> None:
        """Separate some hosts from all others until a time, except the ``bridges``, which both
        sides reach.
        """
        self._number += 1
        number = self._number
        self._cuts[number] = (group, bridges, until)
        self._loop.at(until, lambda: self._mend(number))

    def _mend(self, number: int) -> None:
        del self._cuts[number]

    def _healed_at(self, one: IpAddress, other: IpAddress) -> int:
        """Return when two hosts reach each other again; 0 if they do now."""
        ends = [
            until
            for group, bridges, until in self._cuts.values()
            if (one in group) is not (other in group) and not {one, other} & bridges
        ]
        return max(ends, default=0)

    # --- connections ------------------------------------------------------------------------------

    def listen(self, party: Party) -> None:
        """Start listening for a host."""
        self._listening[party.address] = party

    def stop_listening(self, party: Party) -> None:
        """Stop listening for a host."""
        self._listening.pop(party.address, None)

    def dial(
        self,
        party: Party,
        address: PeerAddress,
        patience: int,
        opened: Callable[[End | None], None],
        source: IpAddress | None = None,
    ) -> None:
        """Connect a host to an address; ``opened`` receives its end, or ``None`` when there is no
        answer within ``patience`` ms. ``source`` is the apparent source address.
        """
        source = source or party.address.ip
        one_way = self._delay()
        if one_way is None or one_way > patience or self._healed_at(source, address.ip):
            self._loop.after(patience, lambda: opened(None))
            return
        delay = one_way

        def arrive() -> None:
            there = self._listening.get(address)
            if there is None:
                self._loop.after(delay, lambda: opened(None))
                return
            self._number += 1
            near = End(party, address)
            far = End(there, PeerAddress(source, _FIRST_PORT + self._number % _PORTS))
            near.other, far.other = far, near
            there.accepted(far)
            self._loop.after(delay, lambda: opened(near))

        self._loop.after(delay, arrive)

    def _delay(self) -> int | None:
        """Return the delay of a segment including retransmissions; ``None``: it never arrives."""
        settings, rng = self.settings, self._rng
        delay = settings.latency + int(rng.random() * (settings.jitter + 1))
        resend = RESEND_MS
        self.segments += 1
        sendings = 1
        while settings.loss and rng.random() < settings.loss:
            self.lost += 1
            sendings += 1
            if sendings > MAX_SENDINGS:
                return None
            delay += resend
            resend *= 2
        return delay

    def send(self, end: End, data: bytes) -> None:
        """Write bytes at one end."""
        if not end.is_open:
            return
        if end.in_flight > WRITE_LIMIT:
            self.reset(end)
            return
        self.bytes += len(data)
        if len(data) > 1 and self._rng.random() < SPLIT_SHARE:
            place = self._rng.randrange(1, len(data))
            self._send(end, data[:place])
            data = data[place:]
        self._send(end, data)

    def _send(self, end: End, data: bytes) -> None:
        loop = self._loop
        delay = self._delay()
        if delay is None:
            loop.after(GIVE_UP_MS, lambda: self.reset(end))
            return
        end.in_flight += len(data)
        self.most_in_flight = max(self.most_in_flight, end.in_flight)
        end.arrives = max(end.arrives, loop.now + delay)
        end.queue.append((data, loop.now))
        loop.at(end.arrives, lambda: self._arrive(end))

    def _arrive(self, end: End) -> None:
        """Deliver the first segment in flight, unless there is a partition."""
        there, loop = end.other, self._loop
        if not there.is_open:
            return
        data, sent = end.queue[0]
        healed = self._healed_at(there.address.ip, end.address.ip) if self._cuts else 0
        if healed - sent > GIVE_UP_MS:
            loop.at(sent + GIVE_UP_MS, lambda: self.reset(end))
        elif healed:
            end.arrives = max(end.arrives, healed + RESEND_MS)
            loop.at(healed + RESEND_MS, lambda: self._arrive(end))
        else:
            end.queue.popleft()
            end.in_flight -= len(data)
            there.owner.received(there, data)

    def close(self, end: End) -> None:
        """Close a connection gracefully: the other side notices after all sent bytes."""
        if end.is_open:
            end.is_open = False
            delay = self.settings.latency
            self._loop.at(max(end.arrives, self._loop.now + delay), lambda: self._end(end.other))

    def reset(self, end: End) -> None:
        """Break a connection: both sides notice if they still had it open."""
        if end.is_open or end.other.is_open:
            self.broken += 1
        self._end(end)
        self._end(end.other)

    def lose(self, end: End) -> None:
        """Close a connection whose owner has died, as its operating system does."""
        end.is_open = False
        self._loop.after(self.settings.latency, lambda: self._end(end.other))

    @staticmethod
    def _end(end: End) -> None:
        if end.is_open:
            end.is_open = False
            end.owner.closed(end)
