"""What scripts did, step by step; the numbers are those that the reference node's tests have."""

from __future__ import annotations

from typing import Any

import pytest

from soliton.chain.addresses import address_text, parse_address
from soliton.chain.function_calls import FunctionCall
from soliton.chain.transactions import codec
from soliton.chain.transactions.invoke_script import TYPE as INVOKE
from soliton.chain.transactions.invoke_script import InvokeScript, Payment
from soliton.chain.transactions.issue import TYPE as ISSUE
from soliton.chain.transactions.issue import Issue
from soliton.chain.transactions.lease import TYPE as LEASE
from soliton.chain.transactions.lease import Lease
from soliton.chain.transactions.model import AnyTransaction
from soliton.chain.transactions.set_asset_script import TYPE as SET_ASSET_SCRIPT
from soliton.chain.transactions.set_asset_script import SetAssetScript
from soliton.chain.transactions.set_script import TYPE as SET_SCRIPT
from soliton.chain.transactions.set_script import SetScript
from soliton.chain.transactions.transfer import TYPE as TRANSFER
from soliton.chain.transactions.transfer import Transfer
from soliton.crypto import base58
from soliton.crypto.keys import KeyPair, key_pair
from soliton.ride.compiler import compile_source
from tests.api.chain import OTHER, OTHER_ADDRESS, RICH, RICH_ADDRESS, PrivateChain, address_of

EMPTY: dict[str, list[object]] = {
    name: []
    for name in (
        "data", "transfers", "issues", "reissues", "burns", "sponsorFees", "leases",
        "leaseCancels", "invokes",
    )
}  # fmt: skip
BROKEN = {
    "type": "asset",
    "context": "payment",
    "result": "failure",
    "vars": [
        {"name": "test", "type": "Boolean", "value": True},
        {"name": "throw.@args", "type": "Array", "value": [{"type": "String", "value": "error"}]},
        {"name": "throw.@complexity", "type": "Int", "value": 1},
        {"name": "@complexityLimit", "type": "Int", "value": 3_999},
    ],
    "error": "error",
}
YES = {"type": "verifier", "id": OTHER_ADDRESS, "result": "success", "error": None}


class Scene:
    """The rich account has a dApp, the other one a verifier."""

    def __init__(self, chain: PrivateChain) -> None:
        self.chain = chain
        chain.send(chain.transfer(amount=100 * 10**8))

    def script(self, keys: KeyPair, version: int, kind: str, source: str) -> None:
        head = f"{{-# STDLIB_VERSION {version} #-}}\n{{-# CONTENT_TYPE {kind} #-}}\n"
        script = compile_source(head + source).script.source
        payload, fee = SetScript(script), 10_000_000
        self.chain.send(self.chain.sign(SET_SCRIPT, payload, 2, keys=keys, fee=fee))
        self.chain.mine()

    def asset_script(self, version: int, source: str) -> bytes:
        """A script of an asset, which the asset gets after it has been handed out."""
        head = f"{{-# STDLIB_VERSION {version} #-}}\n{{-# SCRIPT_TYPE ASSET #-}}\n"
        return compile_source(head + source).script.source

    def asset(self, script: bytes) -> bytes:
        chain = self.chain
        first = self.asset_script(5, "true")
        issue = Issue(b"asset", b"", 1_000, 0, True, first)
        issued = chain.send(chain.sign(ISSUE, issue, 2, fee=10**8))
        chain.mine()
        transfer = Transfer(address_of(OTHER, chain), issued.id, 10, b"")
        chain.send(chain.sign(TRANSFER, transfer, 2, fee=10**6))
        chain.mine()
        changed = SetAssetScript(issued.id, script)
        chain.send(chain.sign(SET_ASSET_SCRIPT, changed, 2, fee=10**8))
        chain.mine()
        return issued.id

    def invoke(
        self,
        name: str,
        *arguments: int,
        payments: tuple[Payment, ...] = (),
        fee: int = 10_000_000,
        keys: KeyPair = OTHER,
    ) -> AnyTransaction:
        to = parse_address(RICH_ADDRESS, self.chain.node.network.chain_id)
        call = InvokeScript(to, FunctionCall(name, arguments), payments)
        return self.chain.sign(INVOKE, call, 2, keys=keys, fee=fee)

    async def validated(self, transaction: AnyTransaction) -> Any:
        return (await self.chain.post("/debug/validate", codec.to_json(transaction))).json()

    async def sent(self, transaction: AnyTransaction, query: str = "?trace=true") -> Any:
        target = f"/transactions/broadcast{query}"
        return (await self.chain.post(target, codec.to_json(transaction))).json()


