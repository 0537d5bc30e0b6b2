"""Loading the blocks of a better chain: states, order, patience, blame."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from soliton.sync import extensions
from soliton.sync.extensions import (
    Applied,
    ApplyExtension,
    BlockReceived,
    ExtensionLoader,
    LoaderSettings,
    SnapshotReceived,
)
from soliton.sync.model import Blame, Joined, Left, NothingNew, Received, Send, Slow, Tick
from soliton.sync.scores import BestPeer
from soliton.wire.errors import Verdict
from soliton.wire.messages import (
    BlockIds,
    BlockSnapshot,
    GetBlock,
    GetBlockIds,
    GetBlockSnapshot,
    GetSignatures,
    ProtobufBlock,
    Signatures,
)
from soliton.wire.versions import Version
from tests.sync.chains import Ids, block_id

PEER, OTHER = 1, 2


class World:
    """A loader on a chain of three blocks, and a peer that has more."""

    def __init__(self, settings: LoaderSettings = extensions.DEFAULTS) -> None:
        self.history = Ids(3)
        self.invalid: set[bytes] = set()
        self.loader = ExtensionLoader(self.history, self.invalid.__contains__, settings)
        for peer in (PEER, OTHER):
            self.loader.handle(Joined(peer, Version(1, 5, 7)), 0)

    def best(self, peer: int | None = PEER, now: int = 0) -> list[object]:
        return list(self.loader.handle(BestPeer(peer, 99), now))

    def ids(self, *ids: bytes, peer: int = PEER, now: int = 0) -> list[object]:
        return list(self.loader.handle(Received(peer, BlockIds(ids)), now))

    def block(
        self, number: int, branch: str = "a", size: int = 1, now: int = 0, peer: int = PEER
    ) -> list[object]:
        return list(self.loader.handle(came(number, branch, size, peer), now))


def came(number: int, branch: str = "a", size: int = 1, peer: int = PEER) -> BlockReceived:
    before = block_id(number - 1, branch)
    return BlockReceived(peer, block_id(number, branch), before, ProtobufBlock(bytes(size)))


def applying(
    peer: int, blocks: tuple[BlockReceived, ...], snapshots: tuple[SnapshotReceived, ...] = ()
) -> ApplyExtension:
    return ApplyExtension(peer, blocks, snapshots, blocks[0].reference)


def own(count: int) -> tuple[bytes, ...]:
    return tuple(block_id(number) for number in range(count, 0, -1))


def test_ids_then_blocks_in_any_order_then_an_extension() -> None:
    world = World()
    assert world.best() == [Send(PEER, GetBlockIds(own(3)))]
    assert world.ids(block_id(3), block_id(4), block_id(5)) == [
        Send(PEER, GetBlock(block_id(4))),
        Send(PEER, GetBlock(block_id(5))),
    ]
    assert world.loader.expects(PEER, block_id(5))
    assert not world.loader.expects(OTHER, block_id(5))
    assert world.block(5) == []
    assert not world.loader.expects(PEER, block_id(5))
    extension, question = world.block(4)
    assert extension == applying(PEER, (came(4), came(5)))
    # While it is applied, the next one is asked for.
    assert question == Send(PEER, GetBlockIds((block_id(5), block_id(4), *own(3))))


def test_one_extension_waits_for_the_other() -> None:
    world = World()
    world.best()
    world.ids(block_id(3), block_id(4))
    assert world.block(4)[0] == applying(PEER, (came(4),))
    world.ids(block_id(4), block_id(5))
    assert world.block(5) == []
    # One waits: nothing more is asked for.
    assert world.best(OTHER) == []
    world.history.ids.append(block_id(4))
    extension, question = world.loader.handle(Applied(), 0)
    assert extension == applying(PEER, (came(5),))
    assert question == Send(OTHER, GetBlockIds((block_id(5), *own(4))))


def test_what_follows_a_refused_extension_is_thrown_away() -> None:
    world = World()
    world.best()
    world.ids(block_id(3), block_id(4))
    world.block(4)
    world.ids(block_id(4), block_id(5))
    world.block(5)
    assert world.loader.handle(Applied(failed=True), 0) == [Send(PEER, GetBlockIds(own(3)))]


def test_a_peer_that_lacks_our_final_block_is_not_blacklisted() -> None:
    """It may come to our chain, once it has heard of a better one from us."""
    world = World()
    world.history.is_final_by_votes = True
    world.best()
    (blame,) = world.ids()
    assert isinstance(blame, Blame)
    assert (blame.verdict, blame.reason) == (Verdict.SUSPEND, extensions.ON_ANOTHER_FORK)


@pytest.mark.parametrize(
    ("ids", "verdict", "words"),
    [
        ((), Verdict.BLACKLIST, "another fork"),
        ((b"bad" * 10, block_id(4)), Verdict.BLACKLIST, "invalid block"),
        ((block_id(3), block_id(4), block_id(4)), Verdict.BLACKLIST, "twice"),
        ((block_id(9),), Verdict.SUSPEND, "that we do not have"),
    ],
)
def test_lists_that_are_blamed(ids: tuple[bytes, ...], verdict: Verdict, words: str) -> None:
    world = World()
    world.invalid.add(b"bad" * 10)
    world.best()
    (blame,) = world.ids(*ids)
    assert isinstance(blame, Blame)
    assert (blame.peer, blame.verdict) == (PEER, verdict)
    assert words in blame.reason
    assert world.loader.busy_with is None
    # It goes, and the next best is asked.
    assert world.loader.handle(Left(PEER), 0) == []
    assert world.best(OTHER) == [Send(OTHER, GetBlockIds(own(3)))]


def test_a_list_from_a_block_that_we_have_given_up_since_is_requested_again() -> None:
    world = World()
    world.best()
    world.history.ids[2:] = [block_id(3, "b")]
    (again,) = world.ids(block_id(3), block_id(4))
    assert again == Send(PEER, GetBlockIds((block_id(3, "b"), *own(2))))
    # An answer to the first request is none to the second.
    assert world.ids(block_id(3), block_id(4)) == []
    assert world.ids(block_id(2), block_id(3), block_id(4)) == [
        Send(PEER, GetBlock(block_id(3))),
        Send(PEER, GetBlock(block_id(4))),
    ]


def test_a_list_of_known_ids_means_there_is_nothing() -> None:
    world = World()
    world.best()
    # What it has more came by itself meanwhile.
    world.history.extra = 99
    assert world.ids(block_id(3)) == []
    assert world.loader.wake_at is None


def test_nobody_else_is_listened_to() -> None:
    world = World()
    world.best()
    assert world.ids(block_id(3), block_id(4), peer=OTHER) == []
    assert world.best(OTHER) == []
    world.ids(block_id(3), block_id(4))
    assert world.block(4, peer=OTHER) == []
    assert world.block(7) == []


def test_blocks_that_do_not_follow_each_other() -> None:
    world = World()
    world.best()
    world.ids(block_id(3), block_id(4), block_id(5, "b"))
    world.block(4)
    (blame,) = world.block(5, "b")
    assert isinstance(blame, Blame)
    assert "follow" in blame.reason


def test_patience_is_for_each_item() -> None:
    world = World()
    world.best()
    assert world.loader.wake_at == extensions.PATIENCE
    assert world.loader.handle(Tick(), 59_999) == [Slow(PEER)]
    assert world.loader.wake_at == 60_000
    world.ids(block_id(3), block_id(4), block_id(5), now=59_999)
    world.block(4, now=100_000)
    assert not any(isinstance(each, Blame) for each in world.loader.handle(Tick(), 159_999))
    blame, extension = world.loader.handle(Tick(), 160_000)
    # What has come is used.
    assert extension == applying(PEER, (came(4),))
    assert isinstance(blame, Blame)
    assert blame.verdict is Verdict.BLACKLIST


def test_who_is_silent_about_what_we_have_by_now_is_not_blamed() -> None:
    """Some nodes answer nothing when nothing follows."""
    world = World()
    world.best()
    world.ids(block_id(3), block_id(4))
    world.block(4)
    assert world.loader.busy_with == PEER
    assert world.loader.handle(Tick(), 60_000) == []
    world.history.ids.append(block_id(4))
    assert world.loader.handle(Applied(), 61_000) == [Send(PEER, GetBlockIds(own(4)))]
    assert world.best(None) == []
    assert world.loader.handle(Tick(), 200_000) == []


def test_a_peer_that_goes_is_replaced() -> None:
    world = World()
    world.best()
    world.best(OTHER)
    assert world.loader.handle(Left(PEER), 0) == [Send(OTHER, GetBlockIds(own(3)))]


def test_old_peers_are_asked_for_signatures() -> None:
    world = World()
    world.loader.handle(Joined(3, Version(0, 16, 3)), 0)
    # It cannot be told about ids that are no signatures.
    assert world.best(3) == []
    world.history.ids = [bytes((number,)) * 64 for number in range(2)] + [bytes(32)]
    world.best(None)
    asked = GetSignatures((b"\1" * 64, bytes(64)))
    assert world.best(3) == [Send(3, asked)]
    answer = Signatures((b"\1" * 64, b"\2" * 64))
    assert world.loader.handle(Received(3, answer), 0) == [Send(3, GetBlock(b"\2" * 64))]


def test_light_nodes_want_snapshots() -> None:
    world = World(LoaderSettings(snapshots=True))
    world.best()
    assert world.ids(block_id(3), block_id(4)) == [
        Send(PEER, GetBlock(block_id(4))),
        Send(PEER, GetBlockSnapshot(block_id(4))),
    ]
    assert world.block(4) == []
    snapshot = SnapshotReceived(PEER, block_id(4), BlockSnapshot(b"s"))
    extension, *_ = world.loader.handle(snapshot, 0)
    assert extension == applying(PEER, (came(4),), (snapshot,))


def test_what_is_too_large_to_hold_is_applied_in_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(extensions, "MAX_BUFFERED_BYTES", 1_000)
    world = World()
    world.best()
    world.ids(block_id(3), *(block_id(number) for number in range(4, 9)))
    world.block(6, size=400)
    world.block(4, size=400)
    extension, question = world.block(5, size=400)
    assert isinstance(extension, ApplyExtension)
    assert extension.ids == (block_id(4), block_id(5), block_id(6))
    assert isinstance(question, Send)


def test_a_fork_that_is_too_large_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(extensions, "MAX_BUFFERED_BYTES", 1_000)
    world = World()
    world.best()
    world.ids(block_id(2), block_id(3, "b"), block_id(4, "b"), block_id(5, "b"))
    world.block(3, "b", size=600)
    (blame,) = world.block(4, "b", size=600)
    assert isinstance(blame, Blame)
    assert blame.verdict is Verdict.SUSPEND


def test_a_block_of_ours_cannot_stand_behind_one_that_we_lack() -> None:
    """Found by made-up events: an extension that put a block on the chain which was there."""
    world = World()
    world.best()
    world.ids(block_id(3), block_id(4))
    assert world.block(4)[0] == applying(PEER, (came(4),))
    (blame,) = world.ids(block_id(3), block_id(9), block_id(4))
    assert isinstance(blame, Blame)
    assert blame.verdict is Verdict.SUSPEND


def test_who_says_nothing_while_others_claim_more_is_believed_no_longer() -> None:
    world = World()
    world.best()
    assert world.best(OTHER, now=100) == []
    late = extensions.DEFAULTS.timeout
    assert world.loader.handle(Tick(), late) == [NothingNew(PEER)]
    assert world.best(OTHER, now=late) == [Send(OTHER, GetBlockIds(own(3)))]


peers = st.sampled_from((PEER, OTHER, 3))
numbers = st.integers(1, 8)
branches = st.sampled_from("ab")
lists = st.lists(st.builds(block_id, numbers, branches), max_size=6).map(tuple)
events = (
    st.builds(BestPeer, peers | st.none(), st.just(9))
    | st.builds(Received, peers, st.builds(BlockIds, lists))
    | st.builds(came, numbers, branches, st.just(1), peers)
    | st.builds(Applied, st.booleans())
    | st.builds(Left, peers)
    | st.builds(Joined, peers, st.just(Version(1, 5, 7)))
    | st.just(Tick())
)


@given(st.lists(st.tuples(events, st.integers(0, 70_000)), max_size=60))
def test_any_order_of_events(script: list[tuple[object, int]]) -> None:
    """Never two extensions at once, each in order and new, and no patience without an end."""
    world = World()
    now, applying = 0, False
    for event, passed in script:
        now += passed
        if isinstance(event, Applied):
            if not applying:
                continue
            applying = False
        for action in world.loader.handle(event, now):  # type: ignore[arg-type]
            if isinstance(action, ApplyExtension):
                assert not applying
                applying = True
                for one, following in zip(action.blocks, action.blocks[1:], strict=False):
                    assert following.reference == one.block_id
                assert not set(action.ids) & set(world.history.ids)
        assert world.loader.is_applying == applying
        assert world.loader.busy_with is None or world.loader.wake_at is not None


@pytest.mark.parametrize(("later", "verdict"), [(99, Verdict.BLACKLIST), (120, Verdict.SUSPEND)])
def test_who_may_have_changed_its_chain_is_not_banned_for_silence(
    later: int, verdict: Verdict
) -> None:
    """A simulated network has shown it: a peer tells ids, changes to a better fork, and has not the
    blocks any more that it is asked for.
    """
    world = World()
    world.best()
    world.ids(block_id(3), block_id(4), now=10)
    world.loader.handle(BestPeer(PEER, later), 2_000)
    (blame,) = world.loader.handle(Tick(), 10 + extensions.DEFAULTS.timeout)
    assert isinstance(blame, Blame)
    assert (blame.peer, blame.verdict) == (PEER, verdict)


def test_who_claims_a_better_chain_and_names_no_block_is_not_believed() -> None:
    """A liar with the best score of all would keep everybody from loading anything."""
    world = World()
    world.loader.handle(BestPeer(PEER, 10**9), 0)
    assert world.ids(block_id(3)) == [NothingNew(PEER)]
    # It is the next one's turn.
    assert world.loader.handle(BestPeer(OTHER, 99), 1) == [Send(OTHER, GetBlockIds(own(3)))]


def test_a_peer_that_has_replaced_a_block_is_asked_again() -> None:
    """A follower waited a minute each time for a block that its only peer had replaced."""
    world = World()
    world.best()
    world.ids(block_id(3), block_id(4), block_id(5))
    world.block(4, now=100)
    again = [Send(PEER, GetBlockIds(own(3)))]
    assert world.loader.wake_at == 100 + extensions.ASKED_AGAIN
    assert world.loader.handle(Tick(), 2_100) == again
    assert world.loader.handle(Tick(), 2_200) == []
    # What has come is used, what is new is requested.
    assert world.ids(block_id(3), block_id(4), block_id(5, "b"), now=2_300) == [
        Send(PEER, GetBlock(block_id(5, "b"))),
        applying(PEER, (came(4),)),
    ]
    world.history.ids.append(block_id(4))
    assert world.loader.handle(Applied(), 2_400) == []
    new = BlockReceived(PEER, block_id(5, "b"), block_id(4), ProtobufBlock(b"x"))
    extension, _ = world.loader.handle(new, 2_500)
    assert extension == applying(PEER, (new,))


def test_a_fork_keeps_what_has_come_of_an_earlier_list() -> None:
    world = World()
    world.best()
    world.ids(block_id(2), block_id(3, "b"), block_id(4, "b"), block_id(5, "b"))
    world.block(3, "b")
    world.block(4, "b")
    world.loader.handle(Tick(), 2_000)
    # No part of it alone need be better than our chain.
    asked = world.ids(block_id(2), block_id(3, "b"), block_id(4, "b"), block_id(5), now=2_100)
    assert asked == [Send(PEER, GetBlock(block_id(5)))]
    last = BlockReceived(PEER, block_id(5), block_id(4, "b"), ProtobufBlock(b"x"))
    extension, _ = world.loader.handle(last, 2_200)
    assert isinstance(extension, ApplyExtension)
    assert extension.ids == (block_id(3, "b"), block_id(4, "b"), block_id(5))


def test_what_a_peer_still_lists_is_requested_once_more() -> None:
    world = World()
    world.best()
    world.ids(block_id(3), block_id(4), block_id(5))
    world.block(5)
    world.loader.handle(Tick(), 2_000)
    listed = (block_id(3), block_id(4), block_id(5))
    assert world.ids(*listed, now=2_100) == [Send(PEER, GetBlock(block_id(4)))]
    # It takes twice as long each time.
    assert world.loader.wake_at == extensions.PATIENCE
    world.loader.handle(Tick(), 5_000)
    assert world.loader.wake_at == 2_100 + 2 * extensions.ASKED_AGAIN
    world.loader.handle(Tick(), 6_100)
    assert world.ids(*listed, now=6_200) == []
    extension, _ = world.block(4, now=6_300)
    assert extension == applying(PEER, (came(4), came(5)))


def test_a_peer_that_drips_is_put_aside_for_another() -> None:
    """True blocks, each just before its timeout, kept a new node at height 1."""
    world = World()
    world.best()
    world.ids(block_id(3), *(block_id(number) for number in range(4, 9)))
    world.block(4, now=4_000)
    slow = world.loader.handle(Tick(), extensions.PATIENCE)
    assert slow == [Slow(PEER)]
    # There is no other one yet: its blocks are awaited.
    world.block(5, now=40_000)
    extension, asked = world.best(OTHER, now=50_000)
    assert extension == applying(PEER, (came(4), came(5)))
    assert asked == Send(OTHER, GetBlockIds((block_id(5), block_id(4), *own(3))))
    world.history.ids += [block_id(4), block_id(5)]
    world.loader.handle(Applied(), 50_010)
    world.ids(block_id(5), block_id(6), peer=OTHER, now=50_020)
    extension, _ = world.block(6, peer=OTHER, now=50_030)
    assert extension == applying(OTHER, (came(6, peer=OTHER),))
    # What it owes remains due.
    for number, now in ((6, 60_000), (7, 119_000)):
        world.block(number, now=now)
        assert not any(isinstance(e, Blame) for e in world.loader.handle(Tick(), now + 50_000))
    blames = [e for e in world.loader.handle(Tick(), 179_000) if isinstance(e, Blame)]
    assert [each.peer for each in blames] == [PEER]


def test_a_fast_peer_is_not_slow_however_long_it_takes() -> None:
    world = World()
    world.best()
    world.ids(block_id(3), *(block_id(number) for number in range(4, 20)))
    for number in range(4, 19):
        now = (number - 3) * 1_000
        world.block(number, size=1_100 * extensions.FAST, now=now)
        assert world.loader.handle(Tick(), now + 999) == []


def test_what_came_before_a_peer_went_is_used() -> None:
    world = World()
    world.best()
    world.ids(block_id(3), block_id(4), block_id(5), block_id(6))
    world.block(4)
    world.block(6)
    assert world.loader.handle(Left(PEER), 0) == [applying(PEER, (came(4),))]
