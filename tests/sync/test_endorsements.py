"""Which endorsements count, which are relayed, and what is published."""

from __future__ import annotations

import pytest

from soliton.chain.finalization import (
    BlockEndorsement,
    FinalizationVoting,
    endorsement_message,
    sign_endorsement,
)
from soliton.crypto import bls, signatures
from soliton.sync.endorsements import (
    MAX_EARLY,
    MAX_EARLY_OF_PEER,
    MAX_EARLY_ROUNDS,
    MAX_WAITING_OF_PEER,
    MAX_WASTED_OF_PEER,
    CheckEndorsement,
    Endorsements,
    Endorser,
    RelayEndorsement,
    VotingRound,
)

PARENT, OTHER, FINAL, FALSE = b"p" * 32, b"o" * 32, b"f" * 32, b"x" * 32
FINAL_HEIGHT = 7
SECRETS = [bls.generate_key(bytes((number,)) * 32) for number in range(5)]
KEYS = [bls.public_key_of(secret) for secret in SECRETS]
PEER, ANOTHER = 1, 2


def voting_round(
    balances: tuple[int, ...] = (40, 30, 20, 10, 0),
    *,
    endorsed: bytes = PARENT,
    height: int = FINAL_HEIGHT,
    final: bytes = FINAL,
    miner: int | None = 0,
    is_own: bool = False,
    conflicting: frozenset[int] = frozenset(),
    most: int = 8,
) -> VotingRound:
    ids = {number: bytes((number,)) * 32 for number in range(1, 20)} | {FINAL_HEIGHT: FINAL}
    endorsers = tuple(Endorser(key, each) for key, each in zip(KEYS, balances, strict=False))
    return VotingRound(
        endorsed, final, height, endorsers, conflicting, miner, is_own, most, ids.get
    )


def endorsement(
    index: int, final: bytes = FINAL, height: int = FINAL_HEIGHT, endorsed: bytes = PARENT
) -> BlockEndorsement:
    return sign_endorsement(SECRETS[index], index, final, height, endorsed)


def conflict(index: int) -> BlockEndorsement:
    return endorsement(index, FALSE)


def deliver(pool: Endorsements, each: BlockEndorsement, peer: int = PEER) -> list[RelayEndorsement]:
    """Receive an endorsement, verify its signature as asked, and return what is relayed."""
    relayed: list[RelayEndorsement] = []
    for action in pool.receive(peer, peer, each):
        assert isinstance(action, CheckEndorsement)
        done = pool.checked(action, is_valid=signatures.verify(*action.claim))
        relayed += done
    return relayed


def pool_in(now: VotingRound) -> Endorsements:
    pool = Endorsements()
    assert pool.begin(now) == []
    return pool


def test_a_valid_endorsement_is_relayed_to_all_but_its_sender() -> None:
    pool = pool_in(voting_round())
    assert deliver(pool, endorsement(1)) == [RelayEndorsement(endorsement(1), frozenset((PEER,)))]
    assert deliver(pool, endorsement(1), ANOTHER) == []
    assert pool.count == 1


def test_an_endorsement_of_several_peers_is_verified_once() -> None:
    pool = pool_in(voting_round())
    (check,) = pool.receive(PEER, PEER, endorsement(1))
    assert pool.receive(ANOTHER, ANOTHER, endorsement(1)) == []
    assert isinstance(check, CheckEndorsement)
    assert pool.checked(check, is_valid=True) == [
        RelayEndorsement(endorsement(1), frozenset((PEER, ANOTHER)))
    ]


def test_the_generator_of_the_key_block_relays_nothing() -> None:
    pool = pool_in(voting_round(is_own=True))
    assert deliver(pool, endorsement(1)) == []
    assert pool.count == 1


USELESS = {
    "the generator's own": endorsement(0),
    "without balance": endorsement(4),
    "beyond the committed": BlockEndorsement(5, FINAL, FINAL_HEIGHT, PARENT, bytes(96)),
    "a negative index": BlockEndorsement(-1, FINAL, FINAL_HEIGHT, PARENT, bytes(96)),
    "height 0": endorsement(1, FINAL, 0),
    "a lower height with our block": endorsement(1, bytes((3,)) * 32, 3),
}


