"""The store: what goes in comes out, and taking a block away leaves no trace of it."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.strategies import DrawFn

from soliton.chain.addresses import Address
from soliton.errors import InvariantBroken
from soliton.ledger.environment import BlockMeta
from soliton.ledger.state import (
    ALIASES,
    ASSET_BALANCES,
    ASSETS,
    DATA,
    LEASES,
    MISSING,
    SPONSORSHIPS,
    WAVES,
    Changes,
    LeaseBalance,
)
from soliton.storage import indexes, layout
from soliton.storage.blocks import NewBlock, NewTransaction
from soliton.storage.directories import stored_network
from soliton.storage.errors import (
    BelowProblem,
    DamagedStore,
    RollbackTooDeep,
    StorageProblem,
    WrongStore,
)
from soliton.storage.indexes import minimum_balance, minimum_effective_balance
from soliton.storage.store import Store
from tests.amounts import examples
from tests.chain.strategies import data_values, unicode_texts
from tests.storage.rows import read_rows

ADDRESSES = tuple(Address(bytes((1, 82)) + bytes((number,)) * 24) for number in range(4))
ASSET = b"a" * 32


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    opened = Store(tmp_path, "net", durable=False)
    yield opened
    opened.close()


def taken_off(store: Store, height: int) -> list[bytes]:
    """The blocks that a rollback removes, the lowest first."""
    removed: list[bytes] = []
    store.rollback(height, removed.append)
    return removed[::-1]


def content(directory: Path) -> dict[bytes, bytes]:
    """Everything on disk, as another process sees it."""
    return read_rows(directory)


def held(store: Store) -> dict[bytes, bytes]:
    """Everything that the store has flushed."""
    return dict(store.scan(b"", b""))


def meta(height: int, seed: int = 0) -> BlockMeta:
    return BlockMeta(
        id=b"block" + bytes((height, seed)),
        timestamp=1_000 * height,
        hit_source=bytes(32),
        score=b"\1",
        carry=((None, 3), (ASSET, 4)),
        reward=6,
        reward_vote=-1,
        feature_votes=(),
        total_fee=5,
        total_waves=10**16,
        generator=bytes(32),
        size=10,
        transaction_count=1,
        snapshot_hash=bytes(32),
        state_hash=bytes(32),
        sections={0: bytes(32)},
    )


def block(
    height: int,
    changes: Changes | None = None,
    transactions: tuple[bytes, ...] = (),
    accounts: tuple[Address, ...] = (),
    seed: int = 0,
) -> NewBlock:
    listed = [
        NewTransaction(item, 10 * index, 10, 0, 7, accounts, changes or {})
        for index, item in enumerate(transactions)
    ]
    return NewBlock(
        height, b"bytes of %d.%d" % (height, seed), meta(height, seed), changes or {}, listed
    )


balances = st.integers(0, 2**63 - 1)
addresses = st.sampled_from(ADDRESSES)


@st.composite
def changes_of_a_block(draw: DrawFn) -> Changes:
    written: dict[Any, dict[Any, Any]] = {
        WAVES: draw(st.dictionaries(addresses, balances, max_size=3)),
        ASSET_BALANCES: draw(
            st.dictionaries(st.tuples(addresses, st.just(ASSET)), balances, max_size=2)
        ),
        LEASES: draw(
            st.dictionaries(addresses, st.builds(LeaseBalance, balances, balances), max_size=2)
        ),
        DATA: draw(
            st.dictionaries(
                st.tuples(addresses, unicode_texts(max_size=3, min_size=1)),
                data_values(deletions=True),
                max_size=3,
            )
        ),
        SPONSORSHIPS: draw(st.dictionaries(st.just(ASSET), balances, max_size=1)),
        ALIASES: draw(st.dictionaries(st.sampled_from(["name", "other"]), addresses, max_size=2)),
    }
    return {table: values for table, values in written.items() if values}


@st.composite
def random_blocks(draw: DrawFn, first: int, count: int) -> list[NewBlock]:
    made = []
    for height in range(first, first + count):
        ids = draw(st.lists(st.sampled_from([b"%d" % n * 32 for n in range(6)]), unique=True))
        accounts = draw(st.lists(addresses, unique=True, max_size=2))
        made.append(
            block(
                height,
                draw(changes_of_a_block()),
                tuple(ids),
                tuple(accounts),
                draw(st.integers(0, 255)),
            )
        )
    return made


@settings(max_examples=examples(60), deadline=None)
@given(random_blocks(1, 2), random_blocks(3, 4), st.booleans(), st.booleans())
def test_apply_then_undo_is_identity(
    below: list[NewBlock], above: list[NewBlock], one_batch: bool, reopen: bool
) -> None:
    with TemporaryDirectory() as name:
        store = Store(Path(name), "net", durable=False)
        before = []
        for item in below + above:
            store.flush()
            before.append(held(store))
            store.append(item)
            if one_batch:
                continue
            store.flush()
        if reopen:
            store.close()
            store = Store(Path(name), "net", durable=False)
        assert store.height == 6
        assert taken_off(store, 2) == [item.data for item in above]
        assert store.height == 2
        assert held(store) == before[2]
        for item in above:
            store.append(item)
        store.flush()
        assert taken_off(store, 1) == [item.data for item in [*below[1:], *above]]
        assert held(store) == before[1]
        store.close()
        assert content(Path(name)) == before[1]


@settings(max_examples=examples(60), deadline=None)
@given(random_blocks(1, 2), random_blocks(3, 3))
def test_discarding_what_is_pending_is_identity(
    below: list[NewBlock], above: list[NewBlock]
) -> None:
    with TemporaryDirectory() as name:
        store = Store(Path(name), "net", durable=False)
        for item in below:
            store.append(item)
        store.flush()
        before, entries = held(store), histories(store)
        for item in above:
            store.append(item)
        store.discard_pending()
        assert store.height == 2
        store.flush()
        assert (held(store), histories(store)) == (before, entries)
        store.close()


def histories(store: Store) -> list[list[tuple[int, int, int]]]:
    return [list(store.balance_history(address, 100)) for address in ADDRESSES]


@settings(max_examples=examples(60), deadline=None)
@given(random_blocks(1, 5), st.integers(0, 5))
def test_reads_are_the_same_before_and_after_flushing(
    items: list[NewBlock], flush_after: int
) -> None:
    with TemporaryDirectory() as name:
        store = Store(Path(name), "net", durable=False)
        model: Changes = {}
        for number, item in enumerate(items, 1):
            store.append(item)
            for table, written in item.changes.items():
                model.setdefault(table, {}).update(written)
            if number == flush_after:
                store.flush()
        for _ in range(2):
            for table, values in model.items():
                for key, value in values.items():
                    assert store.get(table, key) == value
            for item in items:
                assert store.block_data(item.height) == item.data
                assert store.meta(item.height) == item.meta
                assert store.height_of(item.meta.id) == item.height
            check_histories(store, items)
            store.flush()
        store.close()


def check_histories(store: Store, items: list[NewBlock]) -> None:
    """Balances at every height against a plain recomputation."""
    for address in ADDRESSES:
        balance, leases = 0, LeaseBalance(0, 0)
        own, effective = [], []
        for item in items:
            balance = item.changes.get(WAVES, {}).get(address, balance)
            leases = item.changes.get(LEASES, {}).get(address, leases)
            own.append(balance)
            effective.append(balance + leases.lease_in - leases.lease_out)
        for bottom in range(1, 6):
            for top in range(bottom, 6):
                heights = slice(bottom - 1, top)
                assert minimum_balance(store, address, bottom, top) == min(own[heights])
                found = minimum_effective_balance(store, address, bottom, top)
                assert found == min(effective[heights])


def test_defaults(store: Store) -> None:
    assert store.height == 0
    assert store.get(WAVES, ADDRESSES[0]) == 0
    assert store.get(LEASES, ADDRESSES[0]) == LeaseBalance(0, 0)
    assert store.get(DATA, (ADDRESSES[0], "key")) is MISSING
    assert store.get(ASSETS, ASSET) is None
    assert store.block_data(0) is None and store.block_data(1) is None and store.meta(1) is None
    assert store.transaction_location(b"id") is None and store.transaction_height(b"id") is None
    assert store.height_of(b"id") is store.height_of(b"x" * 10_000) is None
    assert list(store.balance_history(ADDRESSES[0], 10)) == []
    assert taken_off(store, 5) == []


def test_deleted_is_not_missing(store: Store) -> None:
    key = (ADDRESSES[0], "key")
    store.append(block(1, {DATA: {key: 5}}))
    store.append(block(2, {DATA: {key: None, (ADDRESSES[0], "other"): "text"}}))
    store.flush()
    assert store.get(DATA, key) is None
    assert list(store.data_entries(ADDRESSES[0])) == [("other", "text")]
    store.rollback(1)
    assert store.get(DATA, key) == 5
    assert store.get(DATA, (ADDRESSES[0], "other")) is MISSING


def test_an_id_twice_on_the_chain(store: Store) -> None:
    """Old payments could repeat: the last place counts, and the first is back after a rollback."""
    store.append(block(1, transactions=(b"i" * 64,)))
    store.append(block(2, transactions=(b"x" * 64, b"i" * 64)))
    location = store.transaction_location(b"i" * 64)
    assert location is not None and (location.height, location.offset) == (2, 10)
    store.rollback(1)
    assert store.transaction_height(b"i" * 64) == 1


def test_transactions_of_an_account(store: Store) -> None:
    first, second = ADDRESSES[:2]
    store.append(block(1, transactions=(b"1" * 32, b"2" * 32), accounts=(first, second)))
    store.append(block(2, transactions=(b"3" * 32,), accounts=(first,)))
    store.flush()
    places = [(2, 0, b"3" * 32), (1, 1, b"2" * 32), (1, 0, b"1" * 32)]
    assert list(indexes.address_transactions(store, first)) == places
    assert list(indexes.address_transactions(store, first, (1, 1))) == places[2:]
    assert list(indexes.address_transactions(store, second)) == places[1:]
    assert list(indexes.address_transactions(store, ADDRESSES[3])) == []


def test_undo_depth(tmp_path: Path) -> None:
    store = Store(tmp_path, "net", durable=False, undo_depth=5)
    for height in range(1, 21):
        store.append(block(height, {WAVES: {ADDRESSES[0]: height}}))
    with pytest.raises(RollbackTooDeep) as caught:
        store.rollback(14)
    assert (caught.value.height, caught.value.lowest, store.height) == (14, 15, 20)
    store.rollback(17)
    # The records of what is below are gone: going back did not bring them again.
    with pytest.raises(RollbackTooDeep) as caught:
        store.rollback(14)
    assert (caught.value.lowest, store.height) == (15, 17)
    store.rollback(15)
    with pytest.raises(RollbackTooDeep):
        store.rollback(14)
    assert (store.height, store.get(WAVES, ADDRESSES[0])) == (15, 15)
    store.close()


def test_the_first_block_stays(store: Store) -> None:
    store.append(block(1))
    with pytest.raises(RollbackTooDeep, match="the lowest possible is 1"):
        store.rollback(0)
    assert store.height == 1


def test_what_was_not_flushed_is_not_there(tmp_path: Path) -> None:
    store = Store(tmp_path, "net", durable=False)
    store.append(block(1))
    store.flush()
    store.append(block(2))
    assert store.height == 2
    assert held(store)[b"!tip"] == (1).to_bytes(4, "big")
    store.close()
    assert content(tmp_path)[b"!tip"] == (2).to_bytes(4, "big")


def test_one_directory_one_network(tmp_path: Path) -> None:
    assert stored_network(tmp_path) is None
    store = Store(tmp_path, "net", durable=False)
    store.append(block(1))
    store.discard_pending()
    store.append(block(1))
    store.close()
    assert stored_network(tmp_path) == "net"
    with pytest.raises(WrongStore, match="holds the chain net, not other"):
        Store(tmp_path, "other", durable=False)
    Store(tmp_path, "net", durable=False).close()


def test_a_layout_of_another_version(tmp_path: Path) -> None:
    store = Store(tmp_path, "net", durable=False)
    store.append(block(1))
    store.flush()
    store.database.write({b"!layout": b"\xff"})
    store.close()
    with pytest.raises(WrongStore, match="written by another version"):
        Store(tmp_path, "net", durable=False)


def test_a_directory_that_cannot_be_made(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(StorageProblem, match="cannot be opened"):
        Store(tmp_path / "file", "net")


def test_only_one_process_writes(store: Store, tmp_path: Path) -> None:
    program = (
        "import sys; from pathlib import Path; from soliton.storage.store import Store\n"
        "Store(Path(sys.argv[1]), 'net', exclusive=sys.argv[2] == 'yes').close()"
    )
    store.flush()

    def opened_elsewhere(exclusive: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-c", program, str(tmp_path), exclusive],
            capture_output=True,
            text=True,
            check=False,
        )

    assert "StoreInUse" in opened_elsewhere("yes").stderr
    assert opened_elsewhere("no").returncode == 0
    store.close()
    assert opened_elsewhere("yes").returncode == 0


# --- snapshots ------------------------------------------------------------------------------------


@pytest.mark.parametrize("tip", [b"", bytes(4), bytes(5)])
def test_a_damaged_height_leaves_no_snapshot_open(store: Store, tip: bytes) -> None:
    """The database would wait for it before it grows or closes."""
    store.append(block(1, {WAVES: {ADDRESSES[0]: 5}}))
    store.flush()
    store.database.write({layout.TIP: tip})
    with pytest.raises(DamagedStore, match="a fact about the store itself"):
        store.snapshot()
    assert len(store.database.snapshots) == 0


def test_a_snapshot_stays_as_it_was(store: Store) -> None:
    store.append(block(1, {WAVES: {ADDRESSES[0]: 5}}))
    store.flush()
    store.append(block(2, {WAVES: {ADDRESSES[0]: 6}}))
    taken = store.snapshot()
    store.flush()
    store.append(block(3, {WAVES: {ADDRESSES[0]: 7}}))
    store.flush()
    assert (taken.height, taken.get(WAVES, ADDRESSES[0])) == (2, 6)
    assert [value for _, value, _ in taken.balance_history(ADDRESSES[0], 9)] == [6, 5]
    store.rollback(1)
    assert (taken.height, taken.get(WAVES, ADDRESSES[0])) == (2, 6)
    assert taken.block_data(2) is not None
    with pytest.raises(InvariantBroken):
        taken.database.write({})
    taken.close()
    assert (store.height, store.get(WAVES, ADDRESSES[0])) == (1, 5)


# --- following ------------------------------------------------------------------------------------

FOLLOWER = """
import sys
from pathlib import Path
from soliton.storage import store
follower = store.Store(Path(sys.argv[1]), "net", exclusive=False)
for line in sys.stdin:
    news = follower.follow()
    data = follower.block_data(follower.height)
    piece = follower.block_piece(follower.height, 0, 1 << 20)
    assert piece == (data[0], data)
    print(news, follower.height, len(data), flush=True)
