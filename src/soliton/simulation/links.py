"""The network between the hosts: connections that behave as TCP's do on a bad line.

Bytes of one direction of a connection arrive in their order; different connections overtake each
other. A lost segment costs the time until it is sent again, which doubles with each further loss,
and all that follows waits for it; a segment lost too often breaks the connection. A partition loses
everything: what was sent waits until it ends, and connections that wait too long break.

What lives here: delays, losses, partitions, and the two ends of a connection. What does not: what
the bytes mean (``soliton.p2p``), when partitions come (``faults``).
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
"""How long TCP waits before it sends a segment for the second time."""
MAX_SENDINGS: Final = 8
"""A segment that is lost so often breaks its connection, after some 25 s."""
GIVE_UP_MS: Final = 30_000
"""A connection that gets nothing through for so long is broken."""
SPLIT_SHARE: Final = 0.05
"""Of what is written, how much arrives in two pieces."""
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
        """Where it can be dialled."""

    def accepted(self, end: End) -> None:
        """Somebody has dialled it."""

    def received(self, end: End, data: bytes) -> None:
        """Bytes have come."""

    def closed(self, end: End) -> None:
        """A connection has ended at the other side, or is broken."""


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
        """When the last of what was sent arrives, as far as is known."""


class Links:
    """All connections of a network."""

    def __init__(self, loop: Loop, rng: random.Random, settings: LinkSettings) -> None:
        self._loop = loop
        self._rng = rng
        self.settings = settings
        self._listening: dict[PeerAddress, Party] = {}
        self._cuts: dict[int, tuple[frozenset[IpAddress], int]] = {}
        self._number = 0
        self.segments = 0
        self.lost = 0
        self.bytes = 0
        self.broken = 0
        self.most_in_flight = 0

    # --- partitions -------------------------------------------------------------------------------

    def cut(self, group: frozenset[IpAddress], until: int) -> None:
        """Separate some hosts from all others until a time."""
        self._number += 1
        number = self._number
        self._cuts[number] = (group, until)
        self._loop.at(until, lambda: self._mend(number))

    def _mend(self, number: int) -> None:
        del self._cuts[number]

    def _healed_at(self, one: IpAddress, other: IpAddress) -> int:
        """When two hosts reach each other again; 0 when they do now."""
        ends = [
            until for group, until in self._cuts.values() if (one in group) is not (other in group)
        ]
        return max(ends, default=0)

    # --- connections ------------------------------------------------------------------------------

    def listen(self, party: Party) -> None:
        """Let a host be dialled."""
        self._listening[party.address] = party

    def stop_listening(self, party: Party) -> None:
        """A host listens no more."""
        self._listening.pop(party.address, None)

    def dial(
        self,
        party: Party,
        address: PeerAddress,
        patience: int,
        opened: Callable[[End | None], None],
        source: IpAddress | None = None,
    ) -> None:
        """Connect a host to an address; ``opened`` gets its end, or ``None`` when nobody answers
        within ``patience`` ms. ``source`` is the address that it seems to come from.
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
        """How long a segment takes, lost ones and all; ``None``: it never arrives."""
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
        """The first of what is under way arrives, unless the line is cut."""
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
        """End a connection in order: the other side hears of it after all that was sent."""
        if end.is_open:
            end.is_open = False
            delay = self.settings.latency
            self._loop.at(max(end.arrives, self._loop.now + delay), lambda: self._end(end.other))

    def reset(self, end: End) -> None:
        """A connection is broken: both sides notice, where they still had it."""
        if end.is_open or end.other.is_open:
            self.broken += 1
        self._end(end)
        self._end(end.other)

    def lose(self, end: End) -> None:
        """The owner has died: its system tells the other side."""
        end.is_open = False
        self._loop.after(self.settings.latency, lambda: self._end(end.other))

    @staticmethod
    def _end(end: End) -> None:
        if end.is_open:
            end.is_open = False
            end.owner.closed(end)
