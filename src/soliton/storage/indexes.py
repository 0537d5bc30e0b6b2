"""Indexes: aliases, leases and assets by account, accounts by asset. Reads see flushed records
only.

What lives here: the index records of a block, and reading them. What does not: the state itself and
writing (``store``), keys (``layout``).
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import Final, Protocol, TypeVar

from soliton.chain.addresses import Address, from_public_key
from soliton.chain.layouts import DIGEST_LENGTH
from soliton.chain.values import AssetId
from soliton.ledger.state import ALIASES, ASSET_BALANCES, ASSETS, LEASE_INFO, Changes, Table
from soliton.storage import layout
from soliton.storage.blocks import NewBlock
from soliton.storage.damage import readable
from soliton.storage.keeping import Kept
from soliton.storage.layout import height_key

K = TypeVar("K")
V = TypeVar("V")

MAX_LEASES: Final = 1_000
"""More leases than one transaction can make."""

_INDEXED: Final = frozenset((ALIASES, ASSET_BALANCES, LEASE_INFO))
_BY_HAND_NUMBER: Final = 0xFFFF
"""Higher than the index of any transaction: a block has at most 6,000."""
_MAX_U32: Final = 0xFFFF_FFFF
_NFT_PLACE: Final = struct.Struct(">II")
_PLACE: Final = struct.Struct(">IH")


class Records(Protocol):
    """Read access to a store; scans see flushed records only."""

    @property
    def kept(self) -> Kept:
        """What the store keeps."""

    def get(self, table: Table[K, V], key: K) -> V:
        """Return the value of a key of a state table."""

    def scan(self, prefix: bytes, start: bytes) -> Iterator[tuple[bytes, bytes]]:
        """Yield the keys and values of a prefix in ascending order, from ``start`` on."""

    def scan_back(self, prefix: bytes, before: bytes = b"") -> Iterator[tuple[bytes, bytes]]:
        """Yield the keys and values of a prefix in descending order, below ``before``."""


class Histories(Protocol):
    """Read access to the histories of balances."""

    @property
    def kept(self) -> Kept:
        """What the store keeps."""

    def balance_history(self, address: Address, top: int) -> Iterator[tuple[int, int, int]]:
        """Yield height, own balance and effective balance at every change up to ``top``, newest
        first.
        """


def index_records(
    block: NewBlock, state: Records, *, by_lease: bool = True
) -> Iterator[tuple[bytes, bytes]]:
    """Yield the index records of a block, with leases by account or not; ``state`` is that before
    the block.

    They are numbered by transaction, so they do not depend on how a block is split into
    microblocks.
    """
    if _INDEXED.isdisjoint(block.changes):
        return
    height = block.height
    for index, changes in _written(block):
        for name, address in changes.get(ALIASES, {}).items():
            if address is not None:
                place = height_key(address, height) + index.to_bytes(2, "big")
                yield layout.ADDRESS_ALIAS + place, name.encode()
        for number, (lease_id, info) in enumerate(
            changes.get(LEASE_INFO, {}).items(), index * MAX_LEASES
        ):
            owner = from_public_key(info.sender, info.recipient[1])
            for account in (owner, info.recipient) if by_lease else ():
                place = height_key(account, height) + (_MAX_U32 - number).to_bytes(4, "big")
                yield layout.ADDRESS_LEASE + place, lease_id
    yield from _asset_records(block, state)


def _written(block: NewBlock) -> Iterator[tuple[int, Changes]]:
    """Yield the changes of each transaction with its index; changes by hand have the highest."""
    if block.edited:
        yield _BY_HAND_NUMBER, block.edited
    for index, item in enumerate(block.transactions, block.first_index):
        yield index, item.changes


def _asset_records(block: NewBlock, state: Records) -> Iterator[tuple[bytes, bytes]]:
    for (address, asset_id), balance in block.changes.get(ASSET_BALANCES, {}).items():
        history = height_key(asset_id + address, block.height)
        yield layout.ASSET_HISTORY + history, balance.to_bytes(8, "big", signed=True)
    new_assets = block.changes.get(ASSETS, {})
    # By transaction, because an NFT may also be passed on within the block.
    for _, changes in _written(block):
        for key, balance in changes.get(ASSET_BALANCES, {}).items():
            if balance <= 0 or state.get(ASSET_BALANCES, key) > 0:
                continue
            address, asset_id = key
            asset = new_assets.get(asset_id) or state.get(ASSETS, asset_id)
            if asset is not None and asset.nft:
                place = _NFT_PLACE.pack(asset.height, asset.sequence)
                yield layout.ADDRESS_NFT + address + place + asset_id, b""


@readable(layout.ADDRESS_ALIAS)
def aliases_of(store: Records, address: Address) -> Iterator[str]:
    """Yield the aliases of an account, newest first."""
    for _, name in store.scan_back(layout.ADDRESS_ALIAS + address):
        if store.get(ALIASES, name.decode()) == address:
            yield name.decode()


def leases_of(
    store: Records, address: Address, after: bytes | None = None
) -> Iterator[tuple[bytes, bytes]]:
    """Yield position and id of the leases from and to an account, those of newer blocks first,
    starting behind the position ``after``. Raises ``NotKept``.
    """
    store.kept.need_by_lease()
    prefix = layout.ADDRESS_LEASE + address
    for key, lease_id in store.scan_back(prefix, b"" if after is None else after):
        yield key[len(prefix) :], lease_id


@readable(layout.ROWS[ASSET_BALANCES].prefix)
def asset_balances(
    store: Records, address: Address, after: AssetId | None = None
) -> Iterator[tuple[AssetId, int]]:
    """Yield the account's asset balances, including those of 0, in the order of asset ids, starting
    behind the asset ``after``.
    """
    prefix = layout.ROWS[ASSET_BALANCES].prefix + address
    start = prefix if after is None else prefix + after + b"\0"
    decode = layout.ROWS[ASSET_BALANCES].decode
    for key, raw in store.scan(prefix, start):
        yield layout.decode_asset_balance_key(key)[1], decode(raw)


@readable(layout.ADDRESS_TRANSACTION)
def address_transactions(
    store: Records,
    address: Address,
    after: tuple[int, int] | None = None,
    *,
    oldest_first: bool = False,
) -> Iterator[tuple[int, int, bytes]]:
    """Yield height, index in the block and id of the account's transactions, newest first, starting
    behind the position ``after`` (height, index). Raises ``NotKept``.
    """
    store.kept.need_by_address()
    prefix = layout.ADDRESS_TRANSACTION + address
    place = b"" if after is None else _PLACE.pack(*after)
    if oldest_first:
        records = store.scan(prefix, prefix + place + b"\0" if place else prefix)
    else:
        records = store.scan_back(prefix, place)
    for key, name in records:
        yield *_PLACE.unpack_from(key, len(prefix)), name


@readable(layout.ADDRESS_NFT)
def nfts(
    store: Records,
    address: Address,
    after: tuple[int, int] | None = None,
    *,
    newest_first: bool = False,
) -> Iterator[tuple[AssetId, tuple[int, int]]]:
    """Yield the NFTs that the account has or has had, in the order of their issue, with height and
    sequence of the issue, starting behind the position ``after``.
    """
    prefix = layout.ADDRESS_NFT + address
    place = b"" if after is None else _NFT_PLACE.pack(*after)
    if newest_first:
        records = store.scan_back(prefix, place)
    else:
        records = store.scan(prefix, prefix + place + b"\xff" * 33 if place else prefix)
    for key, _ in records:
        height, sequence = _NFT_PLACE.unpack_from(key, len(prefix))
        yield AssetId(key[len(prefix) + _NFT_PLACE.size :]), (height, sequence)


def nft_place(store: Records, address: Address, asset_id: bytes) -> tuple[int, int] | None:
    """Return the place of an NFT in an account's list, ``None`` if it was never there."""
    info = store.get(ASSETS, AssetId(asset_id)) if len(asset_id) == DIGEST_LENGTH else None
    if info is None:
        return None
    place = info.height, info.sequence
    prefix = layout.ADDRESS_NFT + address + _NFT_PLACE.pack(*place) + asset_id
    return None if next(store.scan(prefix, prefix), None) is None else place


