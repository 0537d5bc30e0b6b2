"""A block that is nearly full: what does not fit waits, and what comes behind it does not.

As in the reference: ``utx/UtxPoolImpl.scala`` (``pack``), ``mining/MiningConstraint.scala``.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest

from soliton.chain.addresses import from_public_key, parse_address
from soliton.chain.function_calls import FunctionCall
from soliton.chain.transactions.data import TYPE as DATA
from soliton.chain.transactions.data import Data
from soliton.chain.transactions.invoke_script import TYPE as INVOKE
from soliton.chain.transactions.invoke_script import InvokeScript
from soliton.chain.transactions.mass_transfer import TYPE as MASS_TRANSFER
from soliton.chain.transactions.mass_transfer import MassTransfer, TransferItem
from soliton.chain.transactions.model import AnyTransaction
from soliton.chain.transactions.set_script import TYPE as SET_SCRIPT
from soliton.chain.transactions.set_script import SetScript
from soliton.chain.values import DataEntry
from soliton.crypto import base58
from soliton.crypto.keys import KeyPair, key_pair
from soliton.ledger import rules_at
from soliton.node import miner
from soliton.ride.compiler import compile_source
from tests.api.chain import OTHER, RICH, RICH_ADDRESS, PrivateChain
from tests.node import forging

CALL_COMPLEXITY = 190
SOURCE = """{-# STDLIB_VERSION 6 #-}
{-# CONTENT_TYPE DAPP #-}
func work() = sigVerify(base58'', base58'', base58'')
func many() = work() || work() || work() || work() || work() || work() || work()
@Callable(i)
func short() = if (work()) then [] else [IntegerEntry("done", height)]
@Callable(i)
func needsEntry() = if (many() || isDefined(getString(i.caller, "big"))) then [] else throw("no")
"""
ANN, BOB, CAT = PEOPLE = tuple(key_pair(name) for name in ("ann", "bob", "cat"))
SECOND_MS = 1_000


@pytest.fixture
def chain(tmp_path: Path) -> PrivateChain:
    chain = PrivateChain(tmp_path)
    script = compile_source(SOURCE).script.source
    chain.send(chain.sign(SET_SCRIPT, SetScript(script), 2, fee=10_000_000))
    chain_id = chain.node.network.chain_id
    items = tuple(TransferItem(from_public_key(one.public_key, chain_id), 10**9) for one in PEOPLE)
    chain.send(chain.sign(MASS_TRANSFER, MassTransfer(None, items, b""), 1, fee=10_000_000))
    chain.mine()
    return chain


def key_block(chain: PrivateChain) -> None:
    chain.tick()
    chain.node.mine(RICH, empty=True)


def by_microblock(chain: PrivateChain) -> None:
    key_block(chain)
    forging.mine_micro(chain.node, RICH)


Make = Callable[[PrivateChain], None]
WAYS: tuple[Make, ...] = (PrivateChain.mine, by_microblock)


def limit(chain: PrivateChain, monkeypatch: pytest.MonkeyPatch, name: str, most: int) -> None:
    monkeypatch.setattr(rules_at, name, most)
    chain.node.chain.rules = rules_at.RuleBook(chain.node.network)


def large(chain: PrivateChain, keys: KeyPair, fee: int) -> AnyTransaction:
    return chain.sign(DATA, Data((DataEntry("big", "b" * 1_900),)), 2, keys=keys, fee=fee)


def call(chain: PrivateChain, keys: KeyPair, name: str, fee: int = 500_000) -> AnyTransaction:
    to = parse_address(RICH_ADDRESS, chain.node.network.chain_id)
    return chain.sign(INVOKE, InvokeScript(to, FunctionCall(name, ()), ()), 2, keys=keys, fee=fee)


def last(chain: PrivateChain) -> list[AnyTransaction]:
    return list(chain.node.chain.last_block.transactions)


async def sent(chain: PrivateChain, *transactions: AnyTransaction) -> None:
    for each in transactions:
        answer = await chain.broadcast(each)
        assert answer.status == 200, answer.body


@pytest.mark.parametrize("make", WAYS)
async def test_a_smaller_transaction_passes_one_that_is_too_large(
    chain: PrivateChain, monkeypatch: pytest.MonkeyPatch, make: Make
) -> None:
    limit(chain, monkeypatch, "MAX_TRANSACTION_BYTES_IN_BLOCK", 3_000)
    first, too_large = large(chain, ANN, 10_000_000), large(chain, BOB, 5_000_000)
    # The same account may send the smaller one.
    small, own = chain.transfer(keys=CAT), chain.transfer(keys=BOB)
    await sent(chain, first, too_large, small, own)
    make(chain)
    assert last(chain) == [first, small, own]
    assert chain.node.pool.transactions() == [too_large]
    make(chain)
    assert last(chain) == [too_large]


@pytest.mark.parametrize("make", WAYS)
async def test_who_needs_one_that_is_too_large_waits_with_it(
    chain: PrivateChain, monkeypatch: pytest.MonkeyPatch, make: Make
) -> None:
    limit(chain, monkeypatch, "MAX_TRANSACTION_BYTES_IN_BLOCK", 3_000)
    to = from_public_key(OTHER.public_key, chain.node.network.chain_id)
    items = (TransferItem(to, 10**6),) * 60
    paid = chain.sign(MASS_TRANSFER, MassTransfer(None, items, b""), 2, keys=BOB, fee=5_000_000)
    first, spends = large(chain, ANN, 10_000_000), chain.transfer(keys=OTHER, amount=10**6)
    await sent(chain, first, paid, spends)
    make(chain)
    assert last(chain) == [first]
    make(chain)
    assert last(chain) == [paid, spends]


@pytest.mark.parametrize("make", WAYS)
async def test_a_transaction_without_scripts_passes_a_call_that_is_too_complex(
    chain: PrivateChain, monkeypatch: pytest.MonkeyPatch, make: Make
) -> None:
    limit(chain, monkeypatch, "MAX_COMPLEXITY_SYNCHRONOUS_CALLS", 2 * CALL_COMPLEXITY)
    calls = [call(chain, each, "short", 900_000) for each in PEOPLE]
    plain = chain.transfer(keys=BOB)
    await sent(chain, *calls, plain)
    make(chain)
    done = last(chain)
    assert plain in done and len(done) < len(calls) + 1
    make(chain)
    make(chain)
    assert len(chain.node.pool) == 0


@pytest.mark.parametrize("make", WAYS)
async def test_a_call_that_would_fail_without_one_that_does_not_fit_waits(
    chain: PrivateChain, monkeypatch: pytest.MonkeyPatch, make: Make
) -> None:
    """Its sender would pay the fee for nothing."""
    limit(chain, monkeypatch, "MAX_TRANSACTION_BYTES_IN_BLOCK", 3_000)
    first, needed = large(chain, ANN, 10_000_000), large(chain, BOB, 5_000_000)
    needs = call(chain, BOB, "needsEntry")
    await sent(chain, first, needed, needs)
    make(chain)
    assert last(chain) == [first]
    make(chain)
    assert last(chain) == [needed, needs]
    found: Any = (await chain.get(f"/transactions/status?id={base58.encode(needs.id)}")).json()
    assert found[0]["applicationStatus"] == "succeeded"


async def test_the_search_for_smaller_ones_ends(
    chain: PrivateChain, monkeypatch: pytest.MonkeyPatch
) -> None:
    limit(chain, monkeypatch, "MAX_TRANSACTION_BYTES_IN_BLOCK", 3_000)
    monkeypatch.setattr(miner, "_MAX_UNFIT", 2)
    all_large = [large(chain, each, 5_000_000 - at) for at, each in enumerate(PEOPLE)]
    small = chain.transfer(keys=CAT)
    await sent(chain, *all_large, small)
    chain.mine()
    assert last(chain) == [all_large[0]]
    assert chain.node.pool.transactions() == [*all_large[1:], small]


async def test_a_microblock_ends_with_its_interval(chain: PrivateChain) -> None:
    """By a clock that a second passes on with each look; one transaction is taken in any case."""
    waiting = [chain.transfer(amount=number + 1) for number in range(10)]
    await sent(chain, *waiting)
    key_block(chain)
    chain.node.clock = lambda: chain.tick(SECOND_MS)
    interval = chain.node.settings.miner.micro_block_interval_ms
    added = await chain.node.mine_micro_in_steps(RICH)
    assert added == interval // SECOND_MS
    assert chain.node.pool.transactions() == waiting[added:]


async def test_a_microblock_takes_as_many_as_the_settings_say(chain: PrivateChain) -> None:
    settings = chain.node.settings
    section = msgspec.structs.replace(settings.miner, max_transactions_in_micro_block=300)
    chain.node.settings = msgspec.structs.replace(settings, miner=section)
    for number in range(301):
        chain.send(chain.transfer(amount=number + 1))
    by_microblock(chain)
    assert len(last(chain)) == 300
