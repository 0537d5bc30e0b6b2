"""The invariants that must hold after each simulation, whatever faults were injected.

What lives here: the checks. What does not: running the simulation until it settles (``world``).
"""

from __future__ import annotations

import tempfile
from collections.abc import Collection, Iterator, Sequence
from pathlib import Path
from typing import Final, Protocol

from soliton.errors import SolitonError
from soliton.node.chain_writer import ChainWriter
from soliton.p2p.jobs import MAX_JOBS
from soliton.simulation.host import Host
from soliton.simulation.links import Links
from soliton.simulation.loop import Loop
from soliton.simulation.plan import Plan
from soliton.storage.store import Store

UNSETTLED: Final = 3
"""The last blocks, about which honest hosts may still differ."""
MAX_HELD: Final = 20_000
"""Limit of the items held for peers: queues of transactions and jobs, addresses, alarms."""
MAX_IN_FLIGHT: Final = 33 * 1024 * 1024


class FinishedWorld(Protocol):
    """A finished simulation."""

    @property
    def plan(self) -> Plan:
        """The plan of the simulation."""

    @property
    def loop(self) -> Loop:
        """The event loop."""

    @property
    def links(self) -> Links:
        """The network."""

    @property
    def honest(self) -> list[Host]:
        """The hosts that follow the rules."""

    @property
    def invalid(self) -> Collection[bytes]:
        """Ids of blocks that no honest host may accept."""


def agree(hosts: Sequence[Host]) -> bool:
    """Whether the hosts have the same chain and state, except for the last few blocks."""
    heights = [each.node.chain.height for each in hosts]
    if max(heights) - min(heights) > UNSETTLED:
        return False
    height = max(1, min(heights) - UNSETTLED)
    metas = [each.node.chain.meta(height) for each in hosts]
    return len({(each.id, each.state_hash, each.snapshot_hash) for each in metas}) == 1


def faults_of(world: FinishedWorld, agreed: float | None) -> Iterator[str]:
    """Yield all violated invariants."""
    honest = world.honest
    if agreed is None:
        tips = ", ".join(
            f"{each.name} at {each.node.chain.height}" for each in honest if each.alive
        )
        yield f"honest hosts do not agree after {world.plan.patience} s: {tips}"
    for host in honest:
        yield from _bans(world, host)
        yield from _memory(host)
        chain = host.node.chain
        for block_id in world.invalid:
            if (height := chain.height_of(block_id)) is not None:
                yield f"{host.name} has the invalid block {block_id.hex()} at height {height}"
    if world.links.most_in_flight > MAX_IN_FLIGHT:
        yield f"{world.links.most_in_flight} bytes waited for one reader"
    by_tip = {each.node.chain.last_block.id: each for each in honest}
    for host in by_tip.values():
        yield from _replay(host)


def _bans(world: FinishedWorld, host: Host) -> Iterator[str]:
    """No honest host may be blacklisted by another at the end."""
    others = {each.address.ip: each.name for each in world.honest if each is not host}
    for ip, why in host.core.book.blacklisted(world.loop.now).items():
        if ip in others:
            yield f"{host.name} refuses honest {others[ip]}: {why.reason}"


def _memory(host: Host) -> Iterator[str]:
    if host.held() > MAX_HELD:
        yield f"{host.name} holds {host.held()} things of peers"
    if host.jobs.waiting > MAX_JOBS + host.place.settings.synchronization.relay.queue:
        yield f"{host.name} has {host.jobs.waiting} jobs waiting"


def _replay(host: Host) -> Iterator[str]:
    """A new node that validates everything must accept the chain and reach the same state."""
    chain = host.node.chain
    with tempfile.TemporaryDirectory(prefix="soliton-replay-") as directory:
        store = Store(Path(directory), chain.network.name, durable=False)
        try:
            judge = ChainWriter(chain.network, store)
            for height in range(2, chain.height + 1):
                try:
                    judge.append(chain.block_at(height))
                except SolitonError as error:
                    yield f"{host.name} has an invalid block at height {height}: {error}"
                    return
            judge.flush()
            mine, theirs = judge.meta(judge.height), chain.meta(chain.height)
            if (mine.state_hash, mine.snapshot_hash) != (theirs.state_hash, theirs.snapshot_hash):
                yield f"{host.name} has a state that its blocks do not make"
        finally:
            store.close()


def count_transactions(chain: ChainWriter) -> int:
    """Return the number of transactions above the genesis block."""
    return sum(chain.meta(each).transaction_count for each in range(2, chain.height + 1))
