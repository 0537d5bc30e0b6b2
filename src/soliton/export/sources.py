"""The sources of the chain: the blocks that an export needs, and the store of a node.

A source shows the chain as of one point in time; ``refresh`` moves on. Between refreshes a store is
consistent; for a node over HTTP the follower checks consistency by the references of blocks.

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
"""Polling interval of a store; a poll costs microseconds."""

_WITH_PAYLOAD: Final = frozenset(
    type_id for type_id, row in STATE_MEMBERS.items() if "payload" in row.confirmed
)
"""Types whose JSON is complete only with data from the state."""
_ASSET_TABLES: Final = (ASSETS, ASSET_VOLUMES, ASSET_NAMES, ASSET_SCRIPTS, SPONSORSHIPS)
ASSET_MEMBERS: Final = (
    *("assetStatics", "assetVolumes", "assetNamesAndDescriptions"),
    *("assetScripts", "sponsorships"),
)
_NOTHING: Final[Members] = {}


class ChainTransaction(msgspec.Struct, frozen=True, gc=False):
    """A transaction in the REST API's JSON, and its changes of assets in the form of the API's
    snapshots; ``data`` are its data entries by account.
    """

    members: Members
    assets: Members
    data: Sequence[Members] = ()


class ChainBlock(msgspec.Struct, frozen=True):
    """A block of the chain. ``key`` identifies the last block while it grows; ``total_waves`` is
    the total supply in the smallest unit.
    """

    height: int
    id: str
    reference: str
    key: str
    timestamp: int
    total_waves: int | None
    transactions: Sequence[ChainTransaction]


class Source(Protocol):
    """A chain that can be followed."""

    network: str
    chain_id: int
    only_final: bool
    """Whether all of its blocks are final: receivers never take one back."""

    def refresh(self) -> int:
        """Read the latest state and return the height. Raises ``SourceAway``."""

    def finalized_height(self) -> int:
        """Return the height of the last final block as of ``refresh``. Raises ``SourceAway``."""

    def block_id(self, height: int) -> str | None:
        """Return the id of the block at a height, ``None`` if there is none."""

    def blocks(self, first: int, last: int) -> Iterator[ChainBlock]:
        """Yield blocks of these heights; it may end early. Raises ``SourceAway``."""

    def address_of(self, alias: str) -> str:
        """Return the address of an alias."""

    def wait(self, seconds: float) -> None:
        """Wait until there may be something new, at most for a time."""

    def close(self) -> None:
        """Close the source."""


def key_of(timestamp: int, reference: str, generation_signature: str) -> str:
    """Return a text of what a block keeps while it grows."""
    return f"{timestamp}.{reference}.{generation_signature}"


class StoreSource:
    """The chain in a node's data directory; the node may be running."""

    only_final = False

    def __init__(self, chain: Blockchain, complete: frozenset[int] = frozenset()) -> None:
        """``complete`` are the types to read with their outcome."""
        self.network = chain.network.name
        self.chain_id = chain.network.chain_id
        self._chain = chain
        self._complete = _WITH_PAYLOAD | complete
        self._aliases: dict[str, str] = {}

    def refresh(self) -> int:
        """See ``Source``."""
        try:
            self._chain.follow()
        except StoreBusy as error:
            raise SourceAway(f"the store: {error}") from error
        return self._chain.height

    def finalized_height(self) -> int:
        """See ``Source``."""
        return self._chain.finalized_height

    def block_id(self, height: int) -> str | None:
        """See ``Source``."""
        if not 1 <= height <= self._chain.height:
            return None
        return base58.encode(self._chain.meta(height).id)

    def blocks(self, first: int, last: int) -> Iterator[ChainBlock]:
        """See ``Source``."""
        return map(self._block, range(first, last + 1))

    def _block(self, height: int) -> ChainBlock:
        chain = self._chain
        block, meta = chain.block_at(height), chain.meta(height)
        header = block.header
        base: Members = {"version": header.version}
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
            [self._transaction(each, base) for each in block.transactions],
        )

    def _transaction(self, transaction: AnyTransaction, base: Members) -> ChainTransaction:
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
            members = transaction_json(chain, transaction, base)
        changes = chain.store.transaction_changes(location) or {}
        return ChainTransaction(
            members, *_changes_json(changes, transaction.id, location.height, location.status)
        )

    def address_of(self, alias: str) -> str:
        """See ``Source``; an alias never changes."""
        found = self._aliases.get(alias)
        if found is None:
            address: Address | None = self._chain.store.get(ALIASES, alias)
            if address is None:
                raise SourceAway(f"alias {alias} is not there any more")
            found = self._aliases[alias] = address_text(address)
        return found

    def wait(self, seconds: float) -> None:
        """See ``Source``."""
        time.sleep(min(seconds, POLL_SECONDS))

    def close(self) -> None:
        """Close the store."""
        self._chain.store.close()


def _changes_json(
    changes: Changes, transaction_id: bytes, height: int, status: int
) -> tuple[Members, Sequence[Members]]:
    """Return the changes of assets and of data that a transaction made."""
    about_assets = any(table in changes for table in _ASSET_TABLES)
    if not about_assets and DATA not in changes:
        return _NOTHING, ()
    snapshot = snapshot_json(changes, transaction_id, height, status)
    assets = {name: snapshot[name] for name in ASSET_MEMBERS} if about_assets else _NOTHING
    return assets, snapshot["accountData"]  # type: ignore[return-value]
