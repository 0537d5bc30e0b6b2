"""What a miner does for transactions that blocks do not take, counted in applications."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from soliton.chain.function_calls import FunctionCall
from soliton.chain.transactions.invoke_script import InvokeScript
from soliton.chain.transactions.issue import Issue
from soliton.chain.transactions.model import AnyTransaction
from soliton.chain.transactions.set_script import SetScript
from soliton.chain.transactions.update_asset_info import UpdateAssetInfo
from soliton.ledger import apply
from soliton.node import miner
from soliton.node.events import Departure, NodeEvent, PoolDropped
from soliton.node.node import Node
from soliton.node.wallet import Wallet
from soliton.ride.compiler import compile_source
from soliton.steps import run_steps
from tests.node import forging
from tests.node.chains import RICH, address_of, person, signed, transfer
from tests.node.test_mining_options import Clock, settings

ANN = person("ann")
_DAPP = """{-# STDLIB_VERSION 6 #-}
{-# CONTENT_TYPE DAPP #-}
@Callable(i)
func pay() = if (height >= 0 && sigVerify(base58'', base58'', base58'')) then [] else []
"""


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def node(tmp_path: Path, clock: Clock) -> Iterator[Node]:
    wallet = Wallet.in_memory(b"nothing", [b"waves private node seed with waves tokens"])
    node = Node(settings(tmp_path, miner__quorum="1"), wallet, clock=clock, durable=False)
    node.mine(RICH, empty=True)
    yield node
    node.close()


@pytest.fixture
def tries(monkeypatch: pytest.MonkeyPatch) -> Counter[bytes]:
    """How often each transaction was applied for a block."""
    counted: Counter[bytes] = Counter()
    add = apply.BlockInProgress.add

    def count(
        progress: apply.BlockInProgress,
        transaction: AnyTransaction,
        *,
        verify_signature: bool = True,
        encoded: bytes | None = None,
    ) -> None:
        counted[transaction.id] += 1
        add(progress, transaction, verify_signature=verify_signature, encoded=encoded)

    monkeypatch.setattr(apply.BlockInProgress, "add", count)
    return counted


def _early_renaming(node: Node, clock: Clock) -> AnyTransaction:
    """A transaction of the pool that is valid from the next key block on."""
    issue = signed(RICH, 3, Issue(b"Gold", b"", 100, 0, False), version=2, fee=10**8,
                   timestamp=clock())  # fmt: skip
    node.broadcast(issue)
    assert forging.mine_micro(node, RICH) == 1
    clock.time += 60_000
    node.mine(RICH, empty=True)
    renaming = UpdateAssetInfo(issue.id, b"Silver", b"")
    update = signed(RICH, 17, renaming, version=1, timestamp=clock())
    node.broadcast(update)
    return update


def _calls(node: Node, clock: Clock, count: int) -> list[AnyTransaction]:
    """Calls of a dApp in the pool, of one account each."""
    node.broadcast(transfer(node.chain, RICH, ANN, 10**8))
    script = compile_source(_DAPP).script.source
    payers = [person(f"payer {number}") for number in range(count)]
    for payer in payers:
        node.broadcast(transfer(node.chain, RICH, payer, 10**8))
    node.broadcast(signed(ANN, 13, SetScript(script), version=2, fee=10**7, timestamp=clock()))
    assert forging.mine_micro(node, RICH) == count + 2
    called = address_of(ANN)
    calls = [
        signed(payer, 16, InvokeScript(called, FunctionCall("pay", ()), ()), version=2,
               fee=500_000 + number, timestamp=clock())
        for number, payer in enumerate(payers)
    ]  # fmt: skip
    for call in calls:
        node.broadcast(call)
    return calls


def _dropped(node: Node) -> list[PoolDropped]:
    dropped: list[PoolDropped] = []

    def notice(event: NodeEvent) -> None:
        if isinstance(event, PoolDropped) and event.departure is Departure.INVALID:
            dropped.append(event)

    node.events.subscribe(notice)
    return dropped


def test_what_is_invalid_alone_is_tried_once_for_all_microblocks_of_a_block(
    node: Node, clock: Clock, tries: Counter[bytes]
) -> None:
    update = _early_renaming(node, clock)
    for _ in range(5):
        assert forging.mine_micro(node, RICH) == 0
    assert tries[update.id] == 1
    assert update.id in node.pool
    clock.time += 60_000
    node.mine(RICH, empty=True)
    assert forging.mine_micro(node, RICH) == 1


def test_what_does_not_fit_is_run_once_until_there_is_room(
    node: Node, clock: Clock, tries: Counter[bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    calls = _calls(node, clock, 2)
    rules = type(node.chain.rules.at(node.chain.height))
    with monkeypatch.context() as patch:
        # Room for one of the two calls.
        patch.setattr(rules, "max_complexity", property(lambda _rules: 250))
        assert forging.mine_micro(node, RICH) == 1
        for _ in range(5):
            assert forging.mine_micro(node, RICH) == 0
    assert sorted(tries[call.id] for call in calls) == [1, 1]
    assert forging.mine_micro(node, RICH) == 1
    assert not len(node.pool)


def test_what_was_tried_in_vain_comes_after_the_others(node: Node, clock: Clock) -> None:
    calls = _calls(node, clock, 3)
    node.pool.charge(calls[2].id, 10, "invalid")
    ordered = list(run_steps(node.pool.mining_order(node.chain.height)))
    assert [each.id for each in ordered] == [calls[each].id for each in (1, 0, 2)]


def test_a_block_in_vain_takes_what_has_no_scripts_only(
    node: Node, clock: Clock, tries: Counter[bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    calls = _calls(node, clock, 3)
    payment = transfer(node.chain, RICH, ANN, 1)
    node.broadcast(payment)
    tries.clear()
    monkeypatch.setattr(miner, "_MAX_VAIN_WORK", -1)
    assert forging.mine_micro(node, RICH) == 1
    assert [*tries] == [payment.id]
    assert all(call.id in node.pool for call in calls)


def test_too_much_work_in_vain_ends_with_an_event_and_a_line(
    node: Node, clock: Clock, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    dropped = _dropped(node)
    [call] = _calls(node, clock, 1)
    monkeypatch.setattr("soliton.node.pool.MAX_VAIN_WORK", 20)
    with caplog.at_level(logging.INFO):
        node.pool.charge(call.id, 15, "it does not apply")
        assert call.id in node.pool
        node.pool.charge(call.id, 15, "it does not apply")
    [event] = dropped
    assert event.transaction == call
    assert "it does not apply" in str(event.reason)
    assert call.id.hex() in caplog.text
    assert call.id not in node.pool


def test_rechecks_of_what_reads_the_height_end_with_an_event_and_a_line(
    node: Node, clock: Clock, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    dropped = _dropped(node)
    first, second = _calls(node, clock, 2)
    payment = transfer(node.chain, RICH, ANN, 1)
    node.broadcast(payment)
    pooled = node.pool._transactions
    # Nobody mines it, and each block has another height.
    _pass_blocks(node, clock, 3)
    [work] = {pooled[call.id].rechecked for call in (first, second)}
    assert work >= 3
    assert pooled[payment.id].rechecked == 0
    monkeypatch.setattr("soliton.node.pool.MAX_RECHECK_WORK", work + 1)
    with caplog.at_level(logging.INFO):
        _pass_blocks(node, clock, 3)
    assert {event.transaction.id for event in dropped} == {first.id, second.id}
    for event in dropped:
        assert "run too often" in str(event.reason)
        assert event.transaction.id.hex() in caplog.text
    assert [*pooled] == [payment.id]


def _pass_blocks(node: Node, clock: Clock, count: int) -> None:
    for _ in range(count):
        clock.time += 60_000
        node.mine(RICH, empty=True)
        node.pool.settle()
