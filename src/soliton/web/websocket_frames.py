"""The frames of one WebSocket, sans-I/O, on the server's side.

What lives here: what differs from ``websockets``, which parses them. What does not: messages,
limits and time (``websocket``).

Source: RFC 6455, section 5.
"""

from __future__ import annotations

from websockets.frames import Frame, Opcode
from websockets.protocol import OPEN, SERVER, Protocol

_DATA = (Opcode.TEXT, Opcode.BINARY, Opcode.CONT)


class ServerFrames(Protocol):
    """The frames of a connection whose handshake is over."""

    def __init__(self, max_message_bytes: int) -> None:
        # Compression would cost more than it saves on messages this short.
        super().__init__(SERVER, state=OPEN, max_size=max_message_bytes)
        self._is_in_message = False

    def recv_frame(self, frame: Frame) -> None:
        """Process a frame. A client may close between the fragments of a message (section 5.4),
        which the library takes for a fault; the message is dropped.
        """
        if frame.opcode is Opcode.CLOSE and self._is_in_message:
            super().recv_frame(Frame(Opcode.CONT, b""))
            self.events.pop()
        super().recv_frame(frame)
        if frame.opcode in _DATA:
            self._is_in_message = not frame.fin
