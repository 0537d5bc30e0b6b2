"""The output of one connection: flow control, and round-robin between streams.

Data is queued in its stream until the windows of the stream and of the connection allow it, and
the transport has written earlier data. Everything else is sent at once; there is little of it.

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
    """The output of one connection. ``wake`` is called when there are new bytes, ``sent`` when all
    pending data of a stream is sent, ``ended`` when its answer is complete.
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
        """The number of bytes to write."""
        self.total = 0
        """The total of sent data bytes; a header block counts ``BLOCK_WORTH``."""
        self.window = USUAL_WINDOW
        """The send window of the connection."""
        self.initial_window = USUAL_WINDOW
        """The send window of a new stream."""
        self.is_paused = False
        """Whether the transport's write buffer is full."""
        self.has_sent = False
        """Whether any answer was sent since the last ping."""
        self._line: deque[Stream] = deque()
        self._opening = b""
        """The prefix of the next header block."""
        self._has_no_table = False

    def forget(self) -> None:
        """Forget who is notified, after the end of the connection."""
        self._wake, self._sent, self._ended = _nothing, _nobody, _nobody

    def put(self, data: bytes | memoryview) -> None:
        """Send bytes without flow control."""
        if not self._parts:
            self._wake()
        self._parts.append(data)
        self.size += len(data)

    def take(self) -> bytes:
        """Return the bytes to write."""
        parts = self._parts
        data = bytes(parts[0]) if len(parts) == 1 else b"".join(parts)
        parts.clear()
        self.size = 0
        return data

    @property
    def waits(self) -> bool:
        """Whether data is queued that the windows allow."""
        return bool(self._line) and self.window > 0

    def is_full(self) -> bool:
        """Whether no more data can be sent now."""
        return self.is_paused or self.size >= OUTPUT_BYTES

    # --- answers ----------------------------------------------------------------------------------

    def answer(self, stream: Stream, head: bytes, data: bytes, trailers: bytes) -> bool:
        """Send a whole answer: headers, data, trailers. Return whether all of it is sent."""
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
        """Send the headers of an answer."""
        stream.has_begun = self.has_sent = True
        self.total += BLOCK_WORTH
        self.put(frame(HEADERS, END_HEADERS, stream.number, self._opened(block)))

    def send(self, stream: Stream, data: bytes) -> bool:
        """Send data of an answer; return whether all of it is sent."""
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
        """Send the trailers of an answer after all of its data; return whether they are sent."""
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
        """The client has reduced its header table, which must be acknowledged. Our blocks never use
        the table, so its size is set to 0.
        """
        if not self._has_no_table:
            self._has_no_table = True
            self._opening = NO_TABLE

    def _opened(self, block: bytes) -> bytes:
        opening, self._opening = self._opening, b""
        return opening + block

    def drop(self, stream: Stream) -> None:
        """Drop the pending data of a stream."""
        stream.waiting, stream.size = None, 0

    def join(self, stream: Stream) -> None:
        """Queue a stream that has data and may send."""
        if stream.size and stream.window > 0 and not stream.in_line and not stream.is_closed:
            stream.in_line = True
            self._line.append(stream)

    def pump(self) -> None:
        """Send queued data, as far as windows and the transport allow."""
        line = self._line
        while line and self.window > 0 and not self.is_full():
            stream = line.popleft()
            stream.in_line = False
            if not stream.is_closed and stream.window > 0:
                self._send_some(stream)

    def _send_some(self, stream: Stream) -> None:
        """Send one frame of a stream."""
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
        """Change the window of a stream; return false if it would be too large."""
        if stream.window + count > MAX_WINDOW:
            return False
        stream.window += count
        self.join(stream)
        self.pump()
        return True

    def widen_all(self, count: int) -> bool:
        """Enlarge the window of the connection; return false if it would be too large."""
        if self.window + count > MAX_WINDOW:
            return False
        self.window += count
        self.pump()
        return True


def _nothing() -> None:
    """Nobody writes any more."""


def _nobody(_stream: Stream) -> None:
    """Nobody follows the streams any more."""
