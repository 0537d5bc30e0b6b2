"""Whatever a private chain is told to do: what is reverted is as it was, byte for byte, and no coin
comes from nowhere.
"""

from __future__ import annotations

import contextlib
from collections import Counter
from pathlib import Path
from typing import NamedTuple

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from soliton.chain.addresses import Address, address_text, from_public_key
from soliton.chain.transactions import codec
from soliton.chain.transactions.issue import TYPE as ISSUE
from soliton.chain.transactions.issue import Issue
from soliton.chain.transactions.model import TransactionType
from soliton.chain.transactions.transfer import TYPE as TRANSFER
from soliton.chain.transactions.transfer import Transfer
from soliton.chain.values import AssetId
from soliton.controls.clock import ClockState, DevClock
from soliton.controls.control import Controls
from soliton.controls.dump import dump, load
from soliton.controls.errors import ControlRefused
from soliton.controls.mining import MANUAL, MiningMode
from soliton.crypto import base58
from soliton.crypto.keys import key_pair
from soliton.errors import InputError
from soliton.ledger.edits import (
    AliasEdit,
    AssetBalanceEdit,
    BalanceEdit,
    DataEdit,
    Edit,
    LeaseCancelEdit,
    LeaseEdit,
)
from soliton.ledger.state import ASSET_VOLUMES, LEASES, WAVES
from soliton.node.node import Node
from soliton.node.settings import load_settings
from soliton.node.wallet import Wallet
from soliton.storage.indexes import asset_balances, distribution, leases_of
from tests.amounts import times
from tests.api.chain import RICH, SEED

PEOPLE = [key_pair(f"soliton devnet account {number}") for number in range(1, 4)]
ADDRESSES = [from_public_key(each.public_key, ord("R")) for each in PEOPLE]


class World(NamedTuple):
    """All that there is at a moment: the store, the pool in its order, the clock."""

    records: dict[bytes, bytes]
    pool: tuple[bytes, ...]
    clock: ClockState
    mode: MiningMode
    impersonated: frozenset[Address]


class Play:
    """A chain and what was noted of it."""

    def __init__(self, directory: Path) -> None:
        self.now = 1_795_174_397_440
        wallet = Wallet.in_memory(SEED.encode(), ())
        clock = DevClock(lambda: self.now)
        config = load_settings(network="devnet", data_dir=directory)
        self.node = Node(config, wallet, clock=clock, durable=False)
        self.controls = Controls(self.node, RICH, clock, mode=MANUAL)
        self.controls.mine()
        self.noted: dict[int, World] = {}

    def world(self) -> World:
        self.node.chain.flush()
        pool = tuple(each.id for each in self.node.pool.transactions())
        records = dict(self.node.store.scan(b"", b""))
        controls = self.controls
        waived = controls.chain.waived
        return World(records, pool, controls.clock.state, controls.mining.mode, waived)

    def check(self) -> None:
        """Every coin is somewhere."""
        chain = self.node.chain
        meta = chain.meta(chain.height)
        held = sum(amount for _, amount in distribution(chain.store, chain.height))
        carried = sum(amount for asset, amount in meta.carry if asset is None)
        assert held + carried == meta.total_waves
        leases = [chain.store.get(LEASES, each) for each in ADDRESSES]
        assert sum(each.lease_in for each in leases) == sum(each.lease_out for each in leases)
        held_assets: Counter[AssetId] = Counter()
        for each in ADDRESSES:
            held_assets.update(dict(asset_balances(chain.store, each)))
        for asset, quantity in held_assets.items():
            info = chain.store.get(ASSET_VOLUMES, asset)
            assert info is not None and info.quantity == quantity


def submit(play: Play, sender: int, kind: TransactionType, payload: object, fee: int) -> None:
    """Sign and send; without a proof where the account is impersonated."""
    keys = PEOPLE[sender]
    draft = codec.build(
        kind,
        payload,
        sender_public_key=keys.public_key,
        timestamp=play.controls.clock(),
        version=3,
        chain_id=ord("R"),
        fee=fee,
    )
    if ADDRESSES[sender] not in play.controls.chain.waived:
        draft = codec.sign(draft, keys.private_key, bytes(64))
    play.node.broadcast(draft)


def send(play: Play, sender: int, to: int, amount: int) -> None:
    submit(play, sender, TRANSFER, Transfer(ADDRESSES[to], None, amount, b""), 100_000)


def issue(play: Play, sender: int, amount: int) -> None:
    submit(play, sender, ISSUE, Issue(b"Gold", b"", amount, 2, True), 10**8)


def first_asset(play: Play, who: int) -> AssetId | None:
    held = asset_balances(play.controls.chain.store, ADDRESSES[who])
    return next((asset for asset, _ in held), None)


def send_asset(play: Play, sender: int, to: int) -> None:
    asset = first_asset(play, sender)
    if asset is not None:
        submit(play, sender, TRANSFER, Transfer(ADDRESSES[to], asset, 1, b""), 100_000)


