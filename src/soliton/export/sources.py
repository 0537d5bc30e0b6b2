"""Where the chain is read from: what the export needs of a block, and the store of a node.

A source shows the chain as it is at a moment; ``refresh`` moves on to the next one. What is read in
between fits together in a store; of a node that is asked over HTTP the follower checks it, by the
references of the blocks.

What lives here: the records, the protocol, the store. What does not: rows of tables (``rows``).
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from typing import Any, Final, Protocol

import msgspec

from soliton.api.json_blocks import transaction_json
from soliton.api.json_snapshots import snapshot_json
from soliton.api.json_transactions import STATE_MEMBERS, confirmed_json
from soliton.chain.addresses import Address, address_text
from soliton.chain.transactions.model import AnyTransaction
from soliton.crypto import base58
from soliton.export.errors import SourceAway
from soliton.ledger.state import (
    ALIASES,
    ASSET_NAMES,
    ASSET_SCRIPTS,
    ASSET_VOLUMES,
    ASSETS,
    DATA,
    SPONSORSHIPS,
    Changes,
)
from soliton.node.blockchain import Blockchain, FoundTransaction
from soliton.storage.errors import DamagedStore, StoreBusy

Members = dict[str, Any]

POLL_SECONDS: Final = 0.02
"""So often a store is looked at: that costs microseconds, and no export is further behind."""

_WITH_PAYLOAD: Final = frozenset(
    type_id for type_id, row in STATE_MEMBERS.items() if "payload" in row.confirmed
)
"""Types whose JSON is only complete with what the state knows."""
_ASSET_TABLES: Final = (ASSETS, ASSET_VOLUMES, ASSET_NAMES, ASSET_SCRIPTS, SPONSORSHIPS)
ASSET_MEMBERS: Final = (
    *("assetStatics", "assetVolumes", "assetNamesAndDescriptions"),
    *("assetScripts", "sponsorships"),
)
_NOTHING: Final[Members] = {}


class ChainTransaction(msgspec.Struct, frozen=True, gc=False):
    """A transaction as the REST API shows it, and of what it wrote what is about assets, in the
    form of the API's snapshots.
    """

    members: Members
    assets: Members
    data: Sequence[Members] = ()


class ChainBlock(msgspec.Struct, frozen=True):
    """A block of the chain. ``key`` stands for what does not change while the last block grows,
    ``total_waves`` is how much there is of the chain's coin, in wavelets.
    """

    height: int
    id: str
    reference: str
    key: str
    timestamp: int
    total_waves: int | None
    transactions: Sequence[ChainTransaction]


class Source(Protocol):
    """A chain to be followed."""

    network: str
    chain_id: int

    def refresh(self) -> int:
        """See what is new; the height of the chain. Raises ``SourceAway``."""

    def block_id(self, height: int) -> str | None:
        """The id of the block at a height, ``None`` where there is none."""

    def blocks(self, first: int, last: int) -> Iterator[ChainBlock]:
        """Blocks of these heights, one after the other; it may end early. Raises ``SourceAway``."""

    def address_of(self, alias: str) -> str:
        """The account that an alias of the chain stands for."""

    def wait(self, seconds: float) -> None:
        """Return when there may be something new, or after so long."""

    def close(self) -> None:
        """Let go of the chain."""


def key_of(timestamp: int, reference: str, generation_signature: str) -> str:
    """What a block keeps while it grows, as one text."""
    return f"{timestamp}.{reference}.{generation_signature}"


class StoreSource:
    """The chain in a node's data directory; the node may run meanwhile."""

    def __init__(self, chain: Blockchain, complete: frozenset[int] = frozenset()) -> None:
        """``complete`` are types whose outcome is to be shown as well."""
        self.network = chain.network.name
        self.chain_id = chain.network.chain_id
        self._chain = chain
        self._complete = _WITH_PAYLOAD | complete
        self._aliases: dict[str, str] = {}

    def refresh(self) -> int:
        """See what the node has written since."""
        try:
            self._chain.follow()
        except StoreBusy as error:
            raise SourceAway(f"the store: {error}") from error
        return self._chain.height

    def block_id(self, height: int) -> str | None:
        """The id of the block at a height."""
        if not 1 <= height <= self._chain.height:
            return None
        return base58.encode(self._chain.meta(height).id)

    def blocks(self, first: int, last: int) -> Iterator[ChainBlock]:
        """Blocks of these heights."""
        return map(self._block, range(first, last + 1))

    def _block(self, height: int) -> ChainBlock:
        chain = self._chain
        block, meta = chain.block_at(height), chain.meta(height)
        header = block.header
        shown: Members = {"version": header.version}
        return ChainBlock(
            height,
            base58.encode(meta.id),
            base58.encode(header.reference),
            key_of(
                header.timestamp,
                base58.encode(header.reference),
                base58.encode(header.generation_signature),
            ),
            header.timestamp,
            meta.total_waves,
            [self._transaction(each, shown) for each in block.transactions],
        )

    def _transaction(self, transaction: AnyTransaction, shown: Members) -> ChainTransaction:
        chain = self._chain
        location = chain.store.transaction_location(transaction.id)
        if location is None:
            raise DamagedStore(f"transaction {base58.encode(transaction.id)} has no place")
        if transaction.type_id in self._complete:
            found = FoundTransaction(
                transaction, location.height, location.status, location.complexity
            )
            members = confirmed_json(found, chain)
        else:
            members = transaction_json(chain, transaction, shown)
        changes = chain.store.transaction_changes(location) or {}
        return ChainTransaction(
            members, *_shown_changes(changes, transaction.id, location.height, location.status)
        )

    def address_of(self, alias: str) -> str:
        """The account that an alias stands for; it never changes."""
        found = self._aliases.get(alias)
        if found is None:
            address: Address | None = self._chain.store.get(ALIASES, alias)
            if address is None:
                raise SourceAway(f"alias {alias} is not there any more")
            found = self._aliases[alias] = address_text(address)
        return found

    def wait(self, seconds: float) -> None:
        """Look again in a moment."""
        time.sleep(min(seconds, POLL_SECONDS))

    def close(self) -> None:
        """Let go of the store."""
        self._chain.store.close()


def _shown_changes(
    changes: Changes, transaction_id: bytes, height: int, status: int
) -> tuple[Members, Sequence[Members]]:
    """What is about assets, and about data, of what a transaction wrote."""
    about_assets = any(table in changes for table in _ASSET_TABLES)
    if not about_assets and DATA not in changes:
        return _NOTHING, ()
    shown = snapshot_json(changes, transaction_id, height, status)
    assets = {name: shown[name] for name in ASSET_MEMBERS} if about_assets else _NOTHING
    return assets, shown["accountData"]  # type: ignore[return-value]
