"""Nodes that talk to each other over real sockets of this machine, in one event loop.

Each has an address of its own in 127.0.0.0/8, so that limits by address count as on a real network.
"""

from __future__ import annotations

import asyncio
import contextlib
import random
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from soliton.chain.networks import Network
from soliton.chain.transactions.model import AnyTransaction
from soliton.chain.transactions.transfer import Transfer
from soliton.crypto.keys import KeyPair
from soliton.node.network_settings import HostPort
from soliton.node.node import Node, system_clock
from soliton.node.settings import load_settings
from soliton.node.wallet import Wallet
from soliton.p2p.receiving import Work
from soliton.p2p.service import P2pService
from soliton.sync.scores import ScoreSettings
from tests.node import forging
from tests.node.chains import address_of, person, shared_network, signed

PATIENCE_SECONDS = 60.0
T = TypeVar("T")
OWNERS = tuple(person(f"miner {number}") for number in range(4))


def network() -> Network:
    """A chain that all owners may mine on, each block a second or so after the last one."""
    shared = shared_network(*OWNERS)
    now = system_clock()
    genesis = msgspec.structs.replace(
        shared.genesis,
        block_timestamp=now - 3_600_000,
        transaction_timestamp=now - 3_600_000,
    )
    return msgspec.structs.replace(shared, genesis=genesis)


class Peer:
    """A node with its connections."""

    def __init__(self, node: Node, service: P2pService, owner: KeyPair) -> None:
        self.node = node
        self.service = service
        self.owner = owner

    @property
    def where(self) -> HostPort:
        assert self.service.port is not None
        address = self.node.settings.peers.bind_address
        assert address is not None
        return HostPort(address, self.service.port)

    def mine(self, *transactions: AnyTransaction) -> None:
        """A key block, and what is in the pool as a microblock."""
        self.node.mine(self.owner, empty=True)
        for each in transactions:
            self.node.broadcast(each)
        forging.mine_micro(self.node, self.owner)

    def transfer(self, amount: int = 1) -> AnyTransaction:
        payload = Transfer(address_of(OWNERS[0]), None, amount, b"")
        return signed(self.owner, 4, payload, version=2, timestamp=system_clock())

    def tip(self) -> tuple[int, str, str]:
        chain = self.node.chain
        meta = chain.meta(chain.height)
        return chain.height, meta.id.hex(), meta.snapshot_hash.hex()


@contextlib.asynccontextmanager
async def peers(
    directory: Path, count: int, chain: Network | None = None, **overrides: Any
) -> AsyncIterator[list[Peer]]:
    """Nodes that listen, and dial nobody yet."""
    chain = chain or network()
    async with contextlib.AsyncExitStack() as stack:
        found = []
        for number in range(count):
            peer = make(directory / str(number), number, chain, **overrides)
            stack.callback(peer.node.close)
            await peer.service.start()
            stack.push_async_callback(peer.service.stop)
            found.append(peer)
        yield found


def make(directory: Path, number: int, chain: Network, **overrides: Any) -> Peer:
    settings = load_settings(
        network="devnet",
        data_dir=directory,
        overrides={
            "miner.quorum": 0,
            "network.bind-address": f"127.1.{number}.1",
            "network.port": 0,
            "network.node-name": f"node {number}",
            "network.suspension-residence-time": "1s",
            **{key.replace("__", ".").replace("_", "-"): each for key, each in overrides.items()},
        },
    )
    quick = ScoreSettings(quiet=50)
    settings = msgspec.structs.replace(
        settings,
        network=chain,
        synchronization=msgspec.structs.replace(settings.synchronization, scores=quick),
    )
    seed = f"the seed of miner {number}".encode()
    node = Node(settings, Wallet.in_memory(b"nothing", [seed]), durable=False)
    service = P2pService(node, rng=random.Random(number))
    return Peer(node, service, OWNERS[number])


def join(one: Peer, other: Peer) -> None:
    """Let one dial the other."""
    one.service.begin_to_connect(other.where)


async def until(holds: Callable[[], bool], what: str = "what was waited for") -> None:
    """Return when something holds; a test fails that waits too long."""
    try:
        async with asyncio.timeout(PATIENCE_SECONDS):
            while not holds():  # noqa: ASYNC110 - nobody sets an event for a test
                await asyncio.sleep(0.01)
    except TimeoutError:
        raise AssertionError(f"{what} has not come") from None


def agree(*all_peers: Peer) -> bool:
    """Whether all have the same last block and state."""
    return len({peer.tip() for peer in all_peers}) == 1


def done(work: Work[T]) -> T:
    """Do work to its end at once."""
    while True:
        try:
            wanted = next(work)
        except StopIteration as end:
            result: T = end.value
            return result
        if wanted is not None:
            wanted.result()
