"""Changes that the original node of a fork has made since the height of the fork.

A node returns its present state. As long as its last block is that of the fork, this is the state
at the fork's height; the earlier values of what later blocks have changed are not available.

What lives here: following the node's blocks, and the entries that they changed. What does not:
reading the state (``state``).
"""

from __future__ import annotations

import logging
from itertools import pairwise
from typing import Any, Final

import msgspec

from soliton.chain.addresses import ADDRESS_LENGTH, from_public_key
from soliton.crypto import base58
from soliton.crypto.errors import Base58Error
from soliton.devnet.fork.remote import Height, Remote
from soliton.devnet.fork.state import GENERATING
from soliton.ledger.state import (
    ACCOUNT_SCRIPTS,
    ALIASES,
    ASSET_BALANCES,
    ASSET_NAMES,
    ASSET_SCRIPTS,
    ASSET_VOLUMES,
    ASSETS,
    DATA,
    ERC20,
    LEASE_INFO,
    LEASE_STATES,
    LEASES,
    SPONSORSHIPS,
    WAVES,
)
from soliton.storage import layout
from soliton.storage.errors import NotBelow

MAX_BEHIND: Final = 1_000
"""Limit on the blocks that the node may be ahead of the fork."""
_PAGE: Final = 20
_IDS: Final = 100
_OF_ASSET: Final = (ASSETS, ASSET_VOLUMES, ASSET_NAMES, ASSET_SCRIPTS, SPONSORSHIPS)

_log = logging.getLogger(__name__)


class _Head(msgspec.Struct, frozen=True):
    id: str
    height: Height


class _Named(msgspec.Struct, frozen=True):
    id: str


class Seen(msgspec.Struct, frozen=True, rename="camel"):
    """A block of the node, with the members that matter here."""

    id: str
    height: Height
    reference: str
    generator: str
    transactions: list[_Named]
    reward_shares: dict[str, int] = {}

    @property
    def names(self) -> list[str]:
        """The ids of its transactions."""
        return [each.id for each in self.transactions]


class Since:
    """The entries that a node has changed since a block."""

    def __init__(self, remote: Remote, chain_id: int, block: Seen, *, takes_newer: bool) -> None:
        self._remote = remote
        self._chain_id = chain_id
        self._first = block
        self._seen = {block.height: block}
        self._noted = set(block.names)
        self._head = block.id
        self._takes_newer = takes_newer
        self._changed: dict[bytes, int] = {}
        self._warned: set[bytes] = set()

    def check(self, key: bytes) -> None:
        """Raise ``NotBelow`` if the node has changed an entry, or one of a list, in the blocks that
        were read.
        """
        at = self._changed.get(key)
        if at is None or key in self._warned:
            return
        text = (
            f"{_key_text(key)} was changed in block {at} of {self._remote.url}: what it was at "
            f"height {self._first.height}, where this chain begins, is not told"
        )
        if not self._takes_newer:
            raise NotBelow(f"{text} (with --fork-newer it is taken as it is now)")
        self._warned.add(key)
        _log.warning("%s; it is taken as it is now", text)

    def has_changed(self, key: bytes) -> bool:
        """Whether the node has changed an entry in the blocks that were read."""
        return key in self._changed

    def refresh(self) -> None:
        """Read the node's new blocks."""
        path = "/blocks/headers/last"
        head = self._remote.ask(path, _Head)
        if head.id == self._head:
            return
        first, top = self._first.height, head.height
        if top < first:
            raise self._remote.trouble(path, f"height {top} is below {first}, where this began")
        if top - first > MAX_BEHIND:
            raise NotBelow(
                f"{self._remote.url} is at height {top}, more than {MAX_BEHIND} blocks above "
                f"{first}, where this chain begins: fork it anew"
            )
        found = self._read(min(max(self._seen), top), top)
        if not self._continues(found):
            # Blocks were replaced.
            self._seen = {first: self._first}
            found = self._read(first, top)
            if not self._continues(found):
                text = f"block {self._first.id} at height {first} is not there any more"
                raise self._remote.trouble(path, text)
        for block in found:
            self._note_changes(block)
        self._head = found[-1].id

    def _read(self, start: int, top: int) -> list[Seen]:
        found: list[Seen] = []
        for low in range(start, top + 1, _PAGE):
            path = f"/blocks/seq/{low}/{min(top, low + _PAGE - 1)}"
            found += self._remote.ask(path, list[Seen])
        if [each.height for each in found] != list(range(start, top + 1)):
            raise self._remote.trouble(f"/blocks/seq/{start}/{top}", "answers with other blocks")
        return found

    def _continues(self, found: list[Seen]) -> bool:
        """Whether blocks continue those read before, the first of which may have grown."""
        known, block = self._seen[found[0].height], found[0]
        if known.id != block.id and (
            known.reference != block.reference
            or block.names[: len(known.transactions)] != known.names
        ):
            return False
        return all(above.reference == below.id for below, above in pairwise(found))

    def _note_changes(self, block: Seen) -> None:
        if block.height > self._first.height:
            for text in (block.generator, *block.reward_shares):
                address = self._remote.binary("/blocks/seq", text, ADDRESS_LENGTH)
                for prefix in (layout.ROWS[WAVES].prefix, GENERATING):
                    self._changed.setdefault(prefix + address, block.height)
        new = [each for each in block.names if each not in self._noted]
        for at in range(0, len(new), _IDS):
            path, ids = "/transactions/snapshot", new[at : at + _IDS]
            for row in self._remote.several(path, ids, _Snapshot):
                try:
                    keys = _written(row, self._chain_id)
                except (Base58Error, KeyError) as error:
                    raise self._remote.trouble(path, f"no snapshot: {error!r}") from error
                for key in keys:
                    self._changed.setdefault(key, block.height)
        self._noted.update(new)
        self._seen[block.height] = block


