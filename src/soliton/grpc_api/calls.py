"""A call under way: from the head of its request to its status.

Whatever can be answered at once is, while its request is read; what has to wait for the node, for
what happens, or for its client goes on in a task. A task writes a message when the client's windows
and the system have taken what came before.

What lives here: what one call has received, and what it sends. What does not: its function, whom it
is counted for (``clients``), and when it has its turn (``peers``).
"""

from __future__ import annotations

import asyncio
import logging
from typing import Final

from google.protobuf.message import Message

from soliton.errors import SolitonError
from soliton.grpc_api.clients import Clients, Held
from soliton.grpc_api.errors import Code, Refused
from soliton.grpc_api.framing import (
    HEAD,
    OK,
    PREFIX_BYTES,
    Trailers,
    length_of,
    message,
    status,
    unpacked,
)
from soliton.grpc_api.routes import Method, Route
from soliton.storage.errors import StorageProblem
from soliton.web.http2.frames import CANCEL, ENHANCE_YOUR_CALM
from soliton.web.http2.machine import Machine
from soliton.web.http2.streams import Stream

MAX_QUESTION_BYTES: Final = 64 * 1024
"""Of each message of a client that sends several."""
LATE: Final = "Deadline Exceeded"
_NOT_ONE: Final = "the request is not one message"
_log = logging.getLogger(__name__)


class Gone(Exception):
    """Nobody waits for the answer any more."""


