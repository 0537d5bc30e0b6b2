"""What is told of a private chain: who did what, and what came of it."""

from __future__ import annotations

import base64
import logging
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from soliton.chain.addresses import address_text, from_public_key
from soliton.chain.transactions import codec, json_reader
from soliton.chain.transactions.invoke_script import TYPE as INVOKE
from soliton.chain.transactions.issue import TYPE as ISSUE
from soliton.chain.transactions.mass_transfer import TYPE as MASS_TRANSFER
from soliton.chain.transactions.model import AnyTransaction, TransactionType
from soliton.chain.transactions.set_script import TYPE as SET_SCRIPT
from soliton.chain.transactions.transfer import TYPE as TRANSFER
from soliton.controls.activity import Activity
from soliton.controls.clock import DevClock
from soliton.controls.control import Controls
from soliton.controls.mining import MANUAL
from soliton.crypto import base58
from soliton.crypto.keys import key_pair
from soliton.errors import InputError
from soliton.node.node import Node
from soliton.node.settings import load_settings
from soliton.node.wallet import Wallet
from soliton.ride.compiler.compile import compile_source
from tests.api.chain import RICH, SEED

ALICE, BOB = (key_pair(f"soliton devnet account {number}") for number in (1, 2))
ALICE_ADDRESS, BOB_ADDRESS = (from_public_key(each.public_key, 82) for each in (ALICE, BOB))
START = 1_795_174_397_440
DAPP = """
{-# STDLIB_VERSION 6 #-}
{-# CONTENT_TYPE DAPP #-}
@Callable(i)
func pay(count: Int, word: String, list: List[Int]) = {
  let hashes = [1, 2, 3, 4, 5, 6, 7, 8, 9, 10]
  func step(sum: Int, each: Int) = if (sigVerify(base58'', base58'', base58'')) then 1 else sum
  if (FOLD<10>(hashes, 0, step) == 0 && count > 1) then throw("too many: " + word)
  else [IntegerEntry("n", count)]
}
"""


class World:
    """A chain and what was told of it."""

    def __init__(self, directory: Path, a_second: int | None = None) -> None:
        self.now = START
        self.steady = 1.0
        config = load_settings(network="devnet", data_dir=directory)
        clock = DevClock(lambda: self.now)
        self.node = Node(config, Wallet.in_memory(SEED.encode()), clock=clock, durable=False)
        self.controls = Controls(self.node, RICH, clock, mode=MANUAL)
        self.controls.mine()
        logger = logging.getLogger("tests.activity")
        logger.setLevel(logging.INFO)
        names = {ALICE_ADDRESS: "alice", BOB_ADDRESS: "bob"}
        more: Any = {"per_second": a_second, "steady": lambda: self.steady}
        Activity(self.controls, logger, names, **more)

    def send(self, keys: Any, kind: TransactionType, fee: int, **members: object) -> AnyTransaction:
        self.now += 1
        given = {
            "type": kind.type_id,
            "version": kind.max_version,
            "chainId": 82,
            "senderPublicKey": base58.encode(keys.public_key),
            "fee": fee,
            "timestamp": self.now,
            "proofs": [],
            **members,
        }
        signed = codec.sign(json_reader.read_signed(given, 82), keys.private_key)
        self.node.broadcast(signed)
        return signed


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    world = World(tmp_path)
    yield world
    world.node.close()


def told(caplog: pytest.LogCaptureFixture) -> list[str]:
    found = [each.getMessage() for each in caplog.records if each.name == "tests.activity"]
    caplog.clear()
    return found


