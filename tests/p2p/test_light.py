"""Light nodes over real sockets: they follow by snapshots, and find those that are wrong."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest

from soliton.chain import blocks, networks, snapshots
from soliton.chain.snapshots import (
    AccountData,
    AccountScript,
    BlockSnapshot,
    NewAlias,
    NewAsset,
    Snapshot,
    Status,
)
from soliton.chain.values import DataEntry
from soliton.ledger import apply
from soliton.ledger.transactions import apply_transaction
from soliton.node.chain_writer import ChainWriter
from soliton.p2p.history import ChainRequest, NodeHistory
from soliton.steps import Steps, run_steps
from soliton.storage.store import Store
from soliton.wire import messages
from soliton.wire.messages import Message
from soliton.wire.versions import ANNOUNCED, Version
from tests.ledger.test_mainnet import recorded_hashes, records
from tests.node import forging
from tests.node.chains import address_of
from tests.p2p.world import OWNERS, Peer, agree, join, make, network, until
from tests.vectors import report


@contextlib.asynccontextmanager
async def full_and_light(directory: Path) -> AsyncIterator[tuple[Peer, Peer]]:
    chain = network()
    full = make(directory / "full", 0, chain)
    light = make(directory / "light", 1, chain, enable_light_mode=True)
    async with contextlib.AsyncExitStack() as stack:
        for peer in (full, light):
            stack.callback(peer.node.close)
            await peer.service.start()
            stack.push_async_callback(peer.service.stop)
        yield full, light


@pytest.fixture
def executed(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The heights at which blocks' transactions are executed from now on."""
    found: list[int] = []

    def execute(transaction: Any, state: Any, context: Any, **options: Any) -> Any:
        found.append(context.height)
        return apply_transaction(transaction, state, context, **options)

    monkeypatch.setattr(apply, "apply_transaction", execute)
    return found


def test_a_light_node_gets_the_chain_and_follows_without_executing(
    tmp_path: Path, executed: list[int]
) -> None:
    async def world() -> None:
        async with full_and_light(tmp_path) as (full, light):
            for amount in range(1, 131):
                full.mine(full.transfer(amount))
            executed.clear()
            join(light, full)
            await until(lambda: agree(full, light), "the chain of 130 blocks")
            assert executed == []
            assert light.node.chain.height == 131
            chain = light.node.chain
            ours, theirs = (peer.node.chain.meta(131) for peer in (light, full))
            assert ours == theirs
            assert chain.store.by_hand(131) is None
            # Blocks and microblocks as they are made.
            for _ in range(3):
                full.mine(full.transfer(7))
                before = executed[:]
                await until(lambda: agree(full, light), "the next block")
                assert executed == before

    asyncio.run(world())


def test_forks_of_a_light_node_heal_and_it_mines(tmp_path: Path) -> None:
    async def world() -> None:
        async with full_and_light(tmp_path) as (full, light):
            full.mine(full.transfer())
            join(light, full)
            await until(lambda: agree(full, light), "the first block")
            for link in list(light.service._links.values()):
                link.transport.abort()
            await until(lambda: not full.service.core.connected)
            lost = light.transfer(3)
            light.mine(lost)
            for _ in range(4):
                full.mine(full.transfer())
            join(light, full)
            await until(lambda: agree(full, light), "one chain")
            assert light.service.jobs.forks == {1: 1}
            await until(lambda: lost.id in light.node.pool, "what was dropped")
            light.mine()
            await until(lambda: agree(full, light), "a block of the light node")
            assert full.node.chain.transaction(lost.id) is not None

    asyncio.run(world())


def richer(told: Snapshot) -> Snapshot:
    one, *others = told.balances
    more = msgspec.structs.replace(one, amount=one.amount + 1)
    return msgspec.structs.replace(told, balances=(more, *others))


def shifted(told: Snapshot) -> Snapshot:
    one, other, *rest = told.balances
    less = msgspec.structs.replace(one, amount=one.amount - 1)
    more = msgspec.structs.replace(other, amount=other.amount + 1)
    return msgspec.structs.replace(told, balances=(less, more, *rest))


def with_more(**members: Any) -> Callable[[Snapshot], Snapshot]:
    return lambda told: msgspec.structs.replace(told, **members)


OWNER = address_of(OWNERS[0])


def asset(issuer: bytes = bytes(32), decimals: int = 0) -> NewAsset:
    return NewAsset(bytes(32), issuer, decimals, False)


def entry(key: str, value: str) -> tuple[AccountData, ...]:
    return (AccountData(OWNER, (DataEntry(key, value),)),)


