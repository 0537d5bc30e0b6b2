"""What a node has endorsed binds it after restarts and rollbacks, too."""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from soliton.chain.networks import Network
from soliton.node.endorsed import FILE_NAME
from soliton.node.node import Node
from tests.node.chains import forge, now
from tests.node.committing import add_micro, endorse, grow, voting_of
from tests.p2p.test_endorsements import ACTIVATION, commit_to, finality_network
from tests.p2p.world import OWNERS, make

PERIOD = 200
FIRST = ACTIVATION + PERIOD + 1


@pytest.fixture(name="network")
def make_network() -> Network:
    plain = finality_network()
    functionality = msgspec.structs.replace(plain.functionality, generation_period_length=PERIOD)
    return msgspec.structs.replace(plain, functionality=functionality)


@contextlib.contextmanager
def endorsing(directory: Path, network: Network) -> Iterator[Node]:
    """One run of a node whose account is the second generator."""
    peer = make(directory, 1, network)
    peer.node.endorser._clock = lambda: now(peer.node.chain)
    try:
        yield peer.node
    finally:
        peer.service.jobs.stop()
        peer.node.close()


def endorsements(node: Node) -> int:
    """How many endorsements of its last block's parent leave the node."""
    node.chain.flush()
    node.follow_chain()
    node.endorser.follow()
    return len(node.endorser.take_outgoing())


def begin(node: Node) -> None:
    """Bring the chain to the second block of the first period that three have committed to."""
    chain = node.chain
    grow(chain, ACTIVATION, OWNERS[0])
    grow(chain, ACTIVATION + 1, OWNERS[0], [commit_to(number, FIRST) for number in range(3)])
    grow(chain, FIRST + 1, OWNERS[0])


def finalize(node: Node) -> None:
    """Make the parent of the last block final by votes, in the block after it."""
    chain = node.chain
    votes = [
        endorse(chain, OWNERS[number], number, final=chain.finalized_height) for number in (1, 2)
    ]
    add_micro(chain, voting_of(votes, (), chain.finalized_height), OWNERS[0], OWNERS[3])
    chain.append(forge(chain, (), OWNERS[0]))


async def test_a_node_remembers_what_it_has_endorsed_after_a_restart_and_a_rollback(
    tmp_path: Path, network: Network, caplog: pytest.LogCaptureFixture
) -> None:
    with endorsing(tmp_path, network) as node:
        begin(node)
        finalize(node)
        assert node.chain.finalized_height == FIRST
        assert endorsements(node) == 1
    with endorsing(tmp_path, network) as node:
        assert endorsements(node) == 1
        grow(node.chain, FIRST + 3, OWNERS[0])
        assert endorsements(node) == 1
        assert not caplog.records
        await node.roll_back_in_steps(FIRST - 1, keep=False)
        grow(node.chain, FIRST + 3, OWNERS[2])
        assert endorsements(node) == 0
    with endorsing(tmp_path, network) as node:
        caplog.clear()
        assert endorsements(node) == 0
        assert "it has endorsed another final block" in caplog.text
        assert FILE_NAME in caplog.text


@pytest.mark.parametrize("damage", [b"", b"{", b"[]", b'{"x": {"height": 1, "block": "1"}}', None])
async def test_without_its_record_a_node_waits_until_the_chain_has_decided(
    tmp_path: Path, network: Network, caplog: pytest.LogCaptureFixture, damage: bytes | None
) -> None:
    with endorsing(tmp_path, network) as node:
        begin(node)
        assert endorsements(node) == 1
    record = tmp_path / FILE_NAME
    assert record.is_file()
    if damage is None:
        record.unlink()
    else:
        record.write_bytes(damage)
    with endorsing(tmp_path, network) as node:
        assert ("cannot be read" in caplog.text) == (damage is not None)
        since = node.chain.height
        assert endorsements(node) == 0
        grow(node.chain, since + 1, OWNERS[0])
        assert endorsements(node) == 0
        finalize(node)
        assert node.chain.finalized_height == since
        assert endorsements(node) == 1
        assert "missing or damaged" in caplog.text
    caplog.clear()
    with endorsing(tmp_path, network) as node:
        assert endorsements(node) == 1
        assert not caplog.records


async def test_what_cannot_be_recorded_is_not_endorsed(
    tmp_path: Path, network: Network, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING)
    with endorsing(tmp_path, network) as node:
        begin(node)
        obstacle = tmp_path / f"{FILE_NAME}.new"
        obstacle.mkdir()
        assert endorsements(node) == 0
        assert "cannot be written" in caplog.text
        obstacle.rmdir()
        grow(node.chain, FIRST + 2, OWNERS[0])
        assert endorsements(node) == 1
