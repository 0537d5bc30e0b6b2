"""What the pool knows of its transactions follows the state: who runs scripts, whom they move."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from soliton.chain.addresses import address_text
from soliton.chain.function_calls import FunctionCall
from soliton.chain.transactions import codec
from soliton.chain.transactions.data import Data
from soliton.chain.transactions.invoke_script import InvokeScript
from soliton.chain.transactions.model import AnyTransaction
from soliton.chain.transactions.set_script import SetScript
from soliton.chain.values import DataEntry
from soliton.crypto.keys import KeyPair
from soliton.ledger.errors import TransactionRejected
from soliton.ledger.state import WAVES
from soliton.node.chain_writer import ChainWriter
from soliton.node.events import Departure, PoolDropped, PoolEvent
from soliton.node.pool import PoolFull, UtxPool
from soliton.ride.compiler import compile_source
from tests.node.chains import RICH, address_of, mine, now, open_chain, person, signed, transfer
from tests.node.pools import refresh

COIN = 10**8
ANN, BOB, CID = person("ann"), person("bob"), person("cid")
_VERIFIER = "{-# STDLIB_VERSION 6 #-}\n{-# CONTENT_TYPE EXPRESSION #-}\n"
YES, NO = (compile_source(_VERIFIER + body).script.source for body in ("true", "false"))
PAYS = compile_source("""{-# STDLIB_VERSION 6 #-}
{-# CONTENT_TYPE DAPP #-}
@Callable(i)
func pay() = [ScriptTransfer(addressFromStringValue(getStringValue(this, "to")), 7, unit)]
""").script.source


@pytest.fixture
def chain(tmp_path: Path) -> Iterator[ChainWriter]:
    opened = open_chain(tmp_path)
    mine(opened, [transfer(opened, RICH, each, 10 * COIN) for each in (ANN, BOB)])
    yield opened
    opened.store.close()


@pytest.fixture
def told() -> list[PoolEvent]:
    return []


@pytest.fixture
def pool(chain: ChainWriter, told: list[PoolEvent]) -> UtxPool:
    return UtxPool(chain, lambda: now(chain), 10, 100_000, told.append, max_scripted=1)


def set_script(chain: ChainWriter, pair: KeyPair, script: bytes | None) -> AnyTransaction:
    return signed(pair, 13, SetScript(script), version=2, timestamp=now(chain), fee=COIN)


def coins(chain: ChainWriter, pair: KeyPair, amount: int = COIN) -> AnyTransaction:
    return transfer(chain, pair, CID, amount, fee=500_000)


def test_a_script_that_comes_later_decides(chain: ChainWriter, pool: UtxPool) -> None:
    """The quick way for plain transfers is for accounts without one."""
    sent = coins(chain, ANN)
    pool.add(sent)
    mine(chain, [set_script(chain, ANN, YES)])
    refresh(pool)
    assert pool.transactions() == [sent]
    # Its signature has been verified: the script's end changes nothing.
    mine(chain, [set_script(chain, ANN, None)])
    refresh(pool)
    assert pool.transactions() == [sent]
    mine(chain, [set_script(chain, ANN, NO)])
    refresh(pool)
    assert len(pool) == 0 and pool.state().get(WAVES, address_of(CID)) == 0


def test_what_a_script_lets_through_after_it_came_is_no_proof(
    chain: ChainWriter, pool: UtxPool
) -> None:
    mine(chain, [set_script(chain, ANN, YES)])
    refresh(pool)
    unsigned = codec.with_proofs(coins(chain, ANN), (bytes(64),))
    pool.add(unsigned)
    mine(chain, [set_script(chain, BOB, YES)])
    refresh(pool)
    assert pool.transactions() == [unsigned]
    mine(chain, [set_script(chain, ANN, None)])
    refresh(pool)
    assert len(pool) == 0


def test_scripted_ones_are_counted_as_they_are_now(chain: ChainWriter, pool: UtxPool) -> None:
    pool.add(coins(chain, ANN))
    pool.add(coins(chain, BOB))
    mine(chain, [set_script(chain, ANN, YES)])
    refresh(pool)
    with pytest.raises(PoolFull):
        pool.add(coins(chain, ANN, 1))
    mine(chain, [set_script(chain, ANN, None)])
    refresh(pool)
    mine(chain, [set_script(chain, BOB, YES)])
    refresh(pool)
    assert pool.add(coins(chain, ANN, 2))
    with pytest.raises(PoolFull):
        pool.add(coins(chain, BOB, 3))


def test_whom_a_call_moves_now(chain: ChainWriter, pool: UtxPool, told: list[PoolEvent]) -> None:
    def set_payee(pair: KeyPair) -> AnyTransaction:
        entry = DataEntry("to", address_text(address_of(pair)))
        return signed(ANN, 12, Data((entry,)), version=2, timestamp=now(chain))

    mine(chain, [set_payee(BOB), set_script(chain, ANN, PAYS)])
    refresh(pool)
    call = InvokeScript(address_of(ANN), FunctionCall("pay", ()), ())
    sent = signed(RICH, 16, call, version=2, timestamp=now(chain), fee=500_000)
    pool.add(sent)
    assert address_of(CID) not in pool.moved(sent.id).waves
    mine(
        chain, [signed(ANN, 12, set_payee(CID).payload, version=2, timestamp=now(chain), fee=COIN)]
    )
    refresh(pool)
    moved = pool.moved(sent.id)
    # Those who were told of it are told of its end, whomever it moves now.
    assert {address_of(BOB), address_of(CID)} <= set(moved.waves)
    assert {address_of(BOB), address_of(CID)} <= set(moved.accounts)
    refresh(pool, [sent.id])
    assert told[-1] == PoolDropped(sent, moved, Departure.MINED)


def _dear(values: int, functions: int) -> bytes:
    """A dApp whose estimation takes long: each function asks again for a chain of values."""
    lines = ["{-# STDLIB_VERSION 6 #-}", "{-# CONTENT_TYPE DAPP #-}", "let a0 = 1"]
    lines += [f"let a{number} = a{number - 1} + a{number - 1}" for number in range(1, values)]
    for number in range(functions):
        lines += ["@Callable(i)", f'func f{number}() = [IntegerEntry("", a{values - 1})]']
    return compile_source("\n".join(lines), check_complexity=False).script.source


def test_a_script_that_is_estimated_for_too_long_waits_for_no_block(
    chain: ChainWriter, pool: UtxPool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The refusal costs its sender nothing, and everybody waits for it."""
    monkeypatch.setattr("soliton.node.pool.MAX_ESTIMATION_STEPS", 20_000)
    with pytest.raises(TransactionRejected, match="estimation takes more than 20000 steps"):
        pool.add(set_script(chain, ANN, _dear(100, 100)))
    assert pool.add(set_script(chain, ANN, _dear(20, 20)))
    # In a block it would be valid.
    assert mine(chain, [set_script(chain, BOB, _dear(100, 100))]).transactions
