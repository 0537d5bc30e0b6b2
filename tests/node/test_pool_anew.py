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
from soliton.chain.transactions.issue import Issue
from soliton.chain.transactions.lease import Lease
from soliton.chain.transactions.lease_cancel import LeaseCancel
from soliton.chain.transactions.model import AnyTransaction
from soliton.chain.transactions.set_asset_script import SetAssetScript
from soliton.chain.transactions.set_script import SetScript
from soliton.chain.transactions.sponsor_fee import SponsorFee
from soliton.chain.transactions.transfer import Transfer
from soliton.chain.values import AssetId
from soliton.errors import SolitonError
from soliton.ledger.state import ASSET_BALANCES, WAVES
from soliton.node.chain_writer import ChainWriter
from soliton.node.pool import UtxPool
from soliton.ride.compiler import compile_source
from tests.amounts import examples
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
from tests.node.pools import refresh

COIN = 10**8
ISSUER = person("cid")
PEOPLE = (person("ann"), person("bob"), ISSUER)
_HEAD = "{-# STDLIB_VERSION 6 #-}\n{-# CONTENT_TYPE EXPRESSION #-}\n"
SCRIPTS = tuple(
    compile_source(_HEAD + body).script.source
    for body in ("true", "false", 'isDefined(getInteger(this, "open"))')
)
ASSET_SCRIPTS = tuple(
    compile_source("{-# SCRIPT_TYPE ASSET #-}\n" + _HEAD + body).script.source
    for body in (
        "true",
        "false",
        "match tx { case t: TransferTransaction => t.amount > 1 case _ => true }",
    )
)
KINDS = (
    "coins", "coins", "late coins", "late coins", "alias", "data", "lease", "cancel", "to alias",
    "plain asset", "smart asset", "smart asset", "sponsored", "sponsored", "script",
)  # fmt: skip
RIVALS = (
    "coins", "alias", "data", "script", "script", "lease", "cancel", "plain asset",
    "asset script", "asset script", "sponsor", "sponsor",
)  # fmt: skip
"""What others send changes what those that wait rest on."""
MAX_AGE_MS = 7_200_000
"""How much older than the last block a transaction may be."""


@st.composite
def sends(draw: DrawFn, kinds: tuple[str, ...]) -> tuple[str, int, int, int, bool]:
    """Kind, sender, recipient, a number, and whether it is signed."""
    sender = draw(st.sampled_from((0, 0, 0, 1, 2)))
    return (
        draw(st.sampled_from(kinds)),
        sender,
        draw(st.integers(0, 2)),
        draw(st.integers(0, 3)),
        # Only the first one's script takes what is not signed.
        sender > 0 or draw(st.booleans()),
    )


