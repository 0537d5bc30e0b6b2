"""The ecosystem's JavaScript libraries against our codec and against a running devnet.

What lives here: pytest around the node scripts beside this module. Each script prints one JSON
object per line, ``{"name": ..., "value": ...}``. What does not: the scenarios themselves.
"""

from __future__ import annotations

import json
import os
import queue
import re
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest

from soliton.chain.addresses import parse_claimed_recipient
from soliton.chain.transactions import codec, json_reader
from soliton.chain.transactions.data import TYPE as DATA
from soliton.chain.transactions.data import Data
from soliton.chain.transactions.transfer import TYPE as TRANSFER
from soliton.chain.transactions.transfer import Transfer
from soliton.chain.values import DataEntry
from soliton.crypto import base58
from soliton.crypto.curve25519 import verify
from soliton.crypto.keys import key_pair
from tests.clients.scripts import NEEDS_NODE, by_key, run_script
from tests.e2e import programs

CHAIN_ID: Final = ord("R")
RICH: Final = "3M4qwDomRabJKLZxuXhwfqLApQkU592nWxF"
FRIEND: Final = "3MMiWb5hjTXwst33rEaebQq8RnXZRFrTjuY"
START_SECONDS: Final = 20
ATTACHMENT: Final = "72k1xXWG59fYdzSNoA"
FEE: Final = 100_000
BLOCK_REWARD: Final = 6 * 10**9

pytestmark = NEEDS_NODE


@pytest.fixture(scope="module")
def services() -> Iterator[dict[str, str]]:
    """The addresses of a devnet's node and signer, in a process of its own."""
    program = Path(sys.executable).parent / "soliton"
    process = subprocess.Popen(
        [
            *(str(program), "devnet", "--port", "0", "--signer-port", "0", "--matcher-port", "0"),
            *("--heartbeat", "0"),
        ],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        encoding="utf-8",
        env={**os.environ, "PYTHONUNBUFFERED": "1"},
    )
    try:
        yield _addresses(process)
    finally:
        process.terminate()
        try:
            process.wait(START_SECONDS)
        finally:
            process.kill()
            if process.stdout is not None:
                process.stdout.close()


def _addresses(process: subprocess.Popen[str]) -> dict[str, str]:
    lines: queue.Queue[str] = queue.Queue()

    def read() -> None:
        for line in process.stdout or ():
            lines.put(line)
        lines.put("")

    threading.Thread(target=read, daemon=True).start()
    told = ""
    while "Ctrl-C stops." not in told:
        line = lines.get(timeout=START_SECONDS)
        assert line, f"the devnet ended:\n{told}"
        told += line
    return dict(re.findall(r"^ +(node|signer) +(http://\S+)", told, re.MULTILINE))


@pytest.fixture(scope="module")
def devnet(services: dict[str, str]) -> str:
    """The address of the devnet's node."""
    return services["node"]


# --- without a node ------------------------------------------------------------------------------


def test_what_the_library_signs_is_read() -> None:
    told = run_script("sign.js")
    assert len(told) == 7
    for name, value in told.items():
        given = json.loads(value["json"])
        transaction = json_reader.read_signed(given, CHAIN_ID)
        assert transaction.body.hex() == value["body"], name
        assert base58.encode(transaction.id) == given["id"], name
        assert verify(transaction.sender_public_key, transaction.body, transaction.proofs[0]), name
        again = json_reader.read_signed(codec.to_json(transaction), CHAIN_ID)
        assert again == transaction, name
        in_protobuf = codec.encode_protobuf(transaction)
        assert codec.decode_protobuf(in_protobuf, CHAIN_ID) == transaction, name


def test_what_we_sign_is_accepted_by_the_library() -> None:
    account = key_pair("some words of our own")
    friend = parse_claimed_recipient(FRIEND, CHAIN_ID)
    entries = (
        DataEntry("largest", 2**63 - 1),
        DataEntry("smallest", -(2**63)),
        DataEntry("flag", True),
        DataEntry("text", "grüße"),
        DataEntry("bytes", bytes(range(256))),
    )
    ours = []
    for kind, payload, version in (
        (TRANSFER, Transfer(recipient=friend, asset_id=None, amount=5, attachment=b"hi"), 2),
        (TRANSFER, Transfer(recipient=friend, asset_id=None, amount=2**60, attachment=b""), 3),
        (DATA, Data(entries), 1),
        (DATA, Data((*entries, DataEntry("gone", None))), 2),
    ):
        unsigned = codec.build(
            kind,
            payload,
            version=version,
            chain_id=CHAIN_ID,
            sender_public_key=account.public_key,
            fee=100_000,
            timestamp=1_700_000_000_000,
        )
        ours.append(codec.sign(unsigned, account.private_key))
    lines = "\n".join(json.dumps(codec.to_json(transaction)) for transaction in ours)
    told = run_script("verify.js", given=lines)
    wanted = [{"valid": True, "id": base58.encode(transaction.id)} for transaction in ours]
    assert [told[str(index)] for index in range(len(ours))] == wanted


