"""The replicated state: books, recorded orders and settlement, derived from the journal.

All matchers that apply the same journal reach the same state, whether they write the journal or
only follow it. A start is a recovery: the newest snapshot, then the journal from there.

What lives here: the parts of that state and their wiring, and recovery. What does not: submitting
commands (``placing``, ``canceling``), and the lifecycle of the service (``service``).
"""

from __future__ import annotations

import logging
from collections.abc import Coroutine
from typing import Final

from soliton.chain.addresses import address_text, from_public_key
from soliton.chain.orders import Order
from soliton.matcher.assets import ChainKnowledge
from soliton.matcher.broadcasting import Broadcasting
from soliton.matcher.effects import Effects
from soliton.matcher.journal import Journal
from soliton.matcher.journal.snapshots import SnapshotStore
from soliton.matcher.log_throttle import throttled
from soliton.matcher.node_client import NodeClient
from soliton.matcher.node_follower import until_answered, while_another_leads
from soliton.matcher.orders_db import OrdersDatabase
from soliton.matcher.quarantine import Quarantine
from soliton.matcher.records import Offsets
from soliton.matcher.recovery import check_ends, recover_engine, resting_assets
from soliton.matcher.renewal import window_of
from soliton.matcher.sequencer import CommandQuarantined, Sequencer
from soliton.matcher.session import Session
from soliton.matcher.settings import MatcherSettings
from soliton.matcher.settlement import Settlement
from soliton.matcher.signing import ExchangeSigner
from soliton.matcher.snapshot_writer import SnapshotWriter, keep_flushed
from soliton.matching.commands import Command
from soliton.matching.engine import Engine
from soliton.matching.rules import MatchingSettings
from soliton.parallel.signatures import SignatureChecker

FORGET_SECONDS: Final = 60.0
"""The interval at which a standby drops transactions that the master has settled."""
KEEP_UP_SECONDS: Final = 10.0
"""The interval at which a standby reloads the rules of the chain."""

_log = throttled(logging.getLogger(__name__))


class Replica:
    """Use from one event loop."""

    def __init__(
        self,
        settings: MatcherSettings,
        node: NodeClient,
        journal: Journal,
        snapshots: SnapshotStore,
        *,
        durable: bool,
        signatures: SignatureChecker,
    ) -> None:
        """Raises ``DatabaseProblem``."""
        account, chain_id = settings.account, settings.network.chain_id
        self.settings = settings
        self.node = node
        self.journal = journal
        self._snapshot_store = snapshots
        self.address = from_public_key(account.public_key, chain_id)
        self.session = Session()
        self.engine = Engine(MatchingSettings())
        self.chain = ChainKnowledge(node, self.address)
        self.database = OrdersDatabase(
            settings.directory / "orders",
            address_text(self.address),
            chain_id,
            settings.max_finalized_orders,
            durable=durable,
            before_write=journal.confirm,
        )
        window = window_of(settings.network)
        self.settlement = Settlement(node, self.database, window, self.session, self.address)
        self.broadcasting = Broadcasting(
            self.settlement,
            node,
            self.database,
            settings.settlement,
            window,
            account,
            self.session,
            chain_id=chain_id,
            decimals=self.chain.decimals,
            clock=settings.clock,
        )
        self.signatures = signatures
        self.signer = ExchangeSigner(account, self.signatures, self.settlement.add)
        self.database.complete = self.signer.finish
        self.effects = Effects(
            self.engine,
            self.session,
            self.chain,
            self.database,
            settle=self.signer.sign,
            corrected=self.settlement.corrected,
            sender_public_key=account.public_key,
            base_fee=settings.trading.exchange_base_fee,
        )
        self.quarantine = Quarantine(settings.directory)
        self.sequencer = Sequencer(
            journal, self.engine, self.effects.apply, self._prepare, self.quarantine
        )
        lost = self.sequencer.lost
        self.snapshots = SnapshotWriter(
            self.engine, snapshots, journal, self.database, is_certain=lambda: not lost.is_set()
        )

    @property
    def offsets(self) -> Offsets:
        """The positions in the journal."""
        snapshots = self.snapshots.offsets or (-1,)
        ends = self.engine.last_offset, self.journal.last_offset
        return Offsets(*ends, snapshots[-1], snapshots[0])

    def jobs(self) -> list[Coroutine[None, None, None]]:
        """The background jobs, which run whether this process leads or not."""
        return [
            keep_flushed(self.database),
            self.snapshots.every(self.settings.snapshots_interval),
            # Master and standby make the same transactions, so they need the same features.
            while_another_leads(self.settlement, KEEP_UP_SECONDS, self.chain.refresh),
            while_another_leads(self.settlement, FORGET_SECONDS, self.settlement.forget_settled),
        ]

    async def learn_rules(self) -> None:
        """Load the rules in force on the chain; raises ``NodeUnavailable``."""
        trading = self.settings.trading
        await self.chain.learn(trading.tick_size_assets())
        await self.chain.refresh()
        self.engine.settings = trading.matching(self.chain.decimals)

    async def recover(self) -> None:
        """Restore a snapshot and replay the journal to its end; then this process leads. Raises
        ``JournalProblem``, ``DatabaseProblem`` or ``RecoveryFailed``.
        """
        engine, database = self.engine, self.database
        while True:
            self.snapshots.offsets = recover_engine(
                engine, self._snapshot_store, self.journal, database
            )
            await until_answered(lambda: self.chain.learn(resting_assets(engine)))
            try:
                count = await self.sequencer.replay(engine.last_offset + 1)
            except CommandQuarantined:
                continue
            break
        level = logging.INFO if count else logging.DEBUG
        _log.log(level, "%d commands replayed, up to offset %d", count, engine.last_offset)
        check_ends(engine.last_offset, database)
        self.snapshots.set_aside_ahead()
        self.effects.note_resting()

    async def _prepare(self, command: Command) -> None:
        """Load the assets of an order that is about to be replayed."""
        order = getattr(command, "order", None)
        if isinstance(order, Order) and not self.chain.knows(order):
            assets = (order.amount_asset, order.price_asset, order.matcher_fee_asset)
            await until_answered(lambda: self.chain.learn(assets))

    async def close(self) -> None:
        """Write pending changes and release all resources; raises ``DatabaseProblem``."""
        await self.signatures.close()
        try:
            await self.database.close()
        finally:
            await self.journal.close()
            await self.node.close()
