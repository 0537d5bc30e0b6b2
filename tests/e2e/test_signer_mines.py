"""A node whose keys are in a signer: it mines and signs for its clients, and never signs twice.

What lives here: both programs as users start them, the signer killed again and again. What does
not: single requests (``tests.signer.test_generating``).
"""

from __future__ import annotations

import contextlib
import json
import os
import random
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest

from soliton.chain.addresses import address_text, from_public_key
from soliton.crypto import base58
from soliton.crypto.hashes import secure_hash
from soliton.node.rest_settings import api_key_hash_text
from soliton.signer.policy_file import policy_hash
from soliton.signer.records import Entry, MarkKind
from tests.e2e.programs import Program, started
from tests.ports import free_port
from tests.signer.kept import HOT, KEYS, PASSWORD, Place, entries

IS_LONG: Final = os.environ.get("SOLITON_TESTS") == "long"
BLOCKS: Final = int(os.environ.get("SOLITON_SIGNER_BLOCKS", "1000" if IS_LONG else "5"))
KILLS: Final = 20 if IS_LONG else 1
CHAIN: Final = ord("R")
API_KEY: Final = "the node's API key"
TOTAL: Final = 10_000_000_000_000_000
RULES: Final = """
[[rule]]
name = "blocks"
signs = ["block", "microblock"]
keys = ["hot"]
callers = ["bot"]

[[rule]]
name = "transfers"
signs = ["transfer", "order", "text"]
keys = ["hot"]
callers = ["bot"]
recipients = "any"
amounts = { WAVES = 1000 }
fees = { WAVES = 10_000_000 }
pairs = "any"
matchers = "any"
unbound-chain = true
"""


def address() -> str:
    return address_text(from_public_key(HOT.public_key, CHAIN))


def config(place: Place, signer_port: int, block_ms: int) -> str:
    """The settings of both: a chain of its own, whose one account is the signer's."""
    now = int(time.time() * 1_000)
    custom = {
        "address-scheme-character": "R",
        "functionality": {
            "min-block-time": f"{block_ms}ms",
            "delay-delta": 0,
            "generation-balance-depth-from-50-to-1000-after-height": 0,
            "block-version-3-after-height": 0,
            "light-node-block-fields-absence-interval": 0,
            "pre-activated-features": {
                str(each): -5 if each == 7 else 0 for each in (*range(1, 18), 22)
            },
        },
        "genesis": {
            "average-block-delay": f"{block_ms}ms",
            "initial-base-target": 100_000,
            "timestamp": now,
            "block-timestamp": now,
            "initial-balance": TOTAL,
            "transactions": [{"recipient": address(), "amount": TOTAL}],
        },
    }
    key_file = place.directory / "bot.key"
    key_file.touch(0o600)
    key_file.write_text(KEYS["bot"])
    return f"""soliton {{
  directory = "{place.directory / "node"}"
  blockchain {{ type = CUSTOM, custom = {json.dumps(custom)} }}
  wallet {{ signer = "http://127.0.0.1:{signer_port}", signer-key-file = "{key_file}" }}
  miner {{ quorum = 0, micro-block-interval = 100ms }}
  rest-api {{ port = 0, api-key-hash = "{api_key_hash_text(API_KEY)}" }}
  signer {{
    port = {signer_port}
    keys-directory = "{place.keys}"
    policy-file = "{place.rules}"
    policy-hash = "{policy_hash(place.rules.read_bytes())}"
    state-directory = "{place.state}"
    callers = [{{ name = bot, key-hash = "{base58.encode(secure_hash(KEYS["bot"].encode()))}",
                 may = [sign, list, unlock] }}]
  }}
}}
"""


def ask(url: str, path: str, body: object = None, **headers: str) -> tuple[int, Any]:
    """Status and answer; raises ``OSError`` where none comes."""
    data = None
    if body is not None:
        data = body.encode() if isinstance(body, str) else json.dumps(body).encode()
    lines = {"X-API-Key": API_KEY, "Content-Type": "application/json", **headers}
    request = urllib.request.Request(url + path, data, lines)
    try:
        with urllib.request.urlopen(request, timeout=60) as answer:
            return answer.status, json.loads(answer.read())
    except urllib.error.HTTPError as error:
        with error:
            return error.code, json.loads(error.read())


