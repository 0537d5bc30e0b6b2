"""A running call, from the head of its request to its status.

A call is answered while its request is read if that is possible; a call that has to wait for the
node, for events, or for its client continues in a task. A task writes a message once the client's
windows and the system have accepted the previous one.

What lives here: the data that one call receives and sends. What does not: its function, counting it
(``clients``), and scheduling (``peers``).
"""

from __future__ import annotations

import asyncio
import logging
from typing import Final

from google.protobuf.message import Message

from soliton.errors import SolitonError
from soliton.grpc_api.clients import CallState, Clients
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
from soliton.storage.errors import NotKept, StorageProblem
from soliton.web.http2.frames import CANCEL, ENHANCE_YOUR_CALM
from soliton.web.http2.machine import Machine
from soliton.web.http2.streams import Stream

MAX_QUESTION_BYTES: Final = 64 * 1024
"""Limit on each message of a stream of requests."""
LATE: Final = "Deadline Exceeded"
_NOT_ONE: Final = "the request is not one message"
_log = logging.getLogger(__name__)


class Gone(Exception):
    """The call has ended: there is no client to respond to."""


class Call(CallState):
    """A call on a stream of HTTP/2."""

    __slots__ = ("_data", "_last", "_machine", "_timer", "_waiter", "client", "route", "stream")

    def __init__(
        self, clients: Clients, client: str, machine: Machine, stream: Stream, route: Route
    ) -> None:
        """``client`` is the key of its client for limits."""
        super().__init__(clients)
        self.client = client
        self._machine = machine
        self.stream = stream
        self.route = route
        self._data: bytearray | None = None
        self._last = 0
        self._waiter: asyncio.Future[None] | None = None
        self._timer: asyncio.TimerHandle | None = None

    # --- the request ------------------------------------------------------------------------------

    def add(self, data: bytes) -> None:
        """Buffer a part of a request."""
        if self._data is None:
            self._data = bytearray()
        self._data += data
        self.clients.add_received(len(data), self)

    def check(self) -> None:
        """Check that the buffered part may become one message; raises ``Refused``."""
        data = self._data
        length = None if data is None else length_of(data)
        if data is not None and length is not None and len(data) > PREFIX_BYTES + length:
            raise Refused(Code.UNIMPLEMENTED, _NOT_ONE)

    def last_message(self, data: bytes) -> bytes:
        """Return the only message of a request, given its last part; raises ``Refused``."""
        if self._data is not None:
            data = bytes(self._data) + data
            self._data = None
        length = length_of(data)
        if length is None or len(data) != PREFIX_BYTES + length:
            raise Refused(Code.UNIMPLEMENTED, _NOT_ONE)
        return unpacked(data[0], data[PREFIX_BYTES:], is_gzip=self.route.is_gzip)

    def next_message(self) -> bytes | None:
        """Return the next message of several, ``None`` if it is incomplete; raises ``Refused``."""
        data = self._data
        if data is None:
            return None
        length = length_of(data, MAX_QUESTION_BYTES)
        if length is None or len(data) < PREFIX_BYTES + length:
            if data and self.stream.client_is_done:
                raise Refused(Code.UNIMPLEMENTED, "the request ends in the middle of a message")
            return None
        flag, found = data[0], bytes(data[PREFIX_BYTES : PREFIX_BYTES + length])
        del data[: PREFIX_BYTES + length]
        self.clients.add_received(-min(self.received_bytes, PREFIX_BYTES + length), self)
        return unpacked(flag, found, is_gzip=self.route.is_gzip)

    # --- the answer -------------------------------------------------------------------------------

    def answer(self, found: Message | bytes) -> None:
        """Send the only message of a response, and its status."""
        data = message(found if isinstance(found, bytes) else found.SerializeToString())
        stream = self.stream
        if not stream.is_closed and not self._machine.out.answer(stream, HEAD, data, OK):
            self._note_waiting(len(data))

    def send(self, found: Message | bytes) -> bool:
        """Send a message of a response; return whether it was sent completely."""
        data = message(found if isinstance(found, bytes) else found.SerializeToString())
        stream, out = self.stream, self._machine.out
        if not stream.has_begun:
            out.begin(stream, HEAD)
        if out.send(stream, data):
            self.add_sent(len(data))
            return True
        self._note_waiting(len(data))
        return False

    def _note_waiting(self, count: int) -> None:
        self._last = count
        self.wait_for_client(count)

    async def write(self, found: Message | bytes) -> None:
        """Send a message and wait until the client has taken it; raises ``Gone``."""
        if self.stream.is_closed:
            raise Gone
        has_gone = self.send(found)
        del found
        if not has_gone:
            await self.drained()

    async def drained(self) -> None:
        """Wait until everything was sent; raises ``Gone``."""
        if self.stream.size:
            self._waiter = asyncio.get_running_loop().create_future()
            await self._waiter
        if self.stream.is_closed:
            raise Gone

    def sent(self) -> bool:
        """Note that everything in the stream was sent; return whether the call waited for that and
        continues. (A message may be sent entirely while ``send`` runs: then nothing has waited.)
        """
        waited = bool(self.size) and not self.stream.is_closed
        if waited:
            self.resume()
            self.add_sent(self._last)
        self._release()
        return waited

    def _release(self) -> None:
        waiter, self._waiter = self._waiter, None
        if waiter is not None and not waiter.done():
            waiter.set_result(None)

    def finish(self) -> None:
        """End the call with success."""
        stream, out = self.stream, self._machine.out
        if not stream.is_closed:
            if not stream.has_begun:
                out.begin(stream, HEAD)
            out.finish(stream, OK)

    def end(self, code: Code, text: str = "", trailers: Trailers = ()) -> None:
        """End the call with a status now. If a message is partly sent, no status can follow: the
        stream is reset.
        """
        stream, out = self.stream, self._machine.out
        if stream.is_closed:
            return
        if stream.size and stream.size != self._last:
            calm = code is Code.RESOURCE_EXHAUSTED
            self._machine.lives.reset(stream, ENHANCE_YOUR_CALM if calm else CANCEL)
            return
        out.drop(stream)
        out.finish(stream, status(code, text, trailers, is_all=not stream.has_begun))

    def fail(self, error: BaseException) -> None:
        """End the call with the status for an exception."""
        if isinstance(error, Refused):
            self.end(error.code, error.text, error.trailers)
        elif isinstance(error, NotKept):
            self.end(Code.FAILED_PRECONDITION, str(error))
        elif isinstance(error, StorageProblem):
            self.end(Code.UNAVAILABLE, str(error))
        elif isinstance(error, SolitonError):
            self.end(Code.INTERNAL, str(error))
        elif not isinstance(error, Gone):
            _log.error("a call failed", exc_info=error)
            self.end(Code.INTERNAL)

    # --- the end ----------------------------------------------------------------------------------

    def abort(self, text: str) -> None:
        """End the call and release its resources."""
        self.end(Code.RESOURCE_EXHAUSTED, text)

    def begin(self, task: asyncio.Task[None]) -> None:
        """Let a task answer the call, within the timeout of its client."""
        self.task = task
        self.limit_time()

    def limit_time(self) -> None:
        """End the call at its client's deadline, if it has one."""
        if self.route.seconds is not None:
            loop = asyncio.get_running_loop()
            self._timer = loop.call_later(
                self.route.seconds, self.end, Code.DEADLINE_EXCEEDED, LATE
            )

    def close(self) -> None:
        """Note that the stream has ended, and end the task."""
        self.clients.remove(self)
        if self._timer is not None:
            self._timer.cancel()
        self._release()
        task, self.task = self.task, None
        if task is not None:
            task.cancel()


def method_of(call: Call) -> Method:
    """Return the method of a call that was not refused."""
    found = call.route.method
    assert found is not None, "a call without a method is refused"
    return found