def asset_distribution(
    store: Records, asset_id: AssetId, height: int, after: Address | None = None
) -> Iterator[tuple[Address, int]]:
    """Yield the positive balances of an asset after the block at ``height``, by address, starting
    behind the account ``after``. Raises ``NotKept``.
    """
    store.kept.need_balances(height)
    prefix = layout.ASSET_HISTORY + asset_id
    for address, raw in _last_values(store, prefix, height, after):
        balance = int.from_bytes(raw, "big", signed=True)
        if balance > 0:
            yield address, balance


@readable(layout.HISTORY)
def distribution(
    store: Records, height: int, after: Address | None = None
) -> Iterator[tuple[Address, int]]:
    """Yield the positive balances in wavelets after the block at ``height``, by address, starting
    behind the account ``after``. Raises ``NotKept``.
    """
    store.kept.need_balances(height)
    for address, raw in _last_values(store, layout.HISTORY, height, after):
        balance = layout.decode_history(raw)[0]
        if balance > 0:
            yield address, balance


def asset_balance_at(store: Records, address: Address, asset_id: AssetId, height: int) -> int:
    """Return an account's balance of an asset after the block at a height; raises ``NotKept``."""
    store.kept.need_balances(height)
    prefix = layout.ASSET_HISTORY + asset_id + address
    end = prefix + (height + 1).to_bytes(4, "big")
    for _, raw in store.scan_back(prefix, end[len(prefix) :]):
        return int.from_bytes(raw, "big", signed=True)
    return 0


