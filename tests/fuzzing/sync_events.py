"""Made-up events for the machines of ``soliton.sync`` by the million sequences:
``python -m tests.fuzzing.sync_events COUNT [SEED]``.

The machines take turns. What happens is mostly what a node could meet, in an order that it should
not meet: answers that nobody asked for, peers that speak after they have gone, clocks that jump.
Each machine may say what it wants and nothing else, what it holds is bounded at each step, and when
all peers have gone and time has passed it holds nothing of them.
"""

from __future__ import annotations

import random
import sys
import time
from collections import Counter
from collections.abc import Callable
from functools import cache
from itertools import pairwise
from typing import Any, Final, Protocol
from unittest import mock

from soliton.crypto.keys import key_pair
from soliton.sync import microblocks, peers, scores
from soliton.sync.extensions import (
    Applied,
    ApplyExtension,
    BlockReceived,
    ExtensionLoader,
    LoaderSettings,
    SnapshotReceived,
)
from soliton.sync.microblocks import (
    ApplyMicroblock,
    MicroblockApplied,
    MicroblockReceived,
    Microblocks,
    MicroblockSettings,
    MicroblockSnapshotReceived,
)
from soliton.sync.model import (
    Blame,
    Broadcast,
    ChainMoved,
    Joined,
    Left,
    NothingNew,
    Received,
    Send,
    Slow,
    Tick,
)
from soliton.sync.relay import (
    Accepted,
    Checked,
    CheckTransaction,
    Relay,
    RelaySettings,
    RelayTransaction,
)
from soliton.sync.scores import BestPeer, Scores
from soliton.wire import messages
from soliton.wire.messages import (
    BlockIds,
    BlockSnapshot,
    GetBlock,
    GetBlockIds,
    GetBlockSnapshot,
    GetMicroblock,
    GetMicroblockSnapshot,
    GetSignatures,
    LegacyTransaction,
    MicroblockInv,
    MicroblockSnapshot,
    ProtobufBlock,
    ProtobufMicroblock,
    ProtobufTransaction,
    Score,
    Signatures,
)
from soliton.wire.versions import Version
from tests.fuzzing.sync_book import FEW, Book
from tests.sync.chains import Ids, block_id

LONGEST: Final = 40
R: Final = ord("R")
VERSIONS: Final = (Version(1, 5, 7), Version(1, 2, 0), Version(0, 16, 3), Version(1, 4, 0))
AN_AGE: Final = 100_000_000
"""Ms after which nothing is waited for and nobody is kept away any more."""

Chance = random.Random


def _passed(chance: Chance) -> int:
    """Ms: mostly moments, sometimes longer than anybody waits."""
    return chance.choice((0, 1, 20, 500, 1_000, 2_001, 5_000, 60_000, 90_001, 900_001))


