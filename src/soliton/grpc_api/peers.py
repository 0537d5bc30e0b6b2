"""The calls of one connection: begun, answered in their turns, ended.

What can be answered at once is answered while it is read, as long as that takes only a moment. What
then is left waits for its turn among the connections, and nothing more is read of this one.

What lives here: from requests to functions, and tasks for what takes time. What does not: frames
(``soliton.web.http2``), messages and statuses (``calls``).
"""

from __future__ import annotations

import asyncio
import inspect
import time
from collections import deque
from collections.abc import AsyncGenerator, Awaitable, Iterator
from functools import partial
from time import perf_counter
from typing import Any, Final

from google.protobuf.message import Message

from soliton.grpc_api.calls import Call, method_of
from soliton.grpc_api.clients import Clients
from soliton.grpc_api.errors import Refused
from soliton.grpc_api.routes import Routes
from soliton.grpc_api.views import View, Views
from soliton.web.http2.connection import Http2Connection
from soliton.web.http2.requests import Head
from soliton.web.http2.streams import Stream

STEP_SECONDS: Final = 0.005
"""How long a stream is made before others get their turn."""

Task = asyncio.Task[None]
Messages = Iterator[Message | bytes | None]


class Peer:
    """What answers one connection."""

    def __init__(
        self, connection: Http2Connection, routes: Routes, clients: Clients, views: Views
    ) -> None:
        self._connection = connection
        self._routes = routes
        self._clients = clients
        self._views = views
        self._waiting: deque[tuple[Call, bytes | None]] = deque()
        """Calls whose requests are there, with the last part of them if there is one."""
        self._has_turn = False

    # --- for the machine --------------------------------------------------------------------------

    def on_request(self, stream: Stream, head: Head, *, ended: bool) -> None:
        """A call begins."""
        route, machine = self._routes.route(head), self._connection.machine
        if route.refusal is not None:
            machine.out.finish(stream, route.refusal)
            return
        call = stream.owner = Call(self._clients, machine, stream, route)
        self._clients.arrived(call)
        if method_of(call).converses:
            self._begin_conversation(call)
        if ended:
            self.on_data(stream, b"", ended=True)

    def on_data(self, stream: Stream, data: bytes, *, ended: bool) -> None:
        """A part of a request."""
        call: Call = stream.owner
        if stream.is_closed:
            return
        if method_of(call).converses:
            call.add(data)
            stream.is_held = True
            self._take(call, None)
        elif ended:
            self._take(call, data)
        else:
            call.add(data)
            try:
                call.check()
            except Refused as error:
                call.fail(error)

    def on_sent(self, stream: Stream) -> None:
        """What waited for the client has gone."""
        call: Call = stream.owner
        if call.sent() and method_of(call).converses:
            self._take(call, None)

    def on_closed(self, stream: Stream) -> None:
        """A call has ended."""
        if stream.owner is not None:
            stream.owner.over()

    # --- turns ------------------------------------------------------------------------------------

    def _take(self, call: Call, data: bytes | None) -> None:
        """Answer a request that is there, when it is its turn."""
        if self._waiting or self._connection.is_late():
            self._waiting.append((call, data))
            if not self._has_turn:
                self._has_turn = True
                self._connection.hold()
                self._connection.shared.rounds.join(self._take_turn)
        else:
            self._perform(call, data)

    def _take_turn(self) -> None:
        rounds, waiting = self._connection.shared.rounds, self._waiting
        self._connection.ends_at = rounds.ends_at
        for _ in range(len(waiting)):
            call, data = waiting.popleft()
            if not call.stream.is_closed:
                self._perform(call, data)
            if perf_counter() >= rounds.ends_at:
                break
        if waiting:
            rounds.join(self._take_turn)
        else:
            self._has_turn = False
            self._connection.go_on()

    def _perform(self, call: Call, data: bytes | None) -> None:
        try:
            if data is None:
                self._converse(call)
            else:
                self._answer(call, data)
        except Exception as error:  # noqa: BLE001 - whatever it is, the client gets a status
            call.fail(error)

    def _answer(self, call: Call, data: bytes) -> None:
        method, clients = method_of(call), self._clients
        clients.is_there(call)
        request = method.parsed(call.only(data))
        clients.count(call, self._connection.client, stream=method.streams)
        view = self._views.now() if method.holds_moment else None
        found: Any = method.bound(view and view.chain, request, call.route.metadata)
        if isinstance(found, Message | bytes):
            call.answer(found)
            return
        if isinstance(found, Iterator):
            call.holds_moment = method.holds_moment
            if self._write_some(call, found):
                return
            work = _write_all(call, found)
        elif inspect.isawaitable(found):
            work = _write_one(call, found)
        else:
            call.holds_moment = method.holds_moment
            work = _write_coming(call, found)
        self._begin(call, asyncio.get_running_loop().create_task(work), view, found)

    def _write_some(self, call: Call, found: Messages) -> bool:
        """Send what there is at once of a stream: whether that is all."""
        ends_at = self._connection.ends_at
        for each in found:
            # Nothing, or no bytes, is a step without a message; a message may well be empty.
            if (each or isinstance(each, Message)) and not call.send(each):
                return False
            if perf_counter() > ends_at:
                return False
        call.finish()
        return True

    def _begin(self, call: Call, task: Task, view: View | None, found: object) -> None:
        if view is not None:
            self._views.hold(view, task)
        task.add_done_callback(partial(self._end, view, found))
        call.begin(task)

    def _end(self, view: View | None, found: object, task: Task) -> None:
        # One that has never begun has not let go of anything itself.
        if inspect.iscoroutine(found) or inspect.isgenerator(found):
            found.close()
        if view is not None:
            self._views.give_back(view, task)

    # --- calls that ask several times -------------------------------------------------------------

    def _begin_conversation(self, call: Call) -> None:
        """It may ask as late as it likes: it is counted from now on."""
        self._clients.is_there(call)
        try:
            self._clients.count(call, self._connection.client, stream=True)
        except Refused as error:
            call.fail(error)
        else:
            call.limit_time()

    def _converse(self, call: Call) -> None:
        """Answer what has been asked, one after the other, as long as the answers are read."""
        stream, method = call.stream, method_of(call)
        while not stream.size and not stream.is_closed:
            asked = call.next()
            if asked is None:
                if stream.client_is_done:
                    call.finish()
                else:
                    self._connection.machine.take_more(stream)
                return
            call.send(method.function(method.parsed(asked)))
            if self._connection.is_late():
                self._take(call, None)
                return


# --- what takes time ------------------------------------------------------------------------------


async def _write_one(call: Call, found: Awaitable[Message | bytes]) -> None:
    try:
        answer = await found
    except Exception as error:  # noqa: BLE001 - whatever it is, the client gets a status
        call.task = None
        call.fail(error)
        return
    call.task = None
    call.answer(answer)


async def _write_all(call: Call, found: Messages) -> None:
    try:
        await call.drained()
        since = time.monotonic()
        for each in found:
            if each or isinstance(each, Message):
                await call.write(each)
            if time.monotonic() - since > STEP_SECONDS:
                await asyncio.sleep(0)
                since = time.monotonic()
    except Exception as error:  # noqa: BLE001 - as above
        call.task = None
        call.fail(error)
        return
    call.task = None
    call.finish()


async def _write_coming(call: Call, found: AsyncGenerator[Message | bytes, None]) -> None:
    try:
        try:
            async for each in found:
                await call.write(each)
        finally:
            # What it holds is let go now, and not when somebody collects garbage.
            await found.aclose()
    except Exception as error:  # noqa: BLE001 - as above
        call.task = None
        call.fail(error)
        return
    call.task = None
    call.finish()
