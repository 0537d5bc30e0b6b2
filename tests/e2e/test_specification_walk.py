"""The interface specification's walk with `curl`: a placeholder, the hash of a key, a restart, a
transfer signed by the node's wallet, broadcast, mined.
"""

from __future__ import annotations

import json
import shutil
import signal
import subprocess
from pathlib import Path
from typing import Any

import pytest

from soliton.chain.addresses import address_text, from_public_key
from soliton.crypto import base58
from soliton.crypto.keys import key_pair
from soliton.node.settings import api_key_hash_text
from soliton.node.wallet import Wallet
from tests.e2e.programs import Program, eventually, started
from tests.ports import free_port

PLACEHOLDER = "any text until the hash is known"
API_KEY = "a key that nobody guesses"
SEED = b"seed of the wallet in the walk"
CHAIN_ID = ord("S")
FUNDS = 10_000_000_000_000_000
AMOUNT, FEE = 100_000_000, 100_000

# Least fees are in force two periods of features after sponsorship: not within this test, however
# fast it catches up with the clock.
CONFIGURATION = """
zbs {
  directory = "%(directory)s"
  rest-api {
    enable = yes
    bind-address = "127.0.0.1"
    port = %(port)d
    api-key-hash = "%(api_key_hash)s"
  }
  wallet { seed = "%(seed)s", password = "of the wallet's file" }
  miner { enable = yes, quorum = 0, micro-block-interval = 100ms }
  blockchain {
    type = CUSTOM
    custom {
      address-scheme-character = "S"
      functionality {
        feature-check-blocks-period = 10000
        min-block-time = 1s
        pre-activated-features { 1 = 0, 2 = 0, 3 = 0, 4 = 0, 5 = 0, 6 = 0, 7 = 0, 8 = 0 }
      }
      genesis {
        average-block-delay = 2s
        initial-base-target = 1000000
        timestamp = 1538694637902
        block-timestamp = 1538694637902
        initial-balance = %(funds)d
        transactions = [{ recipient = "%(owner)s", amount = %(funds)d }]
      }
    }
  }
}
"""

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(shutil.which("curl") is None, reason="curl is not installed"),
]


def owner() -> str:
    """The first account of the wallet, which the genesis block funds."""
    (address,) = Wallet.open(None, None, SEED).accounts(CHAIN_ID)
    return address_text(address)


def configure(directory: Path, port: int, api_key_hash: str) -> Path:
    path = directory / "node.conf"
    values = {"directory": directory, "port": port, "api_key_hash": api_key_hash}
    values |= {"seed": base58.encode(SEED), "owner": owner(), "funds": FUNDS}
    path.write_text(CONFIGURATION % values)
    return path


def curl(*arguments: str) -> tuple[int, str]:
    """Status and body of one request."""
    command = ["curl", "--silent", "--show-error", "--write-out", "\n%{http_code}", *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60)
    body, _, status = done.stdout.rpartition("\n")
    return int(status), body


def post_json(url: str, body: Any, key: str | None = None) -> tuple[int, Any]:
    """As the specification writes its requests."""
    headers = ["-H", "Content-Type: application/json", "-H", "Accept: application/json"]
    if key is not None:
        headers += ["-H", f"X-API-Key: {key}"]
    status, answer = curl("-X", "POST", *headers, "-d", json.dumps(body), url)
    return status, json.loads(answer)


def transfer_of_the_example(sender: str, recipient: str) -> dict[str, Any]:
    """All members that the specification's example has, those that signing ignores too."""
    return {
        "type": 4,
        "version": 2,
        "senderPublicKey": base58.encode(key_pair("somebody else").public_key),
        "sender": sender,
        "recipient": recipient,
        "amount": AMOUNT,
        "fee": FEE,
        "assetId": None,
        "feeAssetId": None,
        "feeAsset": None,
        "attachment": "",
        "proofs": [base58.encode(bytes(64))],
    }


def refuses_every_key(url: str, transfer: dict[str, Any]) -> None:
    for key in (None, "", PLACEHOLDER, API_KEY, api_key_hash_text(API_KEY)):
        status, answer = post_json(f"{url}/transactions/sign", transfer, key)
        assert (status, answer["error"]) == (403, 2), key
        assert "proofs" not in answer


