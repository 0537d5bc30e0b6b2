"""A matcher with everything that it needs around it, listening.

What lives here: putting the parts together, and taking them apart. What does not: the parts, and
programs that have a matcher in them (``soliton.cli``, ``soliton.devnet``).
"""

from __future__ import annotations

from typing import Protocol

from soliton.matcher.node_client import NodeClient
from soliton.matcher.rest.app import build_app
from soliton.matcher.rest.application import Application
from soliton.matcher.service import Matcher
from soliton.matcher.settings import MatcherSettings
from soliton.matcher.stores import open_journal, open_snapshots
from soliton.web.server import RunningService, ServerLimits, serve

CONNECTIONS = 12_000
"""WebSocket connections stay open: so many, and requests besides."""
SERVER_LIMITS = ServerLimits(connections=CONNECTIONS)
NOT_DURABLE = "never"


class Listening(Protocol):
    """How a matcher gets its requests."""

    async def __call__(self, matcher: Matcher) -> tuple[Application, RunningService]:
        """Listen for a matcher; raises ``EnvironmentProblem``."""


class RunningMatcher:
    """A matcher and what listens for it, until ``stop``."""

    __slots__ = ("_interface", "_server", "host", "matcher", "port")

    def __init__(self, matcher: Matcher, interface: Application, server: RunningService) -> None:
        self.matcher = matcher
        self._interface = interface
        self._server = server
        self.host = server.host
        self.port = server.port

    async def stop(self) -> None:
        """Take no more requests, finish what is under way, keep a snapshot."""
        self._interface.close()
        await self._server.stop()
        await self.matcher.stop()


async def listen(matcher: Matcher) -> tuple[Application, RunningService]:
    """Listen in this process."""
    interface = build_app(matcher)
    where = matcher.settings.rest_api
    server = await serve(interface.gate, where.address, where.port, SERVER_LIMITS)
    return interface, server


async def start_matcher(
    settings: MatcherSettings, node: NodeClient, listen: Listening = listen
) -> RunningMatcher:
    """Start a matcher; it answers at once, and takes orders as soon as it has recovered.

    Raises what its stores raise when they cannot be opened, and ``EnvironmentProblem`` for an
    address that is taken.
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
