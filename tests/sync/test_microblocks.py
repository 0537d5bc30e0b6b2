"""Announcements, questions, second tries, and what is told to others."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from soliton.crypto.keys import key_pair
from soliton.sync import microblocks
from soliton.sync.microblocks import (
    ApplyMicroblock,
    MicroblockApplied,
    MicroblockReceived,
    Microblocks,
    MicroblockSettings,
    MicroblockSnapshotReceived,
)
from soliton.sync.model import Blame, Broadcast, ChainMoved, Left, Received, Send, Tick
from soliton.wire import messages
from soliton.wire.errors import Verdict
from soliton.wire.messages import (
    GetMicroblock,
    GetMicroblockSnapshot,
    MicroblockInv,
    MicroblockSnapshot,
    ProtobufMicroblock,
)
from tests.sync.chains import Ids, block_id

R = ord("R")
MINER = key_pair("miner")


def inv(number: int, reference: int | None = None, branch: str = "a") -> MicroblockInv:
    """The announcement of the microblock after another one."""
    before = block_id(number - 1 if reference is None else reference)
    total = block_id(number, branch)
    return messages.announce(MINER.private_key, MINER.public_key, total, before, R, bytes(64))


INVS = {number: inv(number) for number in range(2, 9)}


def machine(**settings: object) -> tuple[Microblocks, Ids]:
    history = Ids(3)
    wanted = MicroblockSettings(**settings)  # type: ignore[arg-type]
    return Microblocks(history, R, lambda owners: owners[0], wanted), history


def came(number: int, peer: int = 1) -> MicroblockReceived:
    return MicroblockReceived(peer, block_id(number), ProtobufMicroblock(b"m"))


def test_what_comes_next_is_asked_for_applied_and_announced() -> None:
    micro, history = machine()
    assert micro.handle(Received(1, INVS[4]), 0) == [Send(1, GetMicroblock(block_id(4)))]
    assert micro.handle(Received(2, INVS[4]), 1) == []
    assert micro.handle(came(4), 2) == [ApplyMicroblock(came(4))]
    history.ids[-1] = block_id(4)
    assert micro.handle(ChainMoved(), 3) == []
    assert micro.handle(MicroblockApplied(block_id(4)), 3) == [
        Broadcast(INVS[4], frozenset((1, 2)))
    ]
    # It is done: the same again is old.
    assert micro.handle(Received(3, INVS[4]), 4) == []


def test_what_comes_later_waits_for_its_turn() -> None:
    micro, history = machine()
    assert micro.handle(Received(1, INVS[5]), 0) == []
    history.ids[-1] = block_id(4)
    assert micro.handle(ChainMoved(), 10) == [Send(1, GetMicroblock(block_id(5)))]
    assert micro.handle(ChainMoved(), 11) == []


def test_others_are_asked_after_two_seconds_and_then_nobody() -> None:
    micro, _ = machine()
    for peer in (1, 2, 3, 4):
        micro.handle(Received(peer, INVS[4]), 0)
    assert micro.wake_at == 2_000
    assert micro.handle(Tick(), 1_999) == []
    wanted = GetMicroblock(block_id(4))
    assert micro.handle(Tick(), 2_000) == [Send(2, wanted), Send(3, wanted)]
    assert micro.handle(Tick(), 4_000) == [Send(4, wanted)]
    assert micro.handle(Tick(), 6_000) == []
    assert micro.handle(came(4), 6_001) == []
    # Another announcement begins anew.
    assert micro.handle(Received(3, INVS[4]), 6_002) == [Send(3, wanted)]


def test_announcements_of_other_keys_are_not_followed() -> None:
    micro, history = machine()
    stranger = key_pair("stranger")

    def foreign(number: int, branch: str) -> MicroblockInv:
        total, before = block_id(number, branch), block_id(number - 1)
        return messages.announce(
            stranger.private_key, stranger.public_key, total, before, R, bytes(64)
        )

    for number in range(300):
        assert micro.handle(Received(1, foreign(4, f"x{number}-")), 0) == []
    # On a form that is not here yet nobody knows whose key is the right one.
    assert micro.handle(Received(1, foreign(5, "x")), 0) == []
    assert micro.handle(Received(1, INVS[4]), 0) == [Send(1, GetMicroblock(block_id(4)))]
    assert micro.handle(Received(1, INVS[5]), 0) == []
    micro.handle(came(4), 1)
    history.ids[-1] = block_id(4)
    micro.handle(MicroblockApplied(block_id(4)), 2)
    assert micro.handle(ChainMoved(), 2) == [Send(1, GetMicroblock(block_id(5)))]


def test_announced_and_withheld_ones_delay_a_true_one_little() -> None:
    """Of one peer a few are followed, and each time twice as many are asked for."""
    micro, _ = machine()
    sent = []
    for number in range(300):
        sent += micro.handle(Received(1, inv(4, branch=f"x{number}-")), 0)
    sent += micro.handle(Received(2, INVS[4]), 0)
    waits = 0
    while Send(2, GetMicroblock(block_id(4))) not in sent:
        waits += 1
        assert micro.wake_at == 2_000 * waits
        sent += micro.handle(Tick(), micro.wake_at)
    assert waits == 2
    assert micro.handle(came(4, peer=2), 4_001) == [ApplyMicroblock(came(4, peer=2))]


def test_who_withholds_is_asked_after_the_others() -> None:
    micro, history = machine()
    for each in INVS.values():
        micro.handle(Received(1, each), 0)
        micro.handle(Received(2, each), 0)
    assert micro.handle(Tick(), 2_000) == [Send(2, GetMicroblock(block_id(4)))]
    micro.handle(came(4, peer=2), 2_001)
    history.ids[-1] = block_id(4)
    micro.handle(MicroblockApplied(block_id(4)), 2_002)
    assert micro.handle(ChainMoved(), 2_002) == [Send(2, GetMicroblock(block_id(5)))]


def test_microblocks_are_requested_at_a_bounded_pace() -> None:
    micro, history = machine(burst=2, pace=100)
    now = 1_000
    times = []
    for number in range(4, 9):
        asked = micro.handle(Received(1, INVS[number]), now)
        while not asked:
            assert micro.wake_at is not None
            now = micro.wake_at
            asked = micro.handle(Tick(), now)
        assert asked == [Send(1, GetMicroblock(block_id(number)))]
        times.append(now)
        micro.handle(came(number), now)
        history.ids[-1] = block_id(number)
        micro.handle(MicroblockApplied(block_id(number)), now)
    assert times == [1_000, 1_000, 1_000, 1_100, 1_200]


def test_what_nobody_asked_for_is_not_applied() -> None:
    micro, _ = machine()
    assert micro.handle(came(4), 0) == []
    micro.handle(Received(1, INVS[4]), 0)
    assert micro.handle(came(5), 1) == []
    assert micro.handle(came(4, peer=2), 1) == [ApplyMicroblock(came(4, peer=2))]
    assert micro.handle(came(4), 2) == []


def test_what_was_refused_is_not_announced() -> None:
    micro, _ = machine()
    micro.handle(Received(1, INVS[4]), 0)
    micro.handle(came(4), 1)
    assert micro.handle(MicroblockApplied(block_id(4), failed=True), 2) == []
    assert micro.handle(Received(2, INVS[4]), 3) == []


def test_a_wrong_signature_is_blamed() -> None:
    micro, _ = machine()
    wrong = MicroblockInv(MINER.public_key, block_id(4), block_id(3), bytes(64))
    (blame,) = micro.handle(Received(1, wrong), 0)
    assert isinstance(blame, Blame)
    assert blame.verdict is Verdict.BLACKLIST
    # Also for what another one has announced well.
    micro.handle(Received(2, INVS[4]), 0)
    (blame,) = micro.handle(Received(3, wrong), 0)
    assert isinstance(blame, Blame)


def test_the_first_of_two_for_one_place_is_taken() -> None:
    micro, _ = machine()
    other = inv(4, branch="b")
    micro.handle(Received(1, INVS[4]), 0)
    assert micro.handle(Received(2, other), 0) == []
    # Nobody has answered: it does not keep the other one from its place.
    asked = [Send(2, GetMicroblock(block_id(4, "b")))]
    assert micro.handle(Tick(), 2_000) == asked
    assert micro.handle(Received(2, other), 2_001) == []


def test_another_one_for_the_place_of_a_refused_one_is_asked_for() -> None:
    micro, _ = machine()
    other = inv(4, branch="b")
    micro.handle(Received(1, INVS[4]), 0)
    micro.handle(Received(2, other), 0)
    micro.handle(came(4), 1)
    asked = [Send(2, GetMicroblock(block_id(4, "b")))]
    assert micro.handle(MicroblockApplied(block_id(4), failed=True), 2) == asked


def test_of_several_for_one_place_the_one_that_most_announce_is_taken() -> None:
    micro, history = machine()
    for peer, each in ((1, inv(5, branch="b")), (2, INVS[5]), (3, INVS[5])):
        assert micro.handle(Received(peer, each), 0) == []
    history.ids[-1] = block_id(4)
    assert micro.handle(ChainMoved(), 1) == [Send(2, GetMicroblock(block_id(5)))]


def test_announcements_are_forgotten() -> None:
    micro, history = machine()
    micro.handle(Received(1, INVS[6]), 0)
    micro.handle(Tick(), 45_000)
    history.ids[-1] = block_id(5)
    assert micro.handle(ChainMoved(), 45_001) == []
    assert micro.wake_at is None


def test_a_peer_that_goes_is_not_asked() -> None:
    micro, history = machine()
    micro.handle(Received(1, INVS[5]), 0)
    micro.handle(Received(2, INVS[5]), 0)
    micro.handle(Left(1), 1)
    history.ids[-1] = block_id(4)
    assert micro.handle(ChainMoved(), 2) == [Send(2, GetMicroblock(block_id(5)))]


def test_a_flood_of_announcements(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(microblocks, "MAX_ANNOUNCED_OF_PEER", 3)
    micro, _ = machine()
    for number in (5, 6, 7):
        assert micro.handle(Received(1, INVS[number]), 0) == []
    (blame,) = micro.handle(Received(1, INVS[8]), 0)
    assert isinstance(blame, Blame)
    assert blame.verdict is Verdict.SUSPEND
    # Who only repeats them is none of those who flood, and has his own count.
    for number in (5, 6, 7, 8):
        assert micro.handle(Received(2, INVS[number]), 1) == []
    monkeypatch.setattr(microblocks, "MAX_ANNOUNCED", 4)
    assert micro.handle(Received(3, inv(4)), 2) == []


def test_light_nodes_want_the_snapshot_too() -> None:
    micro, _ = machine(snapshots=True)
    micro.handle(Received(1, INVS[4]), 0)
    micro.handle(Received(2, INVS[4]), 0)
    assert micro.handle(came(4), 1) == [Send(1, GetMicroblockSnapshot(block_id(4)))]
    assert micro.handle(Tick(), 2_001) == [Send(2, GetMicroblockSnapshot(block_id(4)))]
    snapshot = MicroblockSnapshotReceived(2, block_id(4), MicroblockSnapshot(b"s"))
    assert micro.handle(snapshot, 2_002) == [ApplyMicroblock(came(4), snapshot)]


peers = st.integers(1, 3)
numbers = st.integers(2, 8)
events = (
    st.builds(Received, peers, st.sampled_from(list(INVS.values())))
    | st.builds(came, numbers, peers)
    | st.builds(Left, peers)
    | st.builds(MicroblockApplied, numbers.map(block_id), st.booleans())
    | st.sampled_from((ChainMoved(), Tick()))
)


@given(st.lists(st.tuples(events, st.integers(0, 30_000), st.none() | numbers), max_size=60))
def test_any_order_of_events(script: list[tuple[object, int, int | None]]) -> None:
    """Only what was asked for is applied, once; in the end nothing is remembered."""
    micro, history = machine()
    now, asked, applied = 0, set(), 0
    for event, passed, tip in script:
        now += passed
        if tip is not None:
            history.ids[-1] = block_id(tip)
        for action in micro.handle(event, now):  # type: ignore[arg-type]
            if isinstance(action, Send):
                assert isinstance(action.message, GetMicroblock)
                asked.add(action.message.block_id)
            elif isinstance(action, ApplyMicroblock):
                assert action.microblock.total_id in asked
                applied += 1
    for _ in range(4):
        now += 300_000
        micro.handle(Tick(), now)
    assert micro.wake_at is None
