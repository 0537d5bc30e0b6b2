"""The chain in a file of lines: whatever the way, what counts of it is the chain."""

from __future__ import annotations

import json
import os
import random
import resource
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from soliton.crypto import base58
from soliton.export.errors import AnotherExport, DatabaseAway, WrongChain
from soliton.export.follower import Follower
from soliton.export.ndjson import NdjsonFile
from soliton.node.chain_writer import ChainWriter
from tests.export.durable import Disk
from tests.export.following import OwnChain, catch_up
from tests.node.chains import DEVNET, mine, open_chain
from tests.node.scenario import ALL_VERSIONS, Scenario
from tests.node.test_own_chain import add_microblock, make_chain


def read(path: Path) -> list[tuple[int, str, list[str]]]:
    """Height, id and transactions of each block that counts, as a reader of lines finds them."""
    blocks: list[tuple[int, str, list[str]]] = []
    for text in path.read_text(encoding="utf-8").splitlines():
        line: dict[str, Any] = json.loads(text)
        height, name = line["height"], line["id"]
        if line["event"] == "rollback":
            blocks = [each for each in blocks if each[0] <= height]
            blocks[-1] = (height, name, blocks[-1][2][: line["count"]])
            continue
        names = [each["id"] for each in line["transactions"]]
        if blocks and blocks[-1][0] == height:
            names = blocks.pop()[2] + names
        blocks.append((height, name, names))
        assert len(names) == line["count"]
    return blocks


def expected(chain: ChainWriter) -> list[tuple[int, str, list[str]]]:
    return [
        (
            height,
            base58.encode(chain.meta(height).id),
            [base58.encode(each.id) for each in chain.block_at(height).transactions],
        )
        for height in range(1, chain.height + 1)
    ]


@pytest.mark.parametrize("seed", range(3))
def test_any_way_leads_to_the_chain(tmp_path: Path, seed: int) -> None:
    """Steps of the chain, of the export and crashes of it by turns, at random."""
    chance = random.Random(seed)
    chain, path = open_chain(tmp_path / "chain"), tmp_path / "chain.ndjson"
    file = NdjsonFile.open(path)
    follower = Follower(OwnChain(chain), file)
    for number in range(4):
        for batch in Scenario(chain, ALL_VERSIONS, number).batches():
            in_key_block = chance.randint(0, len(batch))
            mine(chain, batch[:in_key_block])
            if chance.random() < 0.7:
                follower.step()
            for transaction in batch[in_key_block:]:
                add_microblock(chain, transaction)
                if chance.random() < 0.7:
                    follower.step()
            if chance.random() < 0.1:
                file.close()
                if path.stat().st_size and chance.random() < 0.7:
                    # A crash in the middle of a line.
                    with path.open("r+b") as damaged:
                        damaged.truncate(chance.randint(1, path.stat().st_size))
                file = NdjsonFile.open(path)
                follower = Follower(OwnChain(chain), file)
        chain.rollback(max(1, chain.height - chance.choice((1, 2, 5, 15))))
    catch_up(follower)
    file.close()
    assert read(path) == expected(chain)
    chain.store.close()


def test_who_writes_is_alone_and_strange_files_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "chain.ndjson"
    file = NdjsonFile.open(path)
    with pytest.raises(AnotherExport):
        NdjsonFile.open(path)
    file.close()
    os.mkfifo(tmp_path / "pipe")
    for other in (tmp_path / "pipe", Path(os.devnull)):
        with pytest.raises(WrongChain, match="is no regular file"):
            NdjsonFile.open(other)
    path.write_text("something else\n")
    with pytest.raises(WrongChain, match=r"chain\.ndjson:1 is not a line of an export"):
        NdjsonFile.open(path)
    for text in ("a note without an end of line", '{"event"; ...'):
        path.write_text(text)
        with pytest.raises(WrongChain):
            NdjsonFile.open(path)
        assert path.read_text() == text
    with pytest.raises(DatabaseAway):
        NdjsonFile.open(tmp_path / "nowhere" / "chain.ndjson")


@contextmanager
def files_of_at_most(size: int) -> Iterator[None]:
    """What writes more fails, as on a disk that is full."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


@pytest.mark.parametrize("size", [100, 10_000])
def test_a_disk_that_was_full(tmp_path: Path, size: int) -> None:
    chain, path = make_chain(tmp_path / "chain", DEVNET, ALL_VERSIONS), tmp_path / "chain.ndjson"
    file = NdjsonFile.open(path)
    with files_of_at_most(size):
        with pytest.raises(DatabaseAway, match="File too large"):
            catch_up(Follower(OwnChain(chain), file))
        file.close()
    file = NdjsonFile.open(path)
    catch_up(Follower(OwnChain(chain), file))
    file.close()
    assert read(path) == expected(chain)
    chain.store.close()


def test_a_new_file_has_its_name_on_the_disk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    disk = Disk(monkeypatch)
    NdjsonFile.open(tmp_path / "chain.ndjson").close()
    assert ("kept", tmp_path) in disk.told