def minimum_effective_balance(store: Histories, address: Address, bottom: int, top: int) -> int:
    """Return the smallest effective balance of an account, in wavelets, after the blocks ``bottom``
    to ``top``. Raises ``NotKept``.
    """
    store.kept.need_balances(bottom)
    history = store.balance_history(address, top)
    return _smallest(((height, effective) for height, _, effective in history), bottom)


def minimum_balance(store: Histories, address: Address, bottom: int, top: int) -> int:
    """Return the smallest own balance of an account, in wavelets, after the blocks ``bottom`` to
    ``top``. Raises ``NotKept``.
    """
    store.kept.need_balances(bottom)
    history = store.balance_history(address, top)
    return _smallest(((height, balance) for height, balance, _ in history), bottom)


def _smallest(balances: Iterator[tuple[int, int]], bottom: int) -> int:
    """Return the smallest balance since ``bottom``, of balances by height, newest first."""
    smallest: int | None = None
    for height, balance in balances:
        smallest = balance if smallest is None else min(smallest, balance)
        if height <= bottom:
            return smallest
    # Before its first change the account had nothing.
    return min(0, smallest or 0)


def _last_values(
    store: Records, prefix: bytes, height: int, after: Address | None
) -> Iterator[tuple[Address, bytes]]:
    """Yield each address's last record up to a height; keys are ``prefix, address, height``."""
    start = prefix if after is None else prefix + after + b"\xff" * 5
    address: Address | None = None
    last: bytes | None = None
    for key, raw in store.scan(prefix, start):
        owner = Address(key[len(prefix) : -4])
        if owner != address:
            if address is not None and last is not None:
                yield address, last
            address, last = owner, None
        if int.from_bytes(key[-4:], "big") <= height:
            last = raw
    if address is not None and last is not None:
        yield address, last
