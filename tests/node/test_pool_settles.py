"""However blocks, arrivals and pieces of work come between each other: the pool that has settled is
the one that checks everything after every block.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from hypothesis.strategies import DrawFn

from soliton.chain.addresses import Alias
from soliton.chain.function_calls import FunctionCall
from soliton.chain.transactions.create_alias import CreateAlias
from soliton.chain.transactions.data import Data
from soliton.chain.transactions.invoke_script import InvokeScript, Payment
from soliton.chain.transactions.issue import Issue
from soliton.chain.transactions.lease import Lease
from soliton.chain.transactions.mass_transfer import MassTransfer, TransferItem
from soliton.chain.transactions.model import AnyTransaction
from soliton.chain.transactions.set_script import SetScript
from soliton.chain.values import AssetId, DataEntry
from soliton.errors import InputError, SolitonError
from soliton.ledger.context import Context
from soliton.ledger.scripts import FAIL_FREE_COMPLEXITY
from soliton.ledger.state import Overlay
from soliton.ledger.transactions import apply_transaction
from soliton.node import miner
from soliton.node.chain_writer import ChainWriter
from soliton.node.events import Departure, PoolAccepted, PoolDropped, PoolEvent
from soliton.node.pool import UtxPool
from soliton.ride.compiler import compile_source
from soliton.steps import run_steps
from tests.amounts import examples
from tests.node import forging
from tests.node.chains import (
    DEVNET,
    RICH,
    address_of,
    mine,
    now,
    open_chain,
    person,
    signed,
    transfer,
)

COIN = 10**8
DAPP = person("the dApp")
PEOPLE = (person("ann"), person("bob"), person("cid"))
CHECKS = " && ".join(f"!sigVerify(base58'{n}', base58'', base58'')" for n in range(1, 8))
SOURCE = f"""{{-# STDLIB_VERSION 6 #-}}
{{-# CONTENT_TYPE DAPP #-}}
func of(key: String) = match getInteger(this, key) {{ case n: Int => n case _ => 0 }}
let checks = {CHECKS}
@Callable(i)
func countAll() = [IntegerEntry("all", of("all") + 1)]
@Callable(i)
func countMine() = {{
  let key = toBase58String(i.caller.bytes)
  [IntegerEntry(key, of(key) + 1)]
}}
@Callable(i)
func payBack() = [ScriptTransfer(i.caller, i.payments[0].amount / 2, unit)]
@Callable(i)
func giveAll() = if (wavesBalance(this).available < 100) then throw("empty")
  else [ScriptTransfer(i.caller, wavesBalance(this).available, unit)]
@Callable(i)
func failsWhenOpen() = if (checks && of("open") > 0) then throw("open")
  else [ScriptTransfer(i.caller, 1000, unit)]
@Callable(i)
func keepHeight() = [IntegerEntry("height", height), IntegerEntry("time", lastBlock.timestamp)]
@Callable(i)
func issueOne() = [Issue("token", "", 10, 0, true)]
@Callable(i)
func takeHalf() = [IntegerEntry("half", wavesBalance(i.caller).regular / 2)]
@Callable(i)
func firstData() = if (isDataStorageUntouched(i.caller)) then [IntegerEntry("first", 1)] else []
@Callable(i)
func closedOnly() = if (of("open") > 0) then throw("not closed") else [DeleteEntry("all")]
"""
CALLS = (
    "countAll", "countAll", "countMine", "payBack", "giveAll", "failsWhenOpen", "keepHeight",
    "issueOne", "takeHalf", "firstData", "closedOnly",
)  # fmt: skip
KINDS = ("coins", "coins", "many", "asset", "data", "lease", "alias", "issue", "open", "script")
SEND = st.tuples(
    st.sampled_from(KINDS) | st.sampled_from(CALLS),
    st.integers(0, 2),
    st.integers(0, 2),
    st.integers(0, 3),
)
VERIFIERS = tuple(
    compile_source(f"{{-# STDLIB_VERSION 6 #-}}\n{{-# CONTENT_TYPE EXPRESSION #-}}\n{body}")
    .script.source
    for body in ("true", "sigVerify(tx.bodyBytes, tx.proofs[0], tx.senderPublicKey)", "height > 8")
)  # fmt: skip


@st.composite
def stories(draw: DrawFn) -> list[tuple[str, Any]]:
    """What happens: somebody sends, a block or a microblock comes, blocks are taken back, a piece
    of work is done.
    """
    step = st.one_of(
        st.tuples(st.just("send"), SEND),
        st.tuples(st.just("send"), SEND),
        st.tuples(st.just("send"), SEND),
        st.tuples(
            st.sampled_from(("block", "micro", "micro")),
            st.tuples(st.lists(SEND, max_size=3), st.integers(0, 7)),
        ),
        st.tuples(st.just("back"), st.tuples(st.integers(1, 2), st.booleans())),
        st.tuples(st.just("piece"), st.integers(1, 3)),
        st.tuples(st.just("settle"), st.none()),
    )
    return draw(st.lists(step, min_size=4, max_size=24))


def make(chain: ChainWriter, send: tuple[str, int, int, int], nonce: int) -> AnyTransaction:
    kind, sender, to, number = send
    pair, other = PEOPLE[sender], address_of(PEOPLE[to])
    values: dict[str, Any] = {"version": 2, "timestamp": now(chain) - nonce, "fee": 500_000}
    if kind in CALLS:
        payments = (Payment((1, 500, COIN, 9 * COIN)[number], None),) if kind == "payBack" else ()
        call = InvokeScript(address_of(DAPP), FunctionCall(kind, ()), payments)
        values["fee"] = COIN + 500_000 if kind == "issueOne" else 500_000 * (number + 1)
        return signed(pair, 16, call, **values)
    match kind:
        case "coins":
            amount = (1, COIN, 2 * COIN, 9 * COIN)[number]
            return transfer(chain, pair, PEOPLE[to], amount, timestamp=values["timestamp"],
                            fee=500_000 * (number + 1))  # fmt: skip
        case "many":
            items = tuple(TransferItem(address_of(each), COIN) for each in PEOPLE)
            return signed(pair, 11, MassTransfer(None, items, b""), **values | {"version": 1})
        case "asset":
            asset_id = AssetId(chain.block_at(2).transactions[-1].id)
            amount = (1, 2, 3, 9)[number]
            return transfer(chain, pair, PEOPLE[to], amount, asset_id=asset_id, fee=500_000,
                            timestamp=values["timestamp"])  # fmt: skip
        case "data":
            return signed(pair, 12, Data((DataEntry("key", number),)), **values)
        case "open":
            entry = DataEntry("open", number % 2)
            return signed(DAPP, 12, Data((entry,)), **values)
        case "lease":
            return signed(pair, 8, Lease(other, COIN * (1 + 2 * number)), **values)
        case "alias":
            return signed(pair, 10, CreateAlias(Alias(DEVNET.chain_id, f"name{number}")), **values)
        case "issue":
            return signed(pair, 3, Issue(b"more", b"", 5, 0, False, None), **values | {"fee": COIN})
        case _:
            return signed(pair, 13, SetScript((*VERIFIERS, None)[number]), **values)


@pytest.fixture
def chain(tmp_path: Path) -> Iterator[ChainWriter]:
    """Three people with coins and an asset, and a dApp with little."""
    opened = open_chain(tmp_path)
    funds = [transfer(opened, RICH, each, 10 * COIN) for each in (*PEOPLE, DAPP)]
    issue = Issue(b"asset", b"", 1_000, 0, False, None)
    mine(opened, [*funds, signed(RICH, 3, issue, version=2, timestamp=now(opened), fee=COIN)])
    asset_id = AssetId(opened.block_at(2).transactions[-1].id)
    shares = [transfer(opened, RICH, each, 10, asset_id=asset_id) for each in PEOPLE]
    script = SetScript(compile_source(SOURCE).script.source)
    shares.append(signed(DAPP, 13, script, version=2, timestamp=now(opened), fee=COIN))
    mine(opened, shares)
    yield opened
    opened.store.close()


class Story:
    """A pool and its chain, and what was told of it."""

    def __init__(self, chain: ChainWriter) -> None:
        self.chain = chain
        self.bottom = chain.height
        self.told: dict[bytes, AnyTransaction] = {}
        self.pool = UtxPool(chain, lambda: now(chain), 1_000, 10**6, self.tell)
        self.nonce = 0
        self.returned: set[bytes] = set()

    def tell(self, event: PoolEvent) -> None:
        """Whoever listens knows the pool's contents."""
        if isinstance(event, PoolAccepted):
            assert event.transaction.id not in self.told
            self.told[event.transaction.id] = event.transaction
        else:
            assert isinstance(event, PoolDropped)
            gone = self.told.pop(event.transaction.id, None)
            # It may also come from a block that was taken back, and not be valid any more.
            assert gone is not None or event.transaction.id in self.returned
            assert (event.departure is Departure.INVALID) == (event.reason is not None)

    def do(self, what: str, how: Any) -> None:
        match what:
            case "send":
                self.send(how)
            case "block":
                self.block(*how)
            case "micro":
                self.micro(*how)
            case "back":
                self.back(*how)
            case "piece":
                for _ in range(how):
                    self.pool.settle(0.0)
            case _:
                self.settle()
        pool = self.pool
        assert set(self.told) == {each.id for each in pool.transactions()}
        assert pool.size == sum(len(each.body) for each in pool.transactions())

    def send(self, send: tuple[str, int, int, int]) -> None:
        self.nonce += 1
        try:
            self.pool.add(make(self.chain, send, self.nonce))
        except SolitonError:
            return

    def candidates(self, rivals: list[Any], skip: int) -> list[AnyTransaction]:
        """What others send, then some of the pool in a mining order."""
        made = []
        for rival in rivals:
            self.nonce += 1
            made.append(make(self.chain, rival, self.nonce))
        ordered = list(run_steps(self.pool.mining_order(self.chain.height + 1)))
        assert sorted(each.id for each in ordered) == sorted(self.told)
        return made + [each for at, each in enumerate(ordered) if skip >> (at % 3) & 1]

    def block(self, rivals: list[Any], skip: int) -> None:
        slot = miner.next_slot(self.chain, RICH)
        found = forging.forge(
            self.chain, slot, self.candidates(rivals, skip), now(self.chain),
            unproven=self.pool.unproven,
        )  # fmt: skip
        assert found.progress is not None
        applied = self.chain.append_own(found.block, found.progress)
        self.followed(found, applied.changes, found.block.transactions)

    def micro(self, rivals: list[Any], skip: int) -> None:
        if self.chain.liquid_progress() is None:
            return
        before = len(self.chain.last_block.transactions)
        found = forging.forge_micro(
            self.chain, RICH, self.candidates(rivals, skip), 10, unproven=self.pool.unproven
        )
        if found is not None:
            assert found.progress is not None
            self.chain.extend_own(found.block, found.progress)
            self.followed(found, found.progress.overlay.changes, found.block.transactions[before:])

    def followed(
        self, found: miner.Forged, changes: Any, mined: tuple[AnyTransaction, ...]
    ) -> None:
        self.chain.store.flush()
        invalid = {name: why for name, why in found.invalid.items() if name in self.pool}
        self.pool.follow([each.id for each in mined], invalid, changes=changes)

    def back(self, blocks: int, keep: bool) -> None:
        removed: list[Any] = []
        height = max(self.bottom, self.chain.height - blocks)
        self.chain.rollback(height, removed.append if keep else None)
        self.chain.store.flush()
        back = [each for block in reversed(removed) for each in block.transactions]
        self.returned.update(each.id for each in back)
        self.pool.follow(returned=back)

    def settle(self) -> None:
        """Nothing is left to do: a full check finds nothing to object to, and the same state."""
        assert self.pool.settle() and self.pool.is_settled
        kept, state = self.full_check(self.pool.transactions(), self.pool.unproven)
        assert kept == self.pool.transactions()
        shown = self.pool.state()
        assert isinstance(shown, Overlay)
        tables = state.changes.keys() | shown.changes.keys()
        for table in tables:
            keys = state.changes.get(table, {}).keys() | shown.changes.get(table, {}).keys()
            for key in keys:
                assert shown.get(table, key) == state.get(table, key), (table, key)
                assert self.pool.kept_state().get(table, key) == state.get(table, key)
        assert shown.transaction_ids == state.transaction_ids
        # Nothing is kept of what has gone.
        assert self.told or not any(self.pool._state._entries.values())

    def full_check(
        self, transactions: list[AnyTransaction], unproven: Collection[bytes]
    ) -> tuple[list[AnyTransaction], Overlay]:
        """All of them applied one after the other, those that do not apply left out."""
        state = Overlay(self.chain.store, self.chain.height + 1)
        kept = []
        for each in transactions:
            may_be_limited = each.type_id == 16 and each.id in self.returned
            limit = FAIL_FREE_COMPLEXITY if may_be_limited else None
            context = Context(self.pool.environment(), limit=limit)
            try:
                applied = apply_transaction(
                    each, state, context, verify_signature=each.id in unproven
                )
            except InputError:
                continue
            state.merge(applied.changes)
            kept.append(each)
        return kept, state


@settings(
    max_examples=examples(150),
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(story=stories())
def test_settled_as_if_all_were_checked(chain: ChainWriter, story: list[tuple[str, Any]]) -> None:
    told = Story(chain)
    for what, how in story:
        told.do(what, how)
    told.settle()
    chain.rollback(told.bottom)
    chain.store.flush()


@settings(
    max_examples=examples(150),
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(
    sends=st.lists(SEND, min_size=3, max_size=12),
    blocks=st.lists(
        st.tuples(st.booleans(), st.lists(SEND, max_size=3), st.integers(0, 7)),
        min_size=1,
        max_size=4,
    ),
)
@example(
    # The earlier script issues an asset, which ann cannot pay for any more; then she can pay for
    # the entry.
    sends=[
        ("many", 1, 1, 2), ("closedOnly", 0, 0, 1), ("payBack", 2, 1, 2), ("data", 0, 1, 3),
        ("payBack", 0, 0, 0), ("issueOne", 0, 2, 0), ("script", 1, 1, 0), ("firstData", 0, 0, 0),
        ("issue", 1, 0, 3), ("data", 0, 2, 0), ("firstData", 0, 2, 3), ("failsWhenOpen", 2, 2, 2),
    ],
    blocks=[(False, [("lease", 0, 1, 3), ("many", 0, 1, 3), ("script", 1, 2, 2)], 0)],
)  # fmt: skip
def test_nothing_else_falls_out(chain: ChainWriter, sends: list[Any], blocks: list[Any]) -> None:
    """What falls out after a block is what a full check of all that waited objects to."""
    told = Story(chain)
    for send in sends:
        told.do("send", send)
    for micro, rivals, skip in blocks:
        before = told.pool.transactions()
        unproven = set(told.pool.unproven)
        told.do("micro" if micro else "block", (rivals, skip))
        expected = [each for each in before if each.id in told.told]
        kept, _ = told.full_check(expected, unproven)
        told.do("settle", None)
        assert told.pool.transactions() == kept
    chain.rollback(told.bottom)
    chain.store.flush()
