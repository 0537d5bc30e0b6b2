"""The settings of ``miner`` that decide on what, when and with which keys blocks are made."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from soliton.chain.addresses import Alias
from soliton.chain.transactions.create_alias import CreateAlias
from soliton.chain.transactions.issue import Issue
from soliton.chain.transactions.update_asset_info import UpdateAssetInfo
from soliton.crypto import base58
from soliton.errors import InputError
from soliton.ledger.state import WAVES
from soliton.node.events import BlockAppended, Departure, NodeEvent, PoolDropped, RolledBack
from soliton.node.key_blocks import LATEST_TURN_MS, mine_key_block
from soliton.node.mining import mine_by_schedule, mining_account, next_turn
from soliton.node.node import Node
from soliton.node.pool import MAX_MISSES
from soliton.node.settings import Settings, load_settings
from soliton.node.wallet import Wallet
from soliton.p2p.receiving import Receiver, Verdict
from soliton.storage.errors import StorageProblem
from tests.node import forging
from tests.node.chains import DEVNET, RICH, address_of, person, signed, transfer
from tests.p2p.world import done

ANN = person("ann")
GONE = Alias(DEVNET.chain_id, "gone")


def settings(directory: Path, **overrides: Any) -> Settings:
    given = {key.replace("__", ".").replace("_", "-"): each for key, each in overrides.items()}
    return load_settings(network="devnet", data_dir=directory, overrides=given)


class Clock:
    """A clock that a test moves on."""

    def __init__(self) -> None:
        self.time = 1_700_000_000_000

    def __call__(self) -> int:
        return self.time


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def node(tmp_path: Path, clock: Clock) -> Iterator[Node]:
    wallet = Wallet.in_memory(b"nothing", [b"waves private node seed with waves tokens"])
    made = Node(settings(tmp_path, miner__quorum="1"), wallet, clock=clock, durable=False)
    made.mine(RICH, empty=True)
    yield made
    made.close()


def grow(node: Node, clock: Clock, *pauses: int) -> list[bytes]:
    """Add a microblock after each pause (ms); the ids of all forms of the last block."""
    for pause in pauses:
        clock.time += pause
        sent = transfer(node.chain, RICH, ANN, 1 + clock.time % 1_000_000)
        node.broadcast(sent)
        assert forging.mine_micro(node, RICH) == 1
    return list(node.chain.liquid_ids())


@pytest.mark.parametrize(
    ("since", "expected"), [(0, 1), (199, 1), (200, 2), (499, 2), (500, 3), (9_000, 3)]
)
def test_a_key_block_stands_on_the_youngest_microblock_that_is_old_enough(
    node: Node, clock: Clock, since: int, expected: int
) -> None:
    """One each 300 ms; ``since`` the last one. 500 ms is the usual age."""
    forms = grow(node, clock, 10_000, 300, 300)
    clock.time += since
    events: list[NodeEvent] = []
    node.events.subscribe(lambda event: events.append(event))
    lost = node.chain.last_block.transactions
    block = mine_key_block(node, RICH)
    assert block.header.reference == forms[expected]
    node.pool.settle()
    assert [each.id for each in lost[expected:]] == [each.id for each in node.pool.transactions()]
    kinds = [type(each) for each in events if isinstance(each, BlockAppended | RolledBack)]
    assert kinds == ([RolledBack] if expected < 3 else []) + [BlockAppended]


def test_what_is_cut_off_is_looked_at_again_without_what_it_did(node: Node, clock: Clock) -> None:
    """As of now an alias of a microblock that is cut off is free, and what it paid is not paid."""
    clock.time += 10_000
    before = node.chain.store.get(WAVES, address_of(ANN))
    node.broadcast(transfer(node.chain, RICH, ANN, 7))
    name = signed(RICH, 10, CreateAlias(GONE), version=2, timestamp=clock.time)
    node.broadcast(name)
    # What the pool knows of the chain from now on is with the microblock.
    assert forging.mine_micro(node, RICH) == 2
    node.broadcast(transfer(node.chain, RICH, ANN, 11))
    with pytest.raises(InputError, match="already"):
        node.broadcast(signed(RICH, 10, CreateAlias(GONE), version=2, timestamp=clock.time + 1))
    clock.time += 100
    block = mine_key_block(node, RICH)
    assert not block.transactions
    node.pool.settle()
    assert name.id in node.pool
    assert len(node.pool) == 3
    assert node.chain.store.get(WAVES, address_of(ANN)) == before
    assert node.pool.state().get(WAVES, address_of(ANN)) == before + 18
    assert len(node.mine(RICH).transactions) == 3


def test_what_is_cut_off_is_mined_again_before_what_pays_more(tmp_path: Path, clock: Clock) -> None:
    """As in the reference, where a pool of its own holds what a key block has dropped."""
    wallet = Wallet.in_memory(b"nothing", [b"waves private node seed with waves tokens"])
    one = settings(tmp_path, miner__quorum="1", miner__max_transactions_in_micro_block="1")
    node = Node(one, wallet, clock=clock, durable=False)
    try:
        node.broadcast(transfer(node.chain, RICH, ANN, 10**8))
        node.mine(RICH)
        clock.time += 10_000
        node.mine(RICH, empty=True)
        first = transfer(node.chain, RICH, ANN, 1)
        node.broadcast(first)
        assert forging.mine_micro(node, RICH) == 1
        node.broadcast(transfer(node.chain, ANN, RICH, 1, fee=10**7))
        clock.time += 100
        assert mine_key_block(node, RICH).transactions == ()
        assert forging.mine_micro(node, RICH) == 1
        assert [each.id for each in node.chain.last_block.transactions] == [first.id]
    finally:
        node.close()


def test_the_age_can_be_chosen(tmp_path: Path, clock: Clock) -> None:
    wallet = Wallet.in_memory(b"nothing", [b"waves private node seed with waves tokens"])
    own = settings(tmp_path, miner__min_micro_block_age="6s")
    node = Node(own, wallet, clock=clock, durable=False)
    try:
        node.mine(RICH, empty=True)
        forms = grow(node, clock, 10_000, 2_000)
        clock.time += 4_000
        assert mine_key_block(node, RICH).header.reference == forms[1]
    finally:
        node.close()


def test_a_miner_that_may_be_alone_builds_on_all_it_has_made(tmp_path: Path, clock: Clock) -> None:
    """Where blocks come sooner than the usual age, a lone node would drop all it makes for ever."""
    wallet = Wallet.in_memory(b"nothing", [b"waves private node seed with waves tokens"])
    node = Node(settings(tmp_path, miner__quorum="0"), wallet, clock=clock, durable=False)
    try:
        node.mine(RICH, empty=True)
        forms = grow(node, clock, 10_000)
        assert mine_key_block(node, RICH).header.reference == forms[-1]
    finally:
        node.close()


def test_a_turn_that_was_missed_keeps_its_time(node: Node, clock: Clock) -> None:
    """As in the reference, whose block bears the earliest time unless that is a minute ago."""
    slot = next_turn(node)
    assert slot is not None
    clock.time = slot.earliest + 30_000
    assert mine_key_block(node, RICH).header.timestamp == slot.earliest
    slot = next_turn(node)
    assert slot is not None
    clock.time = slot.earliest + LATEST_TURN_MS + 5
    assert mine_key_block(node, RICH).header.timestamp == slot.earliest + 5


def test_what_was_cut_off_is_there_again_when_no_block_comes_of_it(
    node: Node, clock: Clock
) -> None:
    forms = grow(node, clock, 10_000, 2_000)
    with pytest.raises(InputError, match="generating balance"):
        mine_key_block(node, ANN)
    assert list(node.chain.liquid_ids()) == forms
    assert len(node.pool) == 0
    # It goes on growing.
    grow(node, clock, 2_000)


def test_what_was_cut_off_waits_again_when_the_disk_refuses(
    node: Node, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    forms = grow(node, clock, 10_000, 2_000)

    def refuse() -> None:
        raise StorageProblem("no space left on the disk")

    with monkeypatch.context() as patched:
        patched.setattr(node.store, "flush", refuse)
        with pytest.raises(StorageProblem):
            mine_key_block(node, RICH)
    node.pool.settle()
    known = node.chain.last_block
    waiting = len(node.pool) + len(known.transactions)
    assert known.id in forms
    assert waiting == 2


def test_private_keys_mine_in_place_of_the_wallet(tmp_path: Path, clock: Clock) -> None:
    keys = [base58.encode(each.private_key) for each in (RICH, ANN)]
    own = settings(tmp_path, miner__private_keys=keys)
    node = Node(own, Wallet.in_memory(b"nothing", [b"somebody"]), clock=clock, durable=False)
    try:
        assert node.mining_accounts() == [RICH, ANN]
        slot = next_turn(node)
        assert slot is not None
        assert slot.account == RICH
        assert mining_account(node, ANN.public_key) == ANN
        somebody = node.wallet.accounts(node.network.chain_id)[0]
        kept = node.wallet.key(somebody)
        assert kept is not None
        assert mining_account(node, kept.public_key) is None
        assert repr(own.miner).count(keys[0]) == 0
    finally:
        node.close()


@pytest.mark.parametrize("keys", [["x"], ["3"], [base58.encode(bytes(31))], [1]])
def test_what_is_no_private_key_is_refused_and_not_shown(tmp_path: Path, keys: list[Any]) -> None:
    with pytest.raises(InputError, match=r"miner\.private-keys\[0\] is \(not shown\)") as refused:
        settings(tmp_path, miner__private_keys=keys)
    assert all(str(each) not in str(refused.value).split() for each in keys)


async def test_without_a_quorum_it_is_looked_again_after_the_delay(
    node: Node, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    pauses: list[float] = []
    sleep = asyncio.sleep

    async def noted(seconds: float) -> None:
        pauses.append(seconds)
        await sleep(0)

    monkeypatch.setattr(asyncio, "sleep", noted)
    asked = iter([False, False])
    clock.time += 3_600_000
    task = asyncio.create_task(mine_by_schedule(node, has_quorum=lambda: next(asked, True)))
    try:
        async with asyncio.timeout(30):
            while node.chain.height < 4:
                await sleep(0.001)
    finally:
        task.cancel()
    assert pauses[:2] == [5.0, 5.0]
    assert 5.0 not in pauses[2:]


def test_no_vote_for_what_this_version_does_not_implement(tmp_path: Path, clock: Clock) -> None:
    """As in the reference, which has ``filter(BlockchainFeatures.implemented)``."""
    wallet = Wallet.in_memory(b"nothing", [b"waves private node seed with waves tokens"])
    own = settings(tmp_path, features__supported=[23, 99])
    features = dict(own.network.functionality.pre_activated_features)
    del features[23]
    functionality = msgspec.structs.replace(
        own.network.functionality, pre_activated_features=features
    )
    own = msgspec.structs.replace(
        own, network=msgspec.structs.replace(own.network, functionality=functionality)
    )
    node = Node(own, wallet, clock=clock, durable=False)
    try:
        assert node.mine(RICH).header.feature_votes == (23,)
    finally:
        node.close()


async def test_only_the_node_that_has_made_a_block_lets_it_grow(
    tmp_path: Path, clock: Clock
) -> None:
    """Two nodes with the same accounts would make two microblocks on the same one."""
    wallet = Wallet.in_memory(b"nothing", [b"waves private node seed with waves tokens"])
    maker = Node(settings(tmp_path / "maker"), wallet, clock=clock, durable=False)
    own = settings(
        tmp_path / "own",
        miner__micro_block_interval="5ms",
        miner__minimal_block_generation_offset="1h",
    )
    node = Node(own, wallet, clock=clock, durable=False)
    looks = 0

    def has_quorum() -> bool:
        nonlocal looks
        looks += 1
        return True

    async def until(holds: Callable[[], bool]) -> None:
        async with asyncio.timeout(30):
            while not holds():  # noqa: ASYNC110 - nobody sets an event
                await asyncio.sleep(0.001)

    try:
        maker.mine(RICH, empty=True)
        outcome = done(Receiver(node, clock, alone=True).block(maker.chain.last_block.data))
        assert outcome.verdict is Verdict.APPLIED
        node.broadcast(transfer(node.chain, RICH, ANN, 1))
        task = asyncio.create_task(mine_by_schedule(node, has_quorum=has_quorum))
        await until(lambda: looks > 5)
        assert not node.chain.last_block.transactions
        clock.time += 3_600_000
        await until(lambda: bool(node.chain.last_block.transactions))
        task.cancel()
        assert node.chain.height == 3
        assert len(node.chain.liquid_ids()) == 2
    finally:
        maker.close()
        node.close()


async def test_at_the_base_target_of_the_settings_the_node_stops(
    tmp_path: Path, clock: Clock, caplog: pytest.LogCaptureFixture
) -> None:
    wallet = Wallet.in_memory(b"nothing", [b"waves private node seed with waves tokens"])
    own = settings(tmp_path, synchronization__max_base_target=2)
    node = Node(own, wallet, clock=clock, durable=False)
    try:
        await mine_by_schedule(node)
        assert node.is_stopping
        assert node.chain.height == 1
        assert "synchronization.max-base-target = 2" in caplog.text
    finally:
        node.close()


def dropped_of(node: Node) -> list[PoolDropped]:
    """What leaves the pool from now on other than into a block."""
    dropped: list[PoolDropped] = []

    def notice(event: NodeEvent) -> None:
        if isinstance(event, PoolDropped) and event.departure is Departure.INVALID:
            dropped.append(event)

    node.events.subscribe(notice)
    return dropped


def test_what_is_valid_from_the_next_block_on_waits_for_it(node: Node, clock: Clock) -> None:
    """The pool checks for the next key block; a microblock is one block earlier."""
    dropped = dropped_of(node)
    gold = Issue(b"Gold", b"", 100, 0, False)
    issue = signed(RICH, 3, gold, version=2, fee=10**8, timestamp=clock())
    node.broadcast(issue)
    assert forging.mine_micro(node, RICH) == 1
    clock.time += 60_000
    node.mine(RICH, empty=True)
    # Devnet allows a new name from the second block after the issue on.
    renaming = UpdateAssetInfo(issue.id, b"Silver", b"")
    update = signed(RICH, 17, renaming, version=1, timestamp=clock())
    node.broadcast(update)
    payment = transfer(node.chain, RICH, ANN, 1)
    node.broadcast(payment)
    assert forging.mine_micro(node, RICH) == 1
    node.pool.settle()
    assert [each.id for each in node.pool.transactions()] == [update.id]
    # Nor is it tried again in this block.
    assert forging.mine_micro(node, RICH) == 0
    clock.time += 60_000
    node.mine(RICH, empty=True)
    assert forging.mine_micro(node, RICH) == 1
    assert node.chain.last_block.transactions == (update,)
    assert not dropped


def test_what_no_miner_takes_leaves_the_pool_with_a_line_and_an_event(
    node: Node, clock: Clock, caplog: pytest.LogCaptureFixture
) -> None:
    dropped = dropped_of(node)
    waiting = transfer(node.chain, RICH, ANN, 1)
    node.broadcast(waiting)
    for misses in range(MAX_MISSES + 1):
        assert len(node.pool) == 1, misses
        clock.time += 60_000
        node.mine(RICH, empty=True)
        with caplog.at_level(logging.INFO):
            node.pool.follow(unminable={waiting.id: "no miner takes it"})
        node.pool.settle()
    [event] = dropped
    assert (event.transaction, event.reason) == (waiting, "no miner takes it")
    assert waiting.id.hex() in caplog.text


def test_what_cannot_come_back_from_a_block_is_reported(node: Node, clock: Clock) -> None:
    dropped = dropped_of(node)
    good, too_much = (transfer(node.chain, RICH, ANN, each) for each in (1, 2**62))
    node.pool.follow(returned=[good, too_much], changes={})
    node.pool.settle()
    assert [each.id for each in node.pool.transactions()] == [good.id]
    [event] = dropped
    assert event.transaction == too_much
    assert event.reason
