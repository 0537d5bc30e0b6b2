"""The chain as Parquet files, read by others: whatever the way, they hold what the chain does."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import pytest

pyarrow = pytest.importorskip("pyarrow")

from pyarrow import dataset  # noqa: E402

from soliton.crypto import base58  # noqa: E402
from soliton.export.errors import AnotherExport, DatabaseAway, WrongChain  # noqa: E402
from soliton.export.follower import Follower  # noqa: E402
from soliton.export.parquet import KNOWN_RANGES, Files, ParquetFiles  # noqa: E402
from soliton.node.chain_writer import ChainWriter  # noqa: E402
from tests.export.durable import Disk  # noqa: E402
from tests.export.following import OwnChain, catch_up  # noqa: E402
from tests.node.chains import mine, open_chain  # noqa: E402
from tests.node.scenario import ALL_VERSIONS, Scenario  # noqa: E402
from tests.node.test_own_chain import add_microblock  # noqa: E402

Row = dict[str, Any]


def read(directory: Path, table: str, condition: Any = None) -> list[Row]:
    """The rows of a table, as pyarrow finds them in a directory that is partitioned."""
    found = dataset.dataset(directory / table, partitioning="hive", exclude_invalid_files=False)
    order = [(name, "ascending") for name in ("height", "index") if name in found.schema.names]
    rows: list[Row] = found.to_table(filter=condition).sort_by(order).to_pylist()
    return rows


def expected(chain: ChainWriter) -> list[tuple[int, str, list[str]]]:
    return [
        (
            height,
            base58.encode(chain.meta(height).id),
            [base58.encode(each.id) for each in chain.block_at(height).transactions],
        )
        for height in range(1, chain.height + 1)
    ]


def held(directory: Path) -> list[tuple[int, str, list[str]]]:
    names: dict[int, list[str]] = {}
    for row in read(directory, "transactions"):
        assert json.loads(row["json"])["id"] == row["id"]
        assert row["index"] == len(names.setdefault(row["height"], []))
        names[row["height"]].append(row["id"])
    found = []
    for row in read(directory, "blocks"):
        of_block = names.pop(row["height"], [])
        assert row["transaction_count"] == len(of_block)
        found.append((row["height"], row["id"], of_block))
    assert not names
    return found


@pytest.mark.parametrize("seed", range(2))
def test_any_way_leads_to_the_chain(tmp_path: Path, seed: int) -> None:
    """Steps of the chain, of the export and ends of it by turns, at random."""
    chance = random.Random(seed)
    chain, place = open_chain(tmp_path / "chain"), tmp_path / "lake"
    files = Files(place, heights=7, seconds=0.0)
    sink = ParquetFiles.open(files)
    follower = Follower(OwnChain(chain), sink)
    for number in range(3):
        for batch in Scenario(chain, ALL_VERSIONS, number).batches():
            in_key_block = chance.randint(0, len(batch))
            mine(chain, batch[:in_key_block])
            for transaction in batch[in_key_block:]:
                add_microblock(chain, transaction)
                if chance.random() < 0.3:
                    follower.step()
                    if chance.random() < 0.5:
                        sink.idle()
            if chance.random() < 0.15:
                # One that was killed has not written what it held in memory.
                sink._is_changed = sink._is_changed and chance.random() < 0.5
                sink.close()
                if chance.random() < 0.5:
                    damage(place)
                sink = ParquetFiles.open(files)
                follower = Follower(OwnChain(chain), sink)
        chain.rollback(max(1, chain.height - chance.choice((1, 2, 5, 15))))
    catch_up(follower)
    sink.close()
    assert held(place) == expected(chain)
    chain.store.close()


def damage(place: Path) -> None:
    """As after an end between the two files of the last range."""
    files = list((place / "transactions").glob("range=*/part.parquet"))
    if files:
        max(files, key=lambda path: int(path.parent.name.removeprefix("range="))).unlink()


def test_only_what_is_asked_for_is_read(tmp_path: Path) -> None:
    chain, place = open_chain(tmp_path / "chain"), tmp_path / "lake"
    for _ in range(30):
        mine(chain)
    sink = ParquetFiles.open(Files(place, heights=10))
    catch_up(Follower(OwnChain(chain), sink))
    sink.close()
    starts = sorted(path.parent.name for path in (place / "blocks").glob("range=*/part.parquet"))
    assert starts == [f"range={each}" for each in (0, 10, 20, 30)]
    full = (place / "blocks" / starts[1] / "part.parquet").stat().st_mtime_ns
    found = read(place, "blocks", dataset.field("range") == 20)
    assert [row["height"] for row in found] == list(range(20, 30))
    mine(chain)
    sink = ParquetFiles.open(Files(place, heights=10))
    catch_up(Follower(OwnChain(chain), sink))
    sink.close()
    assert (place / "blocks" / starts[1] / "part.parquet").stat().st_mtime_ns == full
    chain.store.close()


def test_only_the_last_blocks_stay_in_memory(tmp_path: Path) -> None:
    chain = open_chain(tmp_path / "chain")
    sink = ParquetFiles.open(Files(tmp_path / "lake", heights=2))
    for _ in range(100):
        mine(chain)
    catch_up(Follower(OwnChain(chain), sink))
    held = [row.height for row in sink.ids(chain.height, 1_000)]
    # As much as a new start would know.
    assert held == list(range(chain.height, chain.height - len(held), -1))
    assert 2 * KNOWN_RANGES <= len(held) <= 2 * KNOWN_RANGES + 2
    chain.rollback(chain.height - 10)
    mine(chain)
    catch_up(Follower(OwnChain(chain), sink))
    sink.close()
    assert [row["height"] for row in read(tmp_path / "lake", "blocks")] == [
        *range(1, chain.height + 1)
    ]
    chain.store.close()


def test_who_writes_is_alone_and_strange_files_are_refused(tmp_path: Path) -> None:
    chain, place = open_chain(tmp_path / "chain"), tmp_path / "lake"
    for _ in range(5):
        mine(chain)
    sink = ParquetFiles.open(Files(place, heights=2))
    catch_up(Follower(OwnChain(chain), sink))
    with pytest.raises(AnotherExport):
        ParquetFiles.open(Files(place, heights=2))
    sink.close()
    (place / "blocks" / "range=2" / "part.parquet").write_bytes(b"something else")
    with pytest.raises(WrongChain, match="is no export"):
        ParquetFiles.open(Files(place, heights=2))
    (tmp_path / "file").touch()
    with pytest.raises(DatabaseAway):
        ParquetFiles.open(Files(tmp_path / "file" / "lake"))
    chain.store.close()


def test_files_are_on_the_disk_before_they_have_their_names(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    chain, place = open_chain(tmp_path / "chain"), tmp_path / "lake"
    for _ in range(5):
        mine(chain)
    disk = Disk(monkeypatch)
    sink = ParquetFiles.open(Files(place, heights=2))
    follower = Follower(OwnChain(chain), sink)
    catch_up(follower)
    sink.flush()
    disk.check(place / ".heights", place / ".heights.new")
    for table in ("blocks", "transactions"):
        for start in (0, 2, 4):
            made = place / table / f"range={start}"
            disk.check(made / "part.parquet", made / ".part.parquet")
            # The directory is new as well.
            assert ("kept", place / table) in disk.told and ("kept", place) in disk.told
    disk.told.clear()
    chain.rollback(3)
    mine(chain)
    catch_up(follower)
    # What is taken away has gone before anything else is put in place.
    first = next(at for at, (what, _) in enumerate(disk.told) if what == "replaced")
    assert {("kept", place / "blocks"), ("kept", place / "transactions")} <= {*disk.told[:first]}
    sink.close()
    chain.store.close()