def edit_asset(play: Play, who: int, to: int, amount: int) -> None:
    asset = first_asset(play, who)
    name = AliasEdit("somebody", address_text(ADDRESSES[to]))
    edits: list[Edit] = [name]
    if asset is not None:
        text = address_text(ADDRESSES[to])
        edits.append(AssetBalanceEdit(text, base58.encode(asset), amount))
    play.controls.edit(edits)


def end_lease(play: Play, who: int) -> None:
    leases = leases_of(play.controls.chain.store, ADDRESSES[who])
    play.controls.edit([LeaseCancelEdit(base58.encode(lease)) for _, lease in leases])


def edit(play: Play, who: int, to: int, amount: int) -> None:
    text = address_text(ADDRESSES[who])
    edits: list[Edit] = [BalanceEdit(text, amount), DataEdit(text, "k", "integer", amount)]
    if who != to and amount:
        key = base58.encode(PEOPLE[who].public_key)
        edits.append(LeaseEdit(key, address_text(ADDRESSES[to]), amount // 2 or 1))
    play.controls.edit(edits)


def mine(play: Play, count: int, interval_ms: int) -> None:
    play.controls.mine(count, interval_ms)


def snapshot(play: Play) -> None:
    number = play.controls.snapshot()
    play.noted[number] = play.world()


def revert(play: Play, which: int) -> None:
    if play.noted:
        number = sorted(play.noted)[which % len(play.noted)]
        assert play.controls.revert(number)
        assert play.world() == play.noted[number]


def forget(play: Play, which: int) -> None:
    if play.noted:
        number = sorted(play.noted)[which % len(play.noted)]
        assert play.controls.snapshots.forget(number)
        del play.noted[number]


def reset(play: Play) -> None:
    play.controls.reset()
    play.noted.clear()


def reload(play: Play) -> None:
    before = play.world()
    load(play.controls, dump(play.controls))
    after = play.world()
    assert after.records == before.records
    assert after.pool == before.pool


people, some = st.integers(0, 2), st.integers(0, 7)
CALLS = st.one_of(
    st.tuples(st.just(send), people, people, st.integers(1, 10**9)),
    st.tuples(st.just(edit), people, people, st.integers(0, 10**15)),
    st.tuples(st.just(issue), people, st.integers(1, 10**12)),
    st.tuples(st.just(send_asset), people, people),
    st.tuples(st.just(edit_asset), people, people, st.integers(0, 10**15)),
    st.tuples(st.just(end_lease), people),
    st.tuples(st.just(mine), st.integers(1, 3), st.sampled_from((0, 1_000))),
    st.tuples(st.just(lambda play: play.controls.mine(101))),
    st.tuples(st.just(lambda play, ms: play.controls.travel(ms)), st.integers(0, 10**8)),
    st.tuples(st.just(lambda play, on: play.controls.freeze(frozen=on)), st.booleans()),
    st.tuples(st.just(lambda play, depth: play.controls.reorganize(depth)), st.integers(1, 4)),
    st.tuples(st.just(lambda play: play.controls.drop())),
    st.tuples(st.just(lambda play, who: play.controls.impersonate(ADDRESSES[who])), people),
    st.tuples(st.just(lambda play, who: play.controls.stop_impersonating(ADDRESSES[who])), people),
    st.tuples(st.just(lambda play: play.controls.set_mining("interval", 5))),
    st.tuples(st.just(snapshot)),
    st.tuples(st.just(snapshot)),
    st.tuples(st.just(revert), some),
    st.tuples(st.just(revert), some),
    st.tuples(st.just(forget), some),
    st.tuples(st.just(reload)),
    st.tuples(st.just(reset)),
)  # fmt: skip


@pytest.fixture(scope="module")
def play(tmp_path_factory: pytest.TempPathFactory) -> Play:
    return Play(tmp_path_factory.mktemp("chain"))


@settings(max_examples=times(50, 10_000))
@given(calls=st.lists(CALLS, min_size=2, max_size=12))
def test_what_is_reverted_is_as_it_was(play: Play, calls: list[tuple[object, ...]]) -> None:
    play.controls.reset()
    play.controls.set_mining("manual")
    play.noted.clear()
    for call, *arguments in calls:
        play.now += 1
        # What cannot be is refused, and changes nothing that the rest would not see.
        with contextlib.suppress(ControlRefused, InputError):
            call(play, *arguments)  # type: ignore[operator]
        play.check()
    for number in sorted(play.noted, reverse=True):
        assert play.controls.revert(number)
        assert play.world() == play.noted[number]


def test_balances_are_kept_in_the_state(play: Play) -> None:
    """What the other test sums up is what the state holds."""
    chain = play.node.chain
    for address, amount in distribution(chain.store, chain.height):
        assert chain.store.get(WAVES, address) == amount