@pytest.mark.parametrize("each", USELESS.values(), ids=USELESS)
def test_useless_endorsements_cost_no_verification(each: BlockEndorsement) -> None:
    pool = pool_in(voting_round())
    assert pool.receive(PEER, PEER, each) == []


def test_an_endorsement_with_a_false_signature_neither_counts_nor_is_relayed() -> None:
    pool = pool_in(voting_round())
    forged = BlockEndorsement(1, FINAL, FINAL_HEIGHT, PARENT, endorsement(2).signature)
    assert deliver(pool, forged) == []
    assert deliver(pool, BlockEndorsement(1, FALSE, 3, PARENT, bytes(96))) == []
    assert pool.count == 0
    # The true one still counts.
    assert deliver(pool, endorsement(1), ANOTHER)


def test_a_conflict_replaces_a_valid_endorsement_and_is_published_at_once() -> None:
    pool = pool_in(voting_round())
    deliver(pool, endorsement(3))
    assert deliver(pool, conflict(3))
    assert pool.count == 0
    # One conflict of a generator is enough, and its further endorsements do not count.
    assert pool.receive(PEER, PEER, endorsement(3, FALSE, 5)) == []
    assert pool.receive(PEER, PEER, endorsement(3)) == []
    voting = pool.voting(PARENT, None)
    assert voting == FinalizationVoting((), FINAL_HEIGHT, None, (conflict(3),))
    assert pool.voting(PARENT, voting) is None


def test_a_lower_height_with_another_block_conflicts() -> None:
    pool = pool_in(voting_round())
    assert deliver(pool, endorsement(3, FALSE, 5))
    voting = pool.voting(PARENT, None)
    assert voting is not None and len(voting.conflicts) == 1


def test_the_richest_endorsers_that_suffice_are_published_once() -> None:
    pool = pool_in(voting_round())
    deliver(pool, endorsement(3))
    # 40 of the generator and 10 are less than two thirds of 100.
    assert pool.voting(PARENT, None) is None
    deliver(pool, endorsement(2))
    voting = pool.voting(PARENT, None)
    assert voting is not None
    assert voting.endorser_indexes == (2, 3)
    message = endorsement_message(FINAL, FINAL_HEIGHT, PARENT)
    assert voting.aggregate is not None
    assert bls.is_valid([KEYS[2], KEYS[3]], message, voting.aggregate)
    deliver(pool, endorsement(1))
    assert pool.voting(PARENT, voting) is None
    # With the second generator alone it would have been final, too.
    assert pool.voting(PARENT, None) == FinalizationVoting(
        (1,), FINAL_HEIGHT, bls.aggregate([endorsement(1).signature])
    )
    assert pool.voting(OTHER, None) is None


def test_exactly_two_thirds_suffice() -> None:
    pool = pool_in(voting_round((1, 1, 1)))
    deliver(pool, endorsement(2))
    voting = pool.voting(PARENT, None)
    assert voting is not None and voting.endorser_indexes == (2,)


def test_no_more_endorsers_are_published_than_the_network_allows() -> None:
    pool = pool_in(voting_round((0, 1, 1, 1), miner=None, most=1))
    for index in (1, 2, 3):
        deliver(pool, endorsement(index))
    assert pool.voting(PARENT, None) is None


def test_conflicts_in_the_chain_reduce_the_balance_that_is_needed() -> None:
    pool = pool_in(voting_round((10, 10, 80, 10), conflicting=frozenset((2,))))
    deliver(pool, endorsement(1))
    voting = pool.voting(PARENT, None)
    assert voting is not None and voting.endorser_indexes == (1,)
    assert pool.receive(PEER, PEER, endorsement(2)) == []


def test_a_conflict_after_a_voting_publishes_the_endorsers_again() -> None:
    pool = pool_in(voting_round())
    deliver(pool, endorsement(1))
    first = pool.voting(PARENT, None)
    deliver(pool, conflict(3))
    second = pool.voting(PARENT, first)
    assert second is not None
    assert second.endorser_indexes == (1,)
    assert second.conflicts == (conflict(3),)


def test_a_round_of_other_generators_keeps_endorsements_and_another_block_ends_it() -> None:
    pool = pool_in(voting_round())
    deliver(pool, endorsement(1))
    pool.begin(voting_round(conflicting=frozenset((3,))))
    assert pool.count == 1
    pool.begin(voting_round(endorsed=OTHER))
    assert pool.count == 0
    pool.begin(None)
    assert pool.round is None