@pytest.fixture
def scene(chain: PrivateChain) -> Scene:
    return Scene(chain)


def names(steps: list[dict[str, Any]]) -> list[str]:
    return [step["name"] for step in steps]


def numbers(steps: list[dict[str, Any]]) -> list[tuple[str, int]]:
    """What was spent, and what was left then."""
    return [
        (step["name"].removesuffix(".@complexity"), step["value"])
        for step in steps
        if step["name"].endswith("omplexity") or step["name"] == "@complexityLimit"
    ]


async def test_a_payment_in_an_asset_whose_script_breaks_off(scene: Scene) -> None:
    scene.script(RICH, 4, "DAPP", "@Callable(i) func default() = []")
    scene.script(OTHER, 4, "EXPRESSION", "true")
    broken = scene.asset_script(4, 'let test = true\nif (test) then throw("error") else !test')
    asset = scene.asset(broken)
    invoke = scene.invoke("default", payments=(Payment(1, asset),))
    told = await scene.validated(invoke)
    verifier, dapp, payment = told["trace"]
    assert verifier == YES
    assert {name: dapp[name] for name in dapp if name != "vars"} == {
        "type": "dApp",
        "id": RICH_ADDRESS,
        "function": "default",
        "args": [],
        "invocations": [],
        "result": EMPTY,
        "error": None,
    }
    assert names(dapp["vars"]) == ["i", "default.@args", "default.@complexity", "@complexityLimit"]
    invocation = dapp["vars"][0]
    assert invocation["type"] == "Invocation"
    assert invocation["value"]["payments"] == {
        "type": "Array",
        "value": [
            {
                "type": "AttachedPayment",
                "value": {
                    "amount": {"type": "Int", "value": 1},
                    "assetId": {"type": "ByteVector", "value": base58.encode(asset)},
                },
            }
        ],
    }
    assert invocation["value"]["caller"] == {
        "type": "Address",
        "value": {"bytes": {"type": "ByteVector", "value": OTHER_ADDRESS}},
    }
    assert dapp["vars"][1] == {"name": "default.@args", "type": "Array", "value": []}
    # The asset's script counts beforehand with what it is estimated to take.
    assert numbers(dapp["vars"]) == [("default", 1), ("@complexityLimit", 51_998)]
    assert payment == BROKEN | {"id": base58.encode(asset)}
    assert not told["valid"]
    # A client that sends it gets the same, as far as the pool runs scripts.
    answer = await scene.sent(invoke)
    assert answer["error"] == 306
    assert [each["type"] for each in answer["trace"]] == ["verifier", "dApp", "asset"]
    assert "trace" not in await scene.sent(invoke, "")


async def test_actions_that_assets_have_a_say_in(scene: Scene) -> None:
    asset = scene.asset(scene.asset_script(4, "false"))
    name = base58.encode(asset)
    scene.script(
        RICH,
        4,
        "DAPP",
        f"""@Callable(i) func pay() = [
            IntegerEntry("key", 1), DeleteEntry("gone"),
            ScriptTransfer(Address(base58'{OTHER_ADDRESS}'), 1, base58'{name}')]
        @Callable(i) func reissue() = [Reissue(base58'{name}', 1, false)]
        @Callable(i) func burn() = [Burn(base58'{name}', 1)]""",
    )
    for function, context in (("pay", "transfer"), ("reissue", "reissue"), ("burn", "burn")):
        told = await scene.validated(scene.invoke(function, fee=10**8))
        dapp, refusal = told["trace"]
        assert dapp["error"] is None
        assert refusal == {
            "type": "asset",
            "context": context,
            "id": name,
            "result": "failure",
            "vars": [],
            "error": None,
        }
    told = await scene.validated(scene.invoke("pay"))
    result = told["trace"][0]["result"]
    assert result["data"] == [
        {"key": "key", "type": "integer", "value": 1},
        {"key": "gone", "value": None},
    ]
    assert result["transfers"] == [{"address": OTHER_ADDRESS, "asset": name, "amount": 1}]
    steps = told["trace"][0]["vars"]
    assert names(steps)[:8] == [
        "i",
        "pay.@args",
        "IntegerEntry.@args",
        "IntegerEntry.@complexity",
        "@complexityLimit",
        "DeleteEntry.@args",
        "DeleteEntry.@complexity",
        "@complexityLimit",
    ]
    assert numbers(steps)[:4] == [
        ("IntegerEntry", 1),
        ("@complexityLimit", 51_999),
        ("DeleteEntry", 1),
        ("@complexityLimit", 51_998),
    ]


