"""The protocol machine of one connection to a peer: first both handshakes, then messages.

A ``Connection`` has no socket and no clock. Its owner passes received bytes in and sends the bytes
that it returns. The owner also keeps the timeouts, and checks connection limits and duplicates
between the peer's handshake and its own. The dialling side sends its handshake first.

What lives here: the order of events, and which messages the peer's version understands. What does
not: the bytes of messages (``frames``, ``messages``), and a node's reaction to them.

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


class HandshakeReceived(msgspec.Struct, frozen=True):
    """The peer's handshake; it belongs to our network. An accepting side now sends its own."""

    handshake: Handshake


class MessageReceived(msgspec.Struct, frozen=True):
    """A message, received in a frame of ``size`` bytes."""

    message: Message
    size: int


class Dropped(msgspec.Struct, frozen=True):
    """A message of an unwanted kind, discarded without decoding."""

    kind: Kind


class Broken(msgspec.Struct, frozen=True):
    """The peer violated the protocol; the connection is over."""

    fault: PeerFault


Event = HandshakeReceived | MessageReceived | Dropped | Broken


class _State(Enum):
    WAITS_FOR_HANDSHAKE = auto()
    TALKS = auto()
    OVER = auto()


class Connection:
    """A connection to one peer of a network."""

    __slots__ = (
        *("_chain_id", "_family", "_handshake_sent", "_head", "_own", "_reader", "_state"),
        "peer",
    )

    def __init__(
        self, own: Handshake, family: str, chain_id: int, unwanted: Collection[int] = ()
    ) -> None:
        """``own`` is our handshake; payloads of ``unwanted`` codes are discarded."""
        self._own = own
        self._family = family
        self._chain_id = chain_id
        self._state = _State.WAITS_FOR_HANDSHAKE
        self._head = bytearray()
        self._reader = frames.FrameReader(unwanted)
        self._handshake_sent = False
        self.peer: Handshake | None = None

    @property
    def buffered(self) -> int:
        """The number of received bytes that do not form a message yet."""
        return len(self._head) + self._reader.buffered

    @property
    def missing(self) -> int:
        """The number of bytes that the message still lacks that is being received."""
        return self._reader.missing

    @property
    def is_over(self) -> bool:
        """Whether the peer has violated the protocol, or ``close`` was called."""
        return self._state is _State.OVER

    def discard(self, codes: Collection[int]) -> None:
        """From the next frame on, discard messages of these codes and decode all others."""
        self._reader.unwanted = codes

    def introduce(self) -> bytes:
        """Return our handshake, which may be sent once. The dialling side sends it immediately, the
        accepting side after it has accepted the peer's.
        """
        if self._handshake_sent:
            raise CannotSend("a handshake is sent once")
        self._handshake_sent = True
        return handshake.encode(self._own)

    def receive(self, data: bytes) -> list[Event]:
        """Return the events in the peer's next bytes; none after a violation of the protocol."""
        if self._state is _State.OVER:
            return []
        events: list[Event] = []
        try:
            if self._state is _State.WAITS_FOR_HANDSHAKE:
                self._head += data
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
        decoded = handshake.decode(self._head)
        if decoded is None:
            return
        peer, length = decoded
        handshake.check(peer, self._family, self._chain_id)
        self.peer = peer
        self._state = _State.TALKS
        self._reader.feed(bytes(self._head[length:]))
        self._head.clear()
        events.append(HandshakeReceived(peer))

    def _read_messages(self, events: list[Event]) -> None:
        while (frame := self._reader.next()) is not None:
            if frame.payload is None:
                events.append(Dropped(frame.kind))
                continue
            try:
                message = frame.kind.record.decode(frame.payload)
            except PeerFault as fault:
                reason = f"{frame.kind.name}: {fault.reason}"
                raise PeerFault(reason, fault.verdict) from fault
            events.append(MessageReceived(message, frame.size))

    def can_send(self, record: type[Message]) -> bool:
        """Whether the peer's version understands messages of this kind."""
        return self.peer is not None and self.peer.version >= BY_RECORD[record].since

    def send(self, message: Message) -> bytes:
        """Return the frame of a message; raise ``CannotSend`` if the peer cannot read it."""
        self.check_send(type(message))
        return frames.encode(message)

    def check_send(self, record: type[Message]) -> None:
        """Raise ``CannotSend`` unless a message of this kind may be sent to this peer."""
        if self._state is not _State.TALKS or not self._handshake_sent:
            raise CannotSend("there was no handshake, or the connection is over")
        if not self.can_send(record):
            assert self.peer is not None, "there was a handshake"
            kind = BY_RECORD[record]
            raise CannotSend(f"{kind.name} is not known to version {self.peer.version}")

    def close(self) -> None:
        """End the connection: discard all buffered input, refuse to read or send more."""
        self._state = _State.OVER
        self._head.clear()
        self._reader = frames.FrameReader()
