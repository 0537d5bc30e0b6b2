"""Records of large blocks are made in steps: how large these are, and what is seen meanwhile."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from soliton.chain.addresses import Address
from soliton.errors import InvariantBroken
from soliton.ledger.state import DATA, WAVES, Changes
from soliton.steps import Steps
from soliton.storage.block_records import STEP_RECORDS
from soliton.storage.blocks import NewBlock
from soliton.storage.store import Prepared, Store
from tests.storage.test_store import ADDRESSES, block, held

MANY = 3_000
ACCOUNTS = tuple(Address(ADDRESSES[0][:-2] + number.to_bytes(2, "big")) for number in range(MANY))
LONGEST = 4 * STEP_RECORDS
"""Reads of the store in one step: what is left of one kind of records is in a step with the next.
"""


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    opened = Store(tmp_path, "net", durable=False)
    opened.append(block(1))
    opened.flush()
    yield opened
    opened.close()


def large(height: int, seed: int = 0, first: int = 0) -> NewBlock:
    """A block with many transactions, accounts and data entries."""
    changes: Changes = {
        WAVES: dict.fromkeys(ACCOUNTS, 7 + seed),
        DATA: {(account, "key"): seed for account in ACCOUNTS},
    }
    names = tuple(b"%d of %d" % (number, seed) for number in range(MANY))
    plain = block(height, {}, names, ACCOUNTS[:1], seed)
    return msgspec.structs.replace(plain, changes=changes, first_index=first)


@pytest.fixture
def reads(store: Store, monkeypatch: pytest.MonkeyPatch) -> list[bytes]:
    """The keys that are read."""
    found: list[bytes] = []
    read = store._db.get

    def noted(_self: object, key: bytes) -> bytes | None:
        found.append(key)
        return read(key)

    monkeypatch.setattr(type(store._db), "get", noted)
    return found


def in_steps(steps: Steps[Prepared], reads: list[bytes]) -> tuple[Prepared, list[int]]:
    """The result, and how much each step read."""
    sizes: list[int] = []
    while True:
        reads.clear()
        try:
            next(steps)
        except StopIteration as end:
            return end.value, [*sizes, len(reads)]
        sizes.append(len(reads))


def test_a_block_on_top(store: Store, reads: list[bytes]) -> None:
    before = held(store)
    prepared, sizes = in_steps(store.preparing(large(2)), reads)
    assert len(sizes) > 4 * MANY // STEP_RECORDS
    assert max(sizes) <= LONGEST
    assert (store.height, held(store), dict(store._pending)) == (1, before, {})
    assert [*prepared.items] == sorted(prepared.items)
    store.put(prepared)
    store.flush()
    assert store.height == 2
    assert store.get(DATA, (ACCOUNTS[-1], "key")) == 0
    store.rollback(1)
    assert held(store) == before


def test_a_longer_last_block(store: Store, reads: list[bytes]) -> None:
    store.append(large(2))
    store.flush()
    before = held(store)
    prepared, sizes = in_steps(store.preparing_longer(large(2, 1, first=MANY)), reads)
    assert len(sizes) > 8 * MANY // STEP_RECORDS
    assert max(sizes) <= LONGEST
    assert held(store) == before
    store.put(prepared)
    assert store.get(DATA, (ACCOUNTS[-1], "key")) == 1
    store.shorten()
    assert held(store) == before


def test_a_dropped_preparation_leaves_no_trace(store: Store) -> None:
    before = held(store)
    steps = store.preparing(large(2))
    for _ in range(5):
        next(steps)
    steps.close()
    store.append(block(2))
    store.rollback(1)
    assert held(store) == before


@pytest.mark.parametrize("flushed", [False, True])
def test_a_store_that_has_gone_on_does_not_take_the_records(store: Store, flushed: bool) -> None:
    steps = store.preparing(block(2))
    with pytest.raises(StopIteration) as end:
        next(steps)
    store.append(block(2, seed=1))
    if flushed:
        store.flush()
    with pytest.raises(InvariantBroken):
        store.put(end.value.value)
    assert store.height == 2
