"""One HTTP/2 connection on a transport: input and output, and timeouts.

What lives here: the transport's lifecycle, writing once in each turn of the loop, timeouts. What
does not: frames (``machine``), requests (the applications), listening (``server``).
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from time import perf_counter
from typing import Final, cast

from soliton.turns import PIECE_BYTES, Rounds
from soliton.web.clients import LOCAL, client_key
from soliton.web.header_rules import combined
from soliton.web.http2 import frames
from soliton.web.http2.limits import MAX_UNREAD_BYTES, Http2Limits
from soliton.web.http2.machine import Handler, Machine
from soliton.web.http2.requests import Head
from soliton.web.peers import host_of
from soliton.web.shared_counters import CONNECTIONS, SharedCounters
from soliton.web.transports import end_writing

TURN_SECONDS: Final = 0.0005
"""Of a connection whose input, or calls, wait for their turn: others wait for theirs."""
CLOSE_SECONDS: Final = 5.0
"""How long a closing connection may take to read the rest."""
CLOSE_BYTES: Final = 8 * 1024 * 1024
"""What is still read, and ignored, of a client that has broken the rules: closing a socket with
unread input would discard the GOAWAY frame.
"""
_LEAST_LOOK_SECONDS: Final = 0.01


class Shared:
    """The state shared by all connections of one port."""

    def __init__(
        self,
        make: Callable[[Http2Connection], Handler],
        limits: Http2Limits,
        counters: SharedCounters,
    ) -> None:
        """``make`` returns the handler of a connection's requests."""
        self.make = make
        self.limits = limits
        self.rounds = Rounds()
        self.connections: set[Http2Connection] = set()
        self.all_left = asyncio.Event()
        self._open = counters.counts(CONNECTIONS)

    def opens(self, connection: Http2Connection) -> bool:
        """Count a connection; return whether its client exceeds its limit."""
        self.connections.add(connection)
        client, limit = self._client(connection), self.limits.connections_per_client
        self._open.add(client)
        return limit is not None and client is not None and self._open.of(client) > limit

    def closes(self, connection: Http2Connection) -> None:
        """Count the end of a connection."""
        self.connections.discard(connection)
        self._open.add(self._client(connection), -1)
        if not self.connections:
            self.all_left.set()

    def make_room(self, client: str) -> bool:
        """Close an idle connection if there are too many; return whether one more is admitted."""
        over = len(self.connections) - self.limits.connections
        if over < 0:
            return True
        idle = (each for each in self.connections if each.is_idle)
        victim = min(idle, key=lambda each: each.idle_since, default=None)
        if victim is None:
            return client == LOCAL and over < self.limits.reserved
        victim.give_way()
        return True

    def _client(self, connection: Http2Connection) -> str | None:
        is_counted = connection.client != LOCAL or self.limits.counts_local_clients
        return connection.client if is_counted and not connection.is_proxy else None


