"""What peers cost: ``python benchmarks/relay.py``.

Transactions that a client sends, until all of 8 neighbours have them; 1,000 transactions in
microblocks, of which none may have more than 255, until they are on the chain, when the pool has
them, as it mostly does, and when it has not; and 100 peers that are connected and say nothing. The
neighbours are sockets of this process that speak the protocol.
"""

from __future__ import annotations

import asyncio
import http.client
import ipaddress
import json
import re
import tempfile
import time
from pathlib import Path
from statistics import median

import msgspec
from _devnet import cpu_seconds
from sync import Running

from soliton.chain import networks
from soliton.chain.addresses import from_public_key
from soliton.chain.transactions import codec
from soliton.chain.transactions.model import AnyTransaction
from soliton.chain.transactions.table import type_by_id
from soliton.chain.transactions.transfer import Transfer
from soliton.crypto.keys import key_pair
from soliton.devnet.accounts import RICH_SEED
from soliton.node.node import system_clock
from soliton.node.settings import load_settings
from soliton.node.wallet import Wallet
from soliton.p2p.jobs import own_microblock
from soliton.p2p.receiving import Receiver, Verdict
from soliton.simulation.host import SimulatedNode
from soliton.wire import handshake
from soliton.wire.connection import Connection, HandshakeReceived, MessageReceived
from soliton.wire.handshake import Handshake
from soliton.wire.messages import ProtobufTransaction
from soliton.wire.versions import ANNOUNCED

NEIGHBOURS, IDLE, TRANSACTIONS = 8, 100, 200
MICROBLOCKS, IN_MICROBLOCK = 4, 250
WATCH_SECONDS = 30.0
BAR_RELAY_MS, BAR_MICROBLOCK_MS, BAR_IDLE_PERCENT, BAR_IDLE_MB = 5.0, 100.0, 1.0, 10.0
RICH = key_pair(RICH_SEED)
DEVNET = networks.load("devnet")
CONFIGURATION = """
waves {
  blockchain { type = "devnet" }
  directory = "%s"
  miner.enable = no
  network { bind-address = "127.0.0.1", port = 0, known-peers = [], max-inbound-connections = 200
            max-single-host-connections = 200 }
  rest-api { port = 0, minimum-peers = 0 }
  wallet { file = "", seed = "4vJ9" }
}
"""


def transfer(number: int) -> AnyTransaction:
    """A signed one, another one for each number."""
    draft = codec.build(
        type_by_id(4),
        Transfer(from_public_key(RICH.public_key, DEVNET.chain_id), None, number + 1, b""),
        version=3,
        chain_id=DEVNET.chain_id,
        fee=100_000,
        timestamp=system_clock() + number,
        sender_public_key=RICH.public_key,
    )
    return codec.sign(draft, RICH.private_key)


