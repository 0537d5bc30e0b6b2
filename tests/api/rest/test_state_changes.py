"""What calls of dApps did, as the generation between the oldest and the newest is asked for it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from soliton.chain.function_calls import FunctionCall
from soliton.chain.transactions.invoke_script import TYPE as INVOKE_TYPE
from soliton.chain.transactions.invoke_script import InvokeScript
from soliton.chain.transactions.model import AnyTransaction
from soliton.chain.transactions.set_script import TYPE as SET_SCRIPT_TYPE
from soliton.chain.transactions.set_script import SetScript
from soliton.crypto import base58
from soliton.ride.compiler import compile_source
from tests.api.chain import OTHER_ADDRESS, RICH, RICH_ADDRESS, PrivateChain, address_of

SOURCE = """{-# STDLIB_VERSION 5 #-}
{-# CONTENT_TYPE DAPP #-}
{-# SCRIPT_TYPE ACCOUNT #-}
@Callable(i)
func keep(n: Int) = [IntegerEntry("n", n)]
"""
ADDRESS_PATH = f"/debug/stateChanges/address/{RICH_ADDRESS}/limit"
FEE_OF_CALLS = 900_000
UNKNOWN = "DG2xFkPdDwKUoBkzGAhQtLpSGzfXLiCYPEzeKH2Ad24p"


@pytest.fixture
def middle(tmp_path: Path) -> Iterator[PrivateChain]:
    made = PrivateChain(tmp_path / "tn", family="tn")
    yield made
    made.node.close()


def called(chain: PrivateChain) -> AnyTransaction:
    """A call on the chain, with a script's and a transfer's transaction before it."""
    script = compile_source(SOURCE).script.source
    chain.send(chain.sign(SET_SCRIPT_TYPE, SetScript(script), 2, fee=FEE_OF_CALLS))
    chain.send(chain.transfer())
    chain.mine()
    payload = InvokeScript(address_of(RICH, chain), FunctionCall("keep", (7,)), ())
    sent = chain.send(chain.sign(INVOKE_TYPE, payload, 2, fee=FEE_OF_CALLS))
    chain.mine()
    return sent


async def test_a_call(middle: PrivateChain) -> None:
    name = base58.encode(called(middle).id)
    found: Any = (await middle.get(f"/debug/stateChanges/info/{name}")).json()
    assert found["stateChanges"]["data"] == [{"key": "n", "type": "integer", "value": 7}]
    assert found == (await middle.get(f"/transactions/info/{name}")).json()


async def test_what_is_no_call(middle: PrivateChain, chain: PrivateChain) -> None:
    sent = middle.send(middle.transfer())
    middle.mine()
    for name, error in ((base58.encode(sent.id), 312), (UNKNOWN, 311), ("0", 4001)):
        answer: Any = (await middle.get(f"/debug/stateChanges/info/{name}")).json()
        assert answer["error"] == error
    # The newest generation says nothing under this prefix without the key.
    assert (await chain.get(f"/debug/stateChanges/info/{UNKNOWN}")).status == 403


async def test_calls_of_an_account(middle: PrivateChain) -> None:
    sent = called(middle)
    found: Any = (await middle.get(f"{ADDRESS_PATH}/9")).json()
    assert [each["type"] for each in found[:3]] == [16, 4, 13]
    assert found[0]["id"] == base58.encode(sent.id)
    assert found[0]["stateChanges"]["data"][0]["value"] == 7
    assert (await middle.get(f"{ADDRESS_PATH}/1")).json() == found[:1]
    after = found[0]["id"]
    assert (await middle.get(f"{ADDRESS_PATH}/2?after={after}")).json() == found[1:3]
    assert (await middle.get(f"{ADDRESS_PATH}/1?after={UNKNOWN}")).json() == found[:1]
    empty = await middle.get(f"/debug/stateChanges/address/{OTHER_ADDRESS}/limit/0")
    assert (empty.status, empty.json()) == (200, [])


@pytest.mark.parametrize("target", ["1001", "-1", "x", "1?after=0"])
async def test_wrong_requests(middle: PrivateChain, target: str) -> None:
    assert (await middle.get(f"{ADDRESS_PATH}/{target}")).status == 403
