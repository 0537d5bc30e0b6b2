"""No chain of a peer takes a final block away, and no peer is asked for one that would."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from soliton.chain.blocks import Block
from soliton.p2p.receiving import Verdict
from tests.node.chains import forge, now
from tests.node.committing import ACTIVATION, PERIOD, commit, grow
from tests.p2p.world import OWNERS, Peer, done, make, network

FIRST = ACTIVATION + PERIOD + 1


@pytest.fixture
def pair(tmp_path: Path) -> Iterator[tuple[Peer, Peer]]:
    plain = network()
    features = {**plain.functionality.pre_activated_features, 24: 0, 25: ACTIVATION}
    functionality = msgspec.structs.replace(
        plain.functionality, pre_activated_features=features, generation_period_length=PERIOD
    )
    chain = msgspec.structs.replace(plain, functionality=functionality)
    found = make(tmp_path / "one", 0, chain), make(tmp_path / "other", 1, chain)
    yield found
    for each in found:
        each.service.jobs.stop()
        each.node.close()


def final_chain(peer: Peer) -> int:
    """The only generator makes each block before the last one final."""
    chain, owner = peer.node.chain, OWNERS[0]
    grow(chain, ACTIVATION, owner)
    grow(chain, ACTIVATION + 1, owner, [commit(chain, owner)])
    grow(chain, FIRST + 2, owner)
    assert chain.finalized_height == FIRST
    return chain.finalized_height


def chain_of(peer: Peer, start: int) -> list[Block]:
    chain = peer.node.chain
    return [chain.block_at(height) for height in range(start, chain.height + 1)]


def test_a_better_chain_that_lacks_a_final_block_is_refused(pair: tuple[Peer, Peer]) -> None:
    one, other = pair
    final = final_chain(one)
    before = one.tip()
    # Nobody commits there, so nothing is final; it is longer and has the higher score.
    grow(other.node.chain, one.node.chain.height + 5, OWNERS[1])
    data = [each.data for each in chain_of(other, 2)]
    outcome = done(one.service.jobs.receiver.extension(data, 100))
    assert outcome.verdict is Verdict.NOT_OURS
    assert outcome.reason == f"its chain lacks our final block at height {final}"
    assert one.tip() == before
    # The other node has nothing final, but does not take a chain of a lower score either.
    outcome = done(
        other.service.jobs.receiver.extension([each.data for each in chain_of(one, 2)], 100)
    )
    assert outcome.verdict is Verdict.KNOWN


def test_a_better_chain_from_the_final_block_on_is_taken(pair: tuple[Peer, Peer]) -> None:
    one, other = pair
    final = final_chain(one)
    for block in chain_of(one, 2)[: final - 1]:
        other.node.chain.append(block)
    chain = other.node.chain
    chain.append(forge(chain, (), OWNERS[0], at=now(chain) + 1))
    grow(chain, one.node.chain.height + 2, OWNERS[0])
    data = [each.data for each in chain_of(other, final + 1)]
    outcome = done(one.service.jobs.receiver.extension(data, 100))
    assert outcome.verdict is Verdict.APPLIED
    assert outcome.depth == 2
    assert one.tip() == other.tip()


def test_peers_are_asked_for_what_follows_the_final_block(pair: tuple[Peer, Peer]) -> None:
    one, other = pair
    final, history = final_chain(one), one.service.jobs._history
    chain = one.node.chain
    ids = [chain.meta(height).id for height in range(chain.height, final - 1, -1)]
    assert history.last_ids(101) == ids
    assert history.last_ids(2) == ids[:2]
    assert history.ends_at_a_vote()
    # Without finality it is as many as may be replaced, and that one below.
    grow(other.node.chain, 130, OWNERS[1])
    plain = other.service.jobs._history
    assert other.node.chain.finalized_height == 30
    assert len(plain.last_ids(101)) == 101
    assert not plain.ends_at_a_vote()
