"""Scores: how much work is in the chains of the peers, and who has the best one.

The own score goes to all peers a moment after it has changed, and again now and then: peers forget
it. The first score of a peer counts at once; another one a moment after it has changed, since the
block that changed it is on its way. It is forgotten when the peer does not repeat it. The best peer
has the highest score above our own, and stays the best one until another has more. Scores are only
claims: when that of the best peer came to nothing, the next one is a peer that has delivered
before, or else whoever claims the least, until somebody delivers.

Sources: wavesplatform/Waves
``node/src/main/scala/com/wavesplatform/network/{RxScoreObserver,ChannelGroupExt}.scala``.
"""

from __future__ import annotations

from typing import Final

import msgspec

from soliton.sync.model import (
    Action,
    Broadcast,
    ChainMoved,
    Heard,
    History,
    Joined,
    Left,
    PeerId,
    Send,
    Tick,
)
from soliton.wire.messages import Score


class ScoreSettings(msgspec.Struct, frozen=True):
    """Times in ms: how long a score of a peer counts (``synchronization.score-ttl``), how long
    changes of one are gathered before they count, and when our own is repeated at the latest.
    """

    ttl: int = 90_000
    quiet: int = 1_000
    repeat: int = 60_000


USUAL: Final = ScoreSettings()
MAX_PROVEN: Final = 1_000
"""Peers that have delivered, remembered at a time."""


class BestPeer(msgspec.Struct, frozen=True):
    """Another peer has the best chain now, or the best chain has another score; ``None`` and
    0: nobody has a better one than we.
    """

    peer: PeerId | None
    score: int


class _Reported(msgspec.Struct):
    score: int
    until: int


class _Change(msgspec.Struct):
    score: int
    at: int


class Scores:
    """The scores of all peers and our own."""

    def __init__(self, history: History, settings: ScoreSettings = USUAL) -> None:
        self._history = history
        self._settings = settings
        self._own = history.score()
        self._announced = self._own
        self._announce_at: int | None = None
        self._repeat_at: int | None = None
        self._last: dict[PeerId, int] = {}
        self._fresh: dict[PeerId, _Change] = {}
        self._known: dict[PeerId, _Reported] = {}
        self._best = BestPeer(None, 0)
        self._wary = False
        self._proven: dict[PeerId, None] = {}
        self._doubted: set[PeerId] = set()

    @property
    def best(self) -> BestPeer:
        """Who has the best chain."""
        return self._best

    def score_of(self, peer: PeerId) -> int | None:
        """What counts as the score of a peer."""
        found = self._known.get(peer)
        return None if found is None else found.score

    def ahead(self) -> int:
        """By how much the best score of a peer is above ours, whose claim did not come to nothing
        before.
        """
        scores = (known.score for peer, known in self._known.items() if peer not in self._doubted)
        return max(0, max(scores, default=0) - self._own)

    @property
    def wake_at(self) -> int | None:
        """When something happens by itself."""
        times = [each.at for each in self._fresh.values()]
        times += [each.until for each in self._known.values()]
        times += [each for each in (self._announce_at, self._repeat_at) if each is not None]
        return min(times, default=None)

    def handle(
        self, event: Joined | Left | Heard | ChainMoved | Tick, now: int
    ) -> list[Action | BestPeer]:
        """What follows from an event."""
        actions: list[Action | BestPeer] = []
        match event:
            case Joined(peer=peer):
                actions.append(Send(peer, Score(self._own)))
                if self._repeat_at is None:
                    self._repeat_at = now + self._settings.repeat
            case Left(peer=peer):
                self.forget(peer)
                self._doubted.discard(peer)
            case Heard(peer=peer, message=Score(score=score)):
                self._hear(peer, score, now)
            case ChainMoved():
                self._move(now)
            case _:
                pass
        actions += self._pass(now)
        return actions

    def doubt(self, peer: PeerId) -> None:
        """A peer's claim came to nothing: it counts no more until it is said again. Others that
        claim more may have come while it was asked: so may all that they say.
        """
        self._wary = True
        self._doubted.add(peer)
        self.forget(peer)

    def forget(self, peer: PeerId) -> None:
        """Take a peer's score back: it has gone, or is not believed any more."""
        if peer == self._best.peer:
            # What it said came to nothing: so may what the next one says that says the most.
            self._wary = True
        for each in (self._last, self._fresh, self._known):
            each.pop(peer, None)

    def delivered(self, peer: PeerId) -> None:
        """A peer's blocks are on the chain: it has what it says."""
        self._wary = False
        self._doubted.discard(peer)
        self._proven.pop(peer, None)
        self._proven[peer] = None
        if len(self._proven) > MAX_PROVEN:
            del self._proven[next(iter(self._proven))]

    def _hear(self, peer: PeerId, score: int, now: int) -> None:
        known = self._known.get(peer)
        if known is not None and known.score == score:
            # Whoever repeats it still has it.
            known.until = now + self._settings.ttl
        if self._last.get(peer) == score and (known is not None or peer in self._fresh):
            return
        waits = self._fresh.get(peer)
        # Whose word came to nothing before gets no faster answer by saying it again.
        at_once = peer not in self._last and not self._wary and peer not in self._doubted
        # On a fast chain a score is never still: it waits from its first change on.
        at = now + (0 if at_once else self._settings.quiet) if waits is None else waits.at
        self._last[peer] = score
        self._fresh[peer] = _Change(score, at)

    def _move(self, now: int) -> None:
        self._own = self._history.score()
        if self._own != self._announced and self._announce_at is None:
            self._announce_at = now + self._settings.quiet

    def _pass(self, now: int) -> list[Action | BestPeer]:
        actions: list[Action | BestPeer] = []
        for peer, change in list(self._fresh.items()):
            if change.at <= now:
                del self._fresh[peer]
                self._known[peer] = _Reported(change.score, now + self._settings.ttl)
        for peer, known in list(self._known.items()):
            if known.until <= now:
                del self._known[peer]
        due = [each for each in (self._announce_at, self._repeat_at) if each is not None]
        if any(each <= now for each in due):
            self._announce_at, self._repeat_at = None, now + self._settings.repeat
            self._announced = self._own
            actions.append(Broadcast(Score(self._own)))
        best = self._choose()
        if best != self._best:
            self._best = best
            actions.append(best)
        return actions

    def _choose(self) -> BestPeer:
        better = {p: each.score for p, each in self._known.items() if each.score > self._own}
        if not better:
            return BestPeer(None, 0)
        current = self._best.peer
        if self._wary:
            # Who claims without end must not keep those waiting who have something.
            better = {p: each for p, each in better.items() if p in self._proven} or better
            if current in better:
                return BestPeer(current, better[current])
            return BestPeer(*min(better.items(), key=lambda item: item[1]))
        most = max(better.values())
        if current is not None and better.get(current) == most:
            return BestPeer(current, most)
        return BestPeer(next(p for p, score in better.items() if score == most), most)
