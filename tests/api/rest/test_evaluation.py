"""Asking a dApp over REST."""

from __future__ import annotations

import base64
from typing import Any

import pytest

from soliton.chain.addresses import address_text, from_public_key
from soliton.chain.transactions.set_script import TYPE as SET_SCRIPT
from soliton.chain.transactions.set_script import SetScript
from soliton.ride.compiler import compile_source
from soliton.ride.evaluator import _compiled
from soliton.ride.script import parse_script
from tests.api.chain import OTHER_ADDRESS, RICH_ADDRESS, PrivateChain

SOURCE = """{-# STDLIB_VERSION 6 #-}
{-# CONTENT_TYPE DAPP #-}
let greeting = "hello"
func twice(n: Int) = n + n
@Callable(i)
func keep(value: Int) = {
  let doubled = twice(value)
  [IntegerEntry(greeting, doubled), StringEntry("who", i.caller.toString())]
}
@Callable(i)
func pay(to: String) = [
  ScriptTransfer(addressFromStringValue(to), i.payments[0].amount, unit), Lease(i.caller, 7)
]
@Callable(i)
func refund() = [ScriptTransfer(i.caller, 3, unit)]
@Callable(i)
func fail() = throw("no, thanks")
@Callable(i)
func back(to: String) = {
  strict done = invoke(this, "keep", [21], [])
  ([], size(to))
}
"""
UNMARKED = (
    "function 'twice exists in the script but is not marked as @Callable, "
    "therefore cannot not be invoked"
)
KEPT = {"type": "integer", "value": 4}
URL = f"/utils/script/evaluate/{RICH_ADDRESS}"


@pytest.fixture
def dapp(chain: PrivateChain) -> PrivateChain:
    script = compile_source(SOURCE).script.source
    chain.send(chain.sign(SET_SCRIPT, SetScript(script), 2, fee=10_000_000))
    chain.mine()
    return chain


async def ask(chain: PrivateChain, body: dict[str, object], query: str = "") -> Any:
    answer = await chain.post(URL + query, body)
    assert answer.status == 200
    found: Any = answer.json()
    assert found["address"] == RICH_ADDRESS and body.items() <= found.items()
    return found


@pytest.mark.parametrize("value", [0, -1, 2**63, -(2**511), 2**511 - 1, 10**30])
async def test_big_numbers_are_numbers(dapp: PrivateChain, value: int) -> None:
    """Strings only for clients that ask for them."""
    body = {"expr": f'let a = parseBigIntValue("{value}")\n[a] == nil || a == a'}
    traced = await dapp.post(URL + "?trace=true", body)
    assert traced.body.count(b'"name":"a","type":"BigInt","value":%d}' % value) == 1
    expression = {"expr": f'parseBigIntValue("{value}")'}
    plain = await dapp.post(URL, expression)
    assert b'"result":{"type":"BigInt","value":%d}' % value in plain.body
    wish = {"Accept": "application/json;large-significand-format=string"}
    strings: Any = (await dapp.post(URL, expression, wish)).json()
    assert strings["result"] == {"type": "BigInt", "value": str(value)}


async def test_expressions(dapp: PrivateChain) -> None:
    found = await ask(dapp, {"expr": "twice(20) + 2"})
    assert found["result"] == {"type": "Int", "value": 42}
    assert found["complexity"] == 2
    assert set(found["stateChanges"]) >= {"data", "transfers", "invokes"}
    assert (await ask(dapp, {"expr": "greeting"}))["result"]["value"] == "hello"
    found = await ask(dapp, {"expr": "keep(twice(2))"})
    assert found["result"]["type"] == "Array"
    assert found["stateChanges"]["data"][0] == {"key": "hello", "type": "integer", "value": 8}
    code = compile_source("{-# STDLIB_VERSION 6 #-}\n1 + 1 == 2").script.source[2:-4]
    encoded = "base64:" + base64.b64encode(code).decode()
    assert (await ask(dapp, {"expr": encoded}))["result"] == {"type": "Boolean", "value": True}


async def test_an_address_may_have_its_prefix(dapp: PrivateChain) -> None:
    """``WavesEnvironment.addressFromString`` of the reference is its ``Address.fromString``."""
    for text, known in (
        (RICH_ADDRESS, True),
        (f"address:{RICH_ADDRESS}", True),
        ("address:", False),
    ):
        found = await ask(dapp, {"expr": f'addressFromString("{text}") == this'})
        assert found["result"] == {"type": "Boolean", "value": known}


async def test_calls(dapp: PrivateChain) -> None:
    call = {"function": "keep", "args": [KEPT]}
    found = await ask(dapp, {"call": call, "sender": OTHER_ADDRESS})
    assert found["stateChanges"]["data"] == [
        {"key": "hello", "type": "integer", "value": 8},
        {"key": "who", "type": "string", "value": OTHER_ADDRESS},
    ]
    nested = {"function": "back", "args": [{"type": "string", "value": "four"}]}
    found = await ask(dapp, {"call": nested})
    assert found["result"]["value"]["_2"] == {"type": "Int", "value": 4}
    assert found["stateChanges"]["invokes"][0]["call"]["function"] == "keep"


