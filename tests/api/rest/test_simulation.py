"""Transactions that are tried: what they would do is what they do, and nothing is left of them."""

from __future__ import annotations

from typing import Any

from soliton.chain.function_calls import FunctionCall
from soliton.chain.transactions import codec
from soliton.chain.transactions.invoke_script import TYPE as INVOKE
from soliton.chain.transactions.invoke_script import InvokeScript
from soliton.chain.transactions.set_script import TYPE as SET_SCRIPT
from soliton.chain.transactions.set_script import SetScript
from soliton.crypto import base58
from soliton.ledger.state import WAVES
from soliton.ride.compiler import compile_source
from tests.api.chain import (
    AMOUNT,
    FEE,
    OTHER,
    OTHER_ADDRESS,
    RICH,
    RICH_ADDRESS,
    START,
    PrivateChain,
    address_of,
)

KEY = base58.encode(RICH.public_key)
TRANSFER = {
    "type": 4,
    "version": 3,
    "senderPublicKey": KEY,
    "recipient": OTHER_ADDRESS,
    "amount": AMOUNT,
}
DAPP = """{-# STDLIB_VERSION 5 #-}
{-# CONTENT_TYPE DAPP #-}
@Callable(i)
func note(text: String) = {
    if (text == "") then throw("nothing to note") else [StringEntry("note", text)]
}
@Verifier(tx)
func verify() = false
"""


async def tried(chain: PrivateChain, obj: object, query: str = "") -> dict[str, Any]:
    answer = await chain.post(f"/transactions/simulate{query}", obj)
    assert answer.status == 200, answer.body
    found: Any = answer.json()
    return dict(found)


def put_dapp(chain: PrivateChain) -> None:
    """The other account has a dApp whose verifier always says no."""
    chain.send(chain.transfer(amount=100 * AMOUNT))
    script = compile_source(DAPP).script.source
    chain.send(chain.sign(SET_SCRIPT, SetScript(script), 2, keys=OTHER, fee=10_000_000))
    chain.mine()


def call(chain: PrivateChain, text: str) -> dict[str, object]:
    payload = InvokeScript(address_of(OTHER, chain), FunctionCall("note", (text,)), ())
    return codec.to_json(chain.sign(INVOKE, payload, 2, fee=500_000))


async def test_an_unsigned_one_with_the_least_fee(chain: PrivateChain) -> None:
    found = await tried(chain, TRANSFER)
    assert found["valid"] is True and found["signed"] is False and found["height"] == 2
    assert found["fee"] == {"amount": FEE, "least": FEE, "assetId": None}
    shown = found["transaction"]
    assert (shown["fee"], shown["timestamp"], shown["proofs"]) == (FEE, START, [])
    balances = {row["address"]: row["balance"] for row in found["changes"]["balances"]}
    assert balances[OTHER_ADDRESS] == AMOUNT
    assert found["trace"] == [] and found["complexity"] == 0


async def test_what_it_would_do_is_what_it_does(chain: PrivateChain) -> None:
    put_dapp(chain)
    for obj in (codec.to_json(chain.transfer()), call(chain, "hello")):
        found = await tried(chain, obj)
        assert found["valid"] is True and found["signed"] is True
        await chain.post("/transactions/broadcast", obj)
        chain.mine()
        info: Any = (await chain.get(f"/transactions/info/{obj['id']}")).json()
        snapshot: Any = (await chain.get(f"/transactions/snapshot/{obj['id']}")).json()
        for member in ("applicationStatus", "spentComplexity"):
            assert found[member] == info[member], member
        assert found.get("stateChanges") == info.get("stateChanges")
        others = [row for row in snapshot["balances"] if row["address"] != RICH_ADDRESS]
        tried_for = [row for row in found["changes"]["balances"] if row["address"] != RICH_ADDRESS]
        # The sender mines as well, and gets a part of the fee.
        assert tried_for == others
        assert found["changes"]["accountData"] == snapshot["accountData"]


async def test_a_call_leaves_its_trace(chain: PrivateChain) -> None:
    put_dapp(chain)
    found = await tried(chain, call(chain, "hello") | {"proofs": []})
    assert found["signed"] is False and found["stateChanges"]["data"][0]["value"] == "hello"
    (step,) = found["trace"]
    assert (step["type"], step["function"]) == ("dApp", "note") and step["vars"]


async def test_a_call_that_goes_wrong(chain: PrivateChain) -> None:
    put_dapp(chain)
    found = await tried(chain, call(chain, ""))
    assert found["valid"] is False and "nothing to note" in found["error"]["message"]
    assert found["error"]["error"] == 306 and len(found["trace"]) == 1


