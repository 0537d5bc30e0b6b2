"""Modes of a store: what each keeps, that blocks go on as before, and changes of the mode."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from soliton.chain.blocks import without_transactions
from soliton.chain.networks import Network
from soliton.node.chain_writer import ChainWriter
from soliton.node.pruning import prune_all
from soliton.node.verify import verify
from soliton.storage import indexes, keeping, layout, pruning
from soliton.storage.engine import Range
from soliton.storage.errors import NotKept, RollbackTooDeep, WrongMode
from soliton.storage.headers import decode_header, encode_header
from soliton.storage.keeping import Keeping
from soliton.storage.store import Store
from tests.node.chains import DEVNET, RICH, address_of, forge, open_chain, person, transfer

SHORT: Network = msgspec.structs.replace(
    DEVNET,
    name="short",
    functionality=msgspec.structs.replace(
        DEVNET.functionality, generation_balance_depth_from_50_to_1000_after_height=1_000_000
    ),
)
"""Devnet, where generating balances look back 50 blocks."""
HEIGHT = 140
FRIENDS = [person(f"friend {number}") for number in range(3)]


@pytest.fixture(autouse=True)
def less(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(keeping, "GENERATING_BLOCKS", 50)
    monkeypatch.setattr(keeping, "LEAST_BLOCKS", 55)
    monkeypatch.setattr("soliton.storage.store.NETWORK_ROLLBACK", 10)


@pytest.fixture(scope="module")
def archive(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ChainWriter]:
    """A chain that the tests read."""
    chain = open_chain(tmp_path_factory.mktemp("archive"), SHORT)
    while chain.height < HEIGHT:
        grow(chain)
    yield chain
    chain.store.close()


def grow(chain: ChainWriter) -> None:
    height = chain.height
    candidates = [
        transfer(chain, RICH, FRIENDS[(height + each) % 3], 1_000 + height, fee=100_000 + each)
        for each in range(height % 3)
    ]
    chain.append(forge(chain, candidates), now=2**62)
    chain.flush()


def keep(mode: str | None, **options: Any) -> Keeping:
    return Keeping(mode, **{"blocks": 60, "rollback_depth": 20, **options})


def follow(other: ChainWriter, chain: ChainWriter, until: int, *, prunes: bool = True) -> None:
    """Append the blocks of another chain."""
    for height in range(other.height + 1, until + 1):
        other.append(chain.block_at(height), now=2**62, verify_signatures=False)
        other.flush()
        if prunes:
            other.store.prune()


def twin(chain: ChainWriter, directory: Path, wanted: Keeping, until: int = HEIGHT) -> ChainWriter:
    """The same chain, pruned again and again while it grows."""
    other = open_chain(directory, SHORT, keeping=wanted)
    follow(other, chain, until)
    prune_all(other.store)
    return other


def check_same(chain: ChainWriter, other: ChainWriter) -> None:
    """Compare all that both have: the state, headers, and what is kept of blocks."""
    kept = other.store.kept
    assert (other.height, other.last_block.id) == (chain.height, chain.last_block.id)
    for prefix in (row.prefix for row in layout.ROWS.values()):
        assert dict(other.store.scan(prefix, prefix)) == dict(chain.store.scan(prefix, prefix))
    for height in range(1, chain.height + 1):
        assert other.header_at(height) == chain.header_at(height)
        assert other.height_of(chain.meta(height).id) == height
        assert other.meta(height).score == chain.meta(height).score
        if height == 1 or height >= kept.blocks_from:
            assert other.store.block_data(height) == chain.store.block_data(height)
            assert other.state_hash(height) == chain.state_hash(height)
        if height >= kept.balances_from:
            for account in (RICH, *FRIENDS):
                address = address_of(account)
                assert indexes.minimum_balance(
                    other.store, address, height, height
                ) == indexes.minimum_balance(chain.store, address, height, height)
                for bottom in range(kept.balances_from, height, 17):
                    assert indexes.minimum_effective_balance(
                        other.store, address, bottom, height
                    ) == indexes.minimum_effective_balance(chain.store, address, bottom, height)
            own = dict(indexes.distribution(other.store, height))
            assert own == dict(indexes.distribution(chain.store, height))


@pytest.mark.parametrize("mode", ["full", "pruned"])
def test_a_store_has_what_its_mode_keeps_and_names_the_setting_for_the_rest(
    archive: ChainWriter, tmp_path: Path, mode: str
) -> None:
    other = twin(archive, tmp_path / mode, keep(mode))
    store, kept = other.store, other.store.kept
    assert kept.balances_from == HEIGHT + 1 - 75
    assert kept.blocks_from == (HEIGHT + 1 - 60 if mode == "pruned" else 1)
    check_same(archive, other)
    with pytest.raises(NotKept, match=r"db\.mode = archive"):
        list(indexes.distribution(store, kept.balances_from - 1))
    with pytest.raises(NotKept, match=r"db\.mode = archive"):
        store.replaced(kept.balances_from)
    place = archive.store.transaction_location(archive.block_at(6).transactions[0].id)
    assert place is not None
    assert store.transaction_location(archive.block_at(6).transactions[0].id) == place
    if mode == "full":
        assert store.transaction_changes(place) == archive.store.transaction_changes(place)
        assert list(indexes.address_transactions(store, address_of(FRIENDS[0])))
    else:
        for read in (store.block_data, other.block_at, other.state_hash):
            with pytest.raises(NotKept, match=r"whose mode is pruned.*db.mode = full"):
                read(6)
        with pytest.raises(NotKept, match=r"db\.mode = full"):
            store.transaction_changes(place)
        with pytest.raises(NotKept, match=r"db\.mode = full"):
            list(indexes.address_transactions(store, address_of(FRIENDS[0])))
    verified = verify(other)
    assert verified.blocks == HEIGHT and verified.transactions == verify(archive).transactions
    store.close()


@pytest.mark.parametrize("mode", ["full", "pruned"])
def test_a_chain_goes_on_after_pruning_and_after_the_deepest_rollback(
    archive: ChainWriter, tmp_path: Path, mode: str
) -> None:
    other = twin(archive, tmp_path / mode, keep(mode))
    all_kept = twin(archive, tmp_path / "all", keep("archive"), HEIGHT - 20)
    while all_kept.height < HEIGHT + 5:
        grow(all_kept)
    other.rollback(HEIGHT - 20)
    check_same(twin(archive, tmp_path / "before", keep("archive"), HEIGHT - 20), other)
    follow(other, all_kept, HEIGHT + 5)
    prune_all(other.store)
    check_same(all_kept, other)
    with pytest.raises(RollbackTooDeep):
        other.rollback(HEIGHT + 5 - 21 - 20)
    assert verify(other).blocks == HEIGHT + 5
    other.store.close()


def test_an_archive_becomes_full_and_pruned_in_place_and_goes_on_where_it_was_closed(
    archive: ChainWriter, tmp_path: Path
) -> None:
    directory = tmp_path / "other"
    twin(archive, directory, keep("archive")).store.close()
    for mode in ("full", "pruned"):
        steps = 0
        while True:
            # Whoever opens it with no mode in the settings goes on with that of the store.
            wanted = keep(mode if steps == 0 else None)
            other = open_chain(directory, SHORT, keeping=wanted)
            assert other.store.kept.mode == mode
            check_same(archive, other)
            more = other.store.prune()
            other.store.close()
            if not more:
                break
            steps += 1
        assert steps >= 2
    other = open_chain(directory, SHORT, keeping=keep(None))
    fresh = twin(archive, tmp_path / "fresh", keep("pruned"))
    found, expected = (dict(each.store.scan(b"", b"")) for each in (other, fresh))
    # The undo records of an archive have more keys.
    assert found.keys() == expected.keys()
    assert {key for key in found if found[key] != expected[key]} <= {
        key for key in found if key.startswith(layout.UNDO)
    }
    other.store.close()
    fresh.store.close()


@pytest.mark.parametrize(
    ("mode", "wanted", "setting"),
    [
        ("full", keep("archive"), "db.mode = archive"),
        ("pruned", keep("archive"), "db.mode = archive"),
        ("pruned", keep("full"), "db.mode = full"),
        ("pruned", keep(None, by_lease=True), ""),
        ("full", keep(None, by_address=True), ""),
    ],
)
def test_what_was_deleted_cannot_be_asked_for_in_place(
    archive: ChainWriter, tmp_path: Path, mode: str, wanted: Keeping, setting: str
) -> None:
    twin(archive, tmp_path / mode, keep(mode)).store.close()
    if not setting:
        open_chain(tmp_path / mode, SHORT, keeping=wanted).store.close()
        return
    with pytest.raises(WrongMode, match=rf"{setting}.*remove the setting.*the chain anew"):
        open_chain(tmp_path / mode, SHORT, keeping=wanted)


@pytest.mark.parametrize(
    ("switch", "prefix"),
    [("by_address", b"a"), ("calls", b"r"), ("by_lease", b"k")],
)
def test_a_list_that_is_switched_off_is_deleted_and_does_not_come_back(
    archive: ChainWriter, tmp_path: Path, switch: str, prefix: bytes
) -> None:
    twin(archive, tmp_path / "other", keep("archive")).store.close()
    other = twin(archive, tmp_path / "other", keep(None, **{switch: False}))
    grow(other)
    assert list(other.store.scan(prefix, prefix)) == []
    refused = {"by_address": other.store.kept.need_by_address, "calls": other.store.kept.need_calls}
    with pytest.raises(NotKept, match=r"db\.store-"):
        refused.get(switch, other.store.kept.need_by_lease)()
    assert verify(other).blocks == HEIGHT + 1
    other.store.close()
    with pytest.raises(WrongMode, match=r"db\.store-.* = yes"):
        open_chain(tmp_path / "other", SHORT, keeping=keep(None, **{switch: True}))


def test_steps_are_short_whatever_a_block_has_changed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pruning, "STEP_SEARCHES", 10)
    monkeypatch.setattr(pruning, "STEP_TRANSACTIONS", 4)
    chain = open_chain(tmp_path, SHORT, keeping=keep("pruned"))
    many = [person(f"one of many {number}") for number in range(60)]
    for _ in range(3):
        batch = [transfer(chain, RICH, each, 1, fee=100_000) for each in many]
        chain.append(forge(chain, batch), now=2**62)
    chain.flush()
    while chain.height < HEIGHT:
        chain.append(forge(chain), now=2**62)
    chain.flush()
    sizes, write = [], chain.store.database.write

    def watched(
        items: dict[bytes, bytes | None], ranges: tuple[Range, ...] = (), **how: Any
    ) -> None:
        sizes.append(len(items))
        write(items, ranges, **how)

    monkeypatch.setattr(
        "soliton.storage.database.Database.write", lambda _self, *a, **k: watched(*a, **k)
    )
    prune_all(chain.store)
    # Of each block a header, metadata and two ids; beside them one account with all its balances.
    assert max(sizes) <= 4 * pruning.STEP_BLOCKS + 1 and len(sizes) > 12
    monkeypatch.undo()
    rows = [key for key, _ in chain.store.scan(layout.HISTORY, layout.HISTORY)]
    assert len(rows) < 60 * 3
    chain.store.close()


def test_a_moment_of_a_private_chain_holds_pruning_up(tmp_path: Path) -> None:
    chain = open_chain(tmp_path, SHORT, keeping=keep("pruned"))
    store = chain.store
    moment = store.mark()
    while chain.height < HEIGHT:
        grow(chain)
    assert not store.prune() and store.kept.blocks_from == 1
    store.forget_moment(moment)
    assert store.prune() and store.kept.blocks_from > 1
    store.wipe()
    assert (store.kept.mode, store.kept.blocks_from, store.kept.by_address) == ("pruned", 1, False)
    store.close()


def test_a_branch_is_adopted_although_steps_ran_beside_it(
    archive: ChainWriter, tmp_path: Path
) -> None:
    other = twin(archive, tmp_path / "other", keep("pruned"), 120)
    follow(other, archive, HEIGHT, prunes=False)
    branch = other.store.branch(HEIGHT - 5)
    while other.store.prune():
        pass
    assert branch.kept is other.store.kept
    other.store.adopt(branch)
    assert other.store.height == HEIGHT - 5
    other.store.close()


def test_a_reader_in_another_process_sees_what_is_gone(
    archive: ChainWriter, tmp_path: Path
) -> None:
    other = twin(archive, tmp_path / "other", keep("archive"))
    reader = Store(tmp_path / "other", SHORT.name, exclusive=False)
    view = other.store.snapshot()
    other.store._keep(keep("pruned"))
    prune_all(other.store)
    assert view.block_data(6) is not None, "a snapshot shows the past"
    view.close()
    reader.follow()
    with pytest.raises(NotKept):
        reader.block_data(6)
    assert reader.lone_header(6) is not None
    reader.close()
    other.store.close()


def test_headers_of_all_versions_lose_nothing(archive: ChainWriter) -> None:
    for height in range(2, HEIGHT):
        data = archive.block_at(height).data
        header = without_transactions(data)
        meta, parent = archive.meta(height), archive.meta(height - 1)
        raw = encode_header(header, meta, parent)
        assert decode_header(raw, meta, parent) == header
        assert len(raw) < len(header)
