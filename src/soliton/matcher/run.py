"""A running matcher: its stores, the service and its HTTP server.

What lives here: starting and stopping them together. What does not: the parts, and programs that
contain a matcher (``soliton.cli``, ``soliton.devnet``).
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from soliton.matcher.node_client import NodeClient
from soliton.matcher.rest.app import build_app
from soliton.matcher.rest.application import Application
from soliton.matcher.service import Matcher
from soliton.matcher.settings import MatcherSettings, RestApi
from soliton.matcher.stores import open_journal, open_snapshots
from soliton.web.server import RunningService, ServerLimits, serve

CONNECTIONS = 12_000
"""WebSocket connections stay open; this allows 10,000 of them, plus requests."""
NOT_DURABLE = "never"


Listen = Callable[[Matcher], Awaitable[tuple[Application, RunningService]]]
"""Starts the server of a matcher; raises ``EnvironmentProblem``."""


def server_limits(settings: RestApi) -> ServerLimits:
    """Return the limits of a matcher's server."""
    return ServerLimits(connections=CONNECTIONS, proxies=settings.proxies)


class RunningMatcher:
    """A matcher and its server, until ``stop``."""

    __slots__ = ("_interface", "_server", "host", "matcher", "port")

    def __init__(self, matcher: Matcher, interface: Application, server: RunningService) -> None:
        self.matcher = matcher
        self._interface = interface
        self._server = server
        self.host = server.host
        self.port = server.port

    async def stop(self) -> None:
        """Stop accepting requests, finish pending work and write a snapshot."""
        self._interface.close()
        await self._server.stop()
        await self.matcher.stop()


async def listen(matcher: Matcher) -> tuple[Application, RunningService]:
    """Serve a matcher in this process."""
    interface = build_app(matcher)
    where = matcher.settings.rest_api
    counters = interface.gate.traffic.counters
    server = await serve(
        interface.gate, where.address, where.port, server_limits(where), counters=counters
    )
    return interface, server


async def start_matcher(
    settings: MatcherSettings, node: NodeClient, listen: Listen = listen
) -> RunningMatcher:
    """Start a matcher. It serves requests immediately, and accepts orders once it has recovered.

    Raises the errors of its stores, and ``EnvironmentProblem`` if the address is in use.
    """
    journal = open_journal(settings)
    durable = settings.queue.sync != NOT_DURABLE
    try:
        snapshots = open_snapshots(settings)
        matcher = Matcher(settings, node, journal, snapshots, durable=durable)
    except BaseException:
        await journal.close()
        raise
    try:
        interface, server = await listen(matcher)
    except BaseException:
        await matcher.stop()
        raise
    await matcher.start()
    return RunningMatcher(matcher, interface, server)
