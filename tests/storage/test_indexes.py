"""What finds things by account or asset: aliases, leases, NFTs, holders, changes."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from soliton.chain.addresses import Address, from_public_key
from soliton.chain.values import AssetId
from soliton.ledger.state import (
    ALIASES,
    ASSET_BALANCES,
    ASSETS,
    DATA,
    LEASE_INFO,
    WAVES,
    AssetInfo,
    Changes,
    LeaseInfo,
)
from soliton.storage import indexes
from soliton.storage.blocks import NewBlock, NewTransaction
from soliton.storage.store import Store
from tests.storage.test_store import meta

KEYS = tuple(bytes((number,)) * 32 for number in range(3))
FIRST, SECOND, THIRD = (from_public_key(key, ord("T")) for key in KEYS)
COIN, NFT, LATER = (AssetId(bytes((number,)) * 32) for number in (9, 8, 7))


def block(height: int, changes: Changes, first_index: int = 0, **more: Changes) -> NewBlock:
    """A block with one transaction that did all of it, or with those named."""
    listed = [
        NewTransaction(name.encode() * 8, 0, 1, 0, 5, (), done)
        for name, done in (more or {f"t{height:03}": changes}).items()
    ]
    return NewBlock(height, b"block", meta(height, first_index), changes, listed, first_index)


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    made = Store(tmp_path, "net", durable=False)
    yield made
    made.close()


def append(store: Store, height: int, changes: Changes) -> None:
    store.append(block(height, changes))
    store.flush()


def asset(height: int, sequence: int, *, nft: bool) -> AssetInfo:
    return AssetInfo(KEYS[0], 0, nft, bytes(32), height, sequence)


def test_aliases(store: Store) -> None:
    append(store, 1, {ALIASES: {"first": FIRST, "other": SECOND}})
    second, third = ({ALIASES: {name: FIRST}} for name in ("second", "third"))
    both: Changes = {ALIASES: {"second": FIRST, "third": FIRST}}
    store.append(block(2, both, a=second, b=third))
    store.flush()
    assert list(indexes.aliases_of(store, FIRST)) == ["third", "second", "first"]
    # A name that was taken away is no alias any more.
    append(store, 3, {ALIASES: {"second": None}})
    assert list(indexes.aliases_of(store, FIRST)) == ["third", "first"]
    store.rollback(1)
    assert list(indexes.aliases_of(store, FIRST)) == ["first"]


def test_leases(store: Store) -> None:
    def lease(sender: int, recipient: Address) -> LeaseInfo:
        return LeaseInfo(KEYS[sender], recipient, 5, bytes(32), 1)

    append(store, 1, {LEASE_INFO: {b"1": lease(0, SECOND), b"2": lease(1, FIRST)}})
    append(store, 2, {LEASE_INFO: {b"3": lease(0, THIRD)}})
    assert [name for _, name in indexes.leases_of(store, FIRST)] == [b"3", b"1", b"2"]
    assert [name for _, name in indexes.leases_of(store, THIRD)] == [b"3"]
    place, _ = next(indexes.leases_of(store, FIRST))
    assert [name for _, name in indexes.leases_of(store, FIRST, place)] == [b"1", b"2"]
    store.rollback(1)
    assert [name for _, name in indexes.leases_of(store, FIRST)] == [b"1", b"2"]


def test_balances_of_assets(store: Store) -> None:
    append(store, 1, {ASSET_BALANCES: {(FIRST, COIN): 5, (FIRST, NFT): 1, (SECOND, COIN): 2}})
    assert list(indexes.asset_balances(store, FIRST)) == [(NFT, 1), (COIN, 5)]
    assert list(indexes.asset_balances(store, FIRST, NFT)) == [(COIN, 5)]
    assert list(indexes.asset_balances(store, THIRD)) == []


def test_nfts(store: Store) -> None:
    made = {COIN: asset(1, 1, nft=False), NFT: asset(1, 2, nft=True), LATER: asset(1, 3, nft=True)}
    append(store, 1, {ASSETS: made, ASSET_BALANCES: {(FIRST, name): 1 for name in made}})
    append(store, 2, {ASSET_BALANCES: {(FIRST, NFT): 0, (SECOND, NFT): 1}})
    append(store, 3, {ASSET_BALANCES: {(FIRST, NFT): 1, (SECOND, NFT): 0}})
    assert list(indexes.nfts(store, FIRST)) == [(NFT, (1, 2)), (LATER, (1, 3))]
    assert list(indexes.nfts(store, FIRST, (1, 2))) == [(LATER, (1, 3))]
    back = list(indexes.nfts(store, FIRST, newest_first=True))
    assert back == [(LATER, (1, 3)), (NFT, (1, 2))]
    assert list(indexes.nfts(store, FIRST, (1, 3), newest_first=True)) == back[1:]
    assert list(indexes.nfts(store, SECOND)) == [(NFT, (1, 2))]
    store.rollback(1)
    assert list(indexes.nfts(store, SECOND)) == []


def test_holders(store: Store) -> None:
    append(store, 1, {ASSET_BALANCES: {(FIRST, COIN): 5}, WAVES: {FIRST: 10}})
    append(store, 2, {ASSET_BALANCES: {(FIRST, COIN): 2, (SECOND, COIN): 3}, WAVES: {SECOND: 1}})
    append(store, 3, {ASSET_BALANCES: {(FIRST, COIN): 0, (THIRD, COIN): 2}, WAVES: {FIRST: 0}})
    by_height = [dict(indexes.asset_distribution(store, COIN, height)) for height in range(4)]
    assert by_height == [{}, {FIRST: 5}, {FIRST: 2, SECOND: 3}, {SECOND: 3, THIRD: 2}]
    everyone = list(indexes.asset_distribution(store, COIN, 3))
    assert everyone == sorted(everyone)
    assert list(indexes.asset_distribution(store, COIN, 3, everyone[0][0])) == everyone[1:]
    assert [indexes.asset_balance_at(store, FIRST, COIN, height) for height in range(5)] == [
        0,
        5,
        2,
        0,
        0,
    ]
    by_height = [dict(indexes.distribution(store, height)) for height in range(4)]
    assert by_height == [{}, {FIRST: 10}, {FIRST: 10, SECOND: 1}, {SECOND: 1}]
    store.rollback(2)
    assert dict(indexes.asset_distribution(store, COIN, 3)) == {FIRST: 2, SECOND: 3}


def test_changes_of_transactions(store: Store) -> None:
    first: Changes = {WAVES: {FIRST: 1}, DATA: {(FIRST, "key"): "text", (FIRST, "gone"): None}}
    second: Changes = {ASSET_BALANCES: {(SECOND, COIN): 7}, ALIASES: {"name": SECOND}}
    third: Changes = {ASSETS: {NFT: asset(1, 1, nft=True)}}
    append(store, 1, {})
    store.append(block(2, {}, first=first, second=second))
    store.extend(block(2, {}, 2, third=third))

    def changes(name: str) -> Changes | None:
        location = store.transaction_location(name.encode() * 8)
        assert location is not None and location.complexity == 5
        return store.transaction_changes(location)

    assert [changes(name) for name in ("first", "second", "third")] == [first, second, third]
    location = store.transaction_location(b"third" * 8)
    assert location is not None
    store.shorten()
    assert store.transaction_location(b"third" * 8) is None
    assert changes("second") == second
    store.rollback(1)
    assert store.transaction_changes(location) is None