def test_transactions_in_sentences(world: World, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "tests.activity")
    bob = address_text(BOB_ADDRESS)
    sent = world.send(ALICE, TRANSFER, 100_000, recipient=bob, amount=150_000_000)
    name = base58.encode(sent.id)
    sentence = f"alice: transfer of 1.5 WAVES to bob, fee 0.001 WAVES, id {name}"
    assert told(caplog) == [f"waits: {sentence}"]
    block = world.controls.mine()
    assert told(caplog) == [
        f"block 3 {base58.encode(block.id)} with 1 transaction",
        f"  {sentence}",
        "a block was mined by hand",
    ]
    gold = world.send(
        ALICE, ISSUE, 10**8, name="Gold", description="", quantity=12_345, decimals=2,
        reissuable=True,
    )  # fmt: skip
    world.controls.mine()
    asset = base58.encode(gold.id)
    assert f"  alice: issue of 123.45 Gold, fee 1 WAVES, id {asset}" in told(caplog)
    lines = [{"recipient": bob, "amount": 5}, {"recipient": bob, "amount": 7}]
    world.send(ALICE, MASS_TRANSFER, 200_000, assetId=asset, transfers=lines, attachment="")
    assert "alice: mass transfer of 0.12 Gold to 2 accounts, fee 0.002" in told(caplog)[0]


def test_refusals_have_their_reason(world: World, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "tests.activity")
    with pytest.raises(InputError):
        world.send(ALICE, TRANSFER, 1, recipient=address_text(BOB_ADDRESS), amount=1)
    (sentence,) = told(caplog)
    assert sentence.startswith("refused: alice: transfer of 0.00000001 WAVES to bob, fee 0.0000000")
    assert "does not exceed minimal value of 100000" in sentence


def test_calls_tell_what_came_of_them(world: World, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "tests.activity")
    script = base64.b64encode(compile_source(DAPP).script.source).decode()
    world.send(BOB, SET_SCRIPT, 10**8, script=f"base64:{script}")
    world.controls.mine()
    told(caplog)

    def call(count: int) -> dict[str, object]:
        values = [
            {"type": "integer", "value": count},
            {"type": "string", "value": "x"},
            {"type": "list", "value": [{"type": "integer", "value": 4}]},
        ]
        dapp = address_text(BOB_ADDRESS)
        return {"dApp": dapp, "call": {"function": "pay", "args": values}, "payment": []}

    world.send(ALICE, INVOKE, 500_000, **call(1))
    world.controls.mine()
    done = told(caplog)[2]
    assert done.startswith('  alice: calls pay(1, "x", [4]) of bob, fee 0.005 WAVES, id ')
    assert ", complexity " in done and "FAILED" not in done
    # A client's call that fails is refused; one that was good when it came may fail in its block.
    with pytest.raises(InputError):
        world.send(ALICE, INVOKE, 500_000, **call(2))
    assert told(caplog)[0].endswith("too many: x")


def test_what_is_done_by_hand_is_told(world: World, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "tests.activity")
    number = world.controls.snapshot()
    world.controls.mine(2)
    assert world.controls.revert(number)
    first = base58.encode(world.controls.chain.last_block.id)
    assert told(caplog) == [
        "snapshot 0x1 at height 2",
        "2 blocks were mined by hand",
        f"back to height 2, block {first}",
        "reverted to snapshot 0x1, height 2",
    ]


def test_a_crowd_is_counted_and_each_second_has_room_again(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    world = World(tmp_path, a_second=3)
    caplog.set_level(logging.INFO)
    try:
        for _ in range(10):
            world.send(RICH, TRANSFER, 100_000, recipient=address_text(ALICE_ADDRESS), amount=1)
        lines = told(caplog)
        assert len(lines) == 3 and all(line.startswith("waits: ") for line in lines)
        world.controls.mine()
        assert told(caplog) == ["a block was mined by hand"]
        world.steady += 1.5
        world.send(RICH, TRANSFER, 100_000, recipient=address_text(ALICE_ADDRESS), amount=1)
        counted, line = told(caplog)
        # Seven that wait and the block.
        assert counted == "and 8 more, too many to log"
        assert line.startswith("waits: ")
        # An empty block has its second, too.
        for _ in range(4):
            world.send(RICH, TRANSFER, 100_000, recipient=address_text(ALICE_ADDRESS), amount=1)
        told(caplog)
        world.steady += 1
        world.controls.mine()
        assert told(caplog)[0] == "and 2 more, too many to log"
    finally:
        world.node.close()