async def test_calls_within_calls(scene: Scene) -> None:
    largest = 2**511 - 1
    scene.script(
        RICH,
        5,
        "DAPP",
        f"""@Callable(i) func test() = {{
          strict a = parseBigIntValue("{largest}")
          let test = 1
          if (test == 1) then [IntegerEntry("key", 1)] else []
        }}
        @Callable(i) func test1() = {{
          strict result = reentrantInvoke(this, "test", [], [])
          if (result == unit) then [] else []
        }}""",
    )
    scene.script(OTHER, 5, "EXPRESSION", "true")
    told = await scene.validated(scene.invoke("test1"))
    assert told["valid"]
    verifier, outer = told["trace"]
    assert verifier == YES
    (inner,) = outer["invocations"]
    assert (inner["function"], inner["id"], inner["error"]) == ("test", RICH_ADDRESS, None)
    assert inner["result"] == EMPTY | {"data": [{"key": "key", "type": "integer", "value": 1}]}
    assert outer["result"] == EMPTY
    assert names(inner["vars"]) == [
        *("i", "test.@args", "parseBigIntValue.@args", "parseBigIntValue.@complexity"),
        *("@complexityLimit", "a", "==.@args", "==.@complexity", "@complexityLimit", "test"),
        *("==.@args", "==.@complexity", "@complexityLimit", "IntegerEntry.@args"),
        *("IntegerEntry.@complexity", "@complexityLimit", "cons.@args", "cons.@complexity"),
        "@complexityLimit",
    ]
    assert numbers(inner["vars"]) == [
        *(("parseBigIntValue", 65), ("@complexityLimit", 25_860)),
        *(("==", 1), ("@complexityLimit", 25_859), ("==", 1), ("@complexityLimit", 25_858)),
        *(("IntegerEntry", 1), ("@complexityLimit", 25_857)),
        *(("cons", 1), ("@complexityLimit", 25_856)),
    ]
    assert names(outer["vars"]) == [
        *("i", "test1.@args", "reentrantInvoke.@args", "reentrantInvoke.@complexity"),
        *("@complexityLimit", "test.@complexity", "@complexityLimit", "result"),
        *("==.@args", "==.@complexity", "@complexityLimit") * 2,
    ]
    assert numbers(outer["vars"]) == [
        *(("reentrantInvoke", 75), ("@complexityLimit", 25_925)),
        *(("test", 69), ("@complexityLimit", 25_856)),
        *(("==", 1), ("@complexityLimit", 25_855), ("==", 1), ("@complexityLimit", 25_854)),
    ]


