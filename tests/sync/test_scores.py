"""Who has the best chain, and what others hear of ours."""

from __future__ import annotations

from soliton.sync.model import Broadcast, ChainMoved, Joined, Left, Received, Send, Tick
from soliton.sync.scores import BestPeer, Scores
from soliton.wire.messages import Score
from soliton.wire.versions import Version
from tests.sync.chains import Ids

V = Version(1, 5, 7)


def test_a_new_peer_hears_our_score() -> None:
    scores = Scores(Ids(3))
    assert scores.handle(Joined(1, V), 0) == [Send(1, Score(3))]


def test_the_first_score_of_a_peer_counts_at_once() -> None:
    scores = Scores(Ids(3))
    assert scores.handle(Received(1, Score(9)), 0) == [BestPeer(1, 9)]
    assert scores.handle(Received(2, Score(10)), 10) == [BestPeer(2, 10)]
    assert scores.handle(Left(2), 20) == [BestPeer(1, 9)]


def test_what_came_to_nothing_counts_a_moment_after_it_is_said_again() -> None:
    scores = Scores(Ids(3))
    scores.handle(Received(1, Score(9)), 0)
    scores.doubt(1)
    assert scores.handle(Tick(), 10) == [BestPeer(None, 0)]
    assert scores.handle(Received(1, Score(9)), 20) == []
    # Nor is anybody else believed at once then.
    assert scores.handle(Received(2, Score(8)), 20) == []
    assert scores.handle(Tick(), 1_019) == []
    assert scores.handle(Tick(), 1_020) == [BestPeer(2, 8)]


def test_another_score_counts_a_moment_after_its_first_change() -> None:
    scores = Scores(Ids(3))
    scores.handle(Received(1, Score(8)), 0)
    assert scores.handle(Received(1, Score(9)), 0) == []
    assert scores.wake_at == 1_000
    assert scores.handle(Received(1, Score(10)), 500) == []
    assert scores.handle(Tick(), 999) == []
    assert scores.handle(Tick(), 1_000) == [BestPeer(1, 10)]
    assert scores.best == BestPeer(1, 10)


def test_the_best_one_stays_until_another_has_more() -> None:
    scores = Scores(Ids(3))
    for peer, score in ((1, 10), (2, 10), (3, 2)):
        scores.handle(Received(peer, Score(score)), 0)
    assert scores.best == BestPeer(1, 10)
    scores.handle(Received(2, Score(10)), 1_100)
    assert scores.handle(Tick(), 2_200) == []
    scores.handle(Received(2, Score(11)), 2_300)
    assert scores.handle(Tick(), 3_300) == [BestPeer(2, 11)]
    assert scores.handle(Left(2), 3_400) == [BestPeer(1, 10)]
    scores.forget(1)
    assert scores.handle(Tick(), 3_500) == [BestPeer(None, 0)]


def test_nobody_is_best_who_has_no_more_than_we() -> None:
    history = Ids(3)
    scores = Scores(history)
    assert scores.handle(Received(1, Score(5)), 0) == [BestPeer(1, 5)]
    history.extra = 2
    assert scores.handle(ChainMoved(), 1_100) == [BestPeer(None, 0)]


def test_a_score_that_is_not_repeated_is_forgotten() -> None:
    scores = Scores(Ids(3))
    scores.handle(Received(1, Score(9)), 0)
    scores.handle(Tick(), 1_000)
    scores.handle(Received(1, Score(9)), 60_000)
    assert scores.handle(Tick(), 91_000) == []
    assert scores.score_of(1) == 9
    assert scores.handle(Tick(), 150_000) == [BestPeer(None, 0)]
    assert scores.score_of(1) is None
    # It may be said again.
    scores.handle(Received(1, Score(9)), 150_001)
    assert scores.handle(Tick(), 151_001) == [BestPeer(1, 9)]


def test_our_score_is_said_once_a_second_at_most_and_again_each_minute() -> None:
    history = Ids(3)
    scores = Scores(history)
    scores.handle(Joined(1, V), 0)
    history.extra = 1
    assert scores.handle(ChainMoved(), 100) == []
    history.extra = 2
    assert scores.handle(ChainMoved(), 900) == []
    assert scores.handle(Tick(), 1_099) == []
    assert scores.handle(Tick(), 1_100) == [Broadcast(Score(5))]
    assert scores.handle(ChainMoved(), 2_000) == []
    assert scores.handle(Tick(), 61_099) == []
    assert scores.handle(Tick(), 61_100) == [Broadcast(Score(5))]


def test_after_a_claim_that_came_to_nothing_others_have_their_turn() -> None:
    scores = Scores(Ids(3))
    for peer, score in ((1, 1_000), (2, 900), (3, 10), (4, 20)):
        scores.handle(Received(peer, Score(score)), 0)
    assert scores.best == BestPeer(1, 1_000)
    # The least claim, since nobody has delivered yet.
    assert scores.handle(Left(1), 2_000) == [BestPeer(3, 10)]
    scores.delivered(4)
    assert scores.handle(Tick(), 3_000) == [BestPeer(2, 900)]
    assert scores.handle(Left(2), 4_000) == [BestPeer(4, 20)]


def test_silence_of_one_makes_wary_of_others_that_claim_more() -> None:
    scores = Scores(Ids(3))
    for peer, score in ((1, 5), (2, 70), (3, 80)):
        scores.handle(Received(peer, Score(score)), 0)
    assert scores.best == BestPeer(3, 80)
    assert scores.handle(Received(4, Score(90)), 1_100) == [BestPeer(4, 90)]
    scores.delivered(1)
    # Who was asked was not the best one any more when that came to nothing.
    scores.doubt(3)
    assert scores.handle(Tick(), 2_200) == [BestPeer(1, 5)]


def test_a_slow_peer_is_used_when_no_other_is_ahead() -> None:
    scores = Scores(Ids(3))
    scores.handle(Received(1, Score(99)), 0)
    scores.set_slow(1, 10)
    assert scores.handle(Tick(), 10) == []
    assert scores.best == BestPeer(1, 99)
    assert scores.handle(Received(2, Score(9)), 20) == []
    assert scores.handle(Tick(), 1_020) == [BestPeer(2, 9)]
    # Neither its score nor what it delivers slowly makes it the best again.
    scores.delivered(1)
    scores.handle(Received(1, Score(1_000)), 1_030)
    assert scores.handle(Tick(), 2_030) == []
    assert scores.handle(Left(2), 2_100) == [BestPeer(1, 1_000)]


def test_after_a_slow_peer_those_come_first_that_have_delivered() -> None:
    scores = Scores(Ids(3))
    scores.handle(Received(1, Score(99)), 0)
    scores.handle(Received(2, Score(9)), 0)
    scores.set_slow(1, 10)
    assert scores.handle(Tick(), 10) == [BestPeer(2, 9)]
    scores.delivered(2)
    # It may come again as another one.
    assert scores.handle(Left(1), 20) == []
    assert scores.handle(Received(3, Score(99)), 30) == []
    assert scores.handle(Received(2, Score(9)), 60_000) == []
    assert scores.handle(Received(3, Score(99)), 60_000) == []
    scores.handle(Received(2, Score(9)), 120_000)
    scores.handle(Received(3, Score(99)), 120_000)
    assert scores.best == BestPeer(2, 9)
    assert scores.handle(Left(2), 120_010) == [BestPeer(3, 99)]
