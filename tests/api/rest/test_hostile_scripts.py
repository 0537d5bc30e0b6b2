"""Scripts from strangers over REST: whatever they hold, there is an answer, and it is not large."""

from __future__ import annotations

import asyncio
import base64
from collections.abc import Callable
from typing import Any

import pytest

from soliton.api import application
from soliton.chain.transactions import codec
from soliton.chain.transactions.set_script import TYPE as SET_SCRIPT
from soliton.chain.transactions.set_script import SetScript
from soliton.crypto.hashes import secure_hash
from soliton.node import turns
from soliton.ride.compiler import compile_source
from soliton.ride.script import parse_script
from soliton.ride.serialization import NODES_IN_STEP
from tests.amounts import times
from tests.api.chain import PATIENCE_SECONDS, RICH_ADDRESS, PrivateChain

DEPTH = times(40_000, 100_000)
FITTING = times(13_000, 27_000)
"""Levels that fit into the bytes of the largest script; both are more than recursion may have."""
MAX_ANSWER_BYTES = 20_000_000
TEXT = {"content-type": "text/plain"}
DAPP = """{-# STDLIB_VERSION 6 #-}
{-# CONTENT_TYPE DAPP #-}
@Callable(i)
func done() = []
"""

Levels = Callable[[int], bytes]
DEEP: dict[str, Levels] = {
    "conditions": lambda n: b"\x03" * n + b"\x06" + b"\x06\x06" * n,
    "branches": lambda n: b"\x03\x06" * n + b"\x06" + b"\x06" * n,
    "last branches": lambda n: b"\x03\x06\x06" * n + b"\x06",
    "fields": lambda n: b"\x08" * n + b"\x05\x01x" + b"\x01y" * n,
    "calls": lambda n: b"\x09\x00\x64\x02\x00\x01" * n + b"\x00\x01",
    "named calls": lambda n: b"\x09\x01\x01!\x01" * n + b"\x06",
    "lists": lambda n: b"\x0b\x01" * n + b"\x06",
    "values": lambda n: b"\x0a\x00\x01a" * n + b"\x06" + b"\x06" * n,
    "blocks": lambda n: b"\x0a\x00\x01a\x06" * n + b"\x06",
    "older blocks": lambda n: b"\x04\x01a" * n + b"\x06" + b"\x06" * n,
    "functions": lambda n: b"\x0a\x01\x01f\x00" * n + b"\x06" + b"\x06" * n,
    "no end": lambda n: b"\x03" * n,
}
BOMBS = {
    "texts": 'let a0 = "ab"\n' + "".join(f"let a{n} = a{n - 1} + a{n - 1}\n" for n in range(1, 60)),
    "lists": "let a0 = [1]\n" + "".join(f"let a{n} = a{n - 1} ++ a{n - 1}\n" for n in range(1, 60)),
    "tuples": "let a0 = (1, 2)\n"
    + "".join(f"let a{n} = (a{n - 1}, a{n - 1})\n" for n in range(1, 60)),
    "numbers": "let a0 = toBigInt(2)\n"
    + "".join(f"let a{n} = a{n - 1} * a{n - 1}\n" for n in range(1, 60)),
    "calls": "func a0() = 1\n"
    + "".join(f"func a{n}() = a{n - 1}() + a{n - 1}()\n" for n in range(1, 60)),
}
NAMES = (
    "__import__", "exec", "open", "print", "self", "context", "environment", "__builtins__",
    "values", "natives", "None", "globals", "x'); import os; ('", 'a"""', "\n", "os.system",
)  # fmt: skip


@pytest.fixture(autouse=True)
def patience(monkeypatch: pytest.MonkeyPatch) -> None:
    """A slow machine is no fault of the scripts."""
    monkeypatch.setattr(application, "REQUEST_SECONDS", PATIENCE_SECONDS)


@pytest.fixture
def dapp(chain: PrivateChain) -> PrivateChain:
    script = compile_source(DAPP).script.source
    chain.send(chain.sign(SET_SCRIPT, SetScript(script), 2, fee=10_000_000))
    chain.mine()
    return chain


def expression(body: bytes) -> bytes:
    head = b"\x06\x01" + body
    return head + secure_hash(head)[:4]


def encoded(data: bytes) -> str:
    return "base64:" + base64.b64encode(data).decode()


async def evaluated(chain: PrivateChain, body: dict[str, object], query: str = "") -> Any:
    answer = await chain.post(f"/utils/script/evaluate/{RICH_ADDRESS}{query}", body)
    assert answer.status == 200
    assert len(answer.body) < MAX_ANSWER_BYTES
    return answer.json()


