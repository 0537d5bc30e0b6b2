"""The shortcut for plain transfers comes to what the rules come to."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from soliton.chain.addresses import address_text
from soliton.chain.transactions.lease import Lease
from soliton.chain.transactions.model import AnyTransaction
from soliton.chain.values import MAX_I64
from soliton.errors import SolitonError
from soliton.ledger.context import Context
from soliton.ledger.errors import TransactionRejected
from soliton.ledger.state import LEASES, WAVES, LeaseBalance, Overlay
from soliton.ledger.transactions import apply_transaction
from soliton.node import plain_transfers
from soliton.node.chain import Chain
from soliton.node.pool import UtxPool
from tests.node.chains import (
    FEE,
    RICH,
    address_of,
    forge,
    mine,
    now,
    open_chain,
    person,
    signed,
    transfer,
)

COIN = 10**8
PEOPLE = (RICH, person("ann"), person("bob"), person("cid"))


@pytest.fixture
def chain(tmp_path: Path) -> Iterator[Chain]:
    """Ann has coins and leases some, Bob has some, Cid has nothing."""
    opened = open_chain(tmp_path)
    sent = [transfer(opened, RICH, PEOPLE[1], 10 * COIN), transfer(opened, RICH, PEOPLE[2], COIN)]
    lease = Lease(address_of(PEOPLE[2]), 5 * COIN)
    sent.append(signed(PEOPLE[1], 8, lease, version=2, timestamp=now(opened)))
    mine(opened, sent)
    yield opened
    opened.store.close()


sends = st.tuples(
    st.integers(0, 3),
    st.integers(0, 3),
    st.sampled_from((1, COIN // 2, COIN - FEE, COIN, 9 * COIN)),
    st.sampled_from((0, 0, 0, -7_199_000, 5_300_000)),
)


@settings(
    max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(waiting=st.lists(sends, max_size=12), rivals=st.lists(sends, max_size=4), mined=st.data())
def test_the_same_with_and_without(
    chain: Chain, waiting: list[tuple[int, int, int, int]],
    rivals: list[tuple[int, int, int, int]], mined: st.DataObject,
) -> None:  # fmt: skip
    bottom = chain.height
    pools = [UtxPool(chain, lambda: now(chain) + 1, 100, 100_000) for _ in range(2)]
    accepted: list[AnyTransaction] = []
    for number, (sender, recipient, amount, late) in enumerate(waiting):
        sent = transfer(
            chain, PEOPLE[sender], PEOPLE[recipient], amount + number, timestamp=now(chain) + late
        )
        try:
            pools[0].add(sent)
        except SolitonError:
            continue
        pools[1].add(sent)
        accepted.append(sent)
    chosen = [item for item in accepted if mined.draw(st.booleans())]
    chosen += [transfer(chain, PEOPLE[a], PEOPLE[b], amount + 100 + at, timestamp=now(chain) + 1)
               for at, (a, b, amount, _) in enumerate(rivals)]  # fmt: skip
    block = forge(chain, chosen)
    chain.append(block, now=now(chain) + 10**12)
    chain.store.flush()
    ids = [item.id for item in block.transactions]
    pools[0].refresh(ids)
    shortcut, plain_transfers.apply_again = plain_transfers.apply_again, lambda *_arguments: False
    try:
        pools[1].refresh(ids)
    finally:
        plain_transfers.apply_again = shortcut
    assert pools[0].transactions() == pools[1].transactions()
    for person_ in PEOPLE:
        balances = [each.state().get(WAVES, address_of(person_)) for each in pools]
        assert balances[0] == balances[1], address_text(address_of(person_))
    chain.rollback(bottom)


@pytest.mark.parametrize(
    "has", [0, MAX_I64 - COIN - 1, MAX_I64 - COIN, MAX_I64 - COIN + 1, MAX_I64]
)
@pytest.mark.parametrize("lease_in", [0, COIN, MAX_I64 - COIN + 1, MAX_I64])
@pytest.mark.parametrize("leases_sent", [0, MAX_I64])
def test_at_the_ends_of_64_bits(chain: Chain, has: int, lease_in: int, leases_sent: int) -> None:
    """A balance has to fit into 64 bits. What it is together with what is leased to an account has
    no such limit, neither here nor in the reference (``StateSnapshot.balances``).
    """
    sender, recipient = PEOPLE[2], PEOPLE[3]
    overlays = []
    for _ in range(2):
        overlay = Overlay(chain.store, chain.height + 1)
        overlay.put(WAVES, address_of(sender), COIN + FEE)
        overlay.put(LEASES, address_of(sender), LeaseBalance(leases_sent, 0))
        overlay.put(WAVES, address_of(recipient), has)
        overlay.put(LEASES, address_of(recipient), LeaseBalance(lease_in, 0))
        overlays.append(overlay)
    sent = transfer(chain, sender, recipient, COIN)
    context = UtxPool(chain, lambda: now(chain), 1, 1_000).context()
    applied = plain_transfers.apply_again(sent, overlays[0], context)
    assert applied is (has <= MAX_I64 - COIN)
    if applied:
        overlays[1].merge(apply_transaction(sent, overlays[1], context).changes)
    else:
        with pytest.raises(TransactionRejected, match="sum overflow"):
            apply_transaction(sent, overlays[1], context)
    assert overlays[0].changes == overlays[1].changes


@pytest.mark.parametrize("used", [True, False])
def test_it_is_used_for_what_is_plain(
    chain: Chain, monkeypatch: pytest.MonkeyPatch, used: bool
) -> None:
    pool = UtxPool(chain, lambda: now(chain) + 1, 100, 100_000)
    to = PEOPLE[3] if used else PEOPLE[2]
    pool.add(transfer(chain, PEOPLE[2], to, 1))
    calls: list[bool] = []
    original = plain_transfers.apply_again

    def noted(transaction: AnyTransaction, overlay: Overlay, context: Context) -> bool:
        calls.append(original(transaction, overlay, context))
        return calls[-1]

    monkeypatch.setattr(plain_transfers, "apply_again", noted)
    mine(chain, [])
    pool.refresh()
    assert calls == [used]
    assert len(pool) == 1
