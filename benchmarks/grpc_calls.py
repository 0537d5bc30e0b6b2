"""gRPC of a node on the first 10,000 mainnet blocks: calls a second of the serving process' CPU,
and the pace of a subscriber's history; the same of a chain of full blocks.

Run ``.venv/bin/python benchmarks/grpc_calls.py [FILE]``; FILE holds ``u32 length ‖ block`` records
from height 2 on.
"""

from __future__ import annotations

import asyncio
import os
import sys
import tempfile
import time
from collections.abc import Awaitable
from pathlib import Path
from typing import Any

import msgspec
from grpc import aio

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from soliton.chain import networks
from soliton.chain.addresses import from_public_key
from soliton.chain.transactions import transfer
from soliton.cli.grpc_server import GrpcService
from soliton.grpc_api.proto import accounts_api_pb2, blockchain_updates_pb2, blocks_api_pb2
from soliton.node.chain_writer import ChainWriter
from soliton.node.grpc_settings import GrpcSettings
from soliton.node.importer import import_blocks
from soliton.node.node import Node
from soliton.node.settings import load_settings
from soliton.node.wallet import Wallet
from soliton.storage.store import Store
from tests.grpc_api.test_process import a_chain
from tests.node.chains import address_of, person

_SHARED = Path(os.environ.get("SOLITON_SHARED", Path(__file__).resolve().parents[2] / "shared"))
DEFAULT_FILE = _SHARED / "data" / "waves-mainnet-blocks-2-10000.bin"
CALLS = 3_000
FULL_BLOCKS = 4
FULL_BLOCK = 5_000
AT_A_TIME = 32
TICKS = os.sysconf("SC_CLK_TCK")
BLOCK = "/waves.node.grpc.BlocksApi/GetBlock"
BALANCES = "/waves.node.grpc.AccountsApi/GetBalances"
SUBSCRIBE = "/waves.events.grpc.BlockchainUpdatesApi/Subscribe"


def cpu_of(process_id: int) -> float:
    """CPU seconds that a process has taken."""
    fields = Path(f"/proc/{process_id}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / TICKS


async def calls(channel: aio.Channel, path: str, requests: list[bytes], *, stream: bool) -> None:
    """Make all calls, some at a time."""
    waiting = iter(requests)

    async def some() -> None:
        call: Any = (channel.unary_stream if stream else channel.unary_unary)(path)
        for request in waiting:
            if stream:
                async for _ in call(request):
                    pass
            else:
                await call(request)

    await asyncio.gather(*(some() for _ in range(AT_A_TIME)))


async def measured(name: str, process_id: int, work: Awaitable[None], count: int) -> None:
    """Print how much of it is done a second."""
    cpu, wall = cpu_of(process_id), time.perf_counter()
    await work
    cpu, wall = cpu_of(process_id) - cpu, time.perf_counter() - wall
    print(f"{name:32} {count / cpu:9,.0f}/s of its CPU   {count / wall:9,.0f}/s of the clock")


async def full_blocks(directory: Path) -> None:
    """The pace of the history of a chain whose blocks are full."""
    chain = a_chain(directory, updates_port=0)
    people = [address_of(person(name)) for name in "abcdefghij"]
    for number in range(FULL_BLOCKS * FULL_BLOCK):
        payload = transfer.Transfer(people[number % len(people)], None, 1 + number, b"")
        chain.node.broadcast(chain.sign(transfer.TYPE, payload, 3))
        if number % FULL_BLOCK == FULL_BLOCK - 1:
            chain.mine()
    # A stream that ends with the last block would wait for the next one.
    service, last = GrpcService(chain.node), chain.node.chain.height - 1
    found = [len(chain.node.chain.block_at(height).transactions) for height in range(1, last + 1)]
    await service.start()
    channel = aio.insecure_channel(
        f"127.0.0.1:{service.settings.updates_port}",
        options=(("grpc.max_receive_message_length", -1),),
    )
    try:
        [process_id] = service.process_ids()
        for _ in range(2):
            work = history(channel, last)
            await measured("Subscribe, transactions", process_id, work, sum(found))
    finally:
        await channel.close()
        await service.stop()
        chain.node.close()


async def history(channel: aio.Channel, last: int) -> None:
    """All blocks as updates."""
    request = blockchain_updates_pb2.SubscribeRequest(from_height=1, to_height=last)
    stream: Any = channel.unary_stream(SUBSCRIBE)(request.SerializeToString())
    count = 0
    async for _ in stream:
        count += 1
    assert count == last


async def serve(node: Node, addresses: list[bytes]) -> None:
    """Serve a node's chain in a process beside, and ask it."""
    service = GrpcService(node)
    await service.start()
    [process_id] = service.process_ids()
    height = node.chain.height
    options = (("grpc.max_receive_message_length", -1),)
    nodes = aio.insecure_channel(f"127.0.0.1:{service.settings.port}", options=options)
    updates = aio.insecure_channel(f"127.0.0.1:{service.settings.updates_port}", options=options)
    try:
        blocks = [
            blocks_api_pb2.BlockRequest(height=1 + number % height, include_transactions=True)
            for number in range(CALLS)
        ]
        found = [each.SerializeToString() for each in blocks]
        await measured("GetBlock", process_id, calls(nodes, BLOCK, found, stream=False), CALLS)
        accounts = [
            accounts_api_pb2.BalancesRequest(address=addresses[number % len(addresses)])
            for number in range(CALLS)
        ]
        found = [each.SerializeToString() for each in accounts]
        await measured("GetBalances", process_id, calls(nodes, BALANCES, found, stream=True), CALLS)
        last = height - 1
        await measured("Subscribe, blocks", process_id, history(updates, last), last)
    finally:
        await nodes.close()
        await updates.close()
        await service.stop()


def main() -> None:
    """Import the chain, and serve it."""
    path = Path(sys.argv[1]) if len(sys.argv) > 1 else DEFAULT_FILE
    if not path.exists():
        print(f"grpc: skipped, {path} is not here")
        return
    network = networks.load("waves-mainnet")
    with tempfile.TemporaryDirectory() as directory:
        settings = load_settings(network="waves-mainnet", data_dir=Path(directory))
        store = Store(settings.data_directory, network.name, durable=False)
        chain = ChainWriter(network, store)
        with path.open("rb") as file:
            import_blocks(chain, file)
        addresses = {
            bytes(from_public_key(chain.meta(height).generator, network.chain_id))
            for height in range(1, chain.height, 10)
        }
        store.close()
        grpc = GrpcSettings(port=0, updates_host="127.0.0.1", updates_port=0)
        settings = msgspec.structs.replace(settings, grpc=grpc)
        node = Node(settings, Wallet.open(None, None), durable=False)
        try:
            asyncio.run(serve(node, sorted(addresses)))
        finally:
            node.close()
    with tempfile.TemporaryDirectory() as directory:
        asyncio.run(full_blocks(Path(directory)))


if __name__ == "__main__":
    main()