class Http2Connection(asyncio.Protocol):
    """One connection."""

    def __init__(self, shared: Shared) -> None:
        self.shared = shared
        self.client = LOCAL
        """The key of the address at the other end, for limits."""
        self.is_proxy = False
        """Whether it is a trusted proxy's, which has many clients."""
        self._host = ""
        self._limits = shared.limits
        self._loop = asyncio.get_running_loop()
        self._transport: asyncio.Transport
        self.ends_at = 0.0
        """When this connection's turn is over, in the seconds of ``perf_counter``."""
        self.machine = Machine(shared.make(self), shared.limits, self._wake)
        self._input = b""
        """What has arrived; all behind ``_at`` is still to be processed."""
        self._at = 0
        self._is_due = False
        self._is_ending = False
        self._holds = self._ignored = 0
        self._heard = self._made = self._loop.time()
        self._paused = self._asked = 0.0
        self._timer: asyncio.TimerHandle | None = None

    # --- for the application ----------------------------------------------------------------------

    def is_late(self) -> bool:
        """Whether this connection's turn is over."""
        return perf_counter() > self.ends_at

    def begin_turn(self) -> None:
        """Begin a turn among the connections that wait for one."""
        self.ends_at = min(self.shared.rounds.ends_at, perf_counter() + TURN_SECONDS)

    def client_of(self, head: Head) -> str:
        """Return the key of the client of a request, for limits."""
        if not self.is_proxy:
            return self.client
        host = self._limits.proxies.client_of(self._host, combined(head.fields))
        return client_key(host)

    def hold(self) -> None:
        """Pause reading until ``go_on`` is called as often."""
        self._holds += 1
        if self._holds == 1 and not self._is_ending:
            self._transport.pause_reading()

    def go_on(self) -> None:
        """Undo one ``hold``."""
        self._holds -= 1
        if self._holds == 0 and not self._is_ending:
            self._transport.resume_reading()

    # --- for the server ---------------------------------------------------------------------------

    def shut_down(self) -> None:
        """Refuse new streams; close when all open ones have ended."""
        self.machine.leave()

    @property
    def is_idle(self) -> bool:
        """Whether it has no stream."""
        return not self.machine.streams

    @property
    def idle_since(self) -> float:
        """When the last stream ended, or the connection began."""
        return max(self._made, self.machine.lives.idle_since)

    def give_way(self) -> None:
        """Close an idle connection, since another client needs the place."""
        self.shared.connections.discard(self)
        self.machine.leave()
        self._flush()

    def abort(self) -> None:
        """Abort the connection."""
        self._is_ending = True
        self._transport.abort()

    # --- asyncio.Protocol -------------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Set up the connection."""
        # That of uvloop has all of the methods, but not the class.
        self._transport = cast("asyncio.Transport", transport)
        host = host_of(self._transport)
        self._host = host or ""
        self.client = client_key(self._host)
        self.is_proxy = self._limits.proxies.trusts(self._host)
        has_room = self.shared.make_room(self.client)
        has_too_many = self.shared.opens(self)
        if host is None or not has_room:
            # The address of a client that is already gone is unknown.
            self.abort()
            return
        self.machine.start(self._made)
        if has_too_many:
            words = b"too many connections of one address"
            self.machine.leave(frames.ENHANCE_YOUR_CALM, words)
            self.machine.is_over = True
        self._flush()
        if not self._is_ending:
            self._look_in(self._limits.handshake_seconds)

    def data_received(self, data: bytes) -> None:
        """Process input, or queue it for the connection's turn."""
        if self._is_ending:
            self._ignored += len(data)
            if self._ignored > CLOSE_BYTES:
                self._transport.abort()
            return
        self._heard = self._loop.time()
        if self._input:
            # It waits for its turn.
            self._input += data
            return
        self._input, self._at = data, 0
        self.ends_at = self.shared.rounds.arrivals_end_at()
        if not self.is_late():
            self._process()
        if self._input:
            self.hold()
            self.shared.rounds.join(self._take_turn, is_short=len(self._input) <= PIECE_BYTES)
        self._flush()

    def _take_turn(self) -> None:
        if self._is_ending:
            return
        self.begin_turn()
        self._process()
        if self._input:
            self.shared.rounds.join(self._take_turn)
        else:
            self.go_on()
        self._flush()

    def _process(self) -> None:
        """Process input, piece by piece, until the turn is over."""
        self._is_due = True
        data, at, now = self._input, self._at, self._loop.time()
        while at < len(data):
            self.machine.receive(data[at : at + PIECE_BYTES], now)
            at += PIECE_BYTES
            if self.is_late():
                break
        if at < len(data):
            self._at = at
        else:
            self._input = b""

    def eof_received(self) -> None:
        """The client has closed its side; the transport closes."""

    def pause_writing(self) -> None:
        """The write buffer is full."""
        self.machine.out.is_paused = True
        self._paused = self._loop.time()

    def resume_writing(self) -> None:
        """The write buffer is drained."""
        self.machine.out.is_paused = False
        self._wake()

    def connection_lost(self, exc: Exception | None) -> None:
        """Clean up, and close all streams."""
        del exc
        self._is_ending = True
        if self._timer is not None:
            self._timer.cancel()
        self.shared.closes(self)
        self.machine.end()

    # --- output -----------------------------------------------------------------------------------

    def _wake(self) -> None:
        """Write at the end of this turn of the loop, together with further output."""
        if not self._is_due:
            self._is_due = True
            self._loop.call_soon(self._flush)

    def _flush(self) -> None:
        self._is_due = False
        if self._is_ending:
            return
        out = self.machine.out
        if out.size:
            self._transport.write(out.take())
            if out.is_paused and self._transport.get_write_buffer_size() > MAX_UNREAD_BYTES:
                self.abort()
                return
        if self.machine.is_over or (self.machine.is_leaving and not self.machine.streams):
            self._close()
        elif out.waits and not out.is_paused:
            self._is_due = True
            self._loop.call_soon(self._go_on)

    def _close(self) -> None:
        """Close when all is sent, or after a timeout."""
        self._is_ending = True
        self._input = b""
        is_told_why = self.machine.is_over and self.machine.has_begun
        if is_told_why and not self._transport.is_closing():
            end_writing(self._transport)
            if self._holds:
                self._transport.resume_reading()
        else:
            self._transport.close()
        if self._timer is not None:
            self._timer.cancel()
        self._timer = self._loop.call_later(CLOSE_SECONDS, self._transport.abort)

    def _go_on(self) -> None:
        """Send more queued data."""
        self.machine.out.pump()
        self._flush()

    # --- timeouts ---------------------------------------------------------------------------------

    def _look_in(self, seconds: float) -> None:
        self._timer = self._loop.call_later(max(seconds, _LEAST_LOOK_SECONDS), self._look)

    def _look(self) -> None:
        """Check the timeouts, and send a PING to a silent client."""
        limits, machine, now = self._limits, self.machine, self._loop.time()
        if not machine.has_begun:
            self.abort()
            return
        if machine.out.is_paused and now - self._paused >= limits.write_seconds:
            self.abort()
            return
        if not machine.streams and now - machine.lives.idle_since >= limits.idle_seconds:
            machine.leave()
            return
        if now - self._heard < limits.silent_seconds:
            self._look_in(self._next_look(now))
        elif self._heard > self._asked:
            self._asked = now
            machine.out.put(frames.frame(frames.PING, 0, 0, bytes(8)))
            self._look_in(limits.answer_seconds)
        else:
            self.abort()

    def _next_look(self, now: float) -> float:
        limits, machine = self._limits, self.machine
        idle_since = now if machine.streams else machine.lives.idle_since
        paused = self._paused if machine.out.is_paused else now
        ends = (
            self._heard + limits.silent_seconds,
            idle_since + limits.idle_seconds,
            paused + limits.write_seconds,
        )
        return min(ends) - now
