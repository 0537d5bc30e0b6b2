"""The matcher: all parts together, from its start to its end.

It recovers (``replica``), and takes orders only then (``serving``). Losing the journal (another
master, a disk that fails) leads back to reading it.

What lives here: the life of the service, and what its interfaces use. What does not: the parts.
"""

from __future__ import annotations

import asyncio

import msgspec

from soliton.matcher.canceling import Canceling
from soliton.matcher.clock import compare_clocks, keep_time
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
    """One matcher. ``start`` it, and ``stop`` it; use from one event loop.

    Its interfaces use the parts that are public here. What clients get wrong raises
    ``MatcherError``.
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
        """Raises ``DatabaseProblem``. The journal, the node client and who checks ``signatures``
        (and makes them) are closed with it.
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
        """The key that orders have to name."""
        self.address = replica.address
        """The account that makes exchange transactions."""
        self.engine = replica.engine
        """All order books and the rules of matching, to be read only."""
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
        self._watch = NodeWatch(node, settings, self.database)
        self.placing = Placing(replica, self._watch, self.placement, self.rates)
        self.canceling = Canceling(replica)
        self.queries = Queries(replica, self.placement, self.rates)
        self._serving = Serving(replica, self._watch, self.canceling)
        self._life: asyncio.Task[None] | None = None

    @property
    def status(self) -> ServiceStatus:
        """Whether it works already, and still."""
        return self.session.status

    @property
    def offsets(self) -> Offsets:
        """Where in the journal it is."""
        return self._replica.offsets

    def now(self) -> int:
        """The time in milliseconds."""
        return self.settings.clock()

    async def start(self) -> None:
        """Begin to live; returns at once. ``working`` tells when orders are taken."""
        self._life = asyncio.create_task(self._live())

    async def working(self) -> None:
        """Return when orders are taken; raises what ended the life before that."""
        assert self._life is not None, "not started"
        waiting = asyncio.create_task(self.session.working.wait())
        await asyncio.wait([waiting, self._life], return_when=asyncio.FIRST_COMPLETED)
        waiting.cancel()
        if self._life.done():
            self._life.result()

    async def ended(self) -> None:
        """Return when the life is over; raises what ended it."""
        assert self._life is not None, "not started"
        # Who does not want to wait any longer does not end it.
        await asyncio.shield(self._life)

    async def stop(self) -> None:
        """Finish what is under way, keep a snapshot, and let go of everything."""
        was_working = self.status is ServiceStatus.WORKING
        self.session.status = ServiceStatus.STOPPING
        self.session.working.clear()
        await self._replica.sequencer.drain()
        await end_all([self._life] if self._life is not None else [])
        if was_working:
            await self.snapshots.at_the_end()
        await self._replica.close()

    async def _live(self) -> None:
        work = [*self._replica.jobs(), keep_time(self.settings.clock, self.node)]
        jobs = [asyncio.create_task(job) for job in work]
        try:
            # What has ended a job was not foreseen: nothing says that the rest is as it should be.
            await first_end(asyncio.create_task(self._take_terms()), jobs)
        finally:
            await end_all(jobs)

    async def _take_terms(self) -> None:
        """Recover and take orders, again and again: another master's commands may follow ours."""
        await until_answered(self._watch.check_chain)
        await until_answered(self._replica.learn_rules)
        await compare_clocks(self.settings.clock, self.node)
        while True:
            await self._replica.recover()
            await self._serving.run()
