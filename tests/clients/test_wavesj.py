"""WavesJ, the library for Java, on a chain of each of the two generations that it knows.

The program in the directory `java` calls every method of the library's node; here is what has to
come of it. It is compiled anew each time, with what `make clients` has copied beside it.
"""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path
from typing import Any, Final

import pytest

from soliton.devnet.accounts import funded_accounts
from tests.amounts import if_long
from tests.clients.generations import chain_of
from tests.clients.scripts import HERE, JVM, run_client
from tests.e2e.programs import call

DIRECTORY: Final = HERE / "java"
JARS: Final = DIRECTORY / "jars"
JAVAC: Final = shutil.which("javac")
JAVA: Final = shutil.which("java")
FEE: Final = 100_000
COMPILE_SECONDS: Final = 120
TYPES: Final = {
    "transfer": 4,
    "mass transfer": 11,
    "data": 12,
    "deletion": 12,
    "issue": 3,
    "issue nft": 3,
    "transfer of an asset": 4,
    "reissue": 5,
    "burn": 6,
    "sponsor": 14,
    "update": 17,
    "alias": 10,
    "lease": 8,
    "cancel lease": 9,
    "set script": 13,
    "issue of a smart asset": 3,
    "set asset script": 15,
    "invoke": 16,
    "exchange": 7,
}
RICH: Final = "3M4qwDomRabJKLZxuXhwfqLApQkU592nWxF"

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(JAVAC is None or JAVA is None, reason="no Java compiler is installed"),
    pytest.mark.skipif(
        not (JARS / ".installed").exists(),
        reason="tests/clients/java/jars is missing (`make clients` makes it, with mvn)",
    ),
]