@pytest.mark.parametrize("name", DEEP)
async def test_nesting(dapp: PrivateChain, name: str) -> None:
    script = expression(DEEP[name](FITTING))
    for route in ("estimate", "decompile"):
        answer = await dapp.post(f"/utils/script/{route}", encoded(script).encode(), TEXT)
        assert answer.status in (200, 400)
        assert len(answer.body) < MAX_ANSWER_BYTES
    told = await evaluated(dapp, {"expr": encoded(DEEP[name](DEPTH))})
    assert "error" in told or "result" in told
    transaction = dapp.sign(SET_SCRIPT, SetScript(script), 2, fee=10**9)
    answer = await dapp.post("/debug/validate", codec.to_json(transaction))
    shown: Any = answer.json()
    assert answer.status == 200
    assert isinstance(shown["valid"], bool)
    assert (await dapp.broadcast(transaction)).status in (200, 400)
    dapp.mine()


@pytest.mark.parametrize("name", BOMBS)
async def test_bombs(dapp: PrivateChain, name: str) -> None:
    last = "a59()" if name == "calls" else "a59"
    for query in ("", "?trace=true"):
        told = await evaluated(dapp, {"expr": f"{BOMBS[name]}{last}"}, query)
        assert "error" in told
    source = f"{{-# STDLIB_VERSION 6 #-}}\n{BOMBS[name]}{last} == {last}"
    answer = await dapp.post("/utils/script/compileCode", source.encode(), TEXT)
    assert answer.status in (200, 400)


async def test_a_value_that_is_deeper_than_answers_show(dapp: PrivateChain) -> None:
    lists = "let a0 = nil\n" + "".join(f"let a{n} = cons(a{n - 1}, nil)\n" for n in range(1, 1_500))
    body = compile_value_body(lists + "a1499")
    told = await evaluated(dapp, {"expr": encoded(body)}, "?trace=true")
    value, levels = told["result"], 0
    while value["value"]:
        value, levels = value["value"][0], levels + 1
    assert levels == 100


def compile_value_body(source: str) -> bytes:
    """A list in a list has a type that doubles nothing, but is long: it is built by hand."""
    names = source.split("\n")[:-1]
    body = b""
    for number, _ in enumerate(names):
        name = f"a{number}".encode()
        body += b"\x0a\x00" + bytes((len(name),)) + name
        if number == 0:
            body += b"\x05\x03nil"
        else:
            before = f"a{number - 1}".encode()
            body += b"\x09\x00\xcc\x08\x02\x05" + bytes((len(before),)) + before + b"\x05\x03nil"
    last = f"a{len(names) - 1}".encode()
    return body + b"\x05" + bytes((len(last),)) + last


@pytest.mark.parametrize("name", NAMES)
async def test_names_reach_nothing_of_the_host(dapp: PrivateChain, name: str) -> None:
    word = bytes((len(name),)) + name.encode()
    for body in (
        b"\x05" + word,
        b"\x09\x01" + word + b"\x00",
        b"\x09\x01" + word + b"\x01\x02\x02os",
        b"\x08\x05\x04unit" + word,
        b"\x08\x05\x09lastBlock" + word,
    ):
        told = await evaluated(dapp, {"expr": encoded(body)})
        assert "error" in told
    # As a name of its own it is one like any other.
    told = await evaluated(dapp, {"expr": encoded(b"\x0a\x00" + word + b"\x06\x05" + word)})
    assert told["result"] == {"type": "Boolean", "value": True}


@pytest.mark.parametrize("path", ["/transactions/broadcast", "/utils/transactionSerialize"])
async def test_others_have_their_turns_while_a_long_script_is_read(
    path: str, chain: PrivateChain, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(turns, "TURN_SECONDS", 0.0)
    parse_script.cache_clear()
    head = b"\x06\x01"
    body = head + DEEP["last branches"](FITTING)
    script = body + secure_hash(body)[:4]
    transaction = chain.sign(SET_SCRIPT, SetScript(script), 2, fee=10**8)
    asking = asyncio.create_task(chain.post(path, codec.to_json(transaction)))
    others = 0
    while not asking.done():
        await asyncio.sleep(0)
        others += 1
    answer = asking.result()
    assert answer.status == (400 if path.endswith("broadcast") else 200), answer.body
    assert others >= 3 * FITTING // NODES_IN_STEP
