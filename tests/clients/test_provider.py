"""``@waves/signer`` (npm) with the provider that a signing service serves: its keys stay there, a
node takes what was signed.
"""

from __future__ import annotations

import json
import urllib.request
from pathlib import Path
from typing import Any, Final

import pytest

from soliton.chain.json_kinds import encode_base64
from soliton.crypto import base58
from soliton.devnet.accounts import funded_accounts
from soliton.keystore.keys import phrase
from soliton.ride.compiler import compile_source
from tests.blocks import blocks
from tests.clients.scripts import HERE, NEEDS_NODE, NODE, run_client, run_script
from tests.clients.test_kept_signer import kept, unlock
from tests.clients.test_waves_signer import DAPP
from tests.e2e.programs import devnet
from tests.keystore.stores import keep
from tests.signer.kept import KEYS, PASSWORD, Place

OWNER: Final = funded_accounts(ord("R"))[6]
COIN: Final = 10**8
COMMON: Final = """
keys = "any"
callers = ["bot"]
recipients = "any"
fees = "any"
calls = "any"
data-keys = "any"
pairs = "any"
matchers = "any"
"""
RULES: Final = f"""
[[rule]]
name = "all"
signs = [3, 4, 8, 12, "set_script.2", 16, "order", "customData"]
amounts = "any"
quantities = "any"
scripts = true
windows = [{{ amounts = "WAVES", most = 200_000_000, within = "1h" }}]
{COMMON}
[[rule]]
name = "large"
signs = ["transfer"]
amounts = {{ WAVES = 1_000_000_000 }}
approvals = {{ of = ["alice"], needed = 1, within = "1h" }}
{COMMON}
"""


pytestmark = NEEDS_NODE


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> Any:
    directory = tmp_path_factory.mktemp("provider")
    keep(directory / "keys", PASSWORD, {"owner": phrase(OWNER.seed)})
    scripts = {"dapp": encode_base64(compile_source(DAPP).script.source)}
    with devnet() as program, kept(Place(directory, RULES), program.node_url) as url:
        unlock(url)
        arguments = url, program.node_url, KEYS["bot"], KEYS["alice"], json.dumps(scripts)
        told = run_script("provider.js", *arguments)
        told["page"] = the_page(directory, url, program.node_url)
        return told


def the_page(directory: Path, signer_url: str, node_url: str) -> dict[str, Any]:
    """What the program of the reference makes of it, which is a module of a browser."""
    (source,) = blocks("docs/reference/signer.md", "js")
    with urllib.request.urlopen(f"{signer_url}/pages/provider.js") as answer:
        (directory / "provider.mjs").write_bytes(answer.read())
    (directory / "node_modules").symlink_to(HERE / "node_modules")
    places = {
        "http://127.0.0.1:6888/pages/provider.js": "./provider.mjs",
        "http://127.0.0.1:6888": signer_url,
        "http://127.0.0.1:6869": node_url,
        'prompt("API key of the signer")': json.dumps(KEYS["bot"]),
        'key: "hot"': 'key: "owner"',
    }
    for place, other in places.items():
        assert place in source
        source = source.replace(place, other)
    program = directory / "page.mjs"
    values = "{ address: user.address, signature }"
    telling = f'console.log(JSON.stringify({{ name: "told", value: {values} }}));'
    program.write_text(f"{source}\n{telling}\n", encoding="utf-8")
    assert NODE is not None
    found: dict[str, Any] = run_client(NODE, str(program))["told"]
    return found


def test_the_program_of_the_page_signs(told: Any) -> None:
    assert told["page"]["address"] == OWNER.address
    assert len(base58.decode(told["page"]["signature"])) == 64


def test_everybody_is_who_they_are(told: Any) -> None:
    assert told["user"]["address"] == OWNER.address
    (coins,) = told["balance"]
    assert (coins["assetId"], int(coins["amount"])) == ("WAVES", 10**14)
    assert told["heard"] == [["login", OWNER.address], ["logout"]]


@pytest.mark.parametrize(
    ("name", "type_id", "version"),
    [("issue", 3, 3), ("transfer", 4, 3), ("data", 12, 2), ("set script", 13, 2),
     ("invoke", 16, 2), ("approved", 4, 3)],
)  # fmt: skip
def test_the_node_takes_what_was_signed(told: Any, name: str, type_id: int, version: int) -> None:
    info = told[name]["info"]
    assert (info["type"], info["version"], info["sender"]) == (type_id, version, OWNER.address)
    assert info["applicationStatus"] == "succeeded"


def test_amounts_stay_exact(told: Any) -> None:
    assert told["issue"]["sent"]["quantity"] == "9223372036854775807"
    assert told["transfer"]["sent"]["amount"] == "9007199254740993"
    assert [each["type"] for each in told["batch"]] == [4, 8]
    later = told["signed, then sent"]
    assert later["info"]["id"] == later["signed"]
    changes = told["invoke"]["info"]["stateChanges"]
    assert changes["data"] == [{"key": "kept", "type": "integer", "value": 42}]


def test_messages_and_orders_verify(told: Any) -> None:
    assert told["message"] is True and told["typed data"] is True
    assert told["order"] == {"version": 4, "same": True, "verdict": True}


def test_refusals_say_why(told: Any) -> None:
    assert [each.split(" to ")[0] for each in told["asked"]] == [
        "transfer (version 3) of 2 WAVES", "transfer (version 3) of 3 WAVES",
    ]  # fmt: skip
    assert "Refused by alice" in json.dumps(told["refused by a person"])
    rule = told["refused by a rule"]
    assert (rule["code"], rule["name"]) == (7028, "SolitonSignerError")
    assert told["wrong key"]["code"] == 7020
    assert "Not logged in" in told["nobody"]["message"]
    assert "the network R, the node for W" in told["another network"]["message"]
