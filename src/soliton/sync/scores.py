"""Scores of the peers' chains, and which peer has the best one.

Our own score is broadcast shortly after it changes, and periodically, because peers expire it. The
first score of a peer takes effect immediately, a later one after a delay, because the block that
changed it is usually under way. A score expires unless the peer repeats it. The best peer has the
highest score above our own, and remains the best until another has a higher one. Scores are only
claims: after the best peer fails to deliver, the next one is a peer that has delivered before, or
else the one with the lowest claim, until a peer delivers.

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
    History,
    Joined,
    Left,
    PeerId,
    Received,
    Send,
    Tick,
)
from soliton.wire.messages import Score


class ScoreSettings(msgspec.Struct, frozen=True):
    """Times in ms: the lifetime of a peer's score (``synchronization.score-ttl``), the delay before
    a changed score takes effect, and the longest time between two broadcasts of our own.
    """

    ttl: int = 90_000
    quiet: int = 1_000
    repeat: int = 60_000


DEFAULTS: Final = ScoreSettings()
WARY: Final = 600_000
"""How long (ms) after a slow peer high claims are distrusted, whoever delivers meanwhile."""
MAX_PROVEN: Final = 1_000
"""How many peers that have delivered are remembered."""


class BestPeer(msgspec.Struct, frozen=True):
    """The best peer or its score has changed; ``None`` and 0: no chain is better than ours."""

    peer: PeerId | None
    score: int


class _Known(msgspec.Struct):
    score: int
    until: int


class _Pending(msgspec.Struct):
    score: int
    at: int


class Scores:
    """The scores of all peers and our own."""

    def __init__(self, history: History, settings: ScoreSettings = DEFAULTS) -> None:
        self._history = history
        self._settings = settings
        self._own = history.score()
        self._announced = self._own
        self._announce_at: int | None = None
        self._repeat_at: int | None = None
        self._last: dict[PeerId, int] = {}
        self._pending: dict[PeerId, _Pending] = {}
        self._known: dict[PeerId, _Known] = {}
        self._best = BestPeer(None, 0)
        self._cautious = False
        self._proven: dict[PeerId, None] = {}
        self._doubted: set[PeerId] = set()
        self._slow: set[PeerId] = set()
        self._wary_until = 0

    @property
    def best(self) -> BestPeer:
        """The peer with the best chain, and its score."""
        return self._best

    def score_of(self, peer: PeerId) -> int | None:
        """Return the effective score of a peer, or ``None``."""
        known = self._known.get(peer)
        return None if known is None else known.score

    def ahead(self) -> int:
        """Return by how much the best score exceeds ours, ignoring peers that failed to deliver."""
        scores = (known.score for peer, known in self._known.items() if peer not in self._doubted)
        return max(0, max(scores, default=0) - self._own)

    @property
    def wake_at(self) -> int | None:
        """When a score takes effect or expires, or ours is broadcast."""
        times = [each.at for each in self._pending.values()]
        times += [each.until for each in self._known.values()]
        times += [each for each in (self._announce_at, self._repeat_at) if each is not None]
        return min(times, default=None)

    def handle(
        self, event: Joined | Left | Received | ChainMoved | Tick, now: int
    ) -> list[Action | BestPeer]:
        """Process an event and return the resulting actions."""
        actions: list[Action | BestPeer] = []
        match event:
            case Joined(peer=peer):
                actions.append(Send(peer, Score(self._own)))
                if self._repeat_at is None:
                    self._repeat_at = now + self._settings.repeat
            case Left(peer=peer):
                self.forget(peer)
                self._doubted.discard(peer)
                self._slow.discard(peer)
            case Received(peer=peer, message=Score(score=score)):
                self._receive(peer, score, now)
            case ChainMoved():
                self._move(now)
            case _:
                pass
        actions += self._tick(now)
        return actions

    def doubt(self, peer: PeerId) -> None:
        """A peer failed to deliver what its score claims: ignore the score until it is repeated.
        From now on higher claims of other peers are distrusted, too.
        """
        self._cautious = True
        self._doubted.add(peer)
        self.forget(peer)

    def set_slow(self, peer: PeerId, now: int) -> None:
        """A peer delivers slowly: use others that are ahead while there are any, and distrust high
        claims for some time, as after ``doubt``.
        """
        self._slow.add(peer)
        self._proven.pop(peer, None)
        self._wary_until = now + WARY

    def forget(self, peer: PeerId) -> None:
        """Remove a peer's score: the peer has left, or its score is distrusted."""
        if peer == self._best.peer:
            # It did not deliver; the next highest claim may be false, too.
            self._cautious = True
        for each in (self._last, self._pending, self._known):
            each.pop(peer, None)

    def delivered(self, peer: PeerId) -> None:
        """Blocks of a peer have been applied: its claim is true."""
        self._cautious = False
        self._doubted.discard(peer)
        self._proven.pop(peer, None)
        if peer in self._slow:
            return
        self._proven[peer] = None
        if len(self._proven) > MAX_PROVEN:
            del self._proven[next(iter(self._proven))]

    def _receive(self, peer: PeerId, score: int, now: int) -> None:
        known = self._known.get(peer)
        if known is not None and known.score == score:
            known.until = now + self._settings.ttl
        if self._last.get(peer) == score and (known is not None or peer in self._pending):
            return
        pending = self._pending.get(peer)
        # A doubted peer does not get its score accepted faster by repeating it.
        is_new = peer not in self._last and peer not in self._doubted
        at_once = is_new and not self._is_cautious(now)
        # The delay counts from the first change: on a fast chain the score never stops changing.
        at = now + (0 if at_once else self._settings.quiet) if pending is None else pending.at
        self._last[peer] = score
        self._pending[peer] = _Pending(score, at)

    def _move(self, now: int) -> None:
        self._own = self._history.score()
        if self._own != self._announced and self._announce_at is None:
            self._announce_at = now + self._settings.quiet

    def _tick(self, now: int) -> list[Action | BestPeer]:
        actions: list[Action | BestPeer] = []
        for peer, change in list(self._pending.items()):
            if change.at <= now:
                del self._pending[peer]
                self._known[peer] = _Known(change.score, now + self._settings.ttl)
        for peer, known in list(self._known.items()):
            if known.until <= now:
                del self._known[peer]
        due = [each for each in (self._announce_at, self._repeat_at) if each is not None]
        if any(each <= now for each in due):
            self._announce_at, self._repeat_at = None, now + self._settings.repeat
            self._announced = self._own
            actions.append(Broadcast(Score(self._own)))
        best = self._choose(now)
        if best != self._best:
            self._best = best
            actions.append(best)
        return actions

    def _is_cautious(self, now: int) -> bool:
        return self._cautious or self._wary_until > now

    def _choose(self, now: int) -> BestPeer:
        better = {p: each.score for p, each in self._known.items() if each.score > self._own}
        if not better:
            return BestPeer(None, 0)
        better = {p: each for p, each in better.items() if p not in self._slow} or better
        current = self._best.peer
        if self._is_cautious(now):
            # False claims must not delay peers that do have blocks.
            better = {p: each for p, each in better.items() if p in self._proven} or better
            if current in better:
                return BestPeer(current, better[current])
            return BestPeer(*min(better.items(), key=lambda item: item[1]))
        most = max(better.values())
        if current is not None and better.get(current) == most:
            return BestPeer(current, most)
        return BestPeer(next(p for p, score in better.items() if score == most), most)