class Call(Held):
    """A call of one stream."""

    __slots__ = ("_data", "_last", "_machine", "_timer", "_waiter", "route", "stream")

    def __init__(self, clients: Clients, machine: Machine, stream: Stream, route: Route) -> None:
        super().__init__(clients)
        self._machine = machine
        self.stream = stream
        self.route = route
        self._data: bytearray | None = None
        self._last = 0
        self._waiter: asyncio.Future[None] | None = None
        self._timer: asyncio.TimerHandle | None = None

    # --- the request ------------------------------------------------------------------------------

    def add(self, data: bytes) -> None:
        """A part of a request; raises ``Refused`` for one that is too long."""
        if self._data is None:
            self._data = bytearray()
        self._data += data
        self.clients.comes(len(data), self)

    def check(self) -> None:
        """Whether what is there of a request may become one message; raises ``Refused``."""
        data = self._data
        length = None if data is None else length_of(data)
        if data is not None and length is not None and len(data) > PREFIX_BYTES + length:
            raise Refused(Code.UNIMPLEMENTED, _NOT_ONE)

    def only(self, data: bytes) -> bytes:
        """The only message of a request of which this is the last part; raises ``Refused``."""
        if self._data is not None:
            data = bytes(self._data) + data
            self._data = None
        length = length_of(data)
        if length is None or len(data) != PREFIX_BYTES + length:
            raise Refused(Code.UNIMPLEMENTED, _NOT_ONE)
        return unpacked(data[0], data[PREFIX_BYTES:], is_gzip=self.route.is_gzip)

    def next(self) -> bytes | None:
        """The next message of several, ``None`` until it is there; raises ``Refused``."""
        data = self._data
        if data is None:
            return None
        length = length_of(data, MAX_QUESTION_BYTES)
        if length is None or len(data) < PREFIX_BYTES + length:
            if data and self.stream.client_is_done:
                raise Refused(Code.UNIMPLEMENTED, "the request ends inside of a message")
            return None
        flag, found = data[0], bytes(data[PREFIX_BYTES : PREFIX_BYTES + length])
        del data[: PREFIX_BYTES + length]
        self.clients.comes(-min(self.coming, PREFIX_BYTES + length), self)
        return unpacked(flag, found, is_gzip=self.route.is_gzip)

    # --- the answer -------------------------------------------------------------------------------

    def answer(self, found: Message | bytes) -> None:
        """The only message of an answer, and its end."""
        data = message(found if isinstance(found, bytes) else found.SerializeToString())
        stream = self.stream
        if not stream.is_closed and not self._machine.out.answer(stream, HEAD, data, OK):
            self._note_waiting(len(data))

    def send(self, found: Message | bytes) -> bool:
        """A message of an answer: whether it has gone."""
        data = message(found if isinstance(found, bytes) else found.SerializeToString())
        stream, out = self.stream, self._machine.out
        if not stream.has_begun:
            out.begin(stream, HEAD)
        if out.send(stream, data):
            self.passed(len(data))
            return True
        self._note_waiting(len(data))
        return False

    def _note_waiting(self, count: int) -> None:
        self._last = count
        self.waits(count)

    async def write(self, found: Message | bytes) -> None:
        """Send a message, as soon as the client has taken what came before; raises ``Gone``."""
        if self.stream.is_closed:
            raise Gone
        if not self.send(found):
            await self.drained()

    async def drained(self) -> None:
        """All that was sent has gone; raises ``Gone``."""
        if self.stream.size:
            self._waiter = asyncio.get_running_loop().create_future()
            await self._waiter
        if self.stream.is_closed:
            raise Gone

    def sent(self) -> bool:
        """What waited in the stream has gone; returns whether the call waited for it and goes on.
        (All of a message may go while ``send`` is still at work: then nothing has waited.)
        """
        waited = bool(self.size) and not self.stream.is_closed
        if waited:
            self.goes_on()
            self.passed(self._last)
        self._release()
        return waited

    def _release(self) -> None:
        waiter, self._waiter = self._waiter, None
        if waiter is not None and not waiter.done():
            waiter.set_result(None)

    def finish(self) -> None:
        """The end of a stream that went well."""
        stream, out = self.stream, self._machine.out
        if not stream.is_closed:
            if not stream.has_begun:
                out.begin(stream, HEAD)
            out.finish(stream, OK)

    def end(self, code: Code, words: str = "", trailers: Trailers = ()) -> None:
        """End the call with a status, now. In the middle of a message there is none to be told:
        then the stream is reset.
        """
        stream, out = self.stream, self._machine.out
        if stream.is_closed:
            return
        if stream.size and stream.size != self._last:
            calm = code is Code.RESOURCE_EXHAUSTED
            self._machine.lives.reset(stream, ENHANCE_YOUR_CALM if calm else CANCEL)
            return
        out.drop(stream)
        out.finish(stream, status(code, words, trailers, is_all=not stream.has_begun))

    def fail(self, error: BaseException) -> None:
        """End the call with what was raised."""
        if isinstance(error, Refused):
            self.end(error.code, error.words, error.trailers)
        elif isinstance(error, StorageProblem):
            self.end(Code.UNAVAILABLE, str(error))
        elif isinstance(error, SolitonError):
            self.end(Code.INTERNAL, str(error))
        elif not isinstance(error, Gone):
            _log.error("a call failed", exc_info=error)
            self.end(Code.INTERNAL)

    # --- the end ----------------------------------------------------------------------------------

    def give_up(self, words: str) -> None:
        """End it, and let go of all that it holds."""
        self.end(Code.RESOURCE_EXHAUSTED, words)

    def begin(self, task: asyncio.Task[None]) -> None:
        """A task answers the call from now on, for as long as its client waits."""
        self.task = task
        self.limit_time()

    def limit_time(self) -> None:
        """End the call at its client's deadline, if it has one."""
        if self.route.seconds is not None:
            loop = asyncio.get_running_loop()
            self._timer = loop.call_later(
                self.route.seconds, self.end, Code.DEADLINE_EXCEEDED, LATE
            )

    def over(self) -> None:
        """The stream has ended: so does what answers it."""
        self.clients.over(self)
        if self._timer is not None:
            self._timer.cancel()
        self._release()
        task, self.task = self.task, None
        if task is not None:
            task.cancel()


def method_of(call: Call) -> Method:
    """What is called, of a call that is not refused."""
    found = call.route.method
    assert found is not None, "it would be refused"
    return found
