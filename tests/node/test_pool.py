"""The pool: checked against the chain and all that came before, and again after each block."""

from __future__ import annotations

import pytest

from soliton.chain.transactions import codec
from soliton.crypto.keys import KeyPair
from soliton.errors import SolitonError
from soliton.ledger.errors import AlreadyInState, InvalidSignature, Mistiming, TransactionRejected
from soliton.ledger.state import WAVES
from soliton.node import miner
from soliton.node.chain_writer import ChainWriter
from soliton.node.pool import PoolFull, UtxPool
from soliton.steps import run_steps
from tests.node import forging
from tests.node.chains import FEE, RICH, address_of, mine, now, person, transfer
from tests.node.pools import refresh

COIN = 10**8
ANN, BOB = person("ann"), person("bob")
BACK, FORWARD = 7_200_000, 5_400_000


@pytest.fixture
def pool(chain: ChainWriter) -> UtxPool:
    return UtxPool(chain, lambda: now(chain), 10, 100_000)


def test_add(pool: UtxPool, chain: ChainWriter) -> None:
    transaction = transfer(chain, RICH, ANN, COIN)
    assert pool.add(transaction) is True
    assert pool.add(transaction) is False
    assert len(pool) == 1
    assert transaction.id in pool
    assert pool.get(transaction.id) == transaction
    assert pool.transactions() == [transaction]
    assert pool.state().get(WAVES, address_of(ANN)) == COIN
    assert chain.balance(address_of(ANN)) == 0


def test_the_same_transaction_with_another_proof(pool: UtxPool, chain: ChainWriter) -> None:
    transaction = transfer(chain, RICH, ANN, COIN)
    pool.add(transaction)
    again = codec.sign(transaction, RICH.private_key)
    assert again.proofs != transaction.proofs
    assert pool.add(again) is False


def test_what_is_refused_leaves_no_trace(pool: UtxPool, chain: ChainWriter) -> None:
    mined = transfer(chain, RICH, BOB, COIN)
    mine(chain, [mined])
    refresh(pool)
    for transaction, error in (
        (mined, AlreadyInState),
        (transfer(chain, ANN, BOB, COIN), TransactionRejected),
        (transfer(chain, RICH, BOB, COIN, fee=FEE - 1), TransactionRejected),
        (codec.with_proofs(transfer(chain, RICH, BOB, 1), (bytes(64),)), InvalidSignature),
        (codec.with_proofs(transfer(chain, RICH, BOB, 1), ()), TransactionRejected),
    ):
        with pytest.raises(error):
            pool.add(transaction)
        assert len(pool) == 0
    assert pool.state().get(WAVES, address_of(BOB)) == COIN


@pytest.mark.parametrize(
    ("offset", "fits"),
    [(FORWARD, True), (FORWARD + 1, False), (-BACK - 1_000, True), (-BACK - 1_001, False)],
)
def test_timestamps(pool: UtxPool, chain: ChainWriter, offset: int, fits: bool) -> None:
    """Not more than 90 minutes after now, not more than two hours before the last block."""
    transaction = transfer(chain, RICH, ANN, COIN, timestamp=now(chain) + offset)
    if fits:
        assert pool.add(transaction)
    else:
        with pytest.raises(Mistiming):
            pool.add(transaction)


def test_dependent_transactions(pool: UtxPool, chain: ChainWriter) -> None:
    """What somebody gets in the pool can be spent in the pool, but only once."""
    second = transfer(chain, ANN, BOB, COIN)
    with pytest.raises(SolitonError):
        pool.add(second)
    pool.add(transfer(chain, RICH, ANN, COIN + FEE))
    pool.add(second)
    with pytest.raises(SolitonError):
        pool.add(transfer(chain, ANN, BOB, 1))
    assert pool.state().get(WAVES, address_of(ANN)) == 0


def test_the_pool_becomes_a_block(pool: UtxPool, chain: ChainWriter) -> None:
    pool.add(transfer(chain, RICH, ANN, COIN + FEE))
    pool.add(transfer(chain, ANN, BOB, COIN))
    block = mine(chain, pool.transactions())
    refresh(pool, (transaction.id for transaction in block.transactions))
    assert len(pool) == 0
    assert chain.balance(address_of(BOB)) == COIN


