"""The streams of one connection: the open ones, and how others ended.

What lives here: ending streams. What does not: opening them, and their frames (``machine``).

Source: RFC 9113, section 5.1.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

from soliton.web.http2 import frames
from soliton.web.http2.floods import Fault, Floods
from soliton.web.http2.limits import CLOSED_KEPT, WHOLE_KEPT
from soliton.web.http2.sending import Outgoing
from soliton.web.http2.streams import Stream

_OURS, _CLIENTS = "ended by the server", "reset by the client"


class Lives:
    """All streams. ``closed`` is called with each open stream when it ends."""

    out: Outgoing

    def __init__(self, closed: Callable[[Stream], None], floods: Floods) -> None:
        self._tell = closed
        self._floods = floods
        self.open: dict[int, Stream] = {}
        self.idle_since = 0.0
        """When the last one ended, while none is open."""
        self._closed: dict[int, str] = {}
        """How streams ended on which frames may still be in flight."""
        self._whole: deque[int] = deque(maxlen=WHOLE_KEPT)
        """Streams whose requests were complete."""

    def reset(self, stream: Stream, code: int) -> None:
        """Reset a stream, and drop its pending data."""
        if not stream.is_closed:
            self.out.put(frames.reset(stream.number, code))
            self._close(stream, _OURS)

    def end_faulty(self, stream: Stream, code: int) -> None:
        """Reset a stream for a violation of the protocol; raises ``Fault`` above the limit."""
        self._floods.reset()
        self.reset(stream, code)

    def refuse(self, number: int, code: int) -> None:
        """Reset a stream that was not opened; raises ``Fault`` above the limit."""
        self._floods.reset()
        self.out.put(frames.reset(number, code))
        self._note(number, _OURS)

    def ignore(self, number: int) -> None:
        """Ignore a stream that was begun after GOAWAY."""
        self._note(number, _OURS)

    def leave(self, stream: Stream) -> None:
        """Close a stream that the client has reset."""
        self._close(stream, _CLIENTS)

    def finished(self, stream: Stream) -> None:
        """Close a stream whose answer is sent; the rest of the request is discarded."""
        if not stream.client_is_done:
            self.out.put(frames.reset(stream.number, frames.NO_ERROR))
            self._close(stream, _OURS)
        else:
            self._close(stream, None)

    def drop_all(self) -> None:
        """Close all streams after the client has disconnected."""
        for stream in list(self.open.values()):
            if not stream.is_closed:
                self._close(stream, _CLIENTS)

    def forget(self) -> None:
        """Forget who follows the streams, after the end of all."""
        self._tell = _nobody

    def late(self, number: int, *, is_new: bool) -> None:
        """Handle a frame on a closed stream; ``is_new`` if it would open one. Ignores frames that
        the client sent before it noticed the end; otherwise raises ``Fault``.
        """
        how = self._closed.get(number)
        if how is None:
            if is_new and number not in self._whole:
                raise Fault(frames.PROTOCOL_ERROR, b"streams come in their order")
            raise Fault(frames.STREAM_CLOSED, b"the stream has ended")
        if how == _CLIENTS:
            self.refuse(number, frames.STREAM_CLOSED)

    def _close(self, stream: Stream, how: str | None) -> None:
        stream.is_closed = True
        stream.waiting, stream.size = None, 0
        del self.open[stream.number]
        if how is None:
            self._whole.append(stream.number)
        else:
            self._note(stream.number, how)
        if not self.open:
            self.idle_since = self._floods.now
        self._tell(stream)

    def _note(self, number: int, how: str) -> None:
        closed = self._closed
        closed[number] = how
        if len(closed) > CLOSED_KEPT:
            del closed[next(iter(closed))]


def _nobody(_stream: Stream) -> None:
    """Nobody follows the streams any more."""
