"""The streams of one connection: which are open, and how others ended.

What lives here: the ends of streams. What does not: their beginnings, and what is said on them
(``machine``).

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
    """All streams. ``closed`` is called with each that was open, when it has ended."""

    out: Outgoing

    def __init__(self, closed: Callable[[Stream], None], floods: Floods) -> None:
        self._tell = closed
        self._floods = floods
        self.open: dict[int, Stream] = {}
        self.idle_since = 0.0
        """When the last one ended, while there is none."""
        self._closed: dict[int, str] = {}
        """How those ended of which more may still be under way."""
        self._whole: deque[int] = deque(maxlen=WHOLE_KEPT)
        """Those of which the client had said all."""

    def reset(self, stream: Stream, code: int) -> None:
        """End a stream, whatever waits in it."""
        if not stream.is_closed:
            self.out.put(frames.reset(stream.number, code))
            self._close(stream, _OURS)

    def end_faulty(self, stream: Stream, code: int) -> None:
        """The same, for a client that breaks the rules; raises ``Fault`` for one too many."""
        self._floods.reset()
        self.reset(stream, code)

    def refuse(self, number: int, code: int) -> None:
        """Let a stream never begin; raises ``Fault`` for one too many."""
        self._floods.reset()
        self.out.put(frames.reset(number, code))
        self._note(number, _OURS)

    def ignore(self, number: int) -> None:
        """The same, of a client that knows that it comes too late."""
        self._note(number, _OURS)

    def leave(self, stream: Stream) -> None:
        """The client wants no answer any more."""
        self._close(stream, _CLIENTS)

    def finished(self, stream: Stream) -> None:
        """An answer has gone; what the request still has does not matter."""
        if not stream.client_is_done:
            self.out.put(frames.reset(stream.number, frames.NO_ERROR))
            self._close(stream, _OURS)
        else:
            self._close(stream, None)

    def drop_all(self) -> None:
        """The client has gone."""
        for stream in list(self.open.values()):
            if not stream.is_closed:
                self._close(stream, _CLIENTS)

    def late(self, number: int, *, is_new: bool) -> None:
        """A frame on a stream that is not open any more, ``is_new`` where it would begin one. What
        the client has sent before it heard of the end does not matter; raises ``Fault`` otherwise.
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
