"""What a script let through unsigned needs a signature as soon as the script is gone."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from soliton.chain.transactions import codec
from soliton.chain.transactions.model import AnyTransaction
from soliton.chain.transactions.set_script import SetScript
from soliton.node import miner
from soliton.node.chain_writer import ChainWriter
from soliton.node.pool import UtxPool
from soliton.ride.compiler import compile_source
from tests.node import forging
from tests.node.chains import RICH, data, mine, now, open_chain, person, signed, transfer
from tests.node.pools import refresh

COIN = 10**8
ANN, BOB = person("ann"), person("bob")
NOT_SIGNED = (bytes(64),)


@pytest.fixture
def chain(tmp_path: Path) -> Iterator[ChainWriter]:
    """Anybody may send what they like in Ann's name."""
    opened = open_chain(tmp_path)
    mine(opened, [transfer(opened, RICH, ANN, 10 * COIN)])
    source = "{-# STDLIB_VERSION 6 #-}\n{-# CONTENT_TYPE EXPRESSION #-}\ntrue"
    mine(opened, [set_script(opened, compile_source(source).script.source)])
    yield opened
    opened.store.close()


@pytest.fixture
def pool(chain: ChainWriter) -> UtxPool:
    return UtxPool(chain, lambda: now(chain), 10, 100_000)


def set_script(chain: ChainWriter, script: bytes | None) -> AnyTransaction:
    return signed(ANN, 13, SetScript(script), version=2, timestamp=now(chain), fee=COIN)


def send_coins(chain: ChainWriter) -> AnyTransaction:
    return transfer(chain, ANN, BOB, COIN, fee=500_000)


def send_data(chain: ChainWriter) -> AnyTransaction:
    made = data(chain, ANN, key=1)
    return signed(ANN, 12, made.payload, version=2, timestamp=now(chain), fee=500_000)


@pytest.mark.parametrize("make", [send_coins, send_data])
@pytest.mark.parametrize("is_signed", [True, False])
def test_the_script_goes(
    chain: ChainWriter,
    pool: UtxPool,
    make: Callable[[ChainWriter], AnyTransaction],
    is_signed: bool,
) -> None:
    sent = make(chain)
    waiting = sent if is_signed else codec.with_proofs(sent, NOT_SIGNED)
    pool.add(waiting)
    mine(chain, [set_script(chain, None)])
    refresh(pool)
    assert pool.transactions() == ([waiting] if is_signed else [])


@pytest.mark.parametrize("is_signed", [True, False])
def test_the_script_goes_in_the_same_block(
    chain: ChainWriter, pool: UtxPool, is_signed: bool
) -> None:
    """What waited for another pass, for lack of funds, may come behind the end of the script."""
    sent = send_coins(chain)
    waiting = sent if is_signed else codec.with_proofs(sent, NOT_SIGNED)
    pool.add(waiting)
    candidates = [set_script(chain, None), waiting]
    slot = miner.next_slot(chain, RICH)
    forged = forging.forge(chain, slot, candidates, now(chain), unproven=pool.unproven)
    assert forged.block.transactions == tuple(candidates if is_signed else candidates[:1])


def test_the_script_goes_in_a_microblock(chain: ChainWriter, pool: UtxPool) -> None:
    mine(chain)
    refresh(pool)
    waiting = codec.with_proofs(send_coins(chain), NOT_SIGNED)
    pool.add(waiting)
    candidates = [set_script(chain, None), waiting]
    forged = forging.forge_micro(chain, RICH, candidates, 10, unproven=pool.unproven)
    assert forged is not None
    assert forged.block.transactions == tuple(candidates[:1])