# --- against a devnet ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("example", "amount"), [("transfer 1", 1001), ("transfer 2", 1002), ("transfer 3", 1003)]
)
def test_transfers(devnet: str, example: str, amount: int) -> None:
    told = run_script("broadcast.js", devnet, example)
    check_way_of_a_transaction(told)
    mined = told["mined"]
    assert (mined["recipient"], mined["amount"]) == (FRIEND, amount)
    assert mined["attachment"] == ATTACHMENT
    gain = int(told["after"]["recipient"]) - int(told["before"]["recipient"])
    # The sender is the miner: the fee comes back with the reward of the block.
    change = int(told["after"]["sender"]) - int(told["before"]["sender"])
    assert (gain, change - BLOCK_REWARD) in (
        (amount, -amount),  # the whole fee in the same block
        (amount, -amount - FEE * 3 // 5),  # the part of the fee that the next block gets
    )


def check_way_of_a_transaction(told: dict[str, Any]) -> None:
    """Broadcast, waited for, read back: always the transaction that the library signed."""
    sent, mined = told["sent"], told["mined"]
    assert told["broadcast"]["id"] == told["waited"]["id"] == told["info"]["id"] == sent["id"]
    # Old versions do not carry the byte of the network, and nodes order entries' members otherwise.
    for key in set(sent) - {"chainId"}:
        assert told["broadcast"][key] == mined[key] == told["info"][key] == sent[key], key
    assert mined["sender"] == RICH
    assert mined["applicationStatus"] == "succeeded"
    (status,) = told["status"]["statuses"]
    assert (status["id"], status["status"]) == (sent["id"], "in_blockchain")
    assert status["height"] == mined["height"] > 1


def test_data(devnet: str) -> None:
    written = {
        "whole": ("integer", 42),
        "largest": ("integer", str(2**63 - 1)),
        "smallest": ("integer", str(-(2**63))),
        "yes": ("boolean", True),
        "no": ("boolean", False),
        "text": ("string", "grüße, 世界"),
        "bytes": ("binary", "base64:AAH+/w=="),
        "nothing": ("binary", "base64:"),
    }
    for example in ("data 1", "data 2"):
        told = run_script("broadcast.js", devnet, example)
        check_way_of_a_transaction(told)
        assert by_key(told["entries"]) == written
    told = run_script("broadcast.js", devnet, "data 2 with deletion")
    del written["whole"]
    assert by_key(told["entries"]) == {**written, "kept": ("string", "on")}
    assert {"key": "whole", "value": None} in told["mined"]["data"]


def test_refusals(devnet: str) -> None:
    told = run_script("refusals.js", devnet)
    wanted = {
        "wrong signature": (112, "State check failed. Reason: Proof doesn't validate"),
        "no proofs": (112, "must have exactly 1 proof"),
        "no funds": (112, "negative waves balance"),
        "fee too small": (112, "(99999 in WAVES) does not exceed minimal value of 100000 WAVES."),
        "negative amount": (115, "non-positive amount: -1 of waves"),
        "other network": (404, "Wrong chain-id. Expected - 82, provided - 87"),
        "too old": (303, "is more than 7200000ms in the past"),
        "two equal keys": (199, "Duplicate keys found"),
        "unknown transaction": (311, "transactions does not exist"),
        "unknown key": (304, "no data for this key"),
        "unknown block": (301, "block does not exist"),
        "wrong address": (102, "invalid address"),
    }
    for name, (code, words) in wanted.items():
        assert told[name]["error"] == code, name
        assert words in told[name]["message"], name
    assert set(told) == {*wanted, "unknown status"}
    assert told["unknown status"]["statuses"][0]["status"] == "not_found"


def test_the_signer(services: dict[str, str]) -> None:
    told = run_script("signer.js", services["signer"], services["node"])
    assert told["answer"]["status"] == 200
    answer = json.loads(told["answer"]["text"])
    members = ["type", "version", "senderPublicKey", "fee", "timestamp", "proofs", "id", "data"]
    assert list(answer) == members
    assert [list(entry.items()) for entry in answer["data"]] == [
        [("type", "integer"), ("key", "integerVal"), ("value", 1)],
        [("type", "boolean"), ("key", "booleanVal"), ("value", True)],
        [("type", "string"), ("key", "stringVal"), ("value", "hello")],
        [("type", "binary"), ("key", "binaryVal"), ("value", "base64:AQIDBA==")],
    ]
    assert told["valid"] and told["id"] == answer["id"] == told["mined"]["id"]
    for member in members:
        assert told["mined"][member] == answer[member], member
    assert told["mined"]["applicationStatus"] == "succeeded"
    refused = json.loads(told["no funds"]["text"])
    assert (told["no funds"]["status"], refused["error"], refused["source"]) == (400, 112, "node")
    refused = json.loads(told["too large"]["text"])
    assert (told["too large"]["status"], refused["error"]) == (422, 7003)


def test_who_waits_for_confirmations_gets_them_without_further_transactions() -> None:
    with programs.devnet(heartbeat=0.1) as program:
        told = run_script("confirmations.js", program.node_url, "3")
    assert told["confirmations"] >= 3
    assert told["height"] >= 3 + 3