class Signer:
    """The program, started again after each kill, and unlocked."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self.start()

    def start(self) -> None:
        self.program = Program(["signer", "--config", self._path], {})
        self.program.wait_for("signer on http://")
        body = {"password": PASSWORD}
        status, told = ask(
            self.program.signer_url, "/keys/unlock", body, **{"X-API-Key": KEYS["bot"]}
        )
        assert status == 200, told

    def kill(self) -> None:
        self.program.kill()
        self.program.close()


@contextlib.contextmanager
def both(tmp_path: Path, block_ms: int) -> Iterator[tuple[Place, Signer, Program]]:
    place = Place(tmp_path, RULES)
    path = tmp_path / "both.conf"
    path.write_text(config(place, free_port(), block_ms))
    signer = Signer(path)
    try:
        with started("run", "--config", path, until="REST API on") as node:
            yield place, signer, node
    finally:
        signer.program.close()


def height_of(url: str) -> int:
    return int(ask(url, "/blocks/height")[1]["height"])


def reaches(url: str, height: int) -> None:
    limit = time.monotonic() + 120
    while (at := height_of(url)) < height:
        assert time.monotonic() < limit, f"the chain stays at {at}"
        time.sleep(0.05)


def sent(url: str, amount: int) -> tuple[int, Any]:
    """A transfer that the node has signed by its wallet, and sends."""
    transfer = {"type": 4, "version": 3, "sender": address(), "recipient": address()}
    status, made = ask(url, "/transactions/sign", {**transfer, "amount": amount, "fee": 100_000})
    return ask(url, "/transactions/broadcast", made) if status == 200 else (status, made)


def marked(place: Place, kind: MarkKind) -> list[Entry]:
    return [it for it in entries(place) if it.mark is not None and it.mark.kind is kind]


def never_twice(place: Place, url: str) -> None:
    """No two blocks of a parent or a height, no two microblocks of a form; and all that is on the
    chain was signed here.
    """
    # Read first: the chain goes on growing.
    top = height_of(url)
    made = [it.mark for it in marked(place, MarkKind.BLOCK) if it.mark is not None]
    assert len({it.parent for it in made}) == len({it.height for it in made}) == len(made)
    forms = [it.mark.form for it in marked(place, MarkKind.MICROBLOCK) if it.mark is not None]
    assert len(set(forms)) == len(forms)
    known = {it.form for it in made} | set(forms)
    parents = {it.parent for it in made}
    for start in range(2, top, 90):
        end = min(start + 89, top - 1)
        for header in ask(url, f"/blocks/headers/seq/{start}/{end}")[1]:
            assert header["id"] in known
            assert header["reference"] in parents


@pytest.mark.slow
def test_a_miner_whose_signer_is_killed_signs_no_block_twice(tmp_path: Path) -> None:
    chance = random.Random(19)
    with both(tmp_path, 300) as (place, signer, node):
        url, stopped, statuses = node.node_url, threading.Event(), set[int]()

        def spend() -> None:
            amount = 0
            while not stopped.wait(0.1):
                amount = amount % 900 + 1
                statuses.add(sent(url, amount)[0])

        spending = threading.Thread(target=spend)
        spending.start()
        try:
            for number in range(KILLS):
                reaches(url, 1 + (number + 1) * BLOCKS // (KILLS + 1))
                time.sleep(chance.random() * 0.3)
                signer.kill()
                signer.start()
            reaches(url, BLOCKS + 1)
        finally:
            stopped.set()
            spending.join()
        never_twice(place, url)
        assert len(marked(place, MarkKind.BLOCK)) >= BLOCKS
        assert 200 in statuses
        # On a busy machine there may be no time for one between two blocks that are so quick.
        assert marked(place, MarkKind.MICROBLOCK) or not IS_LONG
        assert not (tmp_path / "node" / "wallet").exists()
        print(
            f"{height_of(url) - 1} blocks, {len(marked(place, MarkKind.MICROBLOCK))} microblocks, "
            f"{KILLS} kills"
        )