@pytest.fixture(scope="module")
def classes(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The directory of the compiled program."""
    directory = tmp_path_factory.mktemp("classes")
    assert JAVAC is not None
    command = [JAVAC, *(f"-J{each}" for each in JVM)]
    command += ["-d", str(directory), "-cp", f"{JARS}/*", str(DIRECTORY / "Walk.java")]
    done = subprocess.run(
        command, capture_output=True, text=True, timeout=COMPILE_SECONDS, check=False
    )
    assert done.returncode == 0, done.stderr
    return directory


@pytest.fixture(scope="module", params=["waves", if_long("tn")])
def family(request: pytest.FixtureRequest) -> str:
    name: str = request.param
    return name


@pytest.fixture(scope="module")
def told(family: str, classes: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    assert JAVA is not None
    with chain_of(family, tmp_path_factory.mktemp(family)) as program:
        # The library waits for seconds only; on a busy machine the first text takes longer.
        assert call(f"{program.node_url}/utils/script/compileCode", "true").status == 200
        return run_client(JAVA, *JVM, "-cp", f"{classes}:{JARS}/*", "Walk", program.node_url)


def test_no_method_is_left_out(told: dict[str, Any]) -> None:
    methods = told["methods"]
    assert len(methods["all"]) > 40
    assert set(methods["all"]) == set(methods["called"])


def test_what_can_be_read(told: dict[str, Any], family: str) -> None:
    unreadable = {
        name for name, value in told.items() if isinstance(value, dict) and "unreadable" in value
    }
    # The library cannot make its leases of any answer, and expects a text where that of the older
    # generation is empty.
    assert unreadable == {"getActiveLeases"} | ({"no block"} if family == "tn" else set())


def test_accounts(told: dict[str, Any], family: str) -> None:
    owner, friend, _ = told["addresses"]
    assert (told["chainId"], told["client"]) == (ord("R"), True)
    # The newer one is the devnet, whose wallet has all its accounts.
    more = funded_accounts(ord("R")) if family == "waves" else ()
    assert told["getAddresses"] == [RICH, *(each.address for each in more)]
    assert told["some addresses"] == [RICH]
    balance = told["getBalance"]
    assert balance == told["confirmed balance"] == 10**14
    assert balance == told["getEffectiveBalance"] == told["confirmed effective"]
    assert [each["getAddress"] for each in told["getBalances"]] == [owner, friend]
    assert told["balances at"] == told["getBalances"][:1]
    details = told["getBalanceDetails"]
    assert details["regular"] == details["available"] == details["effective"] == balance
    assert told["getData"] == {"binary": "AQI=", "integer": "42", "string": "grüße"}
    assert told["data of keys"] == {"string": "grüße"}
    assert (told["data that matches"], told["one entry"]) == ({"integer": "42"}, 42)
    left = balance - 4 * FEE - FEE - 5 - 1 - 2
    assert told["getBalanceHistory"][0]["balance"] == left


@pytest.mark.parametrize(("name", "type_id"), TYPES.items())
def test_a_transaction(told: dict[str, Any], name: str, type_id: int) -> None:
    sent, info = told[name]["sent"], told[name]["info"]
    assert sent["type"] == type_id
    assert info["tx"] == sent
    assert info["applicationStatus"] == "SUCCEEDED" and info["height"] > 1


def test_assets(told: dict[str, Any]) -> None:
    owner, friend, _ = told["addresses"]
    gold, nft = told["asset ids"]
    held = 1_000 - 40 + 10 - 4
    details = told["getAssetDetails"]
    assert (details["name"], details["quantity"]) == ("Silver", held + 40)
    assert [each["assetId"] for each in told["getAssetsDetails"]] == [gold, nft]
    assert told["getAssetsDetails"][0] == details
    assert told["getAssetBalance"] == held
    (balance,) = told["getAssetsBalance"]
    assert (balance["assetId"], balance["balance"]) == (gold, held)
    names = {each["name"] for each in told["getNft"]}
    assert names == {"Painting", "Drawing"}
    assert told["nft page"] == told["getNft"][:1]
    assert told["getAssetDistribution"]["items"] == {owner: held, friend: 40}
    pages = [told["distribution page"]["items"], told["distribution page after"]["items"]]
    assert pages[0] | pages[1] == {owner: held, friend: 40} and not pages[0].keys() & pages[1]


def test_aliases_and_leases(told: dict[str, Any]) -> None:
    owner, friend, _ = told["addresses"]
    assert told["getAliasesByAddress"] == ["alias:R:wavesj-user"]
    assert told["getAddressByAlias"] == owner
    assert told["lease"]["sent"]["recipient"] == friend


def test_scripts(told: dict[str, Any]) -> None:
    assert told["compileScript"]["callableComplexities"].keys() == {"keep"}
    assert told["getScriptInfo"]["script"] == told["compileScript"]["script"]
    assert told["getScriptMeta"]["callableFunctions"] == {"keep": [{"name": "n", "type": "Int"}]}
    assert told["validateTransaction"]["isValid"] is True
    assert told["calculateTransactionFee"] == [500_000, True]


def test_what_a_call_did(told: dict[str, Any], family: str) -> None:
    one, (other, *_) = told["getStateChanges"], list(told["getStateChangesByAddress"])
    if family == "waves":
        # The newest generation wants the key for these, and has them in the transaction.
        assert one["error"] == told["getStateChangesByAddress"]["error"] == 2
        return
    assert one == other and one["tx"] == told["invoke"]["sent"]
    assert "42" in one["stateChanges"]["data"][0]


def test_looking_for_transactions(told: dict[str, Any]) -> None:
    name = told["invoke"]["sent"]["id"]
    status = told["getTransactionStatus"]
    assert (status["id"], status["status"]) == (name, "CONFIRMED")
    # A block may have come between the two questions.
    statuses = [{**each, "confirmations": 0} for each in told["getTransactionsStatus"]]
    assert statuses == [{**status, "confirmations": 0}] * 2
    assert told["getTransactionInfo"] == told["invoke"]["info"]["height"]
    assert told["getTransactionsByAddress"] == [name]
    assert told["transactions after"] == [told["set script"]["sent"]["id"]]
    assert (told["getUtxSize"], told["getUnconfirmedTransactions"]) == (0, [])


def test_blocks(told: dict[str, Any], family: str) -> None:
    for name in ("getHeight", "getLastBlock", "getLastBlockHeaders", "getBlockchainRewards"):
        assert told[name] is True, name
    block, headers = told["getBlock"], told["getBlockHeaders"]
    assert told["block by id"] == block and told["headers by id"] == headers
    assert {key: block[key] for key in headers} == headers
    assert block["generator"] == RICH
    assert (told["getBlocks"], told["getBlocksHeaders"], told["getBlockHeight"]) == (2, 2, 0)
    assert (told["getBlocksGeneratedBy"], told["getBlocksDelay"]) == (1, True)
    genesis = told["getGenesisBlock"]
    assert genesis == 1 if family == "tn" else genesis["error"] == 4002
    assert told["rewards at"]["height"] == block["height"]


def test_refusals(told: dict[str, Any]) -> None:
    assert told["refused"]["error"] == 112
    assert told["no transaction"]["error"] == told["getUnconfirmedTransaction"]["error"] == 311
    assert told["no alias"]["error"] == 302