async def test_leases_and_a_call_that_breaks_off(scene: Scene) -> None:
    chain = scene.chain
    lease = chain.send(
        chain.sign(LEASE, Lease(address_of(RICH, chain), 1_000), 2, keys=OTHER, fee=10**6)
    )
    chain.mine()
    name = base58.encode(lease.id)
    scene.script(
        RICH,
        6,
        "DAPP",
        f"""@Callable(i) func outer() = {{
          strict r = Address(base58'{OTHER_ADDRESS}').invoke("inner", [], [])
          if (true) then throw() else []
        }}
        @Callable(i) func nested() = {{
          strict r = Address(base58'{OTHER_ADDRESS}').invoke("fail", [[1, 2]], [])
          []
        }}""",
    )
    scene.script(
        OTHER,
        6,
        "DAPP",
        f"""@Callable(i) func inner() = {{
          let lease = Lease(Address(base58'{RICH_ADDRESS}'), 123)
          [lease, LeaseCancel(calculateLeaseId(lease)), LeaseCancel(base58'{name}')]
        }}
        @Callable(i) func fail(numbers: List[Int]) = throw("inside")""",
    )
    third = key_pair("a third account")
    chain.send(chain.transfer(to=address_text(address_of(third, chain)), amount=10**9))
    chain.mine()
    told = await scene.validated(scene.invoke("outer", keys=third))
    (outer,) = told["trace"]
    words = "InvokeRejectError(error = Explicit script termination)"
    assert (outer["result"], outer["error"]) == ("failure", words)
    assert told["error"] == "Error while executing dApp: Explicit script termination"
    (inner,) = outer["invocations"]
    (made,) = inner["result"]["leases"]
    assert (made["recipient"], made["amount"], made["status"]) == (RICH_ADDRESS, 123, "canceled")
    assert made["sender"] is made["height"] is made["originTransactionId"] is None
    cancelled, known = inner["result"]["leaseCancels"]
    assert cancelled["id"] == made["id"] and cancelled["recipient"] is None
    assert (known["amount"], known["sender"]) == (1_000, OTHER_ADDRESS)
    assert outer["vars"][-1] == {"name": "@complexityLimit", "type": "Int", "value": 51_913}
    told = await scene.validated(scene.invoke("nested", keys=third))
    (outer,) = told["trace"]
    (inner,) = outer["invocations"]
    assert inner["args"] == ["[1, 2]"]
    assert (inner["result"], inner["error"], inner["vars"]) == ("failure", "inside", [])
    assert outer["vars"][-1]["error"] == "inside"


async def test_plain_transfers_leave_no_trace(scene: Scene) -> None:
    transfer = scene.chain.transfer()
    assert (await scene.validated(transfer))["trace"] == []
    assert (await scene.sent(transfer))["trace"] == []


async def test_a_verifier_and_an_asset_that_say_no(scene: Scene) -> None:
    asset = scene.asset(scene.asset_script(5, "false"))
    chain = scene.chain
    sent = Transfer(address_of(RICH, chain), asset, 1, b"")
    told = await scene.validated(chain.sign(TRANSFER, sent, 2, keys=OTHER, fee=10**6))
    assert told["trace"] == [
        {
            "type": "asset",
            "context": "transfer",
            "id": base58.encode(asset),
            "result": "failure",
            "vars": [],
            "error": None,
        }
    ]
    scene.script(OTHER, 5, "EXPRESSION", "let no = 1 == 2\nno")
    told = await scene.validated(chain.sign(TRANSFER, sent, 2, keys=OTHER, fee=10**6))
    (verifier,) = told["trace"]
    assert (verifier["result"], verifier["error"]) == ("failure", None)
    assert names(verifier["vars"])[-1] == "no"


async def test_a_trace_that_would_be_endless_is_cut(chain: PrivateChain) -> None:
    scene = Scene(chain)
    doubled = "\n".join(f"let t{n} = t{n - 1} + t{n - 1}" for n in range(1, 14))
    shown = "\n".join(f"let s{n} = size(t13)" for n in range(600))
    total = " + ".join(f"s{n}" for n in range(600))
    scene.script(
        RICH,
        6,
        "DAPP",
        f'let t0 = "ab"\n{doubled}\n{shown}\n@Callable(i) func f() = [IntegerEntry("a", {total})]',
    )
    told = await scene.validated(scene.invoke("f"))
    assert told["valid"], told["error"]
    assert told["trace"][0]["vars"][-1] == {
        "name": "@untold",
        "error": "the trace is too long: the rest is left out",
    }


async def test_costly_calls_are_run_to_their_end(scene: Scene) -> None:
    checks = " || ".join(f"sigVerify(base58'{n}', base58'', base58'')" for n in range(1, 8))
    scene.script(
        RICH,
        6,
        "DAPP",
        f"""@Callable(i) func heavy() = if ({checks}) then [] else [IntegerEntry("a", 1)]
        @Callable(i) func around() = {{
          strict done = reentrantInvoke(this, "heavy", [], [])
          [IntegerEntry("b", 2)]
        }}""",
    )
    for name, key in (("heavy", "a"), ("around", "b")):
        transaction = scene.invoke(name)
        answer = await scene.sent(transaction)
        (dapp,) = answer["trace"]
        assert dapp["error"] is None
        assert [each["key"] for each in dapp["result"]["data"]] == [key]
    scene.chain.mine()
    state = await scene.chain.get(f"/addresses/data/{RICH_ADDRESS}")
    found: Any = state.json()
    assert {each["key"]: each["value"] for each in found} == {"a": 1, "b": 2}
