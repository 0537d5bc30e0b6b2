"""The matcher service: all parts together, from start to stop.

It recovers (``replica``), then accepts orders (``serving``). When the journal is lost (another
master, a disk failure), it recovers again.

What lives here: the lifecycle of the service, and what its interfaces use. What does not: the
parts.
"""

from __future__ import annotations

import asyncio

import msgspec

from soliton.matcher.canceling import Canceling
from soliton.matcher.clock import compare_clocks, keep_time
from soliton.matcher.corrections import Corrections
from soliton.matcher.journal import Journal
from soliton.matcher.journal.snapshots import SnapshotStore
from soliton.matcher.node_client import NodeClient
from soliton.matcher.node_follower import until_answered
from soliton.matcher.node_watch import NodeWatch
from soliton.matcher.placing import Placing
from soliton.matcher.queries import Queries
from soliton.matcher.records import Offsets, ServiceStatus
from soliton.matcher.replica import Replica
from soliton.matcher.serving import Serving
from soliton.matcher.settings import MatcherSettings
from soliton.matcher.time_slices import end_all, first_end
from soliton.matching.rates import Rates
from soliton.parallel.signatures import SignatureChecker


class Matcher:
    """One matcher. Call ``start`` and ``stop``; use from one event loop.

    Its interfaces use the public parts. Client errors raise ``MatcherError``.
    """

    def __init__(
        self,
        settings: MatcherSettings,
        node: NodeClient,
        journal: Journal,
        snapshots: SnapshotStore,
        *,
        durable: bool = True,
        signatures: SignatureChecker | None = None,
    ) -> None:
        """Raises ``DatabaseProblem``. ``stop`` closes the journal, the node client and
        ``signatures``.
        """
        self.settings = settings
        self.node = node
        self._replica = replica = Replica(
            settings,
            node,
            journal,
            snapshots,
            durable=durable,
            signatures=signatures or SignatureChecker(),
        )
        self.session = replica.session
        self.public_key = settings.account.public_key
        """The matcher's public key, which orders must contain."""
        self.address = replica.address
        """The account that sends exchange transactions."""
        self.engine = replica.engine
        """All order books and the matching rules (read only)."""
        self.chain = replica.chain
        self.database = replica.database
        self.effects = replica.effects
        self.quarantine = replica.quarantine
        self.snapshots = replica.snapshots
        self.settlement = replica.settlement
        self.placement = msgspec.structs.replace(
            settings.trading.placement,
            matcher_public_key=self.public_key,
            max_active_orders=settings.max_active_orders,
        )
        self.rates = Rates(self.database.rates(), self.effects.rate_changed)
        self._watch = NodeWatch(node, settings, self.database, replica.session)
        self.placing = Placing(replica, self._watch, self.placement, self.rates)
        self.canceling = Canceling(replica)
        self.queries = Queries(replica, self.placement, self.rates)
        corrections = Corrections(replica, self.placing)
        self._serving = Serving(replica, self._watch, self.canceling, corrections)
        self._main: asyncio.Task[None] | None = None

    @property
    def status(self) -> ServiceStatus:
        """Whether it is starting, working or stopping."""
        return self.session.status

    @property
    def offsets(self) -> Offsets:
        """Its positions in the journal."""
        return self._replica.offsets

    @property
    def is_node_silent(self) -> bool:
        """Whether the node has not responded for too long, or has lost the chain."""
        return self._watch.is_silent

    @property
    def commands_waiting(self) -> int:
        """The number of commands that wait for the journal."""
        return self._replica.sequencer.waiting

    def now(self) -> int:
        """The time in milliseconds."""
        return self.settings.clock()

    async def start(self) -> None:
        """Start the service; returns immediately. ``working`` waits until it accepts orders."""
        self._main = asyncio.create_task(self._run())

    async def working(self) -> None:
        """Wait until orders are accepted; raises the exception that ended the service before."""
        assert self._main is not None, "not started"
        waiting = asyncio.create_task(self.session.working.wait())
        await asyncio.wait([waiting, self._main], return_when=asyncio.FIRST_COMPLETED)
        waiting.cancel()
        if self._main.done():
            self._main.result()

    async def ended(self) -> None:
        """Wait until the service has ended; raises the exception that ended it."""
        assert self._main is not None, "not started"
        # Cancelling the waiter must not cancel the service.
        await asyncio.shield(self._main)

    async def stop(self) -> None:
        """Finish pending work, write a snapshot and release all resources."""
        was_working = self.status is ServiceStatus.WORKING
        self.session.status = ServiceStatus.STOPPING
        self.session.working.clear()
        await self._replica.sequencer.drain()
        await end_all([self._main] if self._main is not None else [])
        if was_working:
            await self.snapshots.at_the_end()
        await self._replica.close()

    async def _run(self) -> None:
        work = [*self._replica.jobs(), keep_time(self.settings.clock, self.node)]
        jobs = [asyncio.create_task(job) for job in work]
        try:
            # A job ends only by an unexpected error, after which no state can be trusted.
            await first_end(asyncio.create_task(self._run_terms()), jobs)
        finally:
            await end_all(jobs)

    async def _run_terms(self) -> None:
        """Recover and accept orders, forever: another master's commands may follow ours."""
        await until_answered(self._watch.check_chain)
        await until_answered(self._replica.learn_rules)
        await compare_clocks(self.settings.clock, self.node)
        while True:
            await self._replica.recover()
            await self._serving.run()
