"""PyWaves, the library for Python (the distribution PyWaves-CE, which goes on with it).

It runs on a chain of each of the two generations that have all that it asks for. The program in the
directory `python` calls every method that has to do with a node; here is what
has to come of it.
"""

from __future__ import annotations

from typing import Any, Final

import pytest

from tests.amounts import if_long
from tests.clients.generations import chain_of
from tests.clients.scripts import HERE, by_key, run_client

PYTHON: Final = HERE / "python" / ".venv" / "bin" / "python"
OF_THE_MATCHER: Final = {
    "Address.buy",
    "Address.cancelOpenOrders",
    "Address.cancelOrder",
    "Address.cancelOrderByID",
    "Address.getOrderHistory",
    "Address.sell",
    "Address.tradableBalance",
    "PyWaves.getOrderBook",
    "PyWaves.markets",
    "PyWaves.setMatcher",
    "PyWaves.timefraneMustBeValid",
}
WITHOUT_NODE: Final = {
    "PyWaves.getChain",
    "PyWaves.getDatafeed",
    "PyWaves.setDatafeed",
    "PyWaves.setOffline",
    "PyWaves.setOnline",
    "PyWaves.throwException",
}
TYPES: Final = {
    "send": 4,
    "mass send": 11,
    "issue": 3,
    "reissue": 5,
    "burn": 6,
    "send asset": 4,
    "mass send asset": 11,
    "sponsor": 14,
    "sponsored fee": 4,
    "update": 17,
    "issue smart": 3,
    "asset script": 15,
    "alias": 10,
    "lease": 8,
    "cancel lease": 9,
    "data": 12,
    "delete": 12,
    "oracle": 12,
    "set script": 13,
    "compiled script": 13,
    "call": 16,
    "default call": 16,
}

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        not (PYTHON.parent.parent / ".installed").exists(),
        reason="tests/clients/python/.venv is missing (`make clients` makes it)",
    ),
]


@pytest.fixture(scope="module", params=["waves", if_long("tn")])
def family(request: pytest.FixtureRequest) -> str:
    name: str = request.param
    return name


@pytest.fixture(scope="module")
def told(family: str, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    with chain_of(family, tmp_path_factory.mktemp(family)) as program:
        return run_client(str(PYTHON), str(HERE / "python" / "walk.py"), program.node_url)


def test_no_method_is_left_out(told: dict[str, Any]) -> None:
    methods = told["methods"]
    left_out = set(methods["all"]) - set(methods["called"])
    assert left_out == OF_THE_MATCHER | WITHOUT_NODE


def test_reading(told: dict[str, Any], family: str) -> None:
    owner, _ = told["addresses"]
    assert told["last"]["height"] >= told["height"] == told["block"]["height"]
    assert told["genesis"]["height"] == 1
    # In the older generation there is an empty answer, for which the library has a code of its own.
    assert told["no block"]["error"] == (301 if family == "waves" else 1)
    assert told["no transaction"]["error"] == 311
    assert told["valid"] == [True, owner]
    balance, confirmed, details = told["balances"]
    assert balance == confirmed == details["regular"] == 10**14
    assert told["of another chain"]["error"] == 102


@pytest.mark.parametrize(("name", "type_id"), TYPES.items())
def test_a_transaction(told: dict[str, Any], name: str, type_id: int) -> None:
    sent, info = told[name]["sent"], told[name]["info"]
    assert sent["type"] == type_id, sent
    assert info["applicationStatus"] == "succeeded" and info["height"] > 1
    assert {key: info[key] for key in sent if key != "lease"} == {
        key: sent[key] for key in sent if key != "lease"
    }


def test_assets(told: dict[str, Any]) -> None:
    assert told["asset"] == ["Issued", "Gold", 1_000, False]
    assert told["smart"] == ["Issued", True]
    # Made, reissued, burned, sent, mass sent, and back with a fee that goes to the sponsor.
    assert told["asset balances"] == [1_000 + 10 - 4 - 40 - 6 + 1 + 3, 40 + 6 - 1 - 3]
    assert (told["assets"], told["described"], told["coin"]) == (True, True, 8)


def test_aliases_leases_and_data(told: dict[str, Any]) -> None:
    owner, friend = told["addresses"]
    assert told["aliases"] == [["pywaves-user"], owner]
    assert told["lease"]["info"]["recipient"] == friend
    assert told["cancel lease"]["info"]["lease"]["id"] == told["lease"]["sent"]["id"]
    one, found, everything = told["oracle data"]
    assert one == 7 and found == [{"key": "price", "type": "integer", "value": 7}]
    assert by_key(everything) == {
        "binary": ("binary", "base64:Ynl0ZXM="),
        "integer": ("integer", 42),
        "price": ("integer", 7),
        "string": ("string", "grüße"),
    }


def test_scripts(told: dict[str, Any], family: str) -> None:
    assert told["script"]["callableComplexities"].keys() == {"keep", "default"}
    changes = told["call"]["info"]["stateChanges"]
    assert [entry["value"] for entry in changes["data"]] == [42, 1]
    assert told["default call"]["info"]["call"] == {"function": "default", "args": []}
    assert told["evaluated"]["result"] == {"type": "Int", "value": 8}
    one, several = told["changes"]
    if family == "waves":
        # The newest generation wants the key for these.
        assert one["error"] == several["error"] == 2
    else:
        assert one == told["call"]["info"]
        assert several[0]["id"] == told["default call"]["sent"]["id"]
    listed, later = told["transactions"]
    assert listed[0][0]["id"] == told["default call"]["sent"]["id"]
    assert later[0] == listed[0][1:2]


def test_refusals(told: dict[str, Any]) -> None:
    assert told["validated"]["valid"] is False
    assert "negative waves balance" in told["validated"]["error"]
    assert (told["refused"]["error"], told["changed"]["error"]) == (112, 112)
    sent, found = told["waited for"]
    assert sent == found