async def test_payments_and_other_balances(dapp: PrivateChain) -> None:
    call = {"function": "pay", "args": [{"type": "string", "value": OTHER_ADDRESS}]}
    body: dict[str, object] = {
        "call": call,
        "sender": OTHER_ADDRESS,
        "payment": [{"amount": 1_000, "assetId": None}],
    }
    found = await ask(dapp, body | {"call": {"function": "keep", "args": [KEPT]}})
    assert found["error"] == 402 and "result" not in found
    state = {"accounts": {OTHER_ADDRESS: {"regularBalance": "5000"}}}
    found = await ask(dapp, body | {"state": state})
    transfer = {"address": OTHER_ADDRESS, "asset": None, "amount": 1_000}
    assert found["stateChanges"]["transfers"] == [transfer]
    (lease,) = found["stateChanges"]["leases"]
    assert lease["recipient"] == OTHER_ADDRESS and lease["amount"] == 7


async def test_a_dapp_may_pay_who_is_nobody(dapp: PrivateChain) -> None:
    """Without a sender the caller is the account of the key of zeros, as in the reference."""
    nobody = address_text(from_public_key(bytes(32), dapp.node.network.chain_id))
    call = {"function": "refund", "args": []}
    keys: tuple[dict[str, object], ...] = ({}, {"senderPublicKey": "1" * 32})
    for key in keys:
        found = await ask(dapp, {"call": call} | key)
        transfer = {"address": nobody, "asset": None, "amount": 3}
        assert found["stateChanges"]["transfers"] == [transfer], found


async def test_unknown_names_show_when_they_are_evaluated(dapp: PrivateChain) -> None:
    """Error 306, as in the reference's UtilsRouteEvaluateSpec ("testNone()")."""
    for expression, words in (
        ("nobody()", "Function or type 'nobody' not found"),
        ("nobody(1, greeting)", "Function or type 'nobody' not found"),
        ("nothing", "A definition of 'nothing' not found"),
        ("1 + nothing", "A definition of 'nothing' not found"),
    ):
        found = await ask(dapp, {"expr": expression})
        assert found["error"] == 306, found
        assert found["message"].startswith(f"InvokeRejectError(error = {words}")
    found = await ask(dapp, {"expr": "let a = nothing\n[nobody()] == nil || true"})
    assert found["error"] == 306
    assert (await ask(dapp, {"expr": "if true then 1 else nothing"}))["result"]["value"] == 1


async def test_functions_that_a_dapp_does_not_have(dapp: PrivateChain) -> None:
    """Error 199 with the words alone: the reference finds that out before it evaluates."""
    for function, given, words in (
        ("nobody", [], "@Callable function 'nobody' doesn't exist in the script"),
        ("keep", [], "function 'keep takes 1 args but 0 were(was) given"),
        (
            "twice",
            [KEPT],
            UNMARKED,
        ),
    ):
        found = await ask(dapp, {"call": {"function": function, "args": given}})
        assert (found["error"], found["message"]) == (199, words)
    assert (await ask(dapp, {}))["error"] == 199


@pytest.mark.parametrize(
    ("expression", "complexity"),
    [("unit", 0), ("greeting", 0), ("1", 0), ("1 + 1", 1), ("twice(1)", 1), ("1 + 2 - 3", 2)],
)
async def test_an_expression_costs_what_is_in_it(
    dapp: PrivateChain, expression: str, complexity: int
) -> None:
    assert (await ask(dapp, {"expr": expression}))["complexity"] == complexity
    traced = await ask(dapp, {"expr": expression}, "?trace=true")
    assert traced["complexity"] == complexity
    left = [each["value"] for each in traced["vars"] if each["name"] == "@complexityLimit"]
    assert left[-1:] == ([52_000 - complexity] if complexity else [])


async def test_what_is_asked_once_takes_no_room_among_the_scripts_of_the_chain(
    dapp: PrivateChain,
) -> None:
    await ask(dapp, {"expr": "twice(1)"})
    before = len(parse_script), len(_compiled)
    for number in range(20):
        assert (await ask(dapp, {"expr": f"twice({number})"}))["result"]["value"] == 2 * number
    assert (len(parse_script), len(_compiled)) == before


async def test_traces(dapp: PrivateChain) -> None:
    found = await ask(dapp, {"expr": "twice(2)"}, "?trace=true")
    names = [step["name"] for step in found["vars"]]
    assert names[0] == "twice.@args" and "$evaluate" not in names
    assert {"name": "@complexityLimit", "type": "Int", "value": 51_999} in found["vars"]


async def test_faults(dapp: PrivateChain) -> None:
    found = await ask(dapp, {"call": {"function": "fail", "args": []}})
    assert found["error"] == 306 and "no, thanks" in found["message"]
    for expression in ("1 +", "base64:AAAA", "base64:////"):
        assert (await ask(dapp, {"expr": expression}))["error"] == 199
    found = await ask(dapp, {"expr": "1", "call": {"function": "fail"}})
    assert found["error"] == 198
    bodies: list[dict[str, object]] = [
        {"fee": "much"},
        {"state": 1},
        {"state": {"accounts": {RICH_ADDRESS: 1}}},
    ]
    for body in bodies:
        assert (await ask(dapp, body))["error"] == 1
    answer = await dapp.post(f"/utils/script/evaluate/{OTHER_ADDRESS}", {"expr": "1"})
    error: Any = answer.json()
    assert answer.status == 400 and error["error"] == 199
    assert error["message"] == f"Address {OTHER_ADDRESS} is not dApp"