class Loading:
    """One extension at a time, in order and new; patience has an end whenever somebody is asked."""

    def __init__(self, chance: Chance) -> None:
        self.chance = chance
        self.history = Ids(chance.randint(1, 4))
        self.invalid = {block_id(chance.randint(1, 8), "b") for _ in range(chance.randrange(2))}
        self.snapshots = chance.random() < 0.4
        settings = LoaderSettings(max_rollback=chance.choice((1, 3, 100)), snapshots=self.snapshots)
        self.made = ExtensionLoader(self.history, self.invalid.__contains__, settings)
        self.applying: ApplyExtension | None = None
        self.asked: list[tuple[int, bytes]] = []
        self.joined = {1, 2}
        self.count = 0
        self.hear(*(Joined(peer, VERSIONS[0]) for peer in self.joined), now=0)

    def hear(self, *events: Any, now: int) -> None:
        """Let events happen, and look at what is wanted then."""
        for event in events:
            for action in self.made.handle(event, now):
                self.look_at(action)

    def look_at(self, action: Any) -> None:
        match action:
            case ApplyExtension(blocks=blocks, snapshots=told):
                assert self.applying is None
                self.applying = action
                self.count += 1
                assert blocks
                assert not told or [each.block_id for each in told] == list(action.ids)
                assert all(one.block_id == other.reference for one, other in pairwise(blocks))
                assert not set(action.ids) & (set(self.history.ids) | self.invalid)
                assert {each.peer for each in blocks} == {action.peer}
            case Send(message=GetBlock() as question):
                self.asked.append((action.peer, question.block_id))
            case Send(message=message):
                assert isinstance(message, GetBlockIds | GetSignatures | GetBlockSnapshot)
            case Blame(reason=reason):
                assert reason
            case _:
                assert isinstance(action, NothingNew | Slow)

    def step(self, now: int) -> None:
        chance, peer = self.chance, self.chance.randint(1, 3)
        match chance.randrange(12):
            case 0:
                self.joined.add(peer)
                self.hear(Joined(peer, chance.choice(VERSIONS)), now=now)
            case 1 if chance.random() < 0.2:
                self.joined.discard(peer)
                self.hear(Left(peer), now=now)
            case 2 | 3:
                claim = BestPeer(peer, chance.choice((1, 9, 99)))
                self.hear(claim if chance.random() < 0.9 else BestPeer(None, 0), now=now)
            case 4 | 5 | 6:
                self.hear(Received(self.made.busy_with or peer, self.some_ids()), now=now)
            case 7 | 8 | 9:
                self.hear(*self.some_blocks(peer), now=now)
            case 10:
                self.end_applying(now, failed=chance.random() < 0.4)
            case _:
                self.hear(Tick(), now=now)
        assert self.made.is_applying == (self.applying is not None)
        assert self.made.busy_with is None or self.made.wake_at is not None
        assert set(self.made._owed) <= self.joined
        assert self.made.busy_with is None or self.made.busy_with in self.joined

    def some_ids(self) -> BlockIds | Signatures:
        """Mostly what a peer with a longer chain would say."""
        chance = self.chance
        if chance.random() < 0.2:
            return chance.choice((BlockIds, Signatures))(
                tuple(self.an_id() for _ in range(chance.randrange(5)))
            )
        tip = len(self.history.ids)
        first = chance.choice((tip, chance.randint(1, tip)))
        branch = chance.choice("aab")
        more = range(first + 1, first + 1 + chance.randint(1, 3))
        ids = tuple(block_id(each, branch) for each in more)
        return BlockIds((self.history.ids[first - 1], *ids))

    def some_blocks(self, peer: int) -> list[BlockReceived | SnapshotReceived]:
        """All that was asked for last, some of it, or something else."""
        chance = self.chance
        wanted = self.asked or [(peer, self.an_id())]
        if chance.random() < 0.3:
            wanted = chance.sample(wanted, 1)
        self.asked = []
        found: list[BlockReceived | SnapshotReceived] = []
        for who, one in wanted:
            before = self.an_id() if chance.random() < 0.05 else _before(one)
            data = bytes(chance.choice((0, 1, 1_000)))
            found.append(BlockReceived(who, one, before, ProtobufBlock(data)))
            if self.snapshots:
                found.append(SnapshotReceived(who, one, BlockSnapshot(data)))
        chance.shuffle(found)
        return found

    def an_id(self) -> bytes:
        return block_id(self.chance.randint(1, 8), self.chance.choice("aaab"))

    def end_applying(self, now: int, *, failed: bool) -> None:
        extension, self.applying = self.applying, None
        if extension is None:
            return
        below = extension.blocks[0].reference
        if not failed and below in self.history.ids:
            self.history.ids[self.history.ids.index(below) + 1 :] = extension.ids
        self.hear(Applied(failed), now=now)

    def end(self, now: int) -> None:
        self.hear(*map(Left, (1, 2, 3)), now=now)
        assert self.made.busy_with is None
        self.end_applying(now, failed=True)
        assert not self.made.is_applying


def _before(one: bytes) -> bytes:
    name = one.rstrip(b".").decode()
    return block_id(int(name[1:]) - 1, name[0])


@cache
def _invs() -> list[MicroblockInv]:
    miner = key_pair("miner")
    return [
        messages.announce(
            miner.private_key,
            miner.public_key,
            block_id(number, branch),
            block_id(before),
            R,
            signature,
        )
        for number in range(2, 8)
        for branch in "ab"
        for before in (number - 1, number + 1)
        for signature in (bytes(64), b"\1" * 64)[: 1 + (number == 4)]
    ]


