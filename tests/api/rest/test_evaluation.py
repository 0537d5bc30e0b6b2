"""Asking a dApp over REST."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from typing import Any

import pytest

from soliton.api import json_traces
from soliton.chain.addresses import address_text, from_public_key
from soliton.chain.transactions.set_script import TYPE as SET_SCRIPT
from soliton.chain.transactions.set_script import SetScript
from soliton.crypto import base58
from soliton.ride.compiler import compile_source
from soliton.ride.evaluator import _compiled
from soliton.ride.script import parse_script
from tests.api.chain import OTHER, OTHER_ADDRESS, RICH_ADDRESS, PrivateChain

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
func price() = [IntegerEntry("fee", i.fee)]
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


async def ask(chain: PrivateChain, body: Mapping[str, object], query: str = "") -> Any:
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
    """The account of the public key pays: without one, that of zeros, which has enough."""
    pay = {"function": "pay", "args": [{"type": "string", "value": OTHER_ADDRESS}]}
    payment = {"payment": [{"amount": 1_000, "assetId": None}], "sender": OTHER_ADDRESS}
    found = await ask(dapp, {"call": pay, **payment})
    transfer = {"address": OTHER_ADDRESS, "asset": None, "amount": 1_000}
    assert found["stateChanges"]["transfers"] == [transfer]
    (lease,) = found["stateChanges"]["leases"]
    assert lease["recipient"] == OTHER_ADDRESS and lease["amount"] == 7
    keep = {"call": {"function": "keep", "args": [KEPT]}}
    body = {**keep, **payment, "senderPublicKey": base58.encode(OTHER.public_key)}
    for balance, known in ((None, False), (500_999, False), ("501000", True)):
        state = {"accounts": {OTHER_ADDRESS: {"regularBalance": balance}}}
        found = await ask(dapp, {**body, "state": state})
        assert (found.get("error"), "result" in found) == (None if known else 402, known), found
    # What is no list of actions is no call that pays a fee.
    found = await ask(dapp, {**body, "payment": [], "call": {"function": "fail", "args": []}})
    assert found["error"] == 306
    of_asset = [{"amount": 1, "assetId": base58.encode(bytes(range(1, 33)))}]
    found = await ask(dapp, {**keep, "payment": of_asset})
    assert (found["error"], found["message"]) == (402, "Accounts balance errors")


async def test_fees_and_payments_that_are_refused(dapp: PrivateChain) -> None:
    """UtilsRouteEvaluateSpec of the reference has these messages."""
    keep = {"call": {"function": "keep", "args": [KEPT]}}
    fee = "Fee in WAVES for InvokeScriptTransaction"
    enough = "does not exceed minimal value of 500000 WAVES."
    asset = base58.encode(bytes(range(1, 33)))
    cases: list[tuple[dict[str, object], int, str]] = [
        ({"fee": -1}, 199,
         f"FailedTransactionError(code = 2, error = {fee} (-1 in WAVES) {enough})"),
        ({"fee": 499_999}, 199,
         f"FailedTransactionError(code = 2, error = {fee} (499999 in WAVES) {enough})"),
        ({"feeAssetId": asset}, 199, f"Asset {asset} does not exist, cannot be used to pay fees"),
        ({"payment": [{"amount": -1, "assetId": None}]}, 115, "non-positive amount: -1 of Waves"),
        ({"payment": [{"amount": 0, "assetId": asset}]}, 115, f"non-positive amount: 0 of {asset}"),
        ({"payment": [{"amount": 1}] * 11}, 199, "Script payment amount=11 should not exceed 10"),
        ({"sender": "x"}, 102, "invalid address"),
        ({"senderPublicKey": "0"}, 102, "invalid address"),
        ({"id": "0"}, 199, "requirement failed: Wrong char '0' in Base58 string '0'"),
        ({"id": "1" * 193}, 199, "requirement failed: base58Decode input exceeds 192"),
        ({"feeAssetId": "l"}, 199, "requirement failed: Wrong char 'l' in Base58 string 'l'"),
    ]  # fmt: skip
    for changes, code, message in cases:
        found = await ask(dapp, keep | changes)
        assert (found["error"], found["message"]) == (code, message), found
    for key in ("", "1" * 31):
        # An exception in the reference, which it answers like that of any other route.
        answer = await dapp.post(URL, keep | {"senderPublicKey": key})
        message = f"requirement failed: invalid public key length: {len(key)}"
        assert (answer.status, answer.plain()) == (400, {"error": 199, "message": message})


async def test_members_of_a_wrong_type(dapp: PrivateChain) -> None:
    cases: list[tuple[dict[str, Any], dict[str, str]]] = [
        ({"call": {"function": 1}}, {"call": "Unexpected call function name format"}),
        ({"call": {}}, {"call": "Undefined call function name"}),
        ({"call": {"function": "keep", "args": [{"type": "integer", "value": "1"}]}},
         {"call": "value is missing or not an integer"}),
        ({"fee": "much", "id": 1, "sender": 1, "senderPublicKey": 1, "feeAssetId": 1},
         {"fee": "error.expected.jsnumber", **dict.fromkeys(
             ("id", "sender", "senderPublicKey", "feeAssetId"), "error.expected.jsstring")}),
        ({"payment": [{"assetId": None}]}, {"payment[0].amount": "error.path.missing"}),
        ({"payment": 1}, {"payment": "error.expected.jsarray"}),
        ({"state": 1}, {"state": "error.expected.jsobject"}),
        ({"expr": "1", "state": 1}, {"state": "error.expected.jsobject"}),
        *(({"state": {"accounts": {RICH_ADDRESS: {"regularBalance": value}}}},
           {f"state.accounts.{RICH_ADDRESS}.regularBalance": f"error.{words}"})
          for value, words in (
              (True, "expected.jsnumberorjsstring"), (1.5, "invalid.long"), (2**63, "invalid.long"),
              (-1, "expected.txnonnegativeamount"), ("x", "expected.numberformatexception"),
              ("-1", "expected.txnonnegativeamount"), ("1" * 21, "expected.numberdigitlimit"),
              (str(2**63), "expected.numberformatexception"))),
        ({"state": {"accounts": {RICH_ADDRESS: {"assetBalances": {"0": 1}}}}},
         {f"state.accounts.{RICH_ADDRESS}.assetBalances.0": "Expected base58-encoded assetId"}),
        ({"state": {"accounts": {"1": {}}}}, {"state.accounts.1": NO_ADDRESS}),
    ]  # fmt: skip
    for body, faults in cases:
        found = await ask(dapp, body)
        assert (found["error"], found["cause"]) == (1, None), found
        assert found["message"] == "failed to parse json message"
        assert found["validationErrors"] == {
            f"obj.{name}": [{"msg": [words], "args": []}] for name, words in faults.items()
        }
    nothing = dict.fromkeys(
        ("call", "fee", "id", "sender", "senderPublicKey", "feeAssetId", "payment", "state")
    )
    assert (await ask(dapp, nothing))["error"] == 199
    # An expression is asked for, whatever else is wrong.
    assert (await ask(dapp, {"expr": "1", "fee": "x"}))["result"]["value"] == 1


NO_ADDRESS = (
    "Can't parse Address in accounts: "
    "InvalidAddress(Wrong addressBytes length: expected: 26, actual: 1)"
)
ADDRESS_VALUE = f"Address(\n\t\t\tbytes = base58'{RICH_ADDRESS}'\n\t\t)"
THROWN = ['throw.@args = [\n\t\t"Test"\n\t]', "throw.@complexity = 1", "@complexityLimit = 51999"]


@pytest.mark.parametrize(
    ("expression", "reason", "lines"),
    [
        ("nobody()", "Function or type 'nobody' not found", ["nobody.@args = []"]),
        ('throw("Test")', "Test", THROWN),
        ('let a = throw("Test")\na == 1', "Test", [*THROWN, "a = ThrownError(Test)"]),
        ("let a = nothing\na", "A definition of 'nothing' not found",
         ["a = CommonError(A definition of 'nothing' not found)"]),
        ("twice(nothing)", "A definition of 'nothing' not found", []),
        ('nobody(this, "\\"a", true, base58\'2\', unit)', "Function or type 'nobody' not found",
         ["nobody.@args = [\n\t\t" + ",\n\t\t".join(
             (ADDRESS_VALUE, '"\\"a"', "true", "base58'2'", "Unit")) + "\n\t]"]),
    ],
)  # fmt: skip
async def test_what_a_script_had_done_before_its_error(
    dapp: PrivateChain, expression: str, reason: str, lines: list[str]
) -> None:
    """As in UtilsRouteEvaluateSpec of the reference ("testNone()", "testF()")."""
    found = await ask(dapp, {"expr": expression})
    log = "".join(f"\n\t{line}" for line in lines) + "\n"
    assert found["message"] == f"InvokeRejectError(error = {reason}, log = {log})"
    assert await ask(dapp, {"expr": expression}, "?trace=true") == found


async def test_a_long_log_is_cut_off(dapp: PrivateChain, monkeypatch: pytest.MonkeyPatch) -> None:
    expression = {"expr": 'let a = "x"\nlet b = a + a\nif b == a then 1 else throw("Test")'}
    whole = (await ask(dapp, expression))["message"]
    head, log = whole.split(", log = ", 1)
    for limit in (1, 10, 60, len(log) - 2):
        monkeypatch.setattr(json_traces, "MAX_LOG_CHARS", limit)
        told = (await ask(dapp, expression))["message"]
        assert told.startswith(f"{head}, log = ") and told.endswith("\n...\n)")
        kept = told.removeprefix(f"{head}, log = ").removesuffix("\n...\n)")
        assert len(kept) < limit and log.startswith(kept)
    monkeypatch.setattr(json_traces, "MAX_LOG_CHARS", len(log))
    assert (await ask(dapp, expression))["message"] == whole


async def test_the_log_of_a_call(dapp: PrivateChain) -> None:
    key = base58.encode(bytes(32))
    nobody = address_text(from_public_key(bytes(32), dapp.node.network.chain_id))
    found = await ask(dapp, {"call": {"function": "fail", "args": []}})
    invocation = f"""i = Invocation(
		originCaller = Address(
			bytes = base58'{nobody}'
		)
		payments = []
		callerPublicKey = base58'{key}'
		feeAssetId = Unit
		originCallerPublicKey = base58'{key}'
		transactionId = base58'{key}'
		caller = Address(
			bytes = base58'{nobody}'
		)
		fee = 500000
	)"""
    assert found["message"].startswith(
        f"InvokeRejectError(error = no, thanks, log = \n\t{invocation}\n\tfail.@args = []\n"
    )


async def test_what_an_expression_pays(dapp: PrivateChain) -> None:
    """Five times the extra fee of a script: the reference takes that for the unit of fees."""
    found = await ask(dapp, {"expr": "price()"})
    assert found["stateChanges"]["data"] == [{"key": "fee", "type": "integer", "value": 2_000_000}]


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


async def test_what_an_unknown_function_gives_does_not_fit(dapp: PrivateChain) -> None:
    """Error 199: the reference compiles it with the result ``Any`` (``CompilerContext.scala``)."""
    for expression in ("1 + nobody()", "toBytes(nobody(1))", "if nobody() then 1 else 2"):
        found = await ask(dapp, {"expr": expression})
        assert found["error"] == 199, found


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
    answer = await dapp.post(f"/utils/script/evaluate/{OTHER_ADDRESS}", {"expr": "1"})
    error: Any = answer.json()
    assert answer.status == 400 and error["error"] == 199
    assert error["message"] == f"Address {OTHER_ADDRESS} is not dApp"
