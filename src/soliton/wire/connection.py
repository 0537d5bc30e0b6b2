"""One conversation with a peer: first both handshakes, then messages.

A ``Connection`` has no socket and no clock. Its owner hands in what came and sends what it gets
back; it keeps the time-outs, and decides about limits of connections and duplicates between the
peer's handshake and its own answer. The dialling side speaks first.

What lives here: the order of things, and what the peer's version lets us say. What does not: bytes
of messages (``frames``, ``messages``), what they make a node do (the node says that).

Sources: wavesplatform/Waves
``node/src/main/scala/com/wavesplatform/network/{HandshakeHandler,DiscardingHandler}.scala``.
"""

from __future__ import annotations

from collections.abc import Collection
from enum import Enum, auto

import msgspec

from soliton.wire import frames, handshake
from soliton.wire.errors import CannotSend, PeerFault
from soliton.wire.handshake import Handshake
from soliton.wire.kinds import BY_RECORD, Kind
from soliton.wire.messages import Message


class Introduced(msgspec.Struct, frozen=True):
    """The peer has said who it is; it is of our network. An accepting side answers it now."""

    handshake: Handshake


class Said(msgspec.Struct, frozen=True):
    """The peer has said something, in a frame of ``size`` bytes."""

    message: Message
    size: int


class Dropped(msgspec.Struct, frozen=True):
    """The peer has said something that is not wanted now; nobody has read it."""

    kind: Kind


class Broken(msgspec.Struct, frozen=True):
    """The peer broke the protocol: the connection is over."""

    fault: PeerFault


Event = Introduced | Said | Dropped | Broken


class _State(Enum):
    WAITS_FOR_HANDSHAKE = auto()
    TALKS = auto()
    OVER = auto()


class Connection:
    """A conversation with one peer of a network."""

    __slots__ = ("_beginning", "_chain_id", "_family", "_own", "_reader", "_said", "_state", "peer")

    def __init__(
        self, own: Handshake, family: str, chain_id: int, unwanted: Collection[int] = ()
    ) -> None:
        """``own`` is what we say of ourselves; payloads of ``unwanted`` codes are not read."""
        self._own = own
        self._family = family
        self._chain_id = chain_id
        self._state = _State.WAITS_FOR_HANDSHAKE
        self._beginning = bytearray()
        self._reader = frames.FrameReader(unwanted)
        self._said = False
        self.peer: Handshake | None = None

    @property
    def buffered(self) -> int:
        """Bytes of the peer that are held and not yet a message."""
        return len(self._beginning) + self._reader.buffered

    @property
    def is_over(self) -> bool:
        """Whether the peer has broken the protocol, or ``close`` was called."""
        return self._state is _State.OVER

    def want_all_but(self, unwanted: Collection[int]) -> None:
        """From the next frame on leave messages of these codes unread, and read all others."""
        self._reader.unwanted = unwanted

    def introduce(self) -> bytes:
        """Our handshake: sent at once by who dialled, else after that of the peer is accepted.

        It may be sent once.
        """
        if self._said:
            raise CannotSend("a handshake is sent once")
        self._said = True
        return handshake.encode(self._own)

    def receive(self, data: bytes) -> list[Event]:
        """What the peer's next bytes say; nothing any more once it has broken the protocol."""
        if self._state is _State.OVER:
            return []
        events: list[Event] = []
        try:
            if self._state is _State.WAITS_FOR_HANDSHAKE:
                self._beginning += data
                self._read_handshake(events)
            else:
                self._reader.feed(data)
            if self._state is _State.TALKS:
                self._read_messages(events)
        except PeerFault as fault:
            self.close()
            events.append(Broken(fault))
        return events

    def _read_handshake(self, events: list[Event]) -> None:
        found = handshake.decode(self._beginning)
        if found is None:
            return
        peer, length = found
        handshake.check(peer, self._family, self._chain_id)
        self.peer = peer
        self._state = _State.TALKS
        self._reader.feed(bytes(self._beginning[length:]))
        self._beginning.clear()
        events.append(Introduced(peer))

    def _read_messages(self, events: list[Event]) -> None:
        while (frame := self._reader.next()) is not None:
            if frame.payload is None:
                events.append(Dropped(frame.kind))
                continue
            try:
                message = frame.kind.record.decode(frame.payload)
            except PeerFault as fault:
                named = f"{frame.kind.name}: {fault.reason}"
                raise PeerFault(named, fault.verdict) from fault
            events.append(Said(message, frame.size))

    def can_send(self, record: type[Message]) -> bool:
        """Whether the peer's version understands messages of this kind."""
        return self.peer is not None and self.peer.version >= BY_RECORD[record].since

    def send(self, message: Message) -> bytes:
        """The bytes of a message; raises ``CannotSend`` when this peer does not understand it."""
        self.check_send(type(message))
        return frames.encode(message)

    def check_send(self, record: type[Message]) -> None:
        """Raise ``CannotSend`` unless a frame of this kind may go to this peer."""
        if self._state is not _State.TALKS or not self._said:
            raise CannotSend("there was no handshake, or the connection is over")
        if not self.can_send(record):
            assert self.peer is not None, "there was a handshake"
            kind = BY_RECORD[record]
            raise CannotSend(f"{kind.name} is not known to version {self.peer.version}")

    def close(self) -> None:
        """Nothing more is read or said; what was held is let go."""
        self._state = _State.OVER
        self._beginning.clear()
        self._reader = frames.FrameReader()