class Growing:
    """Only what was asked for is applied, once at a time; in the end nothing is remembered."""

    def __init__(self, chance: Chance) -> None:
        self.chance = chance
        self.history = Ids(3)
        self.snapshots = chance.random() < 0.4
        settings = MicroblockSettings(snapshots=self.snapshots)
        self.made = Microblocks(self.history, R, chance.choice, settings)
        self.invs = chance.sample(_invs(), 6)
        self.asked: set[bytes] = set()
        self.wanted: list[Send] = []
        self.applying: list[bytes] = []
        self.count = 0

    def hear(self, event: Any, now: int) -> None:
        """Let something happen, and look at what is wanted then."""
        for action in self.made.handle(event, now):
            match action:
                case Send(message=message):
                    assert self.snapshots or isinstance(message, GetMicroblock)
                    assert isinstance(message, GetMicroblock | GetMicroblockSnapshot)
                    self.asked.add(message.block_id)
                    self.wanted.append(action)
                case ApplyMicroblock(microblock=micro, snapshot=told):
                    assert micro.total_id in self.asked
                    assert micro.total_id not in self.applying
                    assert (told is not None) == self.snapshots
                    self.applying.append(micro.total_id)
                    self.count += 1
                case Broadcast(message=message):
                    assert isinstance(message, MicroblockInv)
                case _:
                    assert isinstance(action, Blame)

    def step(self, now: int) -> None:
        chance, peer = self.chance, self.chance.randint(1, 4)
        match chance.randrange(9):
            case 0 | 1 | 2:
                inv = chance.choice(self.invs)
                if chance.random() < 0.5:
                    self.history.ids[-1] = inv.reference
                self.hear(Received(peer, inv), now)
            case 3 if chance.random() < 0.3:
                self.hear(Left(peer), now)
            case 4 | 5:
                self.hear(self.something(peer), now)
            case 6 if self.applying:
                total = self.applying.pop(chance.randrange(len(self.applying)))
                failed = chance.random() < 0.4
                if not failed:
                    self.history.ids[-1] = total
                self.hear(MicroblockApplied(total, failed), now)
            case 7:
                self.history.ids[-1] = block_id(chance.randint(2, 8), chance.choice("ab"))
                self.hear(ChainMoved(), now)
            case _:
                self.hear(Tick(), now)
        latest = now + MicroblockSettings().announced
        assert self.made.wake_at is None or self.made.wake_at <= latest

    def something(self, peer: int) -> MicroblockReceived | MicroblockSnapshotReceived:
        """Mostly what was asked for."""
        chance = self.chance
        total, is_block = block_id(chance.randint(2, 8), chance.choice("ab")), chance.random() < 0.5
        if self.wanted and chance.random() < 0.9:
            question = self.wanted.pop()
            assert isinstance(question.message, GetMicroblock | GetMicroblockSnapshot)
            peer, total = question.peer, question.message.block_id
            is_block = isinstance(question.message, GetMicroblock)
        if is_block:
            return MicroblockReceived(peer, total, ProtobufMicroblock(b"m"))
        return MicroblockSnapshotReceived(peer, total, MicroblockSnapshot(b"s"))

    def end(self, now: int) -> None:
        for peer in (2, 3, 1, 4):
            self.hear(Left(peer), now)
        for total in self.applying:
            self.made.handle(MicroblockApplied(total, failed=True), now)
        for passed in range(1, 4):
            self.hear(Tick(), now + passed * AN_AGE)
        made = self.made
        assert made.wake_at is None
        assert not any((made._announced, made._of_peer, made._next, made._search, made._done))
        assert not made._applying


class Claims:
    """The best peer is one that is there and claims more than we have; silence ends a claim."""

    def __init__(self, chance: Chance) -> None:
        self.chance = chance
        self.history = Ids(3)
        self.made = Scores(self.history)
        self.present = {1, 2}
        self.best = BestPeer(None, 0)
        self.count = 0

    def hear(self, event: Any, now: int) -> None:
        """Let something happen, and look at what is wanted then."""
        for action in self.made.handle(event, now):
            if isinstance(action, BestPeer):
                assert action != self.best
                self.best = action
                self.count += 1
            else:
                assert isinstance(action, Send | Broadcast)
                assert isinstance(action.message, Score)

    def step(self, now: int) -> None:
        chance, made, peer = self.chance, self.made, self.chance.randint(1, 4)
        match chance.randrange(9):
            case 0:
                self.present.add(peer)
                self.hear(Joined(peer, VERSIONS[0]), now)
            case 1 if peer in self.present:
                self.present.discard(peer)
                self.hear(Left(peer), now)
            case 2 | 3 | 4 if peer in self.present:
                claim = Score(chance.choice((0, 2, 3, 4, 9, 2**63, 2**70)))
                self.hear(Received(peer, claim), now)
            case 5:
                self.history.extra = chance.choice((0, 1, 7, 2**64))
                self.hear(ChainMoved(), now)
            case 6 if made.best.peer is not None:
                made.doubt(made.best.peer)
            case 7 if made.best.peer is not None:
                made.delivered(made.best.peer)
            case _:
                pass
        self.hear(Tick(), now)
        assert made.best == self.best
        if self.best.peer is not None:
            assert self.best.peer in self.present
            assert self.best.score > self.history.score()
            assert made.score_of(self.best.peer) == self.best.score
        assert made.wake_at is None or made.wake_at > now
        assert len(made._proven) <= FEW

    def end(self, now: int) -> None:
        made = self.made
        # What was said last counts from the first look at it.
        self.hear(Tick(), now + AN_AGE)
        self.hear(Tick(), now + 2 * AN_AGE)
        assert made.best == BestPeer(None, 0)
        assert made.ahead() == 0
        for peer in self.present:
            self.hear(Left(peer), now + 2 * AN_AGE)
        assert not any((made._last, made._pending, made._known, made._doubted))