WRONG: dict[str, tuple[Callable[[Snapshot], Snapshot | None], str]] = {
    "wavelets from nowhere": (richer, "1 wavelets from nowhere"),
    "of somebody else": (shifted, "state hash"),
    "none": (lambda _told: None, "0 snapshots of 1 transactions"),
    "elided": (lambda _told: Snapshot(status=Status.ELIDED), "elided"),
    "a lease that never was": (with_more(cancelled_leases=(bytes(32),)), "never was"),
    "decimals": (with_more(new_assets=(asset(decimals=300),)), "decimals"),
    "issuer": (with_more(new_assets=(asset(issuer=bytes(64)),)), "public key"),
    "data key": (with_more(account_data=entry("k" * 1_000, "")), "data that is too long"),
    "data value": (with_more(account_data=entry("k", "v" * 70_000)), "data that is too long"),
    "alias": (with_more(alias=NewAlias(OWNER, "a" * 1_000)), "length"),
    "script": (
        with_more(account_script=AccountScript(bytes(32), bytes(10**6), 0)),
        "script that is too large",
    ),
    "no script": (
        with_more(account_script=AccountScript(bytes(32), b"\xff" * 50, -(2**63))),
        "state hash",
    ),
    "failed": (
        lambda told: msgspec.structs.replace(told, status=Status.FAILED),
        "state hash",
    ),
}


@pytest.mark.parametrize("kind", WRONG)
def test_who_sends_wrong_snapshots_is_blamed_and_the_block_is_not(
    tmp_path: Path, kind: str
) -> None:
    change, reason = WRONG[kind]

    async def world() -> None:
        async with full_and_light(tmp_path) as (full, light):
            for _ in range(3):
                full.mine(light.transfer())
            honest = full.service.history.answering

            def lie(request: ChainRequest, version: Version) -> Steps[Message | None]:
                answer = yield from honest(request, version)
                if isinstance(answer, messages.BlockSnapshot):
                    told = snapshots.decode_block(answer.data, full.node.network.chain_id)
                    changed = tuple(filter(None, map(change, told.snapshots)))
                    wrong = BlockSnapshot(told.block_id, changed)
                    return messages.BlockSnapshot(snapshots.encode_block(wrong))
                return answer

            vars(full.service.history)["answering"] = lie
            join(light, full)
            await until(lambda: bool(light.service.blacklisted()), "the blame")
            (kept,) = light.service.blacklisted().values()
            assert reason in kept.reason
            assert light.node.chain.height == 1
            # The same blocks with the right ones are taken.
            del vars(full.service.history)["answering"]
            # A second connection of the same peer would be refused.
            await until(
                lambda: full.service.connections + light.service.connections == 0, "the end"
            )
            light.service.clear_blacklist()
            join(light, full)
            await until(lambda: agree(full, light), "the chain")

    asyncio.run(world())


def test_a_wrong_snapshot_of_a_microblock_is_blamed(tmp_path: Path) -> None:
    async def world() -> None:
        async with full_and_light(tmp_path) as (full, light):
            full.mine()
            join(light, full)
            await until(lambda: agree(full, light), "the first block")
            honest = full.service.history.answering

            def lie(request: ChainRequest, version: Version) -> Steps[Message | None]:
                answer = yield from honest(request, version)
                if isinstance(answer, messages.MicroblockSnapshot):
                    told = snapshots.decode_microblock(answer.data, full.node.network.chain_id)
                    wrong = BlockSnapshot(told.block_id, tuple(map(richer, told.snapshots)))
                    return messages.MicroblockSnapshot(snapshots.encode_microblock(wrong))
                return answer

            vars(full.service.history)["answering"] = lie
            tip = light.tip()
            full.node.broadcast(full.transfer())
            forging.mine_micro(full.node, full.owner)
            await until(lambda: bool(light.service.blacklisted()), "the blame")
            assert light.tip() == tip

    asyncio.run(world())


def test_the_first_blocks_of_mainnet_by_their_snapshots(shared: Path, tmp_path: Path) -> None:
    """Before headers have state hashes: what is checked besides must hold in all of history."""
    chain = networks.load("waves-mainnet")
    stores = [Store(tmp_path / name, chain.name, durable=False) for name in ("full", "light")]
    full, light = (ChainWriter(chain, store) for store in stores)
    told = NodeHistory(full)
    source = records(shared / "data" / "waves-mainnet-blocks-2-10000.bin")
    rows = recorded_hashes(shared)
    try:
        for height in range(2, 1_502):
            data = next(source)
            block = blocks.decode(data, chain.chain_id)
            full.append(block, verify_signatures=False)
            answer = told.answer(messages.GetBlockSnapshot(block.id), ANNOUNCED["waves"])
            assert isinstance(answer, messages.BlockSnapshot)
            head = blocks.decode_signed_header(data, chain.chain_id)
            hit_source = light.check_header(head, None)
            unread = snapshots.LazySnapshots(answer.data, chain.chain_id)
            run_steps(light.appending(block, hit_source, snapshots=unread))
            meta = light.meta(height)
            assert meta.state_hash.hex() == rows[height - 1]["state_hash"], height
            assert meta.snapshot_hash.hex() == rows[height - 1]["snapshot_state_hash"], height
            # Of stored blocks the same is told as of the last one.
            if height > 2:
                before = messages.GetBlockSnapshot(full.meta(height - 1).id)
                assert told.answer(before, ANNOUNCED["waves"]) is not None
    finally:
        for store in stores:
            store.close()
    report.ran("mainnet state hashes, by snapshots", 1_500)
