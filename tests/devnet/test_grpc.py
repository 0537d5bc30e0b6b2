"""``soliton devnet`` with gRPC: the node's services and the stream of updates."""

from __future__ import annotations

import json
import re
import signal
import threading
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import grpc
import pytest

from soliton.crypto import base58
from soliton.devnet.accounts import funded_accounts
from soliton.grpc_api.proto.accounts_api_pb2 import BalanceResponse, BalancesRequest
from soliton.grpc_api.proto.blockchain_updates_pb2 import SubscribeEvent, SubscribeRequest
from soliton.grpc_api.proto.blocks_api_pb2 import BlockRequest, BlockWithHeight
from tests.e2e.programs import (
    Program,
    call,
    devnet,
    eventually,
    height,
    is_free,
    is_mined,
    run,
    signed_transfer,
)
from tests.ports import free_port

RICH = "3M4qwDomRabJKLZxuXhwfqLApQkU592nWxF"
FIRST = funded_accounts(ord("R"))[0]
COIN = 10**8
OPTIONS = ("--grpc-port", 0, "--grpc-updates-port", 0)
SECONDS = 30

pytestmark = pytest.mark.slow


def described(path: Path) -> Any:
    return json.loads(path.read_text())


class Updates:
    """A subscription to a devnet's updates, read in a thread."""

    def __init__(self, address: str) -> None:
        self.found: list[Any] = []
        self._channel = grpc.insecure_channel(address)
        self._call = self._channel.unary_stream(
            "/waves.events.grpc.BlockchainUpdatesApi/Subscribe",
            SubscribeRequest.SerializeToString,
            SubscribeEvent.FromString,
        )(SubscribeRequest(from_height=1))
        self._thread = threading.Thread(target=self._read, daemon=True)
        self._thread.start()

    def _read(self) -> None:
        try:
            for each in self._call:
                self.found.append(each.update)
        except grpc.RpcError:
            pass

    def has(self, matches: Callable[[Any], bool]) -> None:
        eventually(lambda: any(map(matches, list(self.found))), "the update")

    def close(self) -> None:
        self._call.cancel()
        self._channel.close()
        self._thread.join(SECONDS)


@pytest.fixture
def updates(tmp_path: Path) -> Iterator[tuple[Program, Any, Updates]]:
    config = tmp_path / "devnet.json"
    with devnet(*OPTIONS, "--config-out", config) as program:
        addresses = described(config)
        made = Updates(addresses["grpcUpdates"])
        try:
            yield program, addresses, made
        finally:
            made.close()


def pay(url: str, amount: int) -> None:
    signed = signed_transfer(url, RICH, FIRST.address, amount)
    name = call(f"{url}/transactions/broadcast", signed).json()["id"]
    eventually(lambda: is_mined(url, name), "the transfer in a block")


def coins(address: str) -> int:
    with grpc.insecure_channel(address) as channel:
        ask = channel.unary_stream(
            "/waves.node.grpc.AccountsApi/GetBalances",
            BalancesRequest.SerializeToString,
            BalanceResponse.FromString,
        )
        request = BalancesRequest(address=base58.decode(FIRST.address), assets=[b""])
        [found] = ask(request, timeout=SECONDS)
    regular: int = found.waves.regular
    return regular


def block_id(address: str, at: int) -> str:
    with grpc.insecure_channel(address) as channel:
        ask = channel.unary_unary(
            "/waves.node.grpc.BlocksApi/GetBlock",
            BlockRequest.SerializeToString,
            BlockWithHeight.FromString,
        )
        header = ask(BlockRequest(height=at + 1), timeout=SECONDS).block.header
    return base58.encode(header.reference)


def test_services_and_updates_follow_the_chain(updates: tuple[Program, Any, Updates]) -> None:
    program, addresses, stream = updates
    url, node = program.node_url, addresses["grpc"]
    assert f"gRPC          {node}" in program.output
    assert f"gRPC updates  {addresses['grpcUpdates']}" in program.output
    before, top = coins(node), height(url)
    snapshot = call(f"{url}/devnet/snapshots", "").json()["id"]
    pay(url, 5 * COIN)
    assert coins(node) == before + 5 * COIN
    assert block_id(node, top) == call(f"{url}/blocks/at/{top}").json()["id"]
    stream.has(lambda each: each.height == top + 1 and each.HasField("append"))
    assert call(f"{url}/devnet/snapshots/{snapshot}/revert", "").status == 200
    stream.has(lambda each: each.height == top and each.HasField("rollback"))
    assert coins(node) == before
    pay(url, COIN)
    assert coins(node) == before + COIN


def test_a_reset_and_a_loaded_chain_are_served(updates: tuple[Program, Any, Updates]) -> None:
    program, addresses, stream = updates
    url, node = program.node_url, addresses["grpc"]
    before = coins(node)
    pay(url, COIN)
    state = call(f"{url}/devnet/state").body
    top = height(url)
    assert call(f"{url}/devnet/reset", "").status == 200
    stream.has(lambda each: each.HasField("rollback"))
    eventually(lambda: coins(node) == before, "the balance at the start")
    loaded = urllib.request.Request(f"{url}/devnet/state", state, method="POST")
    with urllib.request.urlopen(loaded, timeout=SECONDS) as answer:
        assert answer.status == 200
    eventually(lambda: coins(node) == before + COIN, "the loaded balance")
    assert height(url) == top
    pay(url, COIN)
    assert coins(node) == before + 2 * COIN
    stream.has(lambda each: each.height == top + 1 and each.HasField("append"))


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_it_ends_with_the_devnet(number: signal.Signals) -> None:
    port = free_port()
    with devnet("--grpc-port", port) as program:
        assert "gRPC updates" not in program.output
        assert coins(f"127.0.0.1:{port}")
        program.send(number)
        program.wait()
    eventually(lambda: is_free(port), "the end of the gRPC process")


def test_combinations_that_are_refused() -> None:
    for options in (("--nodes", 2), ("--fork", "http://127.0.0.1:1")):
        for name in ("--grpc-port", "--grpc-updates-port"):
            ended = run("devnet", *options, name, 0)
            assert ended.returncode != 0
            assert re.search(rf"{options[0]} .*{name}", ended.stderr), ended.stderr
