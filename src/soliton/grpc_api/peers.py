"""The calls of one connection: dispatched, answered in turns, ended.

A call that can be answered immediately is answered while its request is read, within a short time
slice. After that, calls wait for the connection's next turn, and it is not read meanwhile.

What lives here: dispatching requests to functions, and tasks for what takes time. What does not:
frames (``soliton.web.http2``), messages and statuses (``calls``).
"""

from __future__ import annotations

import asyncio
import inspect
import time
from collections import deque
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterator
from functools import partial
from itertools import chain
from time import perf_counter
from typing import Any, Final

from google.protobuf.message import Message

from soliton.grpc_api.calls import Call, method_of
from soliton.grpc_api.clients import LONG_REQUEST_BYTES, Clients
from soliton.grpc_api.errors import Refused
from soliton.grpc_api.routes import Routes, items_of
from soliton.grpc_api.views import View, Views
from soliton.web.http2.connection import Http2Connection
from soliton.web.http2.requests import Head
from soliton.web.http2.streams import Stream

ITEM_BYTES: Final = 32
"""Of memory, for each item of a parsed list."""
STEP_SECONDS: Final = 0.005
"""The time slice of a stream, after which others get their turn."""

Task = asyncio.Task[None]
Messages = Iterator[Message | bytes | None]
Send = Callable[[Call, Any], Awaitable[Message | bytes | None]]


class Peer:
    """The server side of one connection."""

    def __init__(
        self, connection: Http2Connection, routes: Routes, clients: Clients, views: Views
    ) -> None:
        self._connection = connection
        self._routes = routes
        self._clients = clients
        self._views = views
        self._waiting: deque[tuple[Call, bytes | None]] = deque()
        """Calls with complete requests, with the last part of the request if there is one."""
        self._has_turn = False

    # --- callbacks of the HTTP/2 machine ----------------------------------------------------------

    def on_request(self, stream: Stream, head: Head, *, ended: bool) -> None:
        """Begin a call."""
        route, machine = self._routes.route(head), self._connection.machine
        if route.refusal is not None:
            machine.out.finish(stream, route.refusal)
            return
        call = stream.owner = Call(
            self._clients, self._connection.client_of(head), machine, stream, route
        )
        self._clients.add(call)
        if method_of(call).streams_requests:
            self._begin_conversation(call)
        if ended:
            self.on_data(stream, b"", ended=True)

    def on_data(self, stream: Stream, data: bytes, *, ended: bool) -> None:
        """Handle a part of a request."""
        if stream.is_closed:
            return
        call: Call = stream.owner
        if method_of(call).streams_requests:
            call.add(data)
            stream.is_held = True
            self._enqueue(call, None)
        elif ended:
            self._enqueue(call, data)
        else:
            call.add(data)
            try:
                call.check()
            except Refused as error:
                call.fail(error)

    def on_sent(self, stream: Stream) -> None:
        """Note that all data of a stream was sent."""
        call: Call | None = stream.owner
        if call is not None and call.sent() and method_of(call).streams_requests:
            self._enqueue(call, None)

    def on_closed(self, stream: Stream) -> None:
        """Note that a stream has ended."""
        # Call and stream refer to each other: they would wait for a search for cycles.
        call, stream.owner = stream.owner, None
        if call is not None:
            call.close()

    # --- turns ------------------------------------------------------------------------------------

    def _enqueue(self, call: Call, data: bytes | None) -> None:
        """Answer a complete request now, or in the next turn."""
        if self._waiting or self._connection.is_late():
            self._waiting.append((call, data))
            if not self._has_turn:
                self._has_turn = True
                self._connection.hold()
                self._connection.shared.rounds.join(self._run_turn)
        else:
            self._perform(call, data)

    def _run_turn(self) -> None:
        rounds, waiting = self._connection.shared.rounds, self._waiting
        self._connection.begin_turn()
        for _ in range(len(waiting)):
            call, data = waiting.popleft()
            if not call.stream.is_closed:
                self._perform(call, data)
            if self._connection.is_late():
                break
        if waiting:
            rounds.join(self._run_turn)
        else:
            self._has_turn = False
            self._connection.go_on()

    def _perform(self, call: Call, data: bytes | None) -> None:
        try:
            if data is None:
                self._converse(call)
            else:
                self._answer(call, data)
        except Exception as error:  # noqa: BLE001 - the client gets a status in any case
            call.fail(error)

    def _answer(self, call: Call, data: bytes) -> None:
        method, clients = method_of(call), self._clients
        clients.request_received(call)
        data = call.last_message(data)
        request = method.parsed(data)
        clients.count(call, call.client, stream=method.streams_responses)
        view = self._views.current() if method.holds_snapshot else None
        found: Any = method.call(view and view.chain, request, call.route.metadata)
        if isinstance(found, Message | bytes):
            call.answer(found)
            return
        if isinstance(found, Iterator) and method.streams_responses:
            call.holds_snapshot = method.holds_snapshot
            rest = self._write_some(call, found)
            if rest is None:
                return
            send: Send = partial(_send_rest, rest)
        elif isinstance(found, Iterator):
            if self._answer_at_once(call, found):
                return
            send = _send_last
        elif inspect.isawaitable(found):
            send = _send_one
        else:
            call.holds_snapshot = method.holds_snapshot
            send = _send_events
        if len(data) > LONG_REQUEST_BYTES:
            clients.hold_request(len(data) + ITEM_BYTES * items_of(request), call)
        work = _respond(call, send, found)
        self._begin(call, asyncio.get_running_loop().create_task(work), view, found)

    def _answer_at_once(self, call: Call, found: Messages) -> bool:
        """Send the only message if it is ready within the time slice; return whether it was."""
        ends_at = self._connection.ends_at
        for each in found:
            if each is not None:
                call.answer(each)
                return True
            if perf_counter() > ends_at:
                break
        return False

    def _write_some(self, call: Call, found: Messages) -> Messages | None:
        """Send the messages that are ready now; return those left, or ``None`` after the status.

        Each is held until there is another one: the last one is sent in one write with the status.
        """
        ends_at = self._connection.ends_at
        held: Message | bytes | None = None
        for each in found:
            # None and b"" are steps without a message; a Message may be empty.
            if each or isinstance(each, Message):
                if held is not None and not call.send(held):
                    return chain((each,), found)
                held = each
            if perf_counter() > ends_at:
                return chain((held,), found)
        if held is None:
            call.finish()
        elif call.stream.has_begun:
            call.send(held)
            call.finish()
        else:
            call.answer(held)
        return None

    def _begin(self, call: Call, task: Task, view: View | None, found: object) -> None:
        if view is not None:
            self._views.retain(view, task)
        task.add_done_callback(partial(self._end, view, found))
        call.begin(task)

    def _end(self, view: View | None, found: object, task: Task) -> None:
        # A task that never started has not closed its coroutine or generator.
        if inspect.iscoroutine(found) or inspect.isgenerator(found):
            found.close()
        if view is not None:
            self._views.release(view, task)

    # --- calls with a stream of requests ----------------------------------------------------------

    def _begin_conversation(self, call: Call) -> None:
        """Count the call from now on: its first request may come late."""
        self._clients.request_received(call)
        try:
            self._clients.count(call, call.client, stream=True)
        except Refused as error:
            call.fail(error)
        else:
            call.limit_time()

    def _converse(self, call: Call) -> None:
        """Answer the requests received so far, as long as the client reads the responses."""
        stream, method = call.stream, method_of(call)
        while not stream.size and not stream.is_closed:
            request = call.next_message()
            if request is None:
                if stream.client_is_done:
                    call.finish()
                else:
                    self._connection.machine.take_more(stream)
                return
            call.send(method.function(method.parsed(request)))
            if self._connection.is_late():
                self._enqueue(call, None)
                return