class Neighbour(asyncio.Protocol):
    """A peer that listens."""

    def __init__(self, nonce: int) -> None:
        """``nonce`` tells it from others."""
        version = ANNOUNCED["waves"]
        own = Handshake("wavesR", version, f"peer {nonce}", nonce, None, int(time.time()))
        self._own = own
        self._connection = Connection(own, "waves", DEVNET.chain_id)
        self.is_met = asyncio.Event()
        self.seen: dict[bytes, float] = {}

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Say hello."""
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport
        transport.write(self._connection.introduce())

    def data_received(self, data: bytes) -> None:
        """Note when which transaction came."""
        now = time.perf_counter()
        for event in self._connection.receive(data):
            match event:
                case HandshakeReceived():
                    self.is_met.set()
                case MessageReceived(message=ProtobufTransaction(data=found)):
                    self.seen[codec.decode_protobuf(found, DEVNET.chain_id).id] = now


async def connected(port: int, count: int, first: int) -> list[Neighbour]:
    """So many neighbours, each from an address of its own."""
    loop = asyncio.get_running_loop()
    found = []
    for number in range(first, first + count):
        source = str(ipaddress.IPv4Address(0x7F020001 + number))
        _, each = await loop.create_connection(
            lambda number=number: Neighbour(number + 1),  # type: ignore[misc]
            "127.0.0.1",
            port,
            local_addr=(source, 0),
        )
        await each.is_met.wait()
        found.append(each)
    return found


def post(url: str, transaction: AnyTransaction) -> float:
    """Send a transaction; when the answer was there."""
    connection = http.client.HTTPConnection(url.removeprefix("http://"))
    body = json.dumps(codec.to_json(transaction))
    connection.request(
        "POST", "/transactions/broadcast", body, {"Content-Type": "application/json"}
    )
    answer = connection.getresponse()
    text = answer.read()
    if answer.status != 200:
        raise SystemExit(f"refused: {text!r}")
    connection.close()
    return time.perf_counter()


async def relay(node: Running) -> None:
    """How long a transaction is on its way to all neighbours."""
    neighbours = await connected(int(node.peer_port), NEIGHBOURS, 0)
    delays = []
    for number in range(TRANSACTIONS):
        sent = transfer(number)
        accepted = await asyncio.to_thread(post, node.url, sent)
        while not all(sent.id in each.seen for each in neighbours):  # noqa: ASYNC110 - nobody tells
            await asyncio.sleep(0.0005)
        delays.append(1_000 * (max(each.seen[sent.id] for each in neighbours) - accepted))
    delays.sort()
    late = delays[len(delays) * 99 // 100]
    print(
        f"relay: with {NEIGHBOURS} neighbours {median(delays):.2f} ms after the client has its "
        f"answer (median, p99 {late:.2f} ms; below 0: before it; bar {BAR_RELAY_MS:g} ms)"
    )
    for each in neighbours:
        each.transport.abort()


async def idle(node: Running) -> None:
    """What silent peers cost."""
    pid = node.process.pid
    await asyncio.sleep(2)
    before, memory = cpu_seconds(pid), megabytes(pid)
    await asyncio.sleep(WATCH_SECONDS)
    alone = cpu_seconds(pid) - before
    peers = await connected(int(node.peer_port), IDLE, NEIGHBOURS)
    await asyncio.sleep(2)
    before = cpu_seconds(pid)
    await asyncio.sleep(WATCH_SECONDS)
    percent = 100 * (cpu_seconds(pid) - before - alone) / WATCH_SECONDS
    print(
        f"idle: {IDLE} peers take {percent:.2f} % of a core (bar {BAR_IDLE_PERCENT:g} %) and "
        f"{megabytes(pid) - memory:.1f} MB (bar {BAR_IDLE_MB:g} MB); without them "
        f"{100 * alone / WATCH_SECONDS:.2f} %"
    )
    for each in peers:
        each.transport.abort()


def megabytes(pid: int) -> float:
    """Memory of a process now."""
    found = re.search(r"VmRSS:\s+(\d+) kB", Path(f"/proc/{pid}/status").read_text())
    return int(found[1]) / 1_024 if found else 0.0


def node_in(directory: Path) -> SimulatedNode:
    """A node of this process."""
    settings = load_settings(network="devnet", data_dir=directory)
    miner = msgspec.structs.replace(settings.miner, max_transactions_in_micro_block=IN_MICROBLOCK)
    settings = msgspec.structs.replace(settings, miner=miner)
    return SimulatedNode(settings, Wallet.in_memory(RICH_SEED.encode()), durable=False)


def microblock(place: Path, *, known: bool) -> None:
    """CPU that full microblocks take, of transactions that the pool knows or does not."""
    maker, taker = node_in(place / "maker"), node_in(place / "taker")
    receiver = Receiver(taker, taker.clock)
    took = []
    try:
        for turn in range(5):
            maker.mine(RICH, empty=True)
            key = maker.chain.last_block
            for _ in receiver.block(key.data):
                pass
            assert taker.chain.last_block.id == key.id, "the key block is refused"
            spent, reference = 0.0, key.id
            for part in range(MICROBLOCKS):
                for number in range(IN_MICROBLOCK):
                    sent = transfer((turn * MICROBLOCKS + part) * IN_MICROBLOCK + number)
                    maker.broadcast(sent)
                    if known:
                        taker.broadcast(sent)
                added = maker.mine_micro(RICH)
                total = maker.chain.last_block
                message = own_microblock(total, reference, added, RICH.private_key)
                since = time.process_time()
                _, outcome = receiver.microblock(message.data)
                spent += 1_000 * (time.process_time() - since)
                assert outcome.verdict is Verdict.APPLIED, outcome.reason
                assert added == IN_MICROBLOCK, added
                reference = total.id
            took.append(spent)
    finally:
        receiver.close()
        maker.close()
        taker.close()
    of = "of the pool" if known else "that nobody has sent before"
    print(
        f"{MICROBLOCKS} microblocks: {MICROBLOCKS * added} transactions {of} are on the chain "
        f"after {median(took):.0f} ms of CPU (bar {BAR_MICROBLOCK_MS:g} ms)"
    )


def main() -> None:
    """All three."""
    assert handshake.MAX_BYTES
    with tempfile.TemporaryDirectory() as directory:
        place = Path(directory)
        config = place / "node.conf"
        config.write_text(CONFIGURATION % (place / "node"))
        node = Running(config)
        try:
            asyncio.run(relay(node))
            asyncio.run(idle(node))
        finally:
            node.stop()
        microblock(place / "known", known=True)
        microblock(place / "new", known=False)


if __name__ == "__main__":
    main()