def test_count_limit(pool: UtxPool, chain: ChainWriter) -> None:
    for number in range(10):
        pool.add(transfer(chain, RICH, ANN, COIN + number))
    with pytest.raises(PoolFull, match=r"^Transaction pool size limit is reached$"):
        pool.add(transfer(chain, RICH, ANN, 1))
    refresh(pool, mined=[pool.transactions()[0].id])
    assert pool.add(transfer(chain, RICH, ANN, 1))


def test_size_limit(chain: ChainWriter) -> None:
    one = transfer(chain, RICH, ANN, COIN)
    pool = UtxPool(chain, lambda: now(chain), 10, 2 * len(one.body))
    pool.add(one)
    pool.add(transfer(chain, RICH, ANN, 1))
    with pytest.raises(PoolFull, match=r"^Transaction pool bytes size limit is reached$"):
        pool.add(transfer(chain, RICH, ANN, 2))
    # A transaction that is there already is no news, full or not.
    assert pool.add(one) is False


def test_after_a_block_the_rest_is_checked_again(pool: UtxPool, chain: ChainWriter) -> None:
    mine(chain, [transfer(chain, RICH, ANN, COIN)])
    refresh(pool)
    stays = transfer(chain, RICH, BOB, COIN)
    falls = transfer(chain, ANN, BOB, COIN - FEE)
    also_falls = transfer(chain, BOB, RICH, COIN + COIN - 2 * FEE)
    for transaction in (stays, falls, also_falls):
        pool.add(transaction)
    rival = transfer(chain, ANN, RICH, COIN - FEE)
    block = mine(chain, [rival])
    refresh(pool, (transaction.id for transaction in block.transactions))
    assert pool.transactions() == [stays]
    assert pool.state().get(WAVES, address_of(BOB)) == COIN


def test_what_was_mined_elsewhere_is_forgotten(pool: UtxPool, chain: ChainWriter) -> None:
    transaction = transfer(chain, RICH, ANN, COIN)
    pool.add(transaction)
    mine(chain, [transaction])
    refresh(pool)
    assert len(pool) == 0


def test_after_a_rollback(pool: UtxPool, chain: ChainWriter) -> None:
    mine(chain, [transfer(chain, RICH, ANN, COIN)])
    refresh(pool)
    pool.add(transfer(chain, ANN, BOB, COIN - FEE))
    chain.rollback(1)
    refresh(pool)
    assert len(pool) == 0
    assert pool.state().get(WAVES, address_of(ANN)) == 0


def test_higher_fees_first_but_each_sender_in_order(pool: UtxPool, chain: ChainWriter) -> None:
    mine(chain, [transfer(chain, RICH, ANN, COIN)])
    refresh(pool)

    def send(pair: KeyPair, amount: int, fee: int) -> bytes:
        transaction = transfer(chain, pair, BOB, amount, fee=fee)
        pool.add(transaction)
        return transaction.id

    low, high = send(RICH, 1, FEE), send(RICH, 2, 9 * FEE)
    middle = send(ANN, 3, 2 * FEE)
    ordered = run_steps(pool.mining_order(chain.height + 1))
    assert [item.id for item in ordered] == [middle, low, high]


def test_a_dependent_transaction_with_a_high_fee_is_not_lost(
    pool: UtxPool, chain: ChainWriter
) -> None:
    """Fees decide the order in a block; what needs an earlier transaction must not be dropped."""
    first = transfer(chain, RICH, ANN, COIN)
    second = transfer(chain, ANN, BOB, 1, fee=9 * FEE)
    pool.add(first)
    pool.add(second)
    ordered = list(run_steps(pool.mining_order(chain.height + 1)))
    forged = forging.forge(chain, miner.next_slot(chain, RICH), ordered, now(chain))
    assert forged.invalid == {}
    assert {item.id for item in forged.block.transactions} == {first.id, second.id}