async def test_the_verifier_of_an_unsigned_one_counts_as_given(chain: PrivateChain) -> None:
    put_dapp(chain)
    own = TRANSFER | {"senderPublicKey": base58.encode(OTHER.public_key), "recipient": RICH_ADDRESS}
    found = await tried(chain, own)
    assert found["valid"] is True and found["trace"] == []
    assert found["fee"]["least"] == found["fee"]["amount"] == FEE
    signed = chain.transfer(keys=OTHER, to=RICH_ADDRESS, amount=1, fee=5 * FEE)
    refused = await tried(chain, codec.to_json(signed))
    assert refused["valid"] is False and refused["error"]["error"] == 307
    assert [step["type"] for step in refused["trace"]] == ["verifier"]


async def test_what_would_be_refused(chain: PrivateChain) -> None:
    poor = TRANSFER | {"senderPublicKey": base58.encode(OTHER.public_key)}
    found = await tried(chain, poor)
    assert found["valid"] is False and found["error"]["error"] == 112
    assert "applicationStatus" not in found
    cheap = await tried(chain, TRANSFER | {"fee": 1})
    assert cheap["valid"] is False and cheap["fee"] == {"amount": 1, "least": FEE, "assetId": None}
    forged = codec.to_json(chain.transfer()) | {"proofs": [base58.encode(bytes(64))]}
    wrong = await tried(chain, forged)
    assert wrong["valid"] is False and "Proof doesn't validate" in wrong["error"]["message"]


async def test_on_top_of_what_waits(chain: PrivateChain) -> None:
    chain.mine()
    funding = chain.send(chain.transfer(amount=AMOUNT + FEE))
    chained = chain.transfer(keys=OTHER, to=RICH_ADDRESS, amount=AMOUNT)
    unsigned = TRANSFER | {"senderPublicKey": base58.encode(OTHER.public_key)}
    for obj in (codec.to_json(chained), unsigned | {"recipient": RICH_ADDRESS}):
        found = await tried(chain, obj)
        assert found["valid"] is True and found["height"] == 3
        balances = {row["address"]: row["balance"] for row in found["changes"]["balances"]}
        assert balances[OTHER_ADDRESS] == 0
        alone = await tried(chain, obj, "?unconfirmed=false")
        assert alone["valid"] is False and alone["error"]["error"] == 112
        assert await tried(chain, obj, "?unconfirmed=true") == found
    # What it says is what a broadcast comes to, and nothing is left in the pool's state.
    assert chain.node.pool.transactions() == [funding]
    answer = await chain.post("/transactions/broadcast", codec.to_json(chained))
    assert answer.status == 200
    again = await tried(chain, codec.to_json(chained))
    assert again["valid"] is False and "already in the state" in again["error"]["message"]


async def test_scripts_and_assets_of_what_waits(chain: PrivateChain) -> None:
    chain.send(chain.transfer(amount=100 * AMOUNT))
    script = compile_source(DAPP).script.source
    chain.send(chain.sign(SET_SCRIPT, SetScript(script), 2, keys=OTHER, fee=10_000_000))
    found = await tried(chain, call(chain, "hello"))
    assert found["valid"] is True
    assert found["stateChanges"]["data"] == [{"key": "note", "type": "string", "value": "hello"}]
    assert (await tried(chain, call(chain, "hello"), "?unconfirmed=false"))["valid"] is False
    own = TRANSFER | {"senderPublicKey": base58.encode(OTHER.public_key), "fee": FEE}
    assert (await tried(chain, own))["fee"]["least"] == FEE


async def test_what_comes_meanwhile_changes_nothing(chain: PrivateChain) -> None:
    """The pool goes on while the transaction is tried in another thread."""
    kept = chain.node.pool.kept_state()
    address = address_of(OTHER, chain)
    sent = chain.send(chain.transfer())
    assert kept.get(WAVES, address) == 0 and kept.transaction_height(sent.id) is None
    later = chain.node.pool.kept_state()
    chain.mine()
    assert later.get(WAVES, address) == AMOUNT


async def test_nothing_is_left(chain: PrivateChain) -> None:
    before = chain.node.chain.last_block.id
    await tried(chain, TRANSFER)
    await tried(chain, codec.to_json(chain.transfer()))
    assert len(chain.node.pool) == 0 and chain.node.chain.last_block.id == before
    balance: Any = (await chain.get(f"/addresses/balance/{OTHER_ADDRESS}")).json()
    assert balance["balance"] == 0


async def test_bad_requests(chain: PrivateChain) -> None:
    for obj, text in (
        (
            {name: TRANSFER[name] for name in TRANSFER if name != "senderPublicKey"},
            b"senderPublicKey",
        ),
        (TRANSFER | {"recipient": "x"}, b"nvalid"),
        (TRANSFER | {"type": 99}, b"type"),
        (TRANSFER | {"amount": "many"}, b"amount"),
        ([], b"failed to parse"),
    ):
        answer = await chain.post("/transactions/simulate", obj)
        assert answer.status in (400, 501) and text in answer.body, (obj, answer.body)
    assert (await chain.get("/transactions/simulate")).status == 405