class _Balance(msgspec.Struct, frozen=True):
    address: str
    asset: str | None


class _Address(msgspec.Struct, frozen=True):
    address: str


class _Lease(msgspec.Struct, frozen=True):
    id: str
    sender: str
    recipient: str


class _Alias(msgspec.Struct, frozen=True):
    alias: str
    address: str


class _Script(msgspec.Struct, frozen=True, rename="camel"):
    public_key: str


class _Data(msgspec.Struct, frozen=True):
    address: str
    data: list[dict[str, Any]]


class _Snapshot(msgspec.Struct, frozen=True, rename="camel"):
    balances: list[_Balance] = []
    lease_balances: list[_Address] = []
    asset_statics: list[_Named] = []
    asset_volumes: list[_Named] = []
    asset_names_and_descriptions: list[_Named] = []
    asset_scripts: list[_Named] = []
    sponsorships: list[_Named] = []
    new_leases: list[_Lease] = []
    cancelled_leases: list[_Named] = []
    aliases: list[_Alias] = []
    account_scripts: list[_Script] = []
    account_data: list[_Data] = []


def _written(row: _Snapshot, chain_id: int) -> set[bytes]:
    """Return the keys that a transaction wrote, and those of the lists that include them."""
    prefix = {table: each.prefix for table, each in layout.ROWS.items()}
    keys: set[bytes] = set()
    for balance in row.balances:
        address = base58.decode(balance.address)
        if balance.asset is None:
            keys |= {prefix[WAVES] + address, GENERATING + address}
        else:
            keys.add(prefix[ASSET_BALANCES] + address + base58.decode(balance.asset))
            keys |= {prefix[ASSET_BALANCES] + address, layout.ADDRESS_NFT + address}
    for each in row.lease_balances:
        address = base58.decode(each.address)
        keys |= {prefix[LEASES] + address, GENERATING + address, layout.ADDRESS_LEASE + address}
    for asset in (
        *row.asset_statics,
        *row.asset_volumes,
        *row.asset_names_and_descriptions,
        *row.asset_scripts,
        *row.sponsorships,
    ):
        asset_id = base58.decode(asset.id)
        keys |= {prefix[table] + asset_id for table in _OF_ASSET}
    keys |= {prefix[ERC20] + base58.decode(each.id)[:20] for each in row.asset_statics}
    leases = [each.id for each in row.new_leases] + [each.id for each in row.cancelled_leases]
    for name in map(base58.decode, leases):
        keys |= {prefix[table] + name for table in (LEASE_INFO, LEASE_STATES)}
    for alias in row.aliases:
        keys.add(prefix[ALIASES] + alias.alias.encode())
        keys.add(layout.ADDRESS_ALIAS + base58.decode(alias.address))
    for script in row.account_scripts:
        owner = from_public_key(base58.decode(script.public_key), chain_id)
        keys.add(prefix[ACCOUNT_SCRIPTS] + owner)
    for data in row.account_data:
        address = base58.decode(data.address)
        keys.add(prefix[DATA] + address)
        keys |= {prefix[DATA] + address + str(entry["key"]).encode() for entry in data.data}
    return keys


def _key_text(key: bytes) -> str:
    """Describe a key for people."""
    kind, rest = key[:1], key[1:]
    name = "a generating balance" if kind == GENERATING else layout.KINDS[kind]
    if kind == layout.ROWS[ALIASES].prefix:
        return f"{name} ({rest.decode(errors='replace')})"
    if kind == layout.ROWS[DATA].prefix:
        return f"{name} ({base58.encode(rest[:26])} {rest[26:].decode(errors='replace')})"
    if kind == layout.ROWS[ASSET_BALANCES].prefix:
        return f"{name} ({base58.encode(rest[:26])} {base58.encode(rest[26:])})"
    return f"{name} ({base58.encode(rest)})"
