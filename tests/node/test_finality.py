"""Votings: what a block may contain, what is final, conflicts and their penalties, undo."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest

from soliton.chain import blocks
from soliton.chain.addresses import address_text
from soliton.chain.finalization import BlockEndorsement, FinalizationVoting
from soliton.crypto import base58
from soliton.ledger.errors import BlockRejected
from soliton.ledger.hashes import EMPTY_HASH
from soliton.ledger.state import DEPOSITS, effective_balance_of
from soliton.node import miner
from soliton.node.chain_writer import ChainWriter
from soliton.node.miner import CannotMine
from soliton.node.verify import verify
from tests.node import forging
from tests.node.chains import DEVNET, address_of, forge, now, open_chain, person
from tests.node.committing import (
    ACTIVATION,
    ANN,
    BOB,
    CARL,
    OWNERS,
    PERIOD,
    add_micro,
    commit,
    committed_chain,
    endorse,
    finality_chain,
    grow,
    mine_with,
    voting_of,
    with_voting,
)

DEPOSIT = 10_000_000_000
FIRST = ACTIVATION + PERIOD + 1
FAKE = b"f" * 32


@pytest.fixture
def chain(tmp_path: Path) -> ChainWriter:
    return committed_chain(tmp_path, *OWNERS)


def refusal(chain: ChainWriter, voting: FinalizationVoting | None) -> str:
    """Why the next block is refused with this voting, as a key block's and as a microblock's."""
    block = with_voting(forge(chain, (), ANN), voting)
    try:
        chain.append(block)
    except BlockRejected as error:
        words = error.reason
    else:
        words = ""
        chain.rollback(chain.height - 1)
    grow(chain, chain.height + 1)
    if words:
        with pytest.raises(BlockRejected) as refused:
            add_micro(chain, voting)
        assert refused.value.reason == words
    else:
        add_micro(chain, voting)
    chain.rollback(chain.height - 1)
    return words


def on_next(chain: ChainWriter, *indexes: int, final: int = 1) -> list[BlockEndorsement]:
    """Endorsements of the last block, which the next one can have."""
    return [
        endorse(chain, OWNERS[index], index, final=final, endorsed=chain.last_block.id)
        for index in indexes
    ]


def conflict(
    chain: ChainWriter,
    index: int,
    *,
    final: int = 1,
    fake: bytes = FAKE,
    claimed: int | None = None,
) -> BlockEndorsement:
    """A conflicting endorsement, maybe with the index of somebody else."""
    made = endorse(
        chain, OWNERS[index], index, final=final, final_id=fake, endorsed=chain.last_block.id
    )
    return made if claimed is None else msgspec.structs.replace(made, endorser_index=claimed)


Change = Callable[[ChainWriter], FinalizationVoting | None]
ADDRESSES = [address_text(address_of(each)) for each in OWNERS]

REFUSALS: list[tuple[str, Change, str]] = [
    ("none", lambda _: None, ""),
    ("one endorser", lambda chain: voting_of(on_next(chain, 1)), ""),
    ("two endorsers", lambda chain: voting_of(on_next(chain, 1, 2)), ""),
    ("in another order", lambda chain: voting_of(on_next(chain, 2, 1)), ""),
    ("one conflict", lambda chain: voting_of((), [conflict(chain, 2)]), ""),
    ("both", lambda chain: voting_of(on_next(chain, 1), [conflict(chain, 2)]), ""),
    (
        "an older block",
        lambda chain: voting_of(on_next(chain, 1, final=chain.height - 1), (), chain.height - 1),
        "",
    ),
    (
        "height 0",
        lambda chain: msgspec.structs.replace(voting_of(on_next(chain, 1)), finalized_height=0),
        "Finalized block height is less than 1",
    ),
    (
        "empty",
        lambda _: FinalizationVoting((), 0, None),
        "Finalized block height is less than 1",
    ),
    (
        "the parent",
        lambda chain: voting_of(on_next(chain, 1, final=chain.height), (), chain.height),
        "Voting for finalized block",
    ),
    (
        "the future",
        lambda chain: voting_of(on_next(chain, 1), (), 2**31 - 1),
        "Voting for finalized block",
    ),
    (
        "nothing",
        lambda _: FinalizationVoting((), 1, None),
        "Finalization voting contains neither valid nor conflicting endorsements",
    ),
    (
        "too many",
        lambda _: FinalizationVoting((0, 1, 2), 1, bytes(96)),
        "Too many valid endorsements",
    ),
    (
        "twice",
        lambda chain: voting_of([*on_next(chain, 1), *on_next(chain, 1)]),
        "Duplicate valid endorser indexes",
    ),
    (
        "two conflicts of one",
        lambda chain: voting_of((), [conflict(chain, 1), conflict(chain, 1, fake=b"g" * 32)]),
        "Duplicate conflicting endorser indexes",
    ),
    (
        "an index beyond",
        lambda _: FinalizationVoting((3,), 1, bytes(96)),
        "Invalid endorser index: 3, expected < 3",
    ),
    (
        "an index below",
        lambda _: FinalizationVoting((-1,), 1, bytes(96)),
        "Invalid endorser index: -1, expected < 3",
    ),
    (
        "the miner",
        lambda chain: voting_of(on_next(chain, 0)),
        "Miner can't endorse its own block",
    ),
    (
        "a conflict beyond",
        lambda chain: voting_of((), [conflict(chain, 1, claimed=3)]),
        "Invalid conflicting endorser index 3",
    ),
    (
        "a conflict below",
        lambda chain: voting_of((), [conflict(chain, 1, claimed=-1)]),
        "Invalid conflicting endorser index -1",
    ),
    (
        "a conflict of the miner",
        lambda chain: voting_of((), [conflict(chain, 0)]),
        "Conflicting endorsement from miner is not allowed",
    ),
    (
        "an endorser in conflict",
        lambda chain: voting_of(on_next(chain, 1), [conflict(chain, 1)]),
        f"Block contains both conflicting and valid endorsement from {ADDRESSES[1]}",
    ),
    (
        "a conflict above",
        lambda chain: voting_of((), [conflict(chain, 1, final=2)]),
        "Finalized height 2 is higher than expected 1",
    ),
    (
        "a conflict at no height",
        lambda chain: voting_of((), [conflict(chain, 1, final=0)]),
        "Can't find block at 0",
    ),
    (
        "a conflict that is none",
        lambda chain: voting_of((), [conflict(chain, 1, fake=chain.meta(1).id)]),
        "Contains expected finalized block: ",
    ),
    (
        "a conflict of somebody else",
        lambda chain: voting_of((), [conflict(chain, 1, claimed=2)]),
        "invalid signature of an endorsement",
    ),
    (
        "an endorsement of somebody else",
        lambda chain: msgspec.structs.replace(voting_of(on_next(chain, 1)), endorser_indexes=(2,)),
        "invalid signature of an endorsement",
    ),
    (
        "an endorsement of another block",
        lambda chain: voting_of([endorse(chain, BOB, 1)]),
        "invalid signature of an endorsement",
    ),
    (
        "an endorsement left out",
        lambda chain: msgspec.structs.replace(
            voting_of(on_next(chain, 1, 2)), endorser_indexes=(1,)
        ),
        "invalid signature of an endorsement",
    ),
    (
        "no aggregate",
        lambda _: FinalizationVoting((1,), 1, None),
        "No endorsements are included, but aggregated endorsement signature is non-empty",
    ),
    (
        "an aggregate of nobody",
        lambda chain: FinalizationVoting((), 1, bytes(96), (conflict(chain, 1),)),
        "Endorsements are included, but aggregated endorsement signature is empty",
    ),
]


@pytest.mark.parametrize(("change", "words"), [row[1:] for row in REFUSALS], ids=lambda _: "")
def test_votings(chain: ChainWriter, change: Change, words: str) -> None:
    found = refusal(chain, change(chain))
    assert found.startswith(words) if words.endswith(": ") else found == words
    chain.store.close()


def test_no_voting_before_the_activation(tmp_path: Path) -> None:
    chain = finality_chain(tmp_path)
    voting = FinalizationVoting((0,), 1, bytes(96))
    words = "Finalization voting is not allowed before Deterministic Finality feature activation"
    assert refusal(chain, voting) == words
    grow(chain, ACTIVATION)
    # The first period has no generators.
    assert refusal(chain, voting) == "Invalid endorser index: 0, expected < 0"
    chain.store.close()


def test_two_thirds_make_the_parent_final(chain: ChainWriter) -> None:
    """Each of three has a third. The outcome counts one block later."""
    assert chain.meta(chain.height).finalized_height == 0
    assert chain.finalized_height == 1
    mine_with(chain, None)
    assert chain.meta(chain.height).finalized_height == 0
    mine_with(chain, voting_of(on_next(chain, 1)))
    assert chain.meta(chain.height).finalized_height == chain.height - 1
    assert chain.finalized_height == 1
    grow(chain, chain.height + 1)
    assert chain.finalized_height == chain.height - 2
    assert chain.meta(chain.height).finalized_height == chain.height - 2
    chain.rollback(chain.height - 1)
    assert chain.finalized_height == 1
    chain.store.close()


def test_who_has_two_thirds_alone_needs_no_endorsement(tmp_path: Path) -> None:
    chain = committed_chain(tmp_path, ANN)
    assert chain.meta(chain.height).finalized_height == chain.height - 1
    chain.store.close()


def test_microblocks_bring_votings(chain: ChainWriter) -> None:
    grow(chain, chain.height + 1)
    height = chain.height
    add_micro(chain, None)
    assert chain.meta(height).finalized_height == 0
    first = voting_of([endorse(chain, BOB, 1)])
    total = add_micro(chain, first)
    assert total.header.finalization_voting == first
    assert chain.meta(height).finalized_height == height - 1
    # A key block on an earlier form drops the votes.
    short, long = chain.liquid_ids()[1:]
    following = forge(chain, (), ANN)
    wrong = msgspec.structs.replace(following.header, reference=short)
    with pytest.raises(BlockRejected):
        chain.append(msgspec.structs.replace(following, header=wrong))
    # If that is refused, they are there again.
    assert chain.last_block.id == long
    assert chain.meta(height).finalized_height == height - 1
    chain.shorten(short)
    assert chain.meta(height).finalized_height == 0
    add_micro(chain, first)
    assert chain.meta(height).finalized_height == height - 1
    assert chain.last_block.id != long
    found = verify(chain)
    assert found.blocks == height
    chain.store.close()


def test_conflicts(tmp_path: Path) -> None:
    chain = committed_chain(tmp_path, *OWNERS)
    carl, state = address_of(CARL), chain.state
    grow(chain, chain.height + 1, first=[commit(chain, CARL)])
    before, waves = chain.balance(carl), chain.meta(chain.height).total_waves
    assert state.get(DEPOSITS, carl) == 2 * DEPOSIT
    grow(chain, chain.height + 1, ANN)
    height = chain.height
    reward = chain.meta(height).total_waves - waves
    bad = endorse(chain, CARL, 2, final_id=FAKE)
    add_micro(chain, voting_of((), [bad]))
    generators = chain.generator_set(0)
    assert generators is not None
    # In the next block he is none of those who may make it, and endorse.
    assert [each.index for each in generators.members] == [0, 1]
    assert generators.committed[2].conflict_height == height
    # Of two halves left, one alone makes nothing final.
    assert chain.meta(height).finalized_height == 0
    # Once more in the same block, or later: no.
    again = endorse(chain, CARL, 2, final_id=b"h" * 32)
    with pytest.raises(BlockRejected, match="Duplicate conflicting endorser indexes"):
        add_micro(chain, voting_of((), [again]))
    with pytest.raises(BlockRejected, match="Valid endorsement sender 2 has insufficient"):
        add_micro(chain, voting_of([endorse(chain, CARL, 2)]))
    add_micro(chain, voting_of([endorse(chain, BOB, 1)]))
    voting = chain.last_block.header.finalization_voting
    assert voting is not None
    assert (voting.endorser_indexes, voting.conflicts) == ((1,), (bad,))
    assert chain.meta(height).finalized_height == height - 1
    balance = chain.balance(carl)
    effective = effective_balance_of(state, carl)
    grow(chain, height + 1, BOB)
    assert chain.balance(carl) == balance - DEPOSIT
    assert chain.balance(carl) < before
    assert state.get(DEPOSITS, carl) == DEPOSIT
    assert effective_balance_of(state, carl) == effective
    assert chain.meta(height + 1).total_waves == chain.meta(height).total_waves + reward - DEPOSIT
    words = "Second conflicting endorsement from one generator"
    block = forge(chain, (), BOB)
    with pytest.raises(BlockRejected) as refused:
        chain.append(with_voting(block, voting_of((), [conflict(chain, 2)]), BOB))
    assert refused.value.reason == words
    carls = msgspec.structs.replace(block.header, generator=CARL.public_key)
    with pytest.raises(BlockRejected, match="is not allowed to generate a block"):
        chain.append(blocks.sign(carls, (), CARL.private_key))
    # The commitment to the next period is as good as before, and its deposit comes back.
    grow(chain, FIRST + PERIOD - 1, BOB)
    grow(chain, FIRST + PERIOD, CARL)
    assert state.get(DEPOSITS, carl) == DEPOSIT
    grow(chain, FIRST + 2 * PERIOD, CARL)
    assert state.get(DEPOSITS, carl) == 0
    assert all(state.get(DEPOSITS, address_of(each)) == 0 for each in OWNERS)
    chain.flush()
    verify(chain)
    # All of it goes back, and comes again.
    ids = [chain.meta(each).state_hash for each in range(height, chain.height + 1)]
    content = [chain.block_at(each) for each in range(height, chain.height + 1)]
    chain.rollback(height - 1)
    assert state.get(DEPOSITS, carl) == 2 * DEPOSIT
    for block in content:
        chain.append(block)
    assert [chain.meta(each).state_hash for each in range(height, chain.height + 1)] == ids
    chain.store.close()


def test_a_conflict_in_the_last_block_of_a_period(tmp_path: Path) -> None:
    chain = committed_chain(tmp_path, *OWNERS)
    grow(chain, FIRST + PERIOD - 1)
    carl, state = address_of(CARL), chain.state
    add_micro(chain, voting_of((), [endorse(chain, CARL, 2, final_id=FAKE)]))
    before = chain.balance(carl)
    grow(chain, chain.height + 1)
    assert chain.balance(carl) == before - DEPOSIT
    assert all(state.get(DEPOSITS, address_of(each)) == 0 for each in OWNERS)
    grow(chain, chain.height + 1)
    assert chain.balance(carl) == before - DEPOSIT
    chain.store.close()


def test_the_sections_of_the_state_hash(tmp_path: Path) -> None:
    chain = committed_chain(tmp_path, *OWNERS)
    assert len(chain.state_hash(ACTIVATION - 1).sections) == 9
    first = chain.state_hash(ACTIVATION).sections
    assert len(first) == 11
    assert first[9:] == (EMPTY_HASH, EMPTY_HASH)
    commitments, generators = chain.state_hash(ACTIVATION + 1).sections[9:]
    assert commitments != EMPTY_HASH
    assert generators == EMPTY_HASH
    commitments, generators = chain.state_hash(FIRST).sections[9:]
    assert commitments == EMPTY_HASH
    assert generators != EMPTY_HASH
    chain.store.close()


def test_all_of_it_on_a_branch(tmp_path: Path) -> None:
    """Another chain from a common block on is applied beside, with its own generators."""
    here = committed_chain(tmp_path / "here", *OWNERS)
    there = open_chain(tmp_path / "there", here.network)
    for height in range(2, ACTIVATION + 1):
        there.append(here.block_at(height))
    grow(there, ACTIVATION + 1, first=[commit(there, BOB)])
    grow(there, FIRST - 1)
    grow(there, FIRST + 3, BOB)
    branch = here.branch(ACTIVATION)
    for height in range(ACTIVATION + 1, there.height + 1):
        branch.append(there.block_at(height))
    own = branch.generator_set(0)
    assert own == there.generator_set(0)
    assert own != here.generator_set(0)
    here.adopt(branch, ACTIVATION)
    assert here.generator_set(0) == own
    assert here.finalized_height == there.finalized_height
    assert here.state_hash(here.height) == there.state_hash(there.height)
    here.flush()
    verify(here)
    here.store.close()
    there.store.close()


def test_it_is_all_there_after_a_restart(tmp_path: Path) -> None:
    chain = committed_chain(tmp_path, *OWNERS)
    mine_with(chain, voting_of(on_next(chain, 1, 2)))
    grow(chain, chain.height + 1)
    expected = chain.finalized_height, chain.generator_set(0)
    assert expected[0] > 1
    chain.flush()
    chain.store.close()
    chain = open_chain(tmp_path, chain.network)
    assert (chain.finalized_height, chain.generator_set(0)) == expected
    chain.store.close()


def test_accounts_outside_of_the_set_count_nothing(tmp_path: Path) -> None:
    chain = committed_chain(tmp_path, ANN, BOB)
    stranger = person("stranger")
    forged = endorse(chain, stranger, 1, endorsed=chain.last_block.id)
    assert refusal(chain, voting_of([forged])) == "invalid signature of an endorsement"
    assert base58.encode(forged.signature)
    chain.store.close()


def test_activation_by_votes(tmp_path: Path) -> None:
    """Blocks 2 to 5 vote: finality is active from 10 on, and the first period ends at 16."""
    usual = DEVNET.functionality.pre_activated_features
    features = {number: at for number, at in usual.items() if number != 25}
    chain = finality_chain(
        tmp_path,
        pre_activated_features=features,
        feature_check_blocks_period=5,
        blocks_for_feature_activation=4,
    )
    while chain.height < 5:
        slot = miner.next_slot(chain, ANN)
        chain.append(forging.forge(chain, slot, (), now(chain), feature_votes=(25,)).block)
    grow(chain, 8)
    sections = [len(chain.state_hash(height).sections) for height in (7, 8)]
    assert sections == [9, 9]
    assert chain.rules.period_at(9) is None
    approved = chain.rules.activations()[25]
    assert approved == 10
    early = commit(chain, ANN, approved + PERIOD + 1)
    assert forge(chain, [early], ANN).transactions == ()
    assert chain.generator_set(0) is None
    grow(chain, approved)
    assert len(chain.state_hash(approved).sections) == 11
    period = chain.rules.period_at(approved)
    assert period is not None
    assert (period.start, period.end) == (approved, approved + PERIOD)
    grow(chain, approved + 1, first=[commit(chain, ANN)])
    grow(chain, approved + PERIOD, BOB)
    with pytest.raises(CannotMine):
        miner.next_slot(chain, BOB)
    grow(chain, approved + PERIOD + 2, ANN)
    assert chain.finalized_height == chain.height - 2
    # Back below the activation, and once more.
    chain.rollback(approved - 2)
    assert (chain.generator_set(0), chain.finalized_height) == (None, 1)
    assert chain.state.get(DEPOSITS, address_of(ANN)) == 0
    grow(chain, approved + PERIOD + 1, BOB)
    chain.flush()
    assert verify(chain).blocks == chain.height
    chain.store.close()
