"""The start of a recovery: restoring the newest snapshot that matches the orders database.

What lives here: choosing the snapshot, and checks. What does not: replaying the journal
(``sequencer``), and requests to the node (``replica``).
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
    """The identity of a matcher in its journal and snapshots: a hash of its account and chain."""
    chain_id = settings.network.chain_id
    return blake2b256(b"soliton matcher" + bytes((chain_id,)) + settings.account.public_key)


def recover_engine(
    engine: Engine, snapshots: SnapshotStore, journal: Journal, database: OrdersDatabase
) -> tuple[int, ...]:
    """Restore the newest snapshot that is not ahead of the database, or an empty engine. Returns
    the offsets of all snapshots.

    Raises ``RecoveryFailed`` if the journal does not continue from there.
    """
    offsets = []
    restored = False
    for snapshot in snapshots.all():
        offsets.append(snapshot.offset)
        if not restored and snapshot.offset <= database.offset:
            try:
                engine.restore(snapshot.body)
            except SnapshotError as error:
                # The file is intact but invalid: try an older one, or the journal's start.
                _log.error("the snapshot at offset %d is invalid: %s", snapshot.offset, error)
            else:
                restored = True
    if restored:
        _log.info("books as of offset %d", engine.last_offset)
    elif journal.first_offset > 0:
        raise RecoveryFailed(
            "the journal does not reach back to its beginning, and no snapshot goes with the "
            f"orders database, which ends at offset {database.offset}"
        )
    else:
        engine.restore(Engine(engine.settings).snapshot())
    return tuple(sorted(offsets))


def check_ends(last_offset: int, database: OrdersDatabase) -> None:
    """Raise ``RecoveryFailed`` if the journal ends before the orders database: new commands would
    get offsets whose effects the database seems to have already.
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
