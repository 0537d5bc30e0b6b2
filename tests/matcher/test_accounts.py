"""Accounts follow the node: nothing is free twice meanwhile, nothing is forgotten, and nobody waits
for a large block.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field

import msgspec
import pytest

from soliton.chain.addresses import Address
from soliton.chain.orders import Side
from soliton.chain.transactions import codec
from soliton.chain.transactions.model import AnyTransaction
from soliton.chain.transactions.transfer import TYPE, Transfer
from soliton.chain.values import AssetId
from soliton.matcher.accounts import Account, Accounts
from soliton.matcher.errors import NodeUnavailable
from soliton.matcher.node_client import AccountState, NodeUpdate
from soliton.matcher.time_slices import SLICE
from soliton.matching.model import limit_order
from tests.matcher.kit import ALICE, CHAIN_ID, COIN, FakeNode, address_of, make_order

OWNER = address_of(ALICE)
FEE = 100_000
MANY = 5 * SLICE


def transfer(amount: int) -> AnyTransaction:
    return codec.build(
        TYPE,
        Transfer(OWNER, None, amount, b""),
        version=2,
        chain_id=CHAIN_ID,
        sender_public_key=ALICE.public_key,
        fee=FEE,
        timestamp=1_700_000_000_000,
    )


class SlowNode(FakeNode):
    """Answers about accounts when the test lets it."""

    def __init__(self) -> None:
        super().__init__()
        self.asked, self.may_answer = asyncio.Event(), asyncio.Event()
        self.may_answer.set()

    async def account(self, address: Address, assets: object) -> AccountState:
        self.asked.set()
        await self.may_answer.wait()
        return await super().account(address, assets)  # type: ignore[arg-type]  # as it came


@dataclass
class Setting:
    node: SlowNode
    accounts: Accounts
    account: Account
    told: list[tuple[Address, frozenset[AssetId | None]]] = field(default_factory=list)

    @property
    def free(self) -> int:
        """Native coins that new orders may offer."""
        return self.account.balances.tradable(None)

    def update(self, **parts: object) -> NodeUpdate:
        return msgspec.structs.replace(
            NodeUpdate(self.node._status(), changed=frozenset((OWNER,))), **parts
        )


@pytest.fixture
async def setting() -> Setting:
    """Alice with 1,000 coins, of which 10 and a fee are reserved for an order."""
    node = SlowNode()
    node.balances[OWNER] = {None: 1_000 * COIN}
    told: list[tuple[Address, frozenset[AssetId | None]]] = []
    accounts = Accounts(
        node, lambda _: 8, lambda *change: told.append(change), lambda *_: pytest.fail("uncovered")
    )
    account = accounts.adopt(limit_order(make_order(ALICE, Side.SELL, 10 * COIN, 250)))
    await accounts.ensure(account, (None,))
    return Setting(node, accounts, account, told)


async def test_what_the_node_has_seen_is_not_free_while_balances_are_on_their_way(
    setting: Setting,
) -> None:
    before, transaction = setting.free, transfer(5 * COIN)
    setting.accounts.expect(transaction)
    left = before - 5 * COIN - FEE
    assert setting.free == left
    setting.node.may_answer.clear()
    setting.node.asked.clear()
    following = asyncio.create_task(
        setting.accounts.follow(setting.update(appeared=(transaction,)))
    )
    await asyncio.wait_for(setting.node.asked.wait(), 60)
    assert setting.free == left
    setting.node.may_answer.set()
    await following
    assert setting.free == left
    assert setting.account.balances.not_observed == 0
    setting.node.balances[OWNER] = {None: 1_000 * COIN - 5 * COIN - FEE}
    await setting.accounts.follow(
        setting.update(confirmed=((transaction.id, 2),), vanished=(transaction.id,))
    )
    assert setting.free == left
    assert setting.account.balances.unconfirmed == {None: 0}


async def test_an_update_that_failed_is_made_up_for(setting: Setting) -> None:
    before, first, second = setting.free, transfer(5 * COIN), transfer(7 * COIN)
    await setting.accounts.follow(setting.update(appeared=(first,)))
    setting.accounts.expect(second)
    update = setting.update(appeared=(second,), vanished=(first.id,))
    setting.node.down = True
    with pytest.raises(NodeUnavailable):
        await setting.accounts.follow(update)
    setting.node.down = False
    assert setting.free == before - 12 * COIN - 2 * FEE
    await setting.accounts.follow(msgspec.structs.replace(update, changed=None))
    assert setting.free == before - 7 * COIN - FEE
    assert setting.account.balances.not_observed == 0


async def test_others_go_on_while_many_transactions_appear_and_vanish(setting: Setting) -> None:
    before = setting.free
    many = tuple(transfer(1 + number) for number in range(MANY))
    turns = [0]

    async def others() -> None:
        while True:
            turns[-1] += 1
            await asyncio.sleep(0)

    task = asyncio.create_task(others())
    await setting.accounts.follow(setting.update(appeared=many))
    assert setting.free == before - sum(range(1, MANY + 1)) - MANY * FEE
    turns.append(0)
    await setting.accounts.follow(setting.update(vanished=tuple(each.id for each in many)))
    assert setting.free == before
    task.cancel()
    assert min(turns) >= MANY // SLICE
    assert setting.told, "whoever listens was told"
