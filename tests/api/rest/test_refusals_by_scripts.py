"""What scripts have against transactions, as clients are told."""

from __future__ import annotations

from pathlib import Path
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
from soliton.crypto import base58
from soliton.ledger.scripts import InvocationRejected
from soliton.node.pool import Origin
from soliton.ride.compiler import compile_source
from tests.api.chain import OTHER, RICH_ADDRESS, PrivateChain

CHECKS = " || ".join(f"sigVerify(base58'{number}', base58'', base58'')" for number in range(1, 8))
SOURCE = f"""{{-# STDLIB_VERSION 6 #-}}
{{-# CONTENT_TYPE DAPP #-}}
@Callable(i)
func keep(value: Int) = [IntegerEntry("kept", value)]
@Callable(i)
func fail() = throw("no, thanks")
@Callable(i)
func failLate() = if ({CHECKS}) then [] else throw("too late")
@Callable(i)
func failWhenKept() = if ({CHECKS} || !isDefined(getInteger(this, "kept"))) then [] else
  throw("kept")
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
    chain.send(chain.transfer())
    chain.mine()
    return chain


def invoke(chain: PrivateChain, name: str, *arguments: int) -> AnyTransaction:
    to = parse_address(RICH_ADDRESS, chain.node.network.chain_id)
    call = InvokeScript(to, FunctionCall(name, arguments), ())
    return chain.sign(INVOKE, call, 2, fee=900_000)


async def test_calls_that_break_off_early_are_refused(dapp: PrivateChain) -> None:
    transaction = invoke(dapp, "fail")
    answer = await dapp.broadcast(transaction)
    error: Any = answer.json()
    assert answer.status == 400 and error["error"] == 306
    assert error["message"] == "Error while executing dApp: no, thanks"
    assert error["transaction"]["type"] == 16
    answer = await dapp.post("/debug/validate", codec.to_json(transaction))
    told: Any = answer.json()
    assert not told["valid"] and told["error"] == error["message"]
    assert len(dapp.node.pool) == 0


async def test_calls_that_break_off_late_are_refused_too(dapp: PrivateChain) -> None:
    """What a client sends is run to its end: it would pay for nothing."""
    transaction = invoke(dapp, "failLate")
    answer = await dapp.post("/debug/validate", codec.to_json(transaction))
    told: Any = answer.json()
    assert not told["valid"] and told["error"] == "Error while executing dApp: too late"
    for target in ("/transactions/broadcast", "/transactions/broadcast?trace=true"):
        answer = await dapp.post(target, codec.to_json(transaction))
        error: Any = answer.json()
        assert (answer.status, error["error"]) == (400, 306)
        assert error["message"] == "Error while executing dApp: too late"
    assert len(dapp.node.pool) == 0


async def test_calls_fail_in_the_block_when_the_state_has_changed(dapp: PrivateChain) -> None:
    transaction = invoke(dapp, "failWhenKept")
    assert (await dapp.broadcast(transaction)).status == 200
    # Its fee puts it before the other one in the block.
    kept = dapp.sign(
        INVOKE, invoke(dapp, "keep", 1).payload, 2, fee=9_000_000, keys=OTHER
    )  # fmt: skip
    dapp.node.broadcast(kept)
    dapp.mine()
    shown: Any = (await dapp.get(f"/transactions/info/{base58.encode(transaction.id)}")).json()
    assert shown["applicationStatus"] == "script_execution_failed"
    assert shown["spentComplexity"] > 1_000
    assert shown["stateChanges"]["error"] == {"code": 1, "text": "kept"}


async def test_what_comes_from_peers_is_run_as_far_as_failing_is_free(dapp: PrivateChain) -> None:
    transaction = invoke(dapp, "failLate")
    assert dapp.node.broadcast(transaction, origin=Origin.PEER)
    dapp.mine()
    shown: Any = (await dapp.get(f"/transactions/info/{base58.encode(transaction.id)}")).json()
    assert shown["applicationStatus"] == "script_execution_failed"
    early = invoke(dapp, "fail")
    with pytest.raises(InvocationRejected, match="no, thanks"):
        dapp.node.broadcast(early, origin=Origin.PEER)


async def test_peers_calls_are_run_to_the_end_where_the_settings_say_so(tmp_path: Path) -> None:
    chain = PrivateChain(tmp_path, always_unlimited_execution=True)
    script = compile_source(SOURCE).script.source
    chain.send(chain.sign(SET_SCRIPT, SetScript(script), 2, fee=10_000_000))
    chain.mine()
    with pytest.raises(InvocationRejected, match="too late"):
        chain.node.broadcast(invoke(chain, "failLate"), origin=Origin.PEER)
    chain.node.close()


async def test_no_more_transactions_with_scripts_than_the_settings_allow(tmp_path: Path) -> None:
    chain = PrivateChain(tmp_path, max_scripted_size=1)
    script = compile_source(SOURCE).script.source
    chain.send(chain.sign(SET_SCRIPT, SetScript(script), 2, fee=10_000_000))
    chain.mine()
    assert (await chain.broadcast(invoke(chain, "keep", 1))).status == 200
    answer = await chain.broadcast(invoke(chain, "keep", 2))
    error: Any = answer.json()
    assert answer.status == 400 and "scripted txs size limit" in error["message"]
    chain.mine()
    assert (await chain.broadcast(invoke(chain, "keep", 2))).status == 200
    chain.node.close()


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