def make(chain: ChainWriter, send: tuple[str, int, int, int, bool], nonce: int) -> AnyTransaction:
    kind, sender, to, number, is_signed = send
    pair, time = PEOPLE[sender], now(chain) - nonce
    plain, smart = issued(chain)
    fee = COIN // 20
    envelope = {"version": 2, "timestamp": time, "fee": COIN // 20}
    recipient = address_of(PEOPLE[to])
    if kind == "coins":
        amount = (1, COIN, 2 * COIN, 9 * COIN)[number]
        made = transfer(chain, pair, PEOPLE[to], amount, timestamp=time, fee=COIN // 20)
    elif kind == "late coins":
        # Too old after one block, or after two and so on.
        old = chain.last_block.header.timestamp - MAX_AGE_MS + 200 + 900 * number - nonce
        made = transfer(chain, pair, PEOPLE[to], number + 1, timestamp=old, fee=fee)
    elif kind in ("plain asset", "smart asset"):
        asset_id = plain if kind == "plain asset" else smart
        amount = (1, 2, 3, 9)[number]
        made = transfer(chain, pair, PEOPLE[to], amount, asset_id=asset_id, timestamp=time, fee=fee)
    elif kind == "asset script":
        script = ASSET_SCRIPTS[number % len(ASSET_SCRIPTS)]
        made = signed(ISSUER, 15, SetAssetScript(smart, script), **envelope | {"fee": COIN + fee})
    elif kind == "sponsor":
        made = signed(ISSUER, 14, SponsorFee(plain, (None, 1, 2, 5)[number]), **envelope)
    elif kind == "sponsored":
        made = transfer(
            chain, pair, PEOPLE[to], 1 + number, timestamp=time, fee=5 * (number + 1),
            fee_asset_id=plain,
        )  # fmt: skip
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


def issued(chain: ChainWriter) -> tuple[AssetId, AssetId]:
    """The ids of the two assets: one without a script, and one with."""
    plain, smart = (each.id for each in chain.block_at(2).transactions[-2:])
    return AssetId(plain), AssetId(smart)


@pytest.fixture
def chain(tmp_path: Path) -> Iterator[ChainWriter]:
    """All have coins and assets; anybody may send what they like in the first one's name. The
    issuer, one of them, sponsors fees.
    """
    opened = open_chain(tmp_path)
    funds = [transfer(opened, RICH, each, 10 * COIN) for each in PEOPLE]
    funds.append(transfer(opened, RICH, ISSUER, 20 * COIN, timestamp=now(opened) + 1))
    issues = [
        signed(ISSUER, 3, Issue(name, b"", 1_000, 0, False, script), version=2,
               timestamp=now(opened), fee=COIN)
        for name, script in ((b"plain", None), (b"smart", ASSET_SCRIPTS[0]))
    ]  # fmt: skip
    mine(opened, [*funds, *issues])
    plain, smart = issued(opened)
    shares = [
        transfer(opened, ISSUER, each, 20, asset_id=asset_id, fee=COIN // 20)
        for each in PEOPLE[:2]
        for asset_id in (plain, smart)
    ]
    sponsor = SponsorFee(plain, 1)
    shares.append(signed(ISSUER, 14, sponsor, version=1, timestamp=now(opened), fee=COIN))
    mine(opened, shares)
    open_to_all = SetScript(SCRIPTS[0])
    mine(opened, [signed(PEOPLE[0], 13, open_to_all, version=2, timestamp=now(opened), fee=COIN)])
    yield opened
    opened.store.close()


rounds = st.lists(
    st.tuples(
        st.lists(sends(KINDS), min_size=2, max_size=8),
        st.lists(sends(RIVALS), min_size=1, max_size=4),
        st.integers(0, 2),
    ),
    min_size=1,
    max_size=4,
)


@settings(
    max_examples=examples(200),
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(story=rounds, choice=st.randoms(use_true_random=False))
def test_the_same_as_a_pool_that_begins_anew(chain: ChainWriter, story: list[tuple[
    list[tuple[str, int, int, int, bool]], list[tuple[str, int, int, int, bool]], int
]], choice: object) -> None:  # fmt: skip
    bottom, nonce = 4, 0
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
            applied = chain.append(block, now=now(chain) + 10**12)
        except SolitonError:
            # The miner of these tests believes all signatures: nobody else takes that block.
            assert any(item.proofs == (bytes(64),) for item in block.transactions)
            continue
        chain.store.flush()
        mined = {item.id for item in block.transactions}
        refresh(pool, mined, changes=applied.changes)
        assert_like_new(chain, pool, [item for item in before if item.id not in mined])
        if back:
            before = pool.transactions()
            chain.rollback(max(bottom, chain.height - back))
            refresh(pool)
            assert_like_new(chain, pool, before)


def new_pool(chain: ChainWriter) -> UtxPool:
    return UtxPool(chain, lambda: now(chain), 1_000, 10**6)


def add(pool: UtxPool, transaction: AnyTransaction) -> bool:
    try:
        return pool.add(transaction)
    except SolitonError:
        return False


def assert_like_new(chain: ChainWriter, pool: UtxPool, waiting: list[AnyTransaction]) -> None:
    anew = new_pool(chain)
    assert pool.transactions() == [item for item in waiting if add(anew, item)]
    assert pool.size == anew.size
    for one in pool.transactions():
        moved, now_moved = pool.moved(one.id), anew.moved(one.id)
        assert set(moved.waves) >= set(now_moved.waves)
        assert set(moved.assets) >= set(now_moved.assets)
        assert set(moved.accounts) >= set(now_moved.accounts)
    assert pool._scripted == anew._scripted
    for asset_id in issued(chain):
        for each in PEOPLE:
            key = address_of(each), asset_id
            assert pool.state().get(ASSET_BALANCES, key) == anew.state().get(ASSET_BALANCES, key)
    for each in (RICH, *PEOPLE):
        assert pool.state().get(WAVES, address_of(each)) == anew.state().get(
            WAVES, address_of(each)
        )
