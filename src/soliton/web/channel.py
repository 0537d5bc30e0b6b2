"""Batched remote procedure calls between processes, over a unix socket.

Requests and responses are sent as lists in frames: the requests of one turn of an event loop are
sent together, in groups small enough that both sides work at the same time. Responses have the
numbers of their requests, since they come in any order.

Either end works through what has arrived in slices of time, and reads no further meanwhile.

What lives here: frames (sans-I/O), and both ends. What does not: the messages (``ChannelSpec``
names their types), and HTTP requests (``upstream``).
"""

from __future__ import annotations

import asyncio
import logging
import math
import time
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Coroutine, Iterator
from functools import cached_property
from types import GenericAlias
from typing import Any, Final, Generic, TypeVar, cast

import msgspec

from soliton.errors import EnvironmentProblem
from soliton.turns import SLICE_SECONDS

MAX_FRAME_BYTES: Final = 64 * 1024 * 1024
"""Far larger than a group of requests or responses."""
_LENGTH_BYTES: Final = 4

Q = TypeVar("Q")
A = TypeVar("A")
_encode: Final = msgspec.msgpack.Encoder().encode
_log = logging.getLogger(__name__)


class FrameError(EnvironmentProblem):
    """The received data is not a valid frame."""


class Frames:
    """Splits a stream into frames: four bytes of length, and the payload."""

    def __init__(self) -> None:
        self._data = b""

    def receive(self, data: bytes) -> Iterator[bytes]:
        """Yield the complete frames; raises ``FrameError``."""
        data, place = self._data + data, 0
        while len(data) - place >= _LENGTH_BYTES:
            start = place + _LENGTH_BYTES
            length = int.from_bytes(data[place:start], "big")
            if length > MAX_FRAME_BYTES:
                raise FrameError(f"a frame of {length} bytes")
            if len(data) < start + length:
                break
            place = start + length
            yield data[start:place]
        self._data = data[place:]


def frame_bytes(data: bytes) -> bytes:
    """Encode a frame."""
    return len(data).to_bytes(_LENGTH_BYTES, "big") + data


class ChannelSpec(msgspec.Struct, Generic[Q, A], frozen=True, dict=True):
    """The protocol of a channel: questions and answers of these types (of ``msgspec``), at most
    ``max_waiting`` outstanding.

    A group is sent as soon as it has ``group`` questions, or ``group_bytes`` by ``weigh``. Unless
    groups are ``pipelined``, the next one is sent after all answers to the previous one. When the
    connection is lost, ``unknown`` is the answer to outstanding questions.
    """

    question: object
    answer: object
    unknown: A
    max_waiting: int
    group: int
    group_bytes: int = MAX_FRAME_BYTES
    weigh: Callable[[Q], int] = lambda _: 0
    pipelined: bool = True

    @cached_property
    def decode_questions(self) -> Callable[[bytes], list[tuple[int, Q]]]:
        """Decode a frame into numbers and questions."""
        return _decoder(self.question)

    @cached_property
    def decode_answers(self) -> Callable[[bytes], list[tuple[int, A]]]:
        """Decode a frame into numbers and answers."""
        return _decoder(self.answer)


def _decoder(kind: object) -> Callable[[bytes], Any]:
    return msgspec.msgpack.Decoder(GenericAlias(list, (GenericAlias(tuple, (int, kind)),))).decode


class _End(asyncio.Protocol, ABC, Generic[Q, A]):
    """One end, which receives frames of numbers and items."""

    def __init__(self, decode: Callable[[bytes], list[tuple[int, Q]]]) -> None:
        self._decode = decode
        self._frames = Frames()
        self._arrived: deque[bytes] = deque()
        """Frames that are not decoded yet."""
        self._items: deque[tuple[int, Q]] = deque()
        """The items of the frame that is being worked through."""
        self._broken: FrameError | None = None
        """Why nothing behind these frames can be read."""
        self._is_working = False
        self._transport: asyncio.Transport | None = None
        self._gathered: list[tuple[int, A]] = []

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)

    def data_received(self, data: bytes) -> None:
        try:
            self._arrived.extend(self._frames.receive(data))
        except FrameError as error:
            self._broken = error
        if not self._is_working:
            self._work()

    def _work(self) -> None:
        """Handle items until the slice is over; the rest follows in the next turn of the loop."""
        was_working, transport = self._is_working, self._transport
        self._is_working = self._handle(time.perf_counter() + SLICE_SECONDS)
        if transport is None or transport.is_closing():
            return
        if self._is_working:
            asyncio.get_running_loop().call_soon(self._work)
            if not was_working:
                transport.pause_reading()
        elif was_working:
            transport.resume_reading()
        self._after_work()

    def _handle(self, ends_at: float) -> bool:
        """Handle items until a time of ``perf_counter``; return whether there are more."""
        try:
            while self._items or self._arrived:
                if not self._items:
                    self._items.extend(self._decode(self._arrived.popleft()))
                    continue
                self._take(*self._items.popleft())
                if time.perf_counter() > ends_at:
                    return bool(self._items or self._arrived or self._broken)
            if self._broken is not None:
                raise self._broken
        except (FrameError, msgspec.MsgspecError) as error:
            _log.error("a process at the other end of a channel is not understood: %s", error)
            self._drop_rest()
            self.abort()
        return False

    def _drop_rest(self) -> None:
        self._items.clear()
        self._arrived.clear()
        self._broken = None

    def _after_work(self) -> None:
        """Continue after a slice of work."""

    @abstractmethod
    def _take(self, number: int, item: Q) -> None:
        """Handle an item."""

    def _send(self, items: list[tuple[int, A]]) -> None:
        if items and self._transport is not None and not self._transport.is_closing():
            self._transport.write(frame_bytes(_encode(items)))

    def abort(self) -> None:
        """Abort the connection."""
        if self._transport is not None:
            self._transport.abort()