follower.close()
"""


def test_another_process_follows(tmp_path: Path) -> None:
    store = Store(tmp_path, "net", durable=False)
    store.append(block(1))
    store.flush()
    with subprocess.Popen(
        [sys.executable, "-c", FOLLOWER, str(tmp_path)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdin and process.stdout

        def seen() -> str:
            assert process.stdin and process.stdout
            process.stdin.write("\n")
            process.stdin.flush()
            return process.stdout.readline().strip()

        first = len(b"bytes of 1.0")
        assert seen() == f"False 1 {first}"
        store.append(block(2))
        assert seen() == f"False 1 {first}"
        store.flush()
        assert seen() == f"True 2 {first}"
        assert seen() == f"False 2 {first}"
        for height in range(3, 30):
            big = {(ADDRESSES[0], "key"): bytes(30_000)}
            store.append(block(height, {DATA: big}, seed=height))
            store.flush()
        assert seen() == f"True 29 {first + 2}"
        store.rollback(5)
        assert seen() == f"True 5 {first}"
        process.kill()
    store.close()


def test_a_snapshot_reads_pieces_of_blocks_while_the_store_is_written(store: Store) -> None:
    store.append(block(1))
    store.flush()
    taken = store.snapshot()
    store.append(block(2))
    store.flush()
    assert taken.block_piece(1, 6, 2) == (ord("b"), b"of")
    assert taken.block_piece(2, 0, 1) is None
    taken.close()
    assert store.block_piece(2, 9, 3) == (ord("b"), b"2.0")


def test_pieces_are_of_the_present_block(store: Store) -> None:
    store.append(block(1))
    store.append(block(2))
    store.flush()
    assert store.block_piece(2, 9, 3) == (ord("b"), b"2.0")
    store.rollback(1)
    assert store.block_piece(2, 9, 3) is None
    store.append(block(2, seed=7))
    assert store.block_piece(2, 9, 3) == (ord("b"), b"2.7")
    store.flush()
    assert store.block_piece(2, 9, 3) == (ord("b"), b"2.7")


def test_scans_of_large_rows_are_whole(store: Store) -> None:
    rows = {b"zz%02d" % number: bytes(700_000) for number in range(9)}
    store.database.write(dict(rows))
    assert dict(store.scan(b"zz", b"zz")) == rows
    assert [key for key, _ in store.scan_back(b"zz")] == sorted(rows, reverse=True)
    assert [key for key, _ in store.scan_back(b"zz", b"05")] == sorted(rows)[:5][::-1]


# --- on top of something that fails ---------------------------------------------------------------


class Failing:
    """Nothing is below, and questions about some keys fail."""

    def __init__(self) -> None:
        self.fails: set[bytes] = set()

    def get(self, key: bytes) -> bytes | None:
        if key in self.fails:
            raise BelowProblem("far away")
        return None

    def scan(self, _prefix: bytes, _start: bytes) -> Iterator[tuple[bytes, bytes]]:
        return iter(())

    scan_back = scan


@pytest.mark.parametrize("grows", [False, True])
def test_a_block_whose_grounds_cannot_be_read_leaves_no_trace(tmp_path: Path, grows: bool) -> None:
    below = Failing()
    store = Store(tmp_path, "net", durable=False, below=below)
    store.append(block(1, {WAVES: {ADDRESSES[0]: 5}}))
    store.flush()
    if grows:
        store.append(block(2))
        store.flush()
    before = held(store)
    last: Changes = {WAVES: {ADDRESSES[0]: 6}, DATA: {(ADDRESSES[1], "key"): 1}}
    below.fails = {layout.ROWS[DATA].prefix + layout.ROWS[DATA].key((ADDRESSES[1], "key"))}
    put = store.extend if grows else store.append
    with pytest.raises(BelowProblem):
        put(block(2, last, seed=1))
    assert store.get(WAVES, ADDRESSES[0]) == 5
    store.flush()
    assert held(store) == before
    below.fails = set()
    put(block(2, last, seed=1))
    store.flush()
    assert store.get(WAVES, ADDRESSES[0]) == 6
    store.rollback(1)
    assert store.get(WAVES, ADDRESSES[0]) == 5
    assert store.get(DATA, (ADDRESSES[1], "key")) is DATA.default
    store.close()
