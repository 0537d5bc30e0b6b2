"""Exports of final blocks: they follow behind forks, and never take a block back."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from soliton.cli.quantities import CONFIRMATIONS
from soliton.export.confirmed import Finalized
from soliton.export.errors import FinalBlockGone
from soliton.export.follower import Follower
from soliton.export.ndjson import NdjsonFile
from soliton.export.node_source import NodeSource
from soliton.node.chain_writer import ChainWriter
from tests.cli.here import run_here
from tests.export.following import OwnChain, catch_up
from tests.export.test_ndjson import expected, read
from tests.export.test_node_source import answering
from tests.node.chains import RICH, mine, open_chain, person, transfer

DEPTH = 2


def follow(chain: ChainWriter, path: Path, *, finalized: bool = True) -> None:
    source = OwnChain(chain)
    sink = NdjsonFile.open(path)
    try:
        catch_up(Follower(Finalized(source) if finalized else source, sink))
    finally:
        sink.close()


def fork(chain: ChainWriter, height: int, blocks: int) -> None:
    """Other blocks above a height than there are now."""
    amount = chain.height
    chain.rollback(height)
    for _ in range(blocks):
        mine(chain, [transfer(chain, RICH, person("bob"), amount)])


@pytest.fixture
def chain(tmp_path: Path) -> ChainWriter:
    made = open_chain(tmp_path / "chain")
    made.max_rollback = DEPTH
    for _ in range(5):
        mine(made, ())
    return made


def test_only_final_blocks(chain: ChainWriter, tmp_path: Path) -> None:
    path = tmp_path / "out.ndjson"
    for _ in range(4):
        follow(chain, path)
        assert read(path) == expected(chain)[:-DEPTH]
        # A fork as deep as it can be.
        fork(chain, chain.height - DEPTH, DEPTH + 1)
    assert "rollback" not in path.read_text()


def test_less_is_known_to_be_final(chain: ChainWriter, tmp_path: Path) -> None:
    """After a fork with fewer votes, and while a node catches up: nothing happens until it has."""
    path = tmp_path / "out.ndjson"
    follow(chain, path)
    before = read(path)
    for depth in (DEPTH + 1, chain.height):
        chain.max_rollback = depth
        follow(chain, path)
        assert read(path) == before
    chain.max_rollback = DEPTH
    chain.rollback(chain.height - DEPTH - 1)
    follow(chain, path)
    assert read(path) == before


def test_a_final_block_that_is_gone(chain: ChainWriter, tmp_path: Path) -> None:
    path = tmp_path / "out.ndjson"
    follow(chain, path)
    content = path.read_bytes()
    fork(chain, 2, 6)
    with pytest.raises(FinalBlockGone, match="final blocks are not taken back"):
        follow(chain, path)
    assert path.read_bytes() == content
    follow(chain, path, finalized=False)
    assert read(path) == expected(chain)


def test_an_export_that_had_not_waited(chain: ChainWriter, tmp_path: Path) -> None:
    """Its last block is not final yet, and may still grow."""
    path = tmp_path / "out.ndjson"
    follow(chain, path, finalized=False)
    known = read(path)
    follow(chain, path)
    assert read(path) == known
    for _ in range(DEPTH + 1):
        mine(chain, ())
    follow(chain, path)
    assert read(path) == expected(chain)[:-DEPTH]


def test_the_command(tmp_path: Path) -> None:
    chain = open_chain(tmp_path / "chain" / "data")
    while chain.height < 104:
        mine(chain, ())
    chain.store.close()
    path = tmp_path / "out.ndjson"
    where = (
        "--to",
        path,
        "--data-dir",
        tmp_path / "chain",
        "--network",
        "devnet",
        "--once",
        "--finalized",
    )
    done = run_here("export", "ndjson", *where)
    assert done.returncode == 0, done.stderr
    heights = [json.loads(line)["height"] for line in path.read_text().splitlines()]
    assert heights[-1] == 4
    done = run_here("data-service", "--dsn", "host=nowhere", "--finalized")
    assert done.returncode == 1
    assert "--finalized goes with --from-node" in done.stderr


@pytest.mark.parametrize(
    ("status", "body", "final"),
    [(200, {"height": 7}, 7), (200, {"height": 99}, 9), (404, {}, 1), (400, {}, 1)],
)
def test_a_node(status: int, body: object, final: int) -> None:
    header = {"height": 9, "id": "x", "generator": "3M4qwDomRabJKLZxuXhwfqLApQkU592nWxF"}
    last = json.dumps(header).encode()
    with answering(last, last, (status, json.dumps(body).encode())) as url:
        source = NodeSource(url)
        assert Finalized(source).refresh() == final
        source.close()


@pytest.mark.parametrize("text", ["0", "10", "10000", "finalized"])
def test_confirmations(text: str) -> None:
    found = CONFIRMATIONS.convert(text, None, None)
    assert str(found) == text


@pytest.mark.parametrize("text", ["-1", "10001", "1e3", "1_0", "٣", "final", "", "99999999999999"])
def test_confirmations_that_are_none(text: str) -> None:
    done = run_here("notify", "--cursor", "x", "--notify-cmd", "true", "--confirmations", text)
    assert done.returncode == 2, done.stderr
    assert "is not a number from 0 to 10000, or finalized" in done.stderr