def test_an_endorsement_that_comes_before_its_block_counts_in_the_next_round() -> None:
    pool = pool_in(voting_round())
    early = endorsement(1, bytes((8,)) * 32, 8, OTHER)
    assert pool.receive(PEER, PEER, early) == []
    (check,) = pool.begin(voting_round(endorsed=OTHER, height=8, final=bytes((8,)) * 32))
    assert isinstance(check, CheckEndorsement)
    assert check.endorsement == early
    # An answer about an earlier round changes nothing.
    pool.begin(voting_round())
    assert pool.checked(check, is_valid=True) == []


def test_what_a_peer_may_cost_is_bounded() -> None:
    pool = pool_in(voting_round())
    forged = [
        BlockEndorsement(1, bytes((number, 1)) * 16, FINAL_HEIGHT, PARENT, bytes(96))
        for number in range(200)
    ]
    checks = [action for each in forged for action in pool.receive(PEER, PEER, each)]
    assert len(checks) == MAX_WAITING_OF_PEER
    wasted = 0
    while checks:
        for check in checks:
            assert isinstance(check, CheckEndorsement)
            pool.checked(check, is_valid=False)
            wasted += 1
        checks = [action for each in forged for action in pool.receive(PEER, PEER, each)]
    assert wasted == MAX_WASTED_OF_PEER
    assert pool.dropped
    # A new connection of the same address has no new allowance; others are not affected.
    assert pool.receive(PEER + 10, PEER, endorsement(1)) == []
    assert deliver(pool, endorsement(1), ANOTHER)


def test_a_peer_keeps_few_places_for_the_next_round() -> None:
    pool = pool_in(voting_round())
    for number in range(100):
        early = BlockEndorsement(1, FINAL, 1_000 + number, PARENT, bytes(96))
        assert pool.receive(PEER, PEER, early) == []
    assert pool.dropped == 100 - MAX_EARLY_OF_PEER


def test_another_block_in_the_same_place_does_not_endorse_itself() -> None:
    pool = pool_in(voting_round(miner=0))
    deliver(pool, endorsement(1))
    deliver(pool, endorsement(2))
    pool.begin(voting_round(miner=1, is_own=True))
    assert not pool.lacks(1) and not pool.lacks(2)
    assert pool.lacks(0)
    # 30 of the generator and 20 are less than two thirds of 100.
    assert pool.voting(PARENT, None) is None
    deliver(pool, endorsement(0))
    voting = pool.voting(PARENT, None)
    assert voting is not None and voting.endorser_indexes == (0,)


def test_a_block_does_not_show_a_conflict_of_its_own_generator() -> None:
    pool = pool_in(voting_round(miner=0))
    deliver(pool, conflict(1))
    pool.begin(voting_round(miner=1, is_own=True))
    assert pool.voting(PARENT, None) is None


def early(number: int) -> BlockEndorsement:
    """One of a height that nobody has."""
    return BlockEndorsement(1, FINAL, 1_000_000 + number, PARENT, bytes(96))


TIMELY = endorsement(1, bytes((8,)) * 32, 8, OTHER)


def is_kept(pool: Endorsements) -> bool:
    """Whether the endorsement that is not too early is checked in its round."""
    now = voting_round(endorsed=OTHER, height=8, final=bytes((8,)) * 32)
    return any(check.endorsement == TIMELY for check in pool.begin(now))


def test_what_is_kept_for_later_is_forgotten_after_some_rounds() -> None:
    pool = pool_in(voting_round())
    for number in range(MAX_EARLY_OF_PEER):
        pool.receive(PEER, PEER, early(number))
    for number in range(MAX_EARLY_ROUNDS + 1):
        pool.begin(voting_round(endorsed=bytes((number,)) * 32))
    assert pool.receive(PEER, PEER, TIMELY) == []
    assert is_kept(pool)


def test_many_sources_do_not_take_all_places_for_the_next_round() -> None:
    pool = pool_in(voting_round())
    for number in range(MAX_EARLY):
        source = 1_000 + number // MAX_EARLY_OF_PEER
        pool.receive(source, source, early(number))
    assert pool.receive(PEER, PEER, TIMELY) == []
    assert is_kept(pool)
    # A source with as many as the others displaces nothing.
    assert pool.dropped == 1