# --- tasks ----------------------------------------------------------------------------------------


async def _respond(call: Call, send: Send, found: object) -> None:
    """Send what a function has returned, then the status of the call."""
    try:
        answer = await send(call, found)
    except Exception as error:  # noqa: BLE001 - the client gets a status in any case
        call.task = None
        call.fail(error)
        return
    call.task = None
    if answer is None:
        call.finish()
    else:
        call.answer(answer)


async def _send_one(
    call: Call, found: Awaitable[Message | bytes | Messages]
) -> Message | bytes | None:
    answer = await found
    return await _send_last(call, answer) if isinstance(answer, Iterator) else answer


async def _send_last(_call: Call, found: Messages) -> Message | bytes | None:
    """Return the only message, after the steps before it."""
    since = time.monotonic()
    for each in found:
        if each is not None:
            return each
        since = await _end_step(since)
    return None


async def _send_rest(rest: Messages, call: Call, _found: object) -> None:
    await call.drained()
    since = time.monotonic()
    for each in rest:
        if each or isinstance(each, Message):
            await call.write(each)
        since = await _end_step(since)


async def _send_events(call: Call, found: AsyncGenerator[Message | bytes, None]) -> None:
    since = time.monotonic()
    try:
        async for each in found:
            writing = call.write(each)
            # While the client reads, and until the next event, only the call holds its bytes.
            del each
            await writing
            since = await _end_step(since)
    finally:
        # Release its resources now, not when the garbage collector runs.
        await found.aclose()


async def _end_step(since: float) -> float:
    """Let others have their turn if the step took long enough; return when it began."""
    if time.monotonic() - since <= STEP_SECONDS:
        return since
    await asyncio.sleep(0)
    return time.monotonic()
