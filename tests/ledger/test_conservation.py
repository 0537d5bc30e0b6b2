"""Whatever happens, nothing comes from nowhere: coins, assets and leases over random sequences of
transactions of all types, applied one after another and undone.
"""

from __future__ import annotations

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from soliton.chain.addresses import Alias
from soliton.chain.transactions import codec
from soliton.errors import SolitonError
from soliton.ledger import fees
from soliton.ledger.state import (
    ASSET_BALANCES,
    ASSET_VOLUMES,
    LEASE_INFO,
    LEASE_STATES,
    LEASES,
    WAVES,
    Changes,
    LeaseState,
)
from soliton.ledger.transactions import apply_transaction
from tests.amounts import examples
from tests.ledger.cases import (
    COIN,
    FEE,
    HEIGHT,
    ISSUER,
    ME,
    OTHER,
    SENDER,
    SPONSOR,
    TIME,
    YOU,
    R,
    context_at,
)
from tests.ledger.memory import MemoryState
from tests.ledger.rules import kinds
from tests.ledger.rules.kinds import ALIEN, GOLD, SMART, WALLET_ADDRESS, puppets, script

ASSETS = (GOLD, SMART, ALIEN)
accounts = st.sampled_from([ME, YOU, SPONSOR, WALLET_ADDRESS])
recipients = accounts | st.sampled_from([Alias(R, "known"), Alias(R, "mine"), Alias(R, "none")])
senders = st.sampled_from([SENDER, OTHER, ISSUER])
assets = st.sampled_from(ASSETS)
amounts = st.integers(0, 20) | st.integers(1, 3 * COIN)
optional_assets = st.none() | assets


def of(
    kind: str, **members: st.SearchStrategy[Any]
) -> st.SearchStrategy[tuple[str, dict[str, Any]]]:
    common = {
        "fee": st.sampled_from([FEE, 5 * FEE, 9 * FEE, COIN, COIN + 4 * FEE]),
        "version": st.sampled_from([1, 2, 3]),
        "later": st.integers(0, 1_000),
        "key": senders,
    }
    return st.fixed_dictionaries({**common, **members}).map(lambda given: (kind, given))


steps = st.one_of(
    of("issue", quantity=amounts, reissuable=st.booleans(), decimals=st.integers(0, 8)),
    of("reissue", asset=assets, quantity=amounts, reissuable=st.booleans()),
    of("burn", asset=assets, quantity=amounts),
    of(
        "exchange",
        key=st.just(SENDER),
        fee=st.just(11 * FEE),
        orders=st.integers(1, 4),
        base=assets,
        quote=optional_assets,
        amount=st.integers(1, 50),
        offer=st.integers(20, 50),
        price=st.sampled_from([COIN, 10 * COIN, COIN // 100]),
        limit=st.sampled_from([COIN, 10**14, COIN // 100]),
        paid_in=optional_assets,
        matcher_fee=st.just(300_000),
        fees=st.sampled_from([0, 1, 100]),
        swapped=st.booleans(),
    ),
    of("lease", to=recipients, amount=amounts),
    of("lease_cancel", lease=st.sampled_from([kinds.LEASE_ID, kinds.ENDED_ID, kinds.FOREIGN_ID])),
    of("create_alias", name=st.sampled_from(["known", "none", "fresh"])),
    of(
        "mass_transfer",
        asset=optional_assets,
        to=st.lists(st.tuples(recipients, amounts), max_size=4),
    ),
    of("set_script", code=st.none()),
    of("sponsor_fee", asset=assets, min_fee=st.none() | st.integers(1, 5)),
    of("set_asset_script", code=st.just(script())),
    of(
        "invoke_script",
        to=recipients,
        payments=st.lists(st.tuples(st.integers(1, COIN), optional_assets), max_size=3),
        fee_asset=st.none() | st.just(GOLD),
    ),
    of("update_asset_info", asset=assets),
    of(
        "ethereum",
        to=accounts,
        token=st.none() | assets.map(lambda asset: asset[:20]),
        amount=amounts,
    ),
)


def totals(state: MemoryState) -> dict[bytes | None, int]:
    """All coins, and of each asset what accounts hold less what there should be."""
    found: dict[bytes | None, int] = {None: sum(state.tables[WAVES].values())}
    for asset_id, volume in state.tables[ASSET_VOLUMES].items():
        balances = state.tables[ASSET_BALANCES].items()
        held = sum(balance for (_, asset), balance in balances if asset == asset_id)
        found[asset_id] = held - volume.quantity
    return found


def leases(state: MemoryState) -> tuple[int, int]:
    """What is leased by all less what is leased to all, and less what active leases say."""
    balances = state.tables[LEASES].values()
    taken = sum(balance.lease_in for balance in balances)
    given = sum(balance.lease_out for balance in balances)
    states: dict[bytes, LeaseState] = state.tables[LEASE_STATES]
    active = sum(
        state.tables[LEASE_INFO][lease_id].amount
        for lease_id, lease in states.items()
        if lease.active
    )
    return given - taken, given - active


def start(dapp: bool) -> MemoryState:
    options: dict[str, Any] = {"lease_out": COIN, "sponsored": 2}
    if dapp:
        options["yours"] = script(dapp=True)
    return kinds.state_of(options)


def undo(state: MemoryState, changes: Changes) -> Changes:
    """What the changed keys held before."""
    return {
        table: {key: state.get(table, key) for key in written} for table, written in changes.items()
    }


@settings(max_examples=examples(60), deadline=None)
@given(
    st.lists(steps, min_size=1, max_size=12),
    st.sampled_from(["v5", "calls", "devnet"]),
    st.booleans(),
)
def test_nothing_comes_from_nowhere(
    sequence: list[tuple[str, dict[str, Any]]], rules: str, dapp: bool
) -> None:
    state = start(dapp)
    context = context_at(HEIGHT, TIME, TIME, kinds.rules_of(rules, HEIGHT))
    for kind, members in sequence:
        before, leased = totals(state), leases(state)
        try:
            transaction = kinds.make(kind, members)
            codec.validate(transaction)
            with puppets():
                changes = apply_transaction(transaction, state, context).changes
        except SolitonError:
            continue
        asset_id, fee = fees.generator_fee(transaction, state, context.rules)
        untouched = {table: dict(entries) for table, entries in state.tables.items()}
        back = undo(state, changes.changes)
        state.take(changes.changes)
        after = totals(state)
        assert after.pop(transaction.id, 0) == 0
        before[asset_id] -= fee
        assert after == before, kind
        assert leases(state) == leased, kind
        assert min(state.tables[WAVES].values()) >= 0
        assert min(state.tables[ASSET_BALANCES].values()) >= 0
        undone = MemoryState()
        undone.take(state.tables)
        undone.take(back)
        for table, entries in untouched.items():
            assert {key: undone.get(table, key) for key in entries} == entries
        state.transactions[transaction.id] = HEIGHT


def test_most_types_get_through() -> None:
    """The sequences above are worth something only when transactions apply."""
    state = start(dapp=True)
    context = context_at(HEIGHT, TIME, TIME, kinds.rules_of("devnet", HEIGHT))
    for kind in (*kinds.TYPES, "ethereum"):
        members = {"version": 2, "orders": 2} if kind == "exchange" else {}
        with puppets():
            apply_transaction(kinds.make(kind, members), state, context)
