"""What a refusal tells of the script that is to blame: the member ``fault``."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from soliton.api.app import build_app
from soliton.api.sources import Sources
from soliton.api.texts import Texts
from soliton.chain.addresses import address_text, parse_address
from soliton.chain.function_calls import FunctionCall
from soliton.chain.transactions import codec
from soliton.chain.transactions.invoke_script import TYPE as INVOKE
from soliton.chain.transactions.invoke_script import InvokeScript
from soliton.chain.transactions.model import AnyTransaction
from soliton.chain.transactions.set_script import TYPE as SET_SCRIPT
from soliton.chain.transactions.set_script import SetScript
from soliton.crypto.keys import KeyPair, key_pair
from soliton.ride.compiler import compile_source
from soliton.ride.faults import SourceText
from tests.api.chain import (
    OTHER,
    OTHER_ADDRESS,
    RICH,
    RICH_ADDRESS,
    PrivateChain,
    address_of,
    context_of,
)

POOL = """{-# STDLIB_VERSION 6 #-}
{-# CONTENT_TYPE DAPP #-}

func rate (reserve: Int) = 1000 / reserve

@Callable(i)
func swap (amount: Int) = {
  let reserve = getInteger(this, "reserve").valueOrElse(0)
  ([], amount * rate(reserve))
}

@Verifier(tx)
func verify () = match tx {
  case t: TransferTransaction => t.amount < 500
  case _ => true
}
"""
FRONT = f"""{{-# STDLIB_VERSION 6 #-}}
{{-# CONTENT_TYPE DAPP #-}}

let pool = Address(base58'{RICH_ADDRESS}')

@Callable(i)
func trade (amount: Int) = {{
  strict got = pool.invoke("swap", [amount + 1], [])
  []
}}
"""
DAPP_FEE = 10_000_000
CALLER = key_pair("who calls")


class Exchange:
    """The rich account has a pool, the other one a dApp that calls it."""

    def __init__(self, chain: PrivateChain) -> None:
        self.chain = chain
        chain.send(chain.transfer(amount=10**9))
        caller = address_text(address_of(CALLER, chain))
        chain.send(chain.transfer(to=caller, amount=10**9))
        chain.mine()
        self.set(OTHER, FRONT)
        self.set(RICH, POOL)

    def set(self, keys: KeyPair, source: str) -> None:
        script = compile_source(source).script.source
        signed = self.chain.sign(SET_SCRIPT, SetScript(script), 2, keys=keys, fee=DAPP_FEE)
        self.chain.send(signed)
        self.chain.mine()

    def trade(self, amount: int) -> AnyTransaction:
        to = parse_address(OTHER_ADDRESS, self.chain.node.network.chain_id)
        call = InvokeScript(to, FunctionCall("trade", (amount,)), ())
        return self.chain.sign(INVOKE, call, 2, keys=CALLER, fee=DAPP_FEE)


@pytest.fixture
def exchange(chain: PrivateChain) -> Exchange:
    return Exchange(chain)


def places(fault: Any) -> list[tuple[str, str, str]]:
    return [
        (each["script"], each["function"], each["expression"]) for each in (fault, *fault["calls"])
    ]


EXPECTED = [
    (RICH_ADDRESS, "rate", "1000 / reserve"),
    (RICH_ADDRESS, "swap", "rate(reserve)"),
    (OTHER_ADDRESS, "trade", 'pool.invoke("swap", [amount + 1], [])'),
]


async def test_validation_names_lines_across_dapps(exchange: Exchange) -> None:
    chain = exchange.chain
    told: Any = (await chain.post("/debug/validate", codec.to_json(exchange.trade(4)))).json()
    assert not told["valid"] and "/ by zero" in told["error"]
    fault = told["fault"]
    assert fault["message"] == "/ by zero" and fault["source"] == "decompiled"
    found = places(fault)
    assert found[:2] == EXPECTED[:2]
    assert found[2][:2] == EXPECTED[2][:2] and found[2][2].startswith("invoke(pool, ")
    assert fault["values"] == {"reserve": "0"}
    assert fault["calls"][0]["values"] == {"amount": "5", "reserve": "0"}
    assert fault["calls"][1]["values"]["amount"] == "4"
    assert all(each["line"] > 0 for each in (fault, *fault["calls"]))


async def test_what_is_valid_or_refused_by_rules_has_no_fault(exchange: Exchange) -> None:
    chain = exchange.chain
    for transaction in (chain.transfer(amount=1, fee=500_000), chain.transfer(amount=1, fee=1)):
        told: Any = (await chain.post("/debug/validate", codec.to_json(transaction))).json()
        assert "fault" not in told


async def test_sending_tells_it_to_who_asks_for_a_trace(exchange: Exchange) -> None:
    chain, transaction = exchange.chain, exchange.trade(4)
    plain: Any = (await chain.broadcast(transaction)).json()
    assert plain["error"] == 306 and "fault" not in plain
    answer = await chain.post("/transactions/broadcast?trace=true", codec.to_json(transaction))
    told: Any = answer.json()
    assert answer.status == 400
    fault, trace = told.pop("fault"), told.pop("trace")
    assert (told == plain and trace[0]["type"] == "verifier") or trace
    assert [function for _, function, _ in places(fault)] == ["rate", "swap", "trade"]


async def test_a_verifier_that_says_no(exchange: Exchange) -> None:
    chain = exchange.chain
    transaction = chain.transfer(amount=500, fee=500_000)
    told: Any = (await chain.post("/debug/validate", codec.to_json(transaction))).json()
    fault = told["fault"]
    assert fault["function"] == "verify" and fault["message"] == "the script said no"
    assert "500" in fault["expression"] and "t.amount" in fault["expression"]


async def test_a_private_chain_tells_it_always_in_the_words_of_its_sources(
    exchange: Exchange,
) -> None:
    chain = exchange.chain
    chain.app = build_app(replace(context_of(chain.node), obeys=True))
    headers = {"content-type": "text/plain"}
    compiled = await chain.post("/utils/script/compileCode", POOL.encode(), headers)
    assert compiled.status == 200
    answer = await chain.broadcast(exchange.trade(4))
    told: Any = answer.json()
    assert answer.status == 400 and told["error"] == 306
    fault = told["fault"]
    assert places(fault)[:2] == EXPECTED[:2]
    assert (fault["source"], fault["line"], fault["column"]) == ("known", 4, 28)
    assert fault["calls"][0]["line"] == 9
    assert fault["calls"][1]["source"] == "decompiled"
    assert (await chain.broadcast(chain.transfer(amount=1, fee=1))).status == 400


def test_sources_are_kept_up_to_a_number_of_bytes() -> None:
    sources = Sources(most=100)
    for number in range(10):
        sources.remember(bytes([number]) * 10, SourceText("x" * 20))
        sources.remember(bytes([number]) * 10, SourceText("y" * 20))
    assert list(sources) == [bytes([number]) * 10 for number in (7, 8, 9)]
    assert sources[bytes([9]) * 10].text == "y" * 20
    sources.remember(b"large", SourceText("x" * 200))
    assert len(sources) == 0


async def test_who_asks_too_much_gets_the_refusal_alone(tmp_path: Path) -> None:
    """Where nobody has time to look for lines, the answer is what it is elsewhere."""
    chain = PrivateChain(tmp_path)
    exchange = Exchange(chain)
    chain.app = build_app(replace(context_of(chain.node), texts=Texts(places=0)))
    told: Any = (await chain.post("/debug/validate", codec.to_json(exchange.trade(4)))).json()
    assert not told["valid"] and "fault" not in told
    chain.node.close()
