"""Random histories with votings, conflicts, forms and rollbacks, beside the same blocks at once."""

from __future__ import annotations

from pathlib import Path
from random import Random

import msgspec
import pytest

from soliton.chain import blocks
from soliton.chain.finalization import BlockEndorsement, FinalizationVoting
from soliton.crypto.keys import KeyPair
from soliton.ledger.generators import GeneratorSet
from soliton.ledger.state import DEPOSITS, WAVES
from soliton.node import miner
from soliton.node.chain_writer import ChainWriter
from soliton.node.miner import CannotMine
from soliton.node.verify import verify
from tests.node.chains import address_of, forge, open_chain, person, transfer
from tests.node.committing import (
    OWNERS,
    add_micro,
    commit,
    endorse,
    finality_network,
    voting_of,
    with_voting,
)

EVERYBODY = (*OWNERS, person("dan"), person("eve"))
BY_ADDRESS = {address_of(each): each for each in EVERYBODY}
NETWORK = finality_network(*EVERYBODY, max_valid_endorsers=len(EVERYBODY))
STEPS = 80


class History:
    """A chain that grows, shrinks and is opened again as the dice say."""

    def __init__(self, directory: Path, seed: int) -> None:
        self.dice, self._directory = Random(seed), directory
        self.chain = open_chain(directory, NETWORK)

    def step(self) -> None:
        chance = self.dice.random()
        if chance < 0.06 and self.chain.height > 2:
            self.chain.rollback(max(1, self.chain.height - self.dice.randrange(1, 9)))
        elif chance < 0.09:
            self.chain.flush()
            self.chain.store.close()
            self.chain = open_chain(self._directory, NETWORK)
        elif chance < 0.4 and self.chain.height > 2:
            self._microblock()
        else:
            self._key_block()

    def _microblock(self) -> None:
        chain, header = self.chain, self.chain.last_block.header
        progress = chain.liquid_progress()
        if progress is None:
            return
        generator = next(each for each in EVERYBODY if each.public_key == header.generator)
        voting = self._voting(progress.generators, generator, header.reference, chain.height)
        add_micro(chain, voting, generator)

    def _key_block(self) -> None:
        chain, dice = self.chain, self.dice
        if dice.random() < 0.3 and chain.liquid_ids():
            chain.shorten(dice.choice(chain.liquid_ids()))
        generator = next(
            each for each in dice.sample(EVERYBODY, len(EVERYBODY)) if may_mine(chain, each)
        )
        content = []
        if chain.rules.period_at(chain.height + 1) is not None:
            content += [commit(chain, each) for each in EVERYBODY if dice.random() < 0.12]
        giver, taker = dice.sample(EVERYBODY, 2)
        content.append(transfer(chain, giver, taker, dice.randrange(1, 10**9)))
        block = forge(chain, content, generator)
        if chain.height > 2 and dice.random() < 0.5:
            generators = chain.generator_set(block.header.timestamp)
            voting = self._voting(generators, generator, chain.last_block.id, chain.height + 1)
            block = with_voting(block, voting, generator)
        chain.append(block)

    def _voting(
        self, generators: GeneratorSet | None, generator: KeyPair, endorsed: bytes, height: int
    ) -> FinalizationVoting | None:
        """What some of the generators say of the parent of a block at a height."""
        endorsements: list[BlockEndorsement] = []
        conflicts: list[BlockEndorsement] = []
        final = min(self.chain.finalized_height, height - 2)
        for each in () if generators is None else generators.members:
            chance, pair = self.dice.random(), BY_ADDRESS[each.address]
            if pair is generator or chance > 0.52:
                continue
            final_id = self.dice.randbytes(32) if chance > 0.45 else None
            signed = endorse(
                self.chain, pair, each.index, final=final, final_id=final_id, endorsed=endorsed
            )
            (endorsements if final_id is None else conflicts).append(signed)
        if not endorsements and not conflicts:
            return None
        return voting_of(endorsements, conflicts, final)


def may_mine(chain: ChainWriter, pair: KeyPair) -> bool:
    try:
        miner.next_slot(chain, pair)
    except CannotMine:
        return False
    return True


@pytest.mark.parametrize("seed", range(1, 7))
def test_a_history_leaves_what_its_last_blocks_make(tmp_path: Path, seed: int) -> None:
    history = History(tmp_path / "grown", seed)
    for _ in range(STEPS):
        history.step()
    chain = history.chain
    chain.flush()
    verify(chain)
    other = open_chain(tmp_path / "other", NETWORK)
    for height in range(2, chain.height + 1):
        other.append(blocks.decode(chain.block_at(height).data, NETWORK.chain_id))
        ours, theirs = chain.meta(height), other.meta(height)
        # Earlier forms may have made a parent final of which the last form says nothing.
        assert theirs.finalized_height <= ours.finalized_height
        assert msgspec.structs.replace(ours, finalized_height=theirs.finalized_height) == theirs
        assert chain.state_hash(height) == other.state_hash(height)
    assert chain.generator_set(0) == other.generator_set(0)
    for address in BY_ADDRESS:
        for table in (DEPOSITS, WAVES):
            assert chain.state.get(table, address) == other.state.get(table, address)
    other.store.close()
    chain.store.close()
