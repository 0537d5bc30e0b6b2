"""What scripts have against transactions, as clients are told."""

from __future__ import annotations

from typing import Any

import pytest

from soliton.chain.addresses import parse_address
from soliton.chain.function_calls import FunctionCall
from soliton.chain.transactions import codec
from soliton.chain.transactions.invoke_script import TYPE as INVOKE
from soliton.chain.transactions.invoke_script import InvokeScript
from soliton.chain.transactions.model import AnyTransaction
from soliton.chain.transactions.set_script import TYPE as SET_SCRIPT
from soliton.chain.transactions.set_script import SetScript
from soliton.ride.compiler import compile_source
from tests.api.chain import RICH_ADDRESS, PrivateChain

CHECKS = " || ".join(f"sigVerify(base58'{number}', base58'', base58'')" for number in range(1, 8))
SOURCE = f"""{{-# STDLIB_VERSION 6 #-}}
{{-# CONTENT_TYPE DAPP #-}}
@Callable(i)
func keep(value: Int) = [IntegerEntry("kept", value)]
@Callable(i)
func fail() = throw("no, thanks")
@Callable(i)
func failLate() = if ({CHECKS}) then [] else throw("too late")
@Verifier(tx)
func verify() = match tx {{
  case t: TransferTransaction => if (t.amount == 1) then throw("odd") else t.amount != 2
  case _ => true
}}
"""


@pytest.fixture
def dapp(chain: PrivateChain) -> PrivateChain:
    script = compile_source(SOURCE).script.source
    chain.send(chain.sign(SET_SCRIPT, SetScript(script), 2, fee=10_000_000))
    chain.mine()
    return chain


def invoke(chain: PrivateChain, name: str, *arguments: int) -> AnyTransaction:
    to = parse_address(RICH_ADDRESS, chain.node.network.chain_id)
    call = InvokeScript(to, FunctionCall(name, arguments), ())
    return chain.sign(INVOKE, call, 2, fee=900_000)


async def test_calls_that_break_off_are_refused_however_late(dapp: PrivateChain) -> None:
    for name, words in (("fail", "no, thanks"), ("failLate", "too late")):
        transaction = invoke(dapp, name)
        answer = await dapp.broadcast(transaction)
        error: Any = answer.json()
        assert answer.status == 400 and error["error"] == 306
        assert error["message"] == f"Error while executing dApp: {words}"
        assert error["transaction"]["type"] == 16
        answer = await dapp.post("/debug/validate", codec.to_json(transaction))
        told: Any = answer.json()
        assert not told["valid"] and told["error"] == error["message"]
    assert len(dapp.node.pool) == 0


async def test_verifiers_that_say_no_or_break_off(dapp: PrivateChain) -> None:
    for amount, code, words in (
        (1, 306, "Error while executing account-script: odd"),
        (2, 307, "Transaction is not allowed by account-script"),
    ):
        answer = await dapp.broadcast(dapp.transfer(amount=amount, fee=500_000))
        error: Any = answer.json()
        assert (answer.status, error["error"], error["message"]) == (400, code, words)
        assert error["transaction"]["amount"] == amount


async def test_validation_tells_what_would_be_done(dapp: PrivateChain) -> None:
    transaction = invoke(dapp, "keep", 5)
    answer = await dapp.post("/debug/validate", codec.to_json(transaction))
    told: Any = answer.json()
    assert told["valid"]
    assert told["stateChanges"]["data"] == [{"key": "kept", "type": "integer", "value": 5}]
    assert (await dapp.broadcast(transaction)).status == 200
    dapp.mine()
    answer = await dapp.get(f"/transactions/info/{told['id']}")
    shown: Any = answer.json()
    assert shown["stateChanges"] == told["stateChanges"]
