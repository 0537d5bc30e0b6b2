"""Changing to another branch: the whole of it or nothing, and nothing is seen of it before."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from soliton.chain import blocks
from soliton.chain.addresses import Address
from soliton.chain.transactions.model import AnyTransaction
from soliton.errors import InvariantBroken
from soliton.ledger.errors import BlockRejected
from soliton.node.chain_writer import ChainWriter
from soliton.node.events import BlockAppended, ChainEvent, RolledBack
from soliton.storage.errors import RollbackTooDeep
from soliton.storage.indexes import minimum_effective_balance
from soliton.storage.reader import StoreReader
from soliton.storage.store import Store
from tests.node import forging
from tests.node.chains import DEVNET, RICH, address_of, data, forge, mine, now, person, transfer
from tests.node.full_disk import full

ANN, BOB = person("ann"), person("bob")
COIN = 10**8
COMMON, DEPTH = 3, 12


def grown(directory: Path, depth: int, to: bytes, other: ChainWriter | None = None) -> ChainWriter:
    """A chain whose first blocks are those of the other one."""
    chain = ChainWriter(DEVNET, Store(directory, DEVNET.name))
    for height in range(2, COMMON + 1):
        if other is None:
            mine(chain, [transfer(chain, RICH, ANN, COIN)])
        else:
            chain.append(other.block_at(height))
    for number in range(depth):
        pair = ANN if to == b"ann" else BOB
        mine(chain, [transfer(chain, RICH, pair, COIN + number), data(chain, RICH, key=to)])
    chain.flush()
    return chain


def everything(chain: ChainWriter) -> dict[bytes, bytes]:
    return dict(chain.store.scan(b"", b""))


@pytest.fixture
def chains(tmp_path: Path) -> Iterator[tuple[ChainWriter, ChainWriter]]:
    here = grown(tmp_path / "here", DEPTH, b"ann")
    there = grown(tmp_path / "there", DEPTH + 2, b"bob", here)
    yield here, there
    for chain in (here, there):
        chain.store.close()


def test_a_branch_is_the_chain_that_was_built_so(chains: tuple[ChainWriter, ChainWriter]) -> None:
    here, there = chains
    old = [here.block_at(height) for height in range(here.height, COMMON, -1)]
    before, events = everything(here), list[ChainEvent]()
    here.on_change = events.append
    branch = here.branch(COMMON)
    for height in range(COMMON + 1, there.height + 1):
        branch.append(there.block_at(height))
        assert everything(here) == before
        assert here.last_block == old[0]
    assert here.adopt(branch, COMMON) == old
    assert everything(here) == everything(there)
    heights = range(COMMON + 1, there.height + 1)
    assert events == [
        RolledBack(COMMON, there.block_at(COMMON)),
        *(BlockAppended(height, there.block_at(height)) for height in heights),
    ]
    # It goes on as any other does.
    mine(here, [transfer(here, RICH, ANN, COIN)])
    here.rollback(COMMON)
    assert here.height == COMMON


def test_of_a_branch_that_is_refused_nothing_is_left(
    chains: tuple[ChainWriter, ChainWriter],
) -> None:
    here, there = chains
    before = everything(here)
    branch = here.branch(COMMON)
    branch.append(there.block_at(COMMON + 1))
    bad = blocks.decode(there.block_at(COMMON + 3).data, there.network.chain_id)
    with pytest.raises(BlockRejected):
        branch.append(bad)
    assert everything(here) == before
    mine(here, [transfer(here, RICH, ANN, COIN)])
    with pytest.raises(InvariantBroken):
        here.adopt(branch, COMMON)


def test_the_last_block_goes_on_growing_after_a_refusal(
    chains: tuple[ChainWriter, ChainWriter],
) -> None:
    here, there = chains
    mine(here)
    forms = [here.last_block.id]
    for amount in (1, 2):
        forged = forging.forge_micro(here, RICH, [transfer(here, RICH, ANN, amount)], 255)
        assert forged is not None
        assert forged.progress is not None
        here.extend_own(forged.block, forged.progress)
        forms.append(here.last_block.id)
    branch = here.branch(COMMON)
    with pytest.raises(BlockRejected):
        branch.append(there.block_at(COMMON + 2))
    assert here.last_block.id == forms[-1]
    assert len(here.shorten(forms[0])) == 2
    assert here.last_block.id == forms[0]


def test_a_full_disk_leaves_the_old_chain(
    chains: tuple[ChainWriter, ChainWriter],
) -> None:
    here, there = chains
    before = everything(here)
    branch = here.branch(COMMON)
    branch.append(there.block_at(COMMON + 1))
    with full(here.store), pytest.raises(Exception, match="no space left"):
        here.adopt(branch, COMMON)
    assert everything(here) == before
    assert here.height == COMMON + DEPTH
    mine(here, [transfer(here, RICH, ANN, COIN)])


def test_no_deeper_than_there_are_records(chains: tuple[ChainWriter, ChainWriter]) -> None:
    with pytest.raises(RollbackTooDeep):
        chains[0].branch(0)


def smallest_of_all(chain: ChainWriter) -> dict[tuple[bytes, int], tuple[int, int]]:
    """For some accounts, from each height on: the smallest balance as the chain says and as its
    store does.
    """
    top = chain.height
    return {
        (account, bottom): (
            chain.smallest_effective_balance(account, bottom, top),
            minimum_effective_balance(chain.store, account, bottom, top),
        )
        for account in map(address_of, (ANN, BOB, RICH))
        for bottom in range(1, top + 1)
    }


def put(branch: ChainWriter, *candidates: AnyTransaction) -> None:
    """One more block on a branch, where nothing is flushed."""
    branch.append(forge(branch, candidates), now=now(branch) + 10**12)


def test_smallest_balances_are_those_of_the_blocks_that_stand(
    chains: tuple[ChainWriter, ChainWriter],
) -> None:
    here, there = chains
    found = [smallest_of_all(here)]
    forward = here.branch(here.height)
    put(forward, transfer(forward, ANN, BOB, 2 * COIN))
    put(forward, transfer(forward, BOB, ANN, COIN))
    found.append(smallest_of_all(forward))
    here.adopt(forward, here.height)
    found.append(smallest_of_all(here))
    other = here.branch(COMMON)
    for height in range(COMMON + 1, there.height + 1):
        other.append(there.block_at(height))
        found.append(smallest_of_all(other))
    here.adopt(other, COMMON)
    found.append(smallest_of_all(here))
    assert all(said == stored for each in found for said, stored in each.values())
    assert len({tuple(each.values()) for each in found}) > DEPTH, "they change with the blocks"


def test_what_is_known_of_balances_is_not_read_again_for_each_branch(
    chains: tuple[ChainWriter, ChainWriter], monkeypatch: pytest.MonkeyPatch
) -> None:
    here, read = chains[0], list[int]()
    history = StoreReader.balance_history

    def noted(store: StoreReader, address: Address, top: int) -> Iterator[tuple[int, int, int]]:
        for each in history(store, address, top):
            read.append(each[0])
            yield each

    monkeypatch.setattr(StoreReader, "balance_history", noted)
    account = address_of(ANN)
    here.smallest_effective_balance(account, 1, here.height)
    assert read == list(range(here.height, 1, -1)), "it has got something in each block"
    for _ in range(3):
        branch = here.branch(here.height)
        put(branch, transfer(branch, RICH, ANN, 1))
        read.clear()
        branch.smallest_effective_balance(account, 1, branch.height)
        here.adopt(branch, here.height)
        here.smallest_effective_balance(account, 1, here.height)
        assert min(read) >= here.height - 2, "only what is new"
