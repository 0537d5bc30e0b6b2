"""Where a matcher begins: with the newest snapshot that goes with its orders database.

What lives here: choosing it, and what of it has to be known. What does not: reading the journal
from there on (``sequencer``), and asking the node about the rest (``replica``).
"""

from __future__ import annotations

import logging

from soliton.chain.values import AssetId
from soliton.crypto.hashes import blake2b256
from soliton.matcher.errors import RecoveryFailed
from soliton.matcher.journal import Journal
from soliton.matcher.journal.snapshots import SnapshotStore
from soliton.matcher.orders_db import OrdersDatabase
from soliton.matcher.settings import MatcherSettings
from soliton.matching.engine import Engine
from soliton.matching.snapshots import SnapshotError

_log = logging.getLogger(__name__)


def identity_of(settings: MatcherSettings) -> bytes:
    """What stands for a matcher in its journal and snapshots: its account on its chain."""
    chain_id = settings.network.chain_id
    return blake2b256(b"soliton matcher" + bytes((chain_id,)) + settings.account.public_key)


def recover_engine(
    engine: Engine, snapshots: SnapshotStore, journal: Journal, database: OrdersDatabase
) -> tuple[int, ...]:
    """Make the engine what it was at the newest snapshot all of whose consequences are in the
    database, or empty; the offsets of all snapshots.

    Raises ``RecoveryFailed`` where the journal does not go on from there.
    """
    offsets = []
    restored = False
    for snapshot in snapshots.all():
        offsets.append(snapshot.offset)
        if not restored and snapshot.offset <= database.offset:
            try:
                engine.restore(snapshot.body)
            except SnapshotError as error:
                # Its file is whole, so it is of no use to anybody: the journal may reach further.
                _log.error("the books as of offset %d are no use: %s", snapshot.offset, error)
            else:
                restored = True
    if not restored:
        if journal.first_offset > 0:
            raise RecoveryFailed(
                "the journal does not reach back to its beginning, and no snapshot goes with the "
                f"orders database, which ends at offset {database.offset}"
            )
        engine.restore(Engine(engine.settings).snapshot())
    if restored:
        _log.info("books as of offset %d", engine.last_offset)
    return tuple(sorted(offsets))


def check_ends(last_offset: int, database: OrdersDatabase) -> None:
    """Raise ``RecoveryFailed`` when the journal ends before the orders database does: commands that
    are still to come would have offsets whose effects it seems to have.
    """
    if database.offset > last_offset:
        raise RecoveryFailed(
            f"the journal ends at {last_offset}, but the orders database knows what came of "
            f"commands up to {database.offset}: bring back the journal that belongs to it"
        )


def resting_assets(engine: Engine) -> set[AssetId | None]:
    """The assets of all orders in the books."""
    assets: set[AssetId | None] = set()
    for book in engine.books():
        assets |= {book.pair.amount_asset, book.pair.price_asset}
        assets |= {active.order.matcher_fee_asset for active in book.orders()}
    return assets
