"""Whatever blocks come and go: the pool keeps what a pool that begins anew would take."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.strategies import DrawFn

from soliton.chain.addresses import Alias
from soliton.chain.transactions import codec
from soliton.chain.transactions.create_alias import CreateAlias
from soliton.chain.transactions.lease import Lease
from soliton.chain.transactions.lease_cancel import LeaseCancel
from soliton.chain.transactions.model import AnyTransaction
from soliton.chain.transactions.set_script import SetScript
from soliton.chain.transactions.transfer import Transfer
from soliton.errors import SolitonError
from soliton.ledger.state import WAVES
from soliton.node.chain import Chain
from soliton.node.pool import UtxPool
from soliton.ride.compiler import compile_source
from tests.node.chains import (
    DEVNET,
    RICH,
    address_of,
    data,
    forge,
    mine,
    now,
    open_chain,
    person,
    signed,
    transfer,
)

COIN = 10**8
PEOPLE = (person("ann"), person("bob"), person("cid"))
_HEAD = "{-# STDLIB_VERSION 6 #-}\n{-# CONTENT_TYPE EXPRESSION #-}\n"
SCRIPTS = tuple(
    compile_source(_HEAD + body).script.source
    for body in ("true", "false", 'isDefined(getInteger(this, "open"))')
)
KINDS = ("coins", "coins", "alias", "data", "script", "script", "lease", "cancel", "to alias")


@st.composite
def sends(draw: DrawFn) -> tuple[str, int, int, int, bool]:
    """Kind, sender, recipient, a number, and whether it is signed."""
    who = st.integers(0, 2)
    return (
        draw(st.sampled_from(KINDS)),
        draw(st.sampled_from((0, 0, 0, 1, 2))),
        draw(who),
        draw(st.integers(0, 3)),
        draw(st.booleans()),
    )


def make(chain: Chain, send: tuple[str, int, int, int, bool], nonce: int) -> AnyTransaction:
    kind, sender, to, number, is_signed = send
    pair, time = PEOPLE[sender], now(chain) - nonce
    envelope = {"version": 2, "timestamp": time, "fee": COIN // 20}
    recipient = address_of(PEOPLE[to])
    if kind == "coins":
        amount = (1, COIN, 2 * COIN, 9 * COIN)[number]
        made = transfer(chain, pair, PEOPLE[to], amount, timestamp=time, fee=COIN // 20)
    elif kind == "to alias":
        payload = Transfer(Alias(DEVNET.chain_id, f"name{number}"), None, COIN, b"")
        made = signed(pair, 4, payload, **envelope)
    elif kind == "alias":
        made = signed(pair, 10, CreateAlias(Alias(DEVNET.chain_id, f"name{number}")), **envelope)
    elif kind == "data":
        payload_of = data(chain, pair, open=1).payload
        made = signed(pair, 12, payload_of, **envelope)
    elif kind == "script":
        made = signed(pair, 13, SetScript((*SCRIPTS, None)[number]), **envelope)
    elif kind == "lease":
        made = signed(pair, 8, Lease(recipient, COIN * (1 + 2 * number)), **envelope)
    else:
        leases = [
            each.id
            for height in range(1, chain.height + 1)
            for each in chain.block_at(height).transactions
            if each.type_id == 8
        ]
        lease_id = leases[number % len(leases)] if leases else bytes(32)
        made = signed(pair, 9, LeaseCancel(lease_id), **envelope)
    return made if is_signed else codec.with_proofs(made, (bytes(64),))


@pytest.fixture
def chain(tmp_path: Path) -> Iterator[Chain]:
    """All have coins; anybody may send what they like in the first one's name."""
    opened = open_chain(tmp_path)
    mine(opened, [transfer(opened, RICH, each, 10 * COIN) for each in PEOPLE])
    open_to_all = SetScript(SCRIPTS[0])
    mine(opened, [signed(PEOPLE[0], 13, open_to_all, version=2, timestamp=now(opened), fee=COIN)])
    yield opened
    opened.store.close()


rounds = st.lists(
    st.tuples(st.lists(sends(), max_size=6), st.lists(sends(), max_size=4), st.integers(0, 2)),
    min_size=1,
    max_size=4,
)


@settings(
    max_examples=200, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(story=rounds, choice=st.randoms(use_true_random=False))
def test_the_same_as_a_pool_that_begins_anew(chain: Chain, story: list[tuple[
    list[tuple[str, int, int, int, bool]], list[tuple[str, int, int, int, bool]], int
]], choice: object) -> None:  # fmt: skip
    bottom, nonce = 3, 0
    chain.rollback(bottom)
    pool = new_pool(chain)
    for waiting, rivals, back in story:
        for each in waiting:
            nonce += 1
            add(pool, make(chain, each, nonce))
        before = pool.transactions()
        candidates = [item for item in before if choice.random() < 0.4]  # type: ignore[attr-defined]
        for each in rivals:
            nonce += 1
            rival = make(chain, each, nonce)
            if add(new_pool(chain), rival):
                candidates.append(rival)
        block = forge(chain, candidates)
        try:
            chain.append(block, now=now(chain) + 10**12)
        except SolitonError:
            # The miner of these tests believes all signatures: nobody else takes that block.
            assert any(item.proofs == (bytes(64),) for item in block.transactions)
            continue
        chain.store.flush()
        mined = {item.id for item in block.transactions}
        pool.refresh(mined)
        assert_like_new(chain, pool, [item for item in before if item.id not in mined])
        if back:
            before = pool.transactions()
            chain.rollback(max(bottom, chain.height - back))
            pool.refresh()
            assert_like_new(chain, pool, before)


def new_pool(chain: Chain) -> UtxPool:
    return UtxPool(chain, lambda: now(chain), 1_000, 10**6)


def add(pool: UtxPool, transaction: AnyTransaction) -> bool:
    try:
        return pool.add(transaction)
    except SolitonError:
        return False


def assert_like_new(chain: Chain, pool: UtxPool, waiting: list[AnyTransaction]) -> None:
    anew = new_pool(chain)
    assert pool.transactions() == [item for item in waiting if add(anew, item)]
    assert pool.size == anew.size
    for each in (RICH, *PEOPLE):
        assert pool.state().get(WAVES, address_of(each)) == anew.state().get(
            WAVES, address_of(each)
        )