class Channel(_End[A, Q], Generic[Q, A]):
    """The client end. Use from one event loop."""

    def __init__(self, spec: ChannelSpec[Q, A]) -> None:
        super().__init__(spec.decode_answers)
        self.lost = asyncio.Event()
        """Set when the connection is lost."""
        self._spec = spec
        self._waiting: dict[int, Callable[[A], None]] = {}
        self._under_way = 0
        self._is_due = False
        self._last = 0

    @property
    def is_full(self) -> bool:
        """Whether ``max_waiting`` questions are outstanding."""
        return len(self._waiting) >= self._spec.max_waiting

    def submit(self, question: Q, on_answer: Callable[[A], None]) -> None:
        """Send a question; ``on_answer`` is called later, never during this call. It must not
        raise.
        """
        loop = asyncio.get_running_loop()
        if self.lost.is_set():
            loop.call_soon(on_answer, self._spec.unknown)
            return
        self._last += 1
        self._waiting[self._last] = on_answer
        self._gathered.append((self._last, question))
        if len(self._gathered) >= self._spec.group:
            self._flush()
        elif not self._is_due:
            self._is_due = True
            loop.call_soon(self._flush_rest)

    async def ask(self, question: Q) -> A:
        """Send a question, and wait for the answer."""
        found: asyncio.Future[A] = asyncio.get_running_loop().create_future()

        def take(answer: A) -> None:
            if not found.done():
                found.set_result(answer)

        self.submit(question, take)
        return await found

    def close(self) -> None:
        """Close the connection; outstanding questions get ``unknown``."""
        if self._transport is not None:
            self._transport.close()

    def _flush_rest(self) -> None:
        self._is_due = False
        self._flush()

    def _flush(self) -> None:
        while self._gathered and (self._spec.pipelined or not self._under_way):
            count = self._group_size()
            group, self._gathered = self._gathered[:count], self._gathered[count:]
            self._under_way += count
            self._send(group)

    def _group_size(self) -> int:
        spec, count, size = self._spec, 0, 0
        for _, question in self._gathered[: spec.group]:
            size += spec.weigh(question)
            if count and size > spec.group_bytes:
                break
            count += 1
        return count

    def _take(self, number: int, item: A) -> None:
        on_answer = self._waiting.pop(number, None)
        if on_answer is None:
            raise FrameError("an answer to nothing that was asked")
        self._under_way -= 1
        on_answer(item)

    def _after_work(self) -> None:
        self._flush()

    def connection_lost(self, exc: Exception | None) -> None:
        del exc
        # These answers have come.
        self._handle(math.inf)
        self.lost.set()
        waiting, self._waiting = self._waiting, {}
        self._gathered.clear()
        for on_answer in waiting.values():
            on_answer(self._spec.unknown)


async def connect(spec: ChannelSpec[Q, A], path: str) -> Channel[Q, A]:
    """Connect to the process that listens at ``path``; raises ``EnvironmentProblem``."""
    loop = asyncio.get_running_loop()
    try:
        _, channel = await loop.create_unix_connection(lambda: Channel(spec), path)
    except OSError as error:
        raise EnvironmentProblem(f"cannot connect to {path}: {error}") from error
    return channel


class ChannelServer(Generic[Q, A]):
    """The server end, for any number of clients."""

    def __init__(
        self, spec: ChannelSpec[Q, A], respond: Callable[[Q], A | Coroutine[Any, Any, A]]
    ) -> None:
        """``respond`` returns an answer or a coroutine for it; neither may raise."""
        self._spec = spec
        self._respond = respond
        self._server: asyncio.Server | None = None
        self._open: set[_Answering[Q, A]] = set()
        self._tasks: set[asyncio.Task[None]] = set()

    async def open(self, path: str) -> None:
        """Start listening; raises ``EnvironmentProblem``."""
        loop = asyncio.get_running_loop()
        try:
            self._server = await loop.create_unix_server(
                lambda: _Answering(self._spec, self._respond, self._open, self._tasks), path
            )
        except OSError as error:
            raise EnvironmentProblem(f"cannot listen on {path}: {error}") from error

    def close(self) -> None:
        """Stop listening, abort all connections, and cancel running work."""
        if self._server is not None:
            self._server.close()
        for each in list(self._open):
            each.abort()
        for task in self._tasks:
            task.cancel()


class _Answering(_End[Q, A]):
    """A connection of one client."""

    def __init__(
        self,
        spec: ChannelSpec[Q, A],
        respond: Callable[[Q], A | Coroutine[Any, Any, A]],
        others: set[_Answering[Q, A]],
        tasks: set[asyncio.Task[None]],
    ) -> None:
        super().__init__(spec.decode_questions)
        self._respond = respond
        self._others = others
        self._tasks = tasks

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        super().connection_made(transport)
        self._others.add(self)

    def connection_lost(self, exc: Exception | None) -> None:
        del exc
        self._transport = None
        self._drop_rest()
        self._others.discard(self)

    def _take(self, number: int, item: Q) -> None:
        answer = self._respond(item)
        if not isinstance(answer, Coroutine):
            self._answer(number, answer)
            return
        task = asyncio.get_running_loop().create_task(self._wait_and_answer(number, answer))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _wait_and_answer(self, number: int, coming: Coroutine[Any, Any, A]) -> None:
        self._answer(number, await coming)

    def _answer(self, number: int, answer: A) -> None:
        if not self._gathered:
            asyncio.get_running_loop().call_soon(self._send_all)
        self._gathered.append((number, answer))

    def _send_all(self) -> None:
        gathered, self._gathered = self._gathered, []
        self._send(gathered)
