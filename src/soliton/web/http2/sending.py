"""What a server sends on one connection: within the client's windows, all streams in turns.

Data waits in its stream until the windows of the stream and of the connection take it, and until
the system has taken what was sent before. Everything else is sent at once; there is little of it.

What lives here: windows, and the bytes that go out. What does not: which streams there are
(``machine``), and when bytes are written (``connection``).

Source: RFC 9113, sections 5.2 and 6.9.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

from soliton.web.http2.frames import (
    DATA,
    END_HEADERS,
    END_STREAM,
    FRAME_BYTES,
    HEAD,
    HEADERS,
    MAX_WINDOW,
    USUAL_WINDOW,
    frame,
)
from soliton.web.http2.hpack import NO_TABLE
from soliton.web.http2.limits import BLOCK_WORTH, OUTPUT_BYTES
from soliton.web.http2.streams import Stream

Watch = Callable[[Stream], None]


class Outgoing:
    """The bytes of one connection. ``wake`` is called when there are some again, ``sent`` when all
    that waited in a stream has gone, ``ended`` when its answer has.
    """

    __slots__ = (
        "_ended",
        "_has_no_table",
        "_line",
        "_opening",
        "_parts",
        "_sent",
        "_wake",
        "has_sent",
        "initial_window",
        "is_paused",
        "size",
        "total",
        "window",
    )

    def __init__(self, wake: Callable[[], None], sent: Watch, ended: Watch) -> None:
        self._wake, self._sent, self._ended = wake, sent, ended
        self._parts: list[bytes | memoryview] = []
        self.size = 0
        """Bytes that are to be written."""
        self.total = 0
        """Bytes of data that were ever sent; a header block counts ``BLOCK_WORTH``."""
        self.window = USUAL_WINDOW
        """How many bytes of data the client still takes on the connection."""
        self.initial_window = USUAL_WINDOW
        """The same on a new stream."""
        self.is_paused = False
        """Whether the system takes no more."""
        self.has_sent = False
        """Whether any answer was sent since somebody looked."""
        self._line: deque[Stream] = deque()
        self._opening = b""
        """What the next header block begins with."""
        self._has_no_table = False

    def put(self, data: bytes | memoryview) -> None:
        """Send these bytes, whatever windows there are."""
        if not self._parts:
            self._wake()
        self._parts.append(data)
        self.size += len(data)

    def take(self) -> bytes:
        """The bytes to be written."""
        parts = self._parts
        data = bytes(parts[0]) if len(parts) == 1 else b"".join(parts)
        parts.clear()
        self.size = 0
        return data

    @property
    def waits(self) -> bool:
        """Whether data waits for nothing but its turn."""
        return bool(self._line) and self.window > 0

    def is_full(self) -> bool:
        """Whether no data is sent now."""
        return self.is_paused or self.size >= OUTPUT_BYTES

    # --- answers ----------------------------------------------------------------------------------

    def answer(self, stream: Stream, head: bytes, data: bytes, trailers: bytes) -> bool:
        """A whole answer: header blocks around some data. Whether all of it has gone."""
        count = len(data)
        if (
            count > FRAME_BYTES
            or count > stream.window
            or count > self.window
            or self.is_full()
            or self._opening
        ):
            self.begin(stream, head)
            self.send(stream, data)
            return self.finish(stream, trailers)
        self.window -= count
        self.total += count + 2 * BLOCK_WORTH
        self.has_sent = True
        number, pack = stream.number, HEAD.pack
        length, behind = len(head), len(trailers)
        self.put(
            b"".join(
                (
                    pack(length >> 8, length & 0xFF, HEADERS, END_HEADERS, number),
                    head,
                    pack(count >> 8, count & 0xFF, DATA, 0, number),
                    data,
                    pack(behind >> 8, behind & 0xFF, HEADERS, END_HEADERS | END_STREAM, number),
                    trailers,
                )
            )
        )
        self._ended(stream)
        return True

    def begin(self, stream: Stream, block: bytes) -> None:
        """The headers of an answer."""
        stream.has_begun = self.has_sent = True
        self.total += BLOCK_WORTH
        self.put(frame(HEADERS, END_HEADERS, stream.number, self._opened(block)))

    def send(self, stream: Stream, data: bytes) -> bool:
        """Data of an answer: whether all of it has gone."""
        count = len(data)
        if (
            not stream.size
            and count <= FRAME_BYTES
            and count <= stream.window
            and count <= self.window
            and not self.is_full()
        ):
            stream.window -= count
            self.window -= count
            self.total += count
            self.has_sent = True
            head = HEAD.pack(count >> 8, count & 0xFF, DATA, 0, stream.number)
            self.put(head + data)
            return True
        if stream.waiting is None:
            stream.waiting = deque()
        stream.waiting.append(memoryview(data))
        stream.size += count
        self.join(stream)
        self.pump()
        return not stream.size

    def finish(self, stream: Stream, block: bytes) -> bool:
        """The end of an answer, behind all of its data: whether it has gone."""
        if stream.size:
            stream.trailers = block
            return False
        stream.has_begun = self.has_sent = True
        self.total += BLOCK_WORTH
        flags = END_HEADERS | END_STREAM
        self.put(frame(HEADERS, flags, stream.number, self._opened(block)))
        self._ended(stream)
        return True

    def shrink_table(self) -> None:
        """The client's table becomes smaller: it wants to hear that this end knows. Nothing of ours
        is ever in it, so it may be empty from then on.
        """
        if not self._has_no_table:
            self._has_no_table = True
            self._opening = NO_TABLE

    def _opened(self, block: bytes) -> bytes:
        opening, self._opening = self._opening, b""
        return opening + block

    def drop(self, stream: Stream) -> None:
        """Send nothing of what waits in a stream."""
        stream.waiting, stream.size = None, 0

    def join(self, stream: Stream) -> None:
        """Let a stream have its turns as long as it may send."""
        if stream.size and stream.window > 0 and not stream.in_line and not stream.is_closed:
            stream.in_line = True
            self._line.append(stream)

    def pump(self) -> None:
        """Send what may be sent."""
        line = self._line
        while line and self.window > 0 and not self.is_full():
            stream = line.popleft()
            stream.in_line = False
            if not stream.is_closed and stream.window > 0:
                self._send_some(stream)

    def _send_some(self, stream: Stream) -> None:
        """A frame of a stream that may send one."""
        waiting = stream.waiting
        assert waiting is not None, "it is in the line"
        part = waiting[0]
        count = min(len(part), FRAME_BYTES, stream.window, self.window)
        stream.window -= count
        self.window -= count
        self.total += count
        stream.size -= count
        self.has_sent = True
        self.put(HEAD.pack(count >> 8, count & 0xFF, DATA, 0, stream.number))
        self.put(part[:count])
        if count == len(part):
            waiting.popleft()
        else:
            waiting[0] = part[count:]
        if stream.size:
            self.join(stream)
            return
        if stream.trailers is not None:
            self.finish(stream, stream.trailers)
        self._sent(stream)

    # --- what the client says ---------------------------------------------------------------------

    def widen(self, stream: Stream, count: int) -> bool:
        """So many bytes more, or less, of a stream: whether there may be so many."""
        if stream.window + count > MAX_WINDOW:
            return False
        stream.window += count
        self.join(stream)
        self.pump()
        return True

    def widen_all(self, count: int) -> bool:
        """The same of the connection."""
        if self.window + count > MAX_WINDOW:
            return False
        self.window += count
        self.pump()
        return True
