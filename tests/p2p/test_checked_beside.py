"""Blocks whose signatures a process beside checks: the same is taken, and the same is refused."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from soliton.chain import blocks
from soliton.chain.blocks import Block
from soliton.chain.transactions import codec
from soliton.crypto.curve25519 import verify
from soliton.p2p import receiving
from soliton.p2p.receiving import Verdict
from soliton.parallel import bulk_verifier
from tests.p2p.world import Peer, done, make, network

COUNT = 12
BAD = 7
IN_BLOCK = 4
START_SECONDS = 30.0


@pytest.fixture(params=[1, 1_000_000], ids=["a process", "no process"])
def least(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> int:
    monkeypatch.setattr(bulk_verifier, "MIN_SIGNATURES", request.param)
    monkeypatch.setattr(bulk_verifier, "GROUP", 4)
    monkeypatch.setattr(bulk_verifier, "LAST_GROUPS", 3)
    monkeypatch.setattr(bulk_verifier, "cores", lambda: 2 if request.param == 1 else 1)
    monkeypatch.setattr(receiving, "MANY_BLOCKS", COUNT)
    return int(request.param)


def made(maker: Peer) -> list[Block]:
    found = []
    for number in range(COUNT):
        maker.mine(*(maker.transfer(100 * number + each) for each in range(1, IN_BLOCK + 1)))
        found.append(maker.node.chain.last_block)
    return found


def with_a_wrong_transaction(maker: Peer, block: Block) -> Block:
    """Signed by its generator, but a sender's signature in it is not his."""
    first, *others = block.transactions
    wrong = codec.with_proofs(first, (bytes(64),))
    inside = (wrong, *others)
    root = blocks.transactions_root(inside)
    return blocks.sign(
        msgspec.structs.replace(block.header, transactions_root=root),
        inside,
        maker.owner.private_key,
    )


@pytest.fixture
def pair(tmp_path: Path, least: int) -> Iterator[tuple[Peer, Peer]]:
    chain = network()
    found = make(tmp_path / "maker", 0, chain), make(tmp_path / "taker", 1, chain)
    process = found[1].service.jobs.receiver._verifier
    process.begin()
    end = time.monotonic() + START_SECONDS
    while least == 1 and not process.is_ready:
        assert time.monotonic() < end, "the process does not start"
        time.sleep(0.01)
    yield found
    for each in found:
        each.service.jobs.stop()
        each.node.close()


def test_good_blocks_are_taken(pair: tuple[Peer, Peer], least: int) -> None:
    maker, taker = pair
    receiver = taker.service.jobs.receiver
    data = [each.data for each in made(maker)]
    assert done(receiver.extension(data, 100)).verdict is Verdict.APPLIED
    assert taker.tip() == maker.tip()
    assert (receiver._verifier._process is not None) == (least == 1)


def test_a_forged_header_ends_an_extension(pair: tuple[Peer, Peer], least: int) -> None:
    maker, taker = pair
    found = made(maker)
    bad = found[BAD]
    signature = bytes((bad.signature[0] ^ 1,)) + bad.signature[1:]
    data = [each.data for each in found]
    data[BAD] = blocks.assemble(bad.header, bad.transactions, signature).data
    outcome = done(taker.service.jobs.receiver.extension(data, 100))
    assert (outcome.verdict, outcome.height) == (Verdict.INVALID, BAD + 2)
    assert taker.node.chain.last_block.id == found[BAD - 1].id


def test_a_forged_transaction_ends_an_extension(pair: tuple[Peer, Peer], least: int) -> None:
    maker, taker = pair
    found = made(maker)
    data = [each.data for each in found[:BAD]]
    data.append(with_a_wrong_transaction(maker, found[BAD]).data)
    outcome = done(taker.service.jobs.receiver.extension(data, 100))
    assert (outcome.verdict, outcome.height) == (Verdict.INVALID, BAD + 2)
    assert taker.node.chain.last_block.id == found[BAD - 1].id


def test_headers_are_checked_where_the_process_is(
    pair: tuple[Peer, Peer], least: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    maker, taker = pair
    found = made(maker)
    here: set[bytes] = set()

    def checking(public_key: bytes, message: bytes, signature: bytes) -> bool:
        here.add(message)
        return verify(public_key, message, signature)

    monkeypatch.setattr(bulk_verifier, "verify", checking)
    outcome = done(taker.service.jobs.receiver.extension([each.data for each in found], 100))
    assert outcome.verdict is Verdict.APPLIED
    assert len(here & {each.signed for each in found}) == (0 if least == 1 else COUNT)


def test_a_single_block_ends_the_process(pair: tuple[Peer, Peer], least: int) -> None:
    maker, taker = pair
    receiver = taker.service.jobs.receiver
    done(receiver.extension([each.data for each in made(maker)], 100))
    process = receiver._verifier._process
    maker.mine()
    assert done(receiver.block(maker.node.chain.last_block.data)).verdict is Verdict.APPLIED
    assert process is None or process.poll() is not None
    assert taker.tip() == maker.tip()