class Relaying:
    """Each check is asked for once and counted until it ends; nobody hears what it said itself."""

    def __init__(self, chance: Chance) -> None:
        self.chance = chance
        self.made = Relay(RelaySettings(seen=4, queue=4, queue_of_peer=2))
        self.made.is_ready = True
        self.checks: list[CheckTransaction] = []
        self.said: dict[bytes, set[int]] = {}
        self.count = 0

    def hear(self, event: Any) -> None:
        """Let something happen, and look at what is wanted then."""
        for action in self.made.handle(event):
            if isinstance(action, CheckTransaction):
                assert action.message not in [each.message for each in self.checks]
                self.checks.append(action)
            else:
                assert isinstance(action, RelayTransaction)
                assert action.but <= self.said.get(action.transaction_id, set())
                self.count += 1

    def step(self, now: int) -> None:
        del now
        chance, made, peer = self.chance, self.made, self.chance.randint(1, 4)
        match chance.randrange(8):
            case 0 | 1 | 2 | 3:
                data = bytes((chance.randrange(8),))
                kind = chance.choice((LegacyTransaction, ProtobufTransaction))
                self.said.setdefault(data, set()).add(peer)
                self.hear(Received(peer, kind(data)))
            case 4 | 5 if self.checks:
                check = self.checks.pop(chance.randrange(len(self.checks)))
                self.hear(Checked(check, check.message.data, chance.random() < 0.6))
            case 6:
                self.hear(Accepted(bytes((chance.randrange(8),))))
            case 7:
                self.hear(Left(peer))
            case _:
                made.is_ready = chance.random() < 0.9
                self.hear(ChainMoved())
        assert made.waiting == len(self.checks) <= 4
        assert max(Counter(each.peer for each in self.checks).values(), default=0) <= 2
        assert max(len(made._seen), len(made._relayed)) <= 4

    def end(self, now: int) -> None:
        del now
        for check in self.checks:
            self.made.handle(Checked(check))
        assert not any((self.made.waiting, self.made._waiting, self.made._senders))


class Machine(Protocol):
    """A machine, what happens to it, and what must hold."""

    count: int
    """How often it got to what it is for."""

    def step(self, now: int) -> None:
        """Let something happen."""

    def end(self, now: int) -> None:
        """Let all peers go."""


MACHINES: Final[dict[str, Callable[[Chance], Machine]]] = {
    "extensions": Loading,
    "microblocks": Growing,
    "scores": Claims,
    "relay": Relaying,
    "peers": Book,
}


def run(count: int, seed: int = 1) -> Counter[str]:
    """So many sequences: how often each machine got to what it is for, such as an extension."""
    reached: Counter[str] = Counter()
    with (
        mock.patch.object(peers, "MAX_KNOWN", FEW),
        mock.patch.object(peers, "MAX_RESTRICTIONS", FEW),
        mock.patch.object(scores, "MAX_PROVEN", FEW),
        mock.patch.object(microblocks, "MAX_ANNOUNCED_OF_PEER", FEW),
    ):
        names = list(MACHINES)
        for number in range(count):
            name = names[number % len(names)]
            chance = random.Random(f"{seed} {number}")
            try:
                reached[name] += _sequence(MACHINES[name](chance), chance)
            except BaseException:
                print(f"{name}: sequence {number} of seed {seed}", file=sys.stderr)
                raise
    return reached


def _sequence(machine: Machine, chance: Chance) -> int:
    now = 0
    for _ in range(chance.randint(1, LONGEST)):
        now += _passed(chance)
        machine.step(now)
    machine.end(now)
    return machine.count


def main() -> None:
    """Run as many as the command line says."""
    count = int(sys.argv[1])
    since = time.perf_counter()
    reached = run(count, int(sys.argv[2]) if len(sys.argv) > 2 else 1)
    print(f"{count} sequences in {time.perf_counter() - since:.0f} s, reached: {dict(reached)}")


if __name__ == "__main__":
    main()
