"""A chain made by the reference node: our answers about its blocks against the recorded ones.

Blocks are applied as far as this node's transactions go; what follows is compared without state.
"""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from soliton.chain import blocks
from soliton.chain.errors import ChainError
from soliton.chain.transactions import codec
from soliton.crypto import base58
from soliton.ledger.errors import BlockRejected
from tests.api.chain import PrivateChain
from tests.vectors import report

AT_LEAST = 12
"""So many blocks hold nothing but the genesis transaction."""


def _records(path: Path) -> Iterator[bytes]:
    data = path.read_bytes()
    offset = 0
    while offset < len(data):
        length = int.from_bytes(data[offset : offset + 4], "big")
        yield data[offset + 4 : offset + 4 + length]
        offset += 4 + length


def _recorded(path: Path) -> Any:
    return json.loads(gzip.decompress(path.read_bytes()))


@pytest.fixture(scope="module")
def golden(shared: Path) -> Path:
    return shared / "golden" / "waves-r"


@pytest.fixture(scope="module")
def replayed(golden: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[PrivateChain]:
    chain = PrivateChain(tmp_path_factory.mktemp("node"), config=golden / "network.conf")
    for data in _records(golden / "blocks-2-82.bin"):
        try:
            chain.node.chain.append(blocks.decode(data, ord("R")))
        except (ChainError, BlockRejected):
            chain.node.chain.discard_pending()
            break
        chain.node.store.flush()
    assert chain.node.chain.height >= AT_LEAST
    chain.now = 2_000_000_000_000
    yield chain
    chain.node.close()


async def _compare(chain: PrivateChain, target: str, expected: object) -> None:
    answer = await chain.get(target)
    assert (target, answer.status, answer.json()) == (target, 200, expected)


async def test_blocks_and_headers(replayed: PrivateChain, golden: Path) -> None:
    known = replayed.node.chain.height
    recorded = _recorded(golden / "blocks.json.gz")
    for expected in recorded[:known]:
        height, name = expected["height"], expected["id"]
        await _compare(replayed, f"/blocks/at/{height}", expected)
        header = {key: expected[key] for key in expected if key not in ("fee", "transactions")}
        await _compare(replayed, f"/blocks/headers/{name}", header)
        await _compare(replayed, f"/blocks/height/{name}", {"height": height})
    report.ran("golden waves-r blocks", known)
    report.skipped("golden waves-r blocks", len(recorded) - known, "transactions of later versions")


async def test_state_hashes(replayed: PrivateChain, golden: Path) -> None:
    known = replayed.node.chain.height
    for expected in _recorded(golden / "statehash.json.gz")[:known]:
        await _compare(replayed, f"/debug/stateHash/{expected['height']}", expected)
    report.ran("golden waves-r state hashes", known)


async def test_rewards_delays_and_times(replayed: PrivateChain, golden: Path) -> None:
    known = replayed.node.chain.height
    names = {item["id"]: item["height"] for item in _recorded(golden / "blocks.json.gz")}
    compared = 0
    for line in gzip.decompress((golden / "chain.jsonl.gz").read_bytes()).splitlines():
        request = json.loads(line)
        path, body = request["path"], request["body"]
        parts = path.split("/")
        if path.startswith("/blockchain/rewards/"):
            height = int(parts[3])
        elif path.startswith("/blocks/delay/"):
            height = names.get(parts[3], known + 1)
        elif path.startswith("/blocks/heightByTimestamp/"):
            height = body["height"]
        else:
            continue
        # A time after the last block that is known would find that one.
        if height < known:
            answer = await replayed.get(path)
            assert (path, answer.status, answer.json()) == (path, request["status"], body)
            compared += 1
    assert compared >= 2 * AT_LEAST
    report.ran("golden waves-r chain", compared)


async def test_features(replayed: PrivateChain, golden: Path) -> None:
    lines = gzip.decompress((golden / "chain.jsonl.gz").read_bytes()).splitlines()
    recorded = {item["path"]: item["body"] for item in map(json.loads, lines)}
    expected = recorded["/activation/status"]
    answer: Any = (await replayed.get("/activation/status")).json()
    assert answer["features"] == expected["features"]
    for name in ("votingInterval", "votingThreshold"):
        assert answer[name] == expected[name]


def test_later_blocks_without_state(golden: Path) -> None:
    """Header, signature, id and transactions of every block that can be decoded."""
    compared = 0
    recorded = _recorded(golden / "blocks.json.gz")[1:]
    for data, expected in zip(_records(golden / "blocks-2-82.bin"), recorded, strict=True):
        try:
            block = blocks.decode(data, ord("R"))
        except ChainError:
            continue
        header, signature = blocks.decode_header(data, ord("R"))
        assert (header, signature) == (block.header, block.signature)
        assert base58.encode(block.id) == expected["id"]
        assert len(block.data) == expected["blocksize"]
        for transaction, shown in zip(block.transactions, expected["transactions"], strict=True):
            ours = json.loads(json.dumps(codec.to_json(transaction)))
            assert {**ours, "applicationStatus": shown["applicationStatus"]} == shown
        compared += 1
    assert compared >= AT_LEAST
    report.ran("golden waves-r decoded blocks", compared)