def hash_of_the_key(url: str) -> str:
    status, body = curl("-X", "POST", "-d", API_KEY, f"{url}/utils/hash/secure")
    assert status == 200
    answer = json.loads(body)
    assert answer["message"] == API_KEY
    found: str = answer["hash"]
    return found


def signs_broadcasts_and_mines(url: str, transfer: dict[str, Any]) -> str:
    status, signed = post_json(f"{url}/transactions/sign", transfer, API_KEY)
    assert status == 200, signed
    assert signed["senderPublicKey"] != transfer["senderPublicKey"]
    assert signed["sender"] == transfer["sender"]
    assert len(signed["proofs"]) == 1 and signed["proofs"] != transfer["proofs"]
    for member in ("type", "version", "recipient", "amount", "fee", "assetId", "attachment"):
        assert signed[member] == transfer[member], member
    assert signed["feeAsset"] is None and signed["feeAssetId"] is None
    status, sent = post_json(f"{url}/transactions/broadcast", signed)
    assert (status, sent.get("id")) == (200, signed["id"]), sent
    name: str = signed["id"]

    def mined() -> bool:
        return curl(f"{url}/transactions/info/{name}")[0] == 200

    eventually(mined, "the transaction in a block")
    found = json.loads(curl(f"{url}/transactions/info/{name}")[1])
    assert found["height"] > 1
    assert found["proofs"] == signed["proofs"]
    return name


def balance_of(url: str, address: str) -> int:
    found: int = json.loads(curl(f"{url}/addresses/balance/{address}")[1])["balance"]
    return found


def stop(program: Program) -> None:
    program.send(signal.SIGTERM)
    assert program.wait() == 0
    assert "Traceback" not in program.output


def test_walk(tmp_path: Path) -> None:
    port, sender = free_port(), owner()
    recipient = address_text(from_public_key(key_pair("a friend").public_key, CHAIN_ID))
    transfer = transfer_of_the_example(sender, recipient)
    config = configure(tmp_path, port, PLACEHOLDER)
    with started("run", "--config", config, until="REST API on") as program:
        url = program.node_url
        assert url == f"http://127.0.0.1:{port}"
        assert "zbs.rest-api.api-key-hash is not the hash of a key" in program.output
        refuses_every_key(url, transfer)
        key_hash = hash_of_the_key(url)
        stop(program)
    configure(tmp_path, port, key_hash)
    with started("run", "--config", config, until="REST API on") as program:
        status, page = curl("--location", f"{url}/")
        assert status == 200 and "swagger-ui" in page
        assert json.loads(curl(f"{url}/addresses")[1]) == [sender]
        for wrong in (None, "another key", key_hash):
            assert post_json(f"{url}/transactions/sign", transfer, wrong)[0] == 403
        name = signs_broadcasts_and_mines(url, transfer)
        assert balance_of(url, recipient) == AMOUNT
        stop(program)
    with started("run", "--config", config, until="REST API on") as program:
        assert curl(f"{url}/transactions/info/{name}")[0] == 200
        assert balance_of(url, recipient) == AMOUNT
        assert json.loads(curl(f"{url}/addresses")[1]) == [sender]
        stop(program)
    kept = b"".join(path.read_bytes() for path in tmp_path.rglob("*") if path.is_file())
    assert SEED not in kept, "the seed lies on the disk in clear text"
    assert API_KEY.encode() not in kept


@pytest.mark.parametrize("end", [signal.SIGTERM, signal.SIGKILL])
def test_a_wallet_that_nobody_has_configured_survives_the_restart(
    end: signal.Signals, tmp_path: Path
) -> None:
    """The specification asks for the address first and for a restart then: funds sent to it must
    not be lost.
    """
    config = tmp_path / "node.conf"
    config.write_text(
        f'zbs {{ directory = "{tmp_path}", rest-api {{ port = 0, api-key-hash = "later" }} }}'
    )
    with started("run", "--config", config, until="REST API on") as program:
        before = json.loads(curl(f"{program.node_url}/addresses")[1])
        assert len(before) == 1
        assert f"{tmp_path}/wallet/wallet.dat" in program.output
        program.send(end)
        program.wait()
    with started("run", "--config", config, until="REST API on") as program:
        assert json.loads(curl(f"{program.node_url}/addresses")[1]) == before
    for path in (tmp_path / "wallet").iterdir():
        assert path.stat().st_mode & 0o777 == 0o600
    password = (tmp_path / "wallet" / "wallet.dat.password").read_text()
    assert password not in program.output
