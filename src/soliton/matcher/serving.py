"""Serving: from the end of a recovery until the journal's leadership is lost.

What lives here: the sequence of following the node, loading accounts and accepting orders, and its
reverse. What does not: recovery, and the lifecycle of the service (``service``).
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Coroutine

from soliton.matcher.accounts import Accounts
from soliton.matcher.canceling import Canceling
from soliton.matcher.corrections import Corrections
from soliton.matcher.node_follower import follow_node, load_accounts, until_answered
from soliton.matcher.node_watch import NodeWatch
from soliton.matcher.records import ServiceStatus
from soliton.matcher.replica import Replica
from soliton.matcher.time_slices import end_all

_log = logging.getLogger(__name__)


class Serving:
    """Use from one event loop; one ``run`` at a time."""

    def __init__(
        self, replica: Replica, watch: NodeWatch, canceling: Canceling, corrections: Corrections
    ) -> None:
        self._replica = replica
        self._watch = watch
        self._canceling = canceling
        self._corrections = corrections
        self._tasks: list[asyncio.Task[None]] = []

    async def run(self) -> None:
        """Accept orders until the journal is lost; raises the exception of a failed task."""
        replica = self._replica
        session, settlement, effects = replica.session, replica.settlement, replica.effects
        accounts = Accounts(
            replica.node,
            replica.chain.decimals,
            on_changed=effects.balances_changed,
            on_uncovered=self._canceling.cancel_uncovered,
            outstanding=settlement.outstanding,
            own=replica.address,
        )
        followed = asyncio.Event()
        settlement.activate()
        follower = follow_node(
            replica.node, settlement, replica.chain, accounts, self._watch, followed
        )
        self._start(follower, self._watch.run())
        try:
            await self._until(followed.wait())
            await until_answered(settlement.reconcile)
            await until_answered(lambda: load_accounts(accounts, effects, settlement))
            await until_answered(lambda: accounts.ensure(accounts.get(replica.address), (None,)))
            # Balances of another chain would cancel orders.
            await until_answered(self._watch.check_chain)
            session.accounts = accounts
            self._start(
                self._canceling.expire(),
                self._corrections.run(),
                *replica.broadcasting.tasks(),
            )
            for account in accounts.all():
                accounts.check(account)
            session.status = ServiceStatus.WORKING
            session.working.set()
            _log.debug("working")
            await self._until(replica.sequencer.lost.wait(), replica.journal.term_ended())
        finally:
            accounts.stopped = True
            session.working.clear()
            if session.status is ServiceStatus.WORKING:
                session.status = ServiceStatus.STARTING
            session.accounts = None
            settlement.deactivate()
            await end_all(self._tasks)
            self._tasks = []
        await replica.sequencer.drain()

    def _start(self, *work: Coroutine[None, None, None]) -> None:
        self._tasks += [asyncio.create_task(each) for each in work]

    async def _until(self, *ends: Coroutine[None, None, object]) -> None:
        """Return when one of these does; raises the exception of a failed task."""
        waits = [asyncio.create_task(end) for end in ends]
        try:
            await asyncio.wait([*waits, *self._tasks], return_when=asyncio.FIRST_COMPLETED)
            for task in self._tasks:
                if task.done():
                    task.result()
        finally:
            await end_all(waits)
