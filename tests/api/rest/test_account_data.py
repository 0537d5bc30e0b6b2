"""Routes under /addresses/data and /addresses/scriptInfo."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any, cast
from urllib.parse import quote

import pytest

from soliton.api.json_reader import wrong_texts
from soliton.api.rest import account_data
from soliton.chain.addresses import parse_address
from soliton.chain.transactions.data import TYPE as DATA_TYPE
from soliton.chain.transactions.data import Data
from soliton.chain.transactions.set_script import TYPE as SET_SCRIPT
from soliton.chain.transactions.set_script import SetScript
from soliton.chain.values import DataEntry
from soliton.ledger.scripts import account_script
from soliton.ride.compiler import compile_source
from tests.api.chain import RICH_ADDRESS, PrivateChain
from tests.api.client import Answer, call

DATA = f"/addresses/data/{RICH_ADDRESS}"
FORM = {"content-type": "application/x-www-form-urlencoded"}
WHOLE = {"key": "a", "type": "integer", "value": 7}
TRUTH = {"key": "ab", "type": "boolean", "value": True}
TEXT = {"key": "b/ä", "type": "string", "value": "x"}
BYTES = {"key": "c", "type": "binary", "value": "base64:AQI="}
ALL = [WHOLE, TRUTH, TEXT, BYTES]


def error(code: int, message: str) -> dict[str, object]:
    return {"error": code, "message": message}


@pytest.mark.parametrize(
    ("pattern", "found", "read"),
    [("key_0[0-4]", 5, 10), ("key_05", 1, 0), ("key_0.*", 10, 10), ("(key_1|key_2).*", 20, 100),
     ("k" * 450 + ".*", 0, 0)],
)  # fmt: skip
async def test_patterns_read_the_keys_with_their_prefix(
    chain: PrivateChain, monkeypatch: pytest.MonkeyPatch, pattern: str, found: int, read: int
) -> None:
    for names in (f"key_{number:02}" for number in range(100)), (f"z{n:02}" for n in range(50)):
        sent = Data(tuple(DataEntry(name, 1) for name in names))
        chain.send(chain.sign(DATA_TYPE, sent, 2, fee=1_000_000))
        chain.mine()
    store, seen = chain.node.chain.store, 0
    entries = store.data_entries

    def counted(*args: Any, **kwargs: Any) -> Any:
        nonlocal seen
        for each in entries(*args, **kwargs):
            seen += 1
            yield each

    monkeypatch.setattr(type(store), "data_entries", lambda _self, *a, **k: counted(*a, **k))
    answer = await chain.get(f"{DATA}?matches={pattern}")
    entries_found = cast("list[object]", answer.json())
    assert answer.status == 200 and len(entries_found) == found
    assert seen == read


@pytest.fixture
def filled(chain: PrivateChain) -> PrivateChain:
    entries: dict[str, int | bool | str | bytes] = {
        "a": 7,
        "ab": True,
        "b/ä": "x",
        "c": b"\1\2",
        "d": 1,
    }
    chain.send(chain.data(**entries))
    chain.mine()
    chain.send(chain.data(d=None))
    chain.mine()
    return chain


CASES: list[tuple[str, int, object]] = [
    (DATA, 200, ALL),
    (f"{DATA}?key=c&key=a&key=d&key=none", 200, [BYTES, WHOLE]),
    (f"{DATA}?matches=a.*", 200, [WHOLE, TRUTH]),
    (f"{DATA}?matches=a", 200, [WHOLE]),
    (f"{DATA}?matches={quote('[a-c]|b/.')}", 200, [WHOLE, TEXT, BYTES]),
    (f"{DATA}/a", 200, WHOLE),
    (f"{DATA}/{quote('b/ä', safe='')}", 200, TEXT),
    (f"{DATA}/d", 404, error(304, "no data for this key")),
    (f"{DATA}/none", 404, error(304, "no data for this key")),
    (f"{DATA}?{'&'.join(f'key={n}' for n in range(1001))}", 400,
     error(10, "Too big sequence requested: max limit is 1000 entries")),
    (f"/addresses/scriptInfo/{RICH_ADDRESS}", 200, {
        "address": RICH_ADDRESS, "script": None, "scriptText": None, "version": None,
        "complexity": 0, "verifierComplexity": 0, "callableComplexities": {}, "extraFee": 0,
        "publicKey": None}),
    (f"/addresses/scriptInfo/{RICH_ADDRESS}/meta", 200, {"address": RICH_ADDRESS}),
]  # fmt: skip


@pytest.mark.parametrize(("target", "status", "expected"), CASES)
async def test_answers(filled: PrivateChain, target: str, status: int, expected: object) -> None:
    answer = await filled.get(target)
    assert (answer.status, answer.json()) == (status, expected)


async def test_a_pattern_that_is_none(filled: PrivateChain) -> None:
    answer = await filled.get(f"{DATA}?matches=(")
    assert (answer.status, answer.json()) == (
        400,
        {**error(199, "Cannot compile regex"), "hint": "a group is not closed"},
    )


POSTED: list[tuple[dict[str, Any], bytes, int, object]] = [
    ({}, b'{"keys":["c","a","x"]}', 200, [BYTES, WHOLE]),
    ({}, b'{"keys":[]}', 400, error(4008, "Key was not specified")),
    ({}, b"{}", 400, wrong_texts("keys", None).body()),
    (FORM, b"key=c&key=a", 200, [BYTES, WHOLE]),
    (FORM, b"matches=a.*", 200, [WHOLE, TRUTH]),
    (FORM, b"other=a", 400, error(4008, "Key was not specified")),
]


@pytest.mark.parametrize(("headers", "body", "status", "expected"), POSTED)
async def test_posted(
    filled: PrivateChain, headers: dict[str, str], body: bytes, status: int, expected: object
) -> None:
    answer = await filled.post(DATA, body, headers)
    assert (answer.status, answer.json()) == (status, expected)


async def test_malformed_json_is_the_404(filled: PrivateChain) -> None:
    assert (await filled.post(DATA, b"{")).status == 404


async def test_long_lists_are_read_in_pieces(
    filled: PrivateChain, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(account_data, "_PAGE", 2)
    assert (await filled.get(DATA)).json() == ALL


async def test_a_list_survives_blocks_made_while_it_is_sent(
    filled: PrivateChain, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(account_data, "_PAGE", 1)

    async def mine_between(_seconds: float) -> None:
        filled.send(filled.data(zz=filled.now))
        filled.mine()

    monkeypatch.setattr(asyncio, "sleep", mine_between)
    answer: Answer = await call(filled.app, f"GET {DATA}?matches=[a-c].*")
    assert answer.json() == ALL


OF_VERSION_3 = """{-# STDLIB_VERSION 3 #-}
{-# CONTENT_TYPE DAPP #-}
func twice(a: Int) = a + a
@Callable(i)
func f(n: Int) = {
  let a = twice(twice(n))
  WriteSet([DataEntry("a", if (a == 1) then a else a + 1)])
}
"""


async def test_complexities_are_those_of_the_current_estimator(tmp_path: Path) -> None:
    """Those of later estimators are counted beforehand, for when they are the current ones."""
    before_15: dict[str, object] = {"pre_activated_features": dict.fromkeys(range(1, 15), 0)}
    chain = PrivateChain(tmp_path, functionality=before_15)
    chain.mine()
    script = compile_source(OF_VERSION_3).script.source
    chain.send(chain.sign(SET_SCRIPT, SetScript(script), 1, fee=10_000_000))
    chain.mine()
    stored = account_script(parse_address(RICH_ADDRESS, ord("R")), chain.node.chain.store)
    assert stored is not None and stored.callables[2] != stored.callables[3]
    info: Any = (await chain.get(f"/addresses/scriptInfo/{RICH_ADDRESS}")).json()
    assert info["callableComplexities"] == stored.callables[2]
    assert info["complexity"] == stored.callables[2]["f"]
    chain.node.close()
