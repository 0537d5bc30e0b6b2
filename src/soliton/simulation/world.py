"""One simulation: hosts, the links between them, injected faults, and the checks at the end.

What lives here: setting up, running, the summary. What does not: the behaviour of hosts (``host``,
``liars``), the checks (``checks``).
"""

from __future__ import annotations

import ipaddress
import random
import statistics
import tempfile
from collections import Counter
from pathlib import Path
from typing import Final

import msgspec

from soliton.chain.addresses import from_public_key
from soliton.chain.transactions import codec
from soliton.chain.transactions.model import AnyTransaction
from soliton.chain.transactions.table import type_by_id
from soliton.chain.transactions.transfer import Transfer
from soliton.errors import InputError
from soliton.node.events import BlockAppended
from soliton.node.miner import Slot
from soliton.node.network_settings import HostPort
from soliton.node.settings import Settings, load_settings
from soliton.simulation import checks
from soliton.simulation.finality import FinalityWatch
from soliton.simulation.host import Host, Place
from soliton.simulation.liars import LIARS, Liar, TwoFacedEndorsements
from soliton.simulation.links import Links
from soliton.simulation.loop import Loop
from soliton.simulation.plan import Plan
from soliton.simulation.private_chain import START, account, private_chain
from soliton.simulation.summary import Summary
from soliton.wire.handshake import PeerAddress

PORT: Final = 6_868
FEE: Final = 100_000
KNOWN_AT_START: Final = 2
"""Hosts that each host knows at the start; it discovers the others."""
DOWN_SECONDS: Final = (5, 60)
"""How long a host that has crashed is down."""
CHECK_EVERY_MS: Final = 1_000


class Mark(msgspec.Struct, frozen=True):
    """An event of the picture: its host (-1: all), begin, and end."""

    kind: str
    host: int
    at: int
    until: int = 0
    value: int = 0


class World:
    """A network of hosts."""

    def __init__(self, plan: Plan, directory: Path) -> None:
        """Hosts keep their chains in ``directory``."""
        self.plan = plan
        self.loop = Loop(START)
        self.rng = random.Random(plan.seed)  # noqa: S311 - the same for the same seed
        self.links = Links(self.loop, random.Random(plan.seed + 1), plan.links)  # noqa: S311
        self.end = START + plan.seconds * 1_000
        self.marks: list[Mark] = []
        self.forks: Counter[int] = Counter()
        self.blames: Counter[str] = Counter()
        self.messages = 0
        self.blocks = 0
        self.invalid: set[bytes] = set()
        self._seen: dict[bytes, tuple[int, set[int]]] = {}
        self._spread: list[int] = []
        count = plan.nodes + len(plan.lies)
        self.network = private_chain(count, plan.block_time, plan.generation_period)
        self.finality = FinalityWatch(plan)
        base = load_settings(network="devnet", data_dir=directory)
        self.places = [self._place(each, count, base, directory) for each in range(count)]
        self.hosts: list[Host] = []
        for place in self.places:
            self.hosts.append(self.start(place))
        self._plan_faults()

    # --- hosts ------------------------------------------------------------------------------------

    def _place(self, number: int, count: int, base: Settings, directory: Path) -> Place:
        address = _address(number)
        others = [each for each in range(count) if each != number]
        nearest = (number + 1) % count
        known = {nearest, *self.rng.sample(others, min(KNOWN_AT_START, len(others)))}
        known.discard(number)
        skew = self.rng.randint(-self.plan.skew, self.plan.skew)
        light = 0 <= self.plan.nodes - 1 - number < self.plan.light
        settings = msgspec.structs.replace(
            base,
            network=self.network,
            light=light,
            synchronization=msgspec.structs.replace(
                base.synchronization,
                loader=msgspec.structs.replace(base.synchronization.loader, snapshots=light),
                microblocks=msgspec.structs.replace(
                    base.synchronization.microblocks, snapshots=light
                ),
            ),
            db=msgspec.structs.replace(base.db, directory=directory / str(number)),
            miner=msgspec.structs.replace(
                base.miner,
                quorum=1 if count > 1 else 0,
                commit_to_generation=self.plan.generation_period > 0,
            ),
            peers=msgspec.structs.replace(
                base.peers, node_name=f"host {number}", declared=HostPort(str(address.ip), PORT)
            ),
        )
        return Place(
            number, address, settings, tuple(map(_address, sorted(known))), skew, account(number)
        )

    def start(self, place: Place) -> Host:
        """Start or restart a host."""
        rng = random.Random(self.rng.random())  # noqa: S311
        lie = place.number - self.plan.nodes
        if lie < 0:
            return Host(place, self.loop, self.links, rng, self)
        make = LIARS[self.plan.lies[lie]]
        return make(place, self.loop, self.links, rng, self)

    @property
    def honest(self) -> list[Host]:
        """The hosts that follow the rules."""
        return self.hosts[: self.plan.nodes]

    # --- faults -----------------------------------------------------------------------------------

    def _plan_faults(self) -> None:
        plan, rng, loop = self.plan, self.rng, self.loop
        if plan.partition:
            at = START + plan.partition
            while at + plan.partition <= self.end:
                self._plan_partition(at)
                at += int(plan.partition * (2 + 2 * rng.random()))
        for _ in range(plan.crashes):
            loop.at(START + int(rng.random() * plan.seconds * 1_000), self._crash)
        if plan.duplicates:
            self._duplicate_later()
        if plan.transactions:
            self._transfer_later()

    def _plan_partition(self, at: int) -> None:
        hosts = [place.address.ip for place in self.places]
        group = frozenset(self.rng.sample(hosts, self.rng.randint(1, max(1, len(hosts) // 2))))
        bridges = frozenset(
            place.address.ip
            for place, lie in zip(self.places[self.plan.nodes :], self.plan.lies, strict=True)
            if LIARS[lie] is TwoFacedEndorsements
        )
        until = at + self.plan.partition
        self.marks.append(Mark("partition", -1, at, until))
        self.loop.at(at, lambda: self.links.cut(group, until, bridges))

    def _crash(self) -> None:
        number = self.rng.randrange(self.plan.nodes)
        host = self.hosts[number]
        if not host.alive:
            return
        self._count(host)
        host.crash()
        down = int(self.rng.uniform(*DOWN_SECONDS) * 1_000)
        self.marks.append(Mark("crash", number, self.loop.now, self.loop.now + down))
        self.loop.after(down, lambda: self._restart(number))

    def _restart(self, number: int) -> None:
        self.hosts[number] = self.start(self.places[number])

    def _duplicate_later(self) -> None:
        if self.loop.now < self.end:
            self.loop.after(self.rng.randint(2_000, 20_000), self._duplicate)

    def _duplicate(self) -> None:
        """A host dials another one, to which it may already be connected."""
        one, other = self.rng.sample(range(len(self.hosts)), 2)
        if self.hosts[one].alive:
            self.hosts[one].dial(self.places[other].address)
        self._duplicate_later()

    def _transfer_later(self) -> None:
        # Votes are in microblocks, and those need transactions.
        if self.loop.now < self.end or self.plan.generation_period:
            mean = 60_000 / self.plan.transactions
            pause = self.rng.expovariate(1 / mean)
            self.loop.after(int(pause), self._transfer)

    def _transfer(self) -> None:
        """A client sends a transfer to an honest host."""
        host = self.hosts[self.rng.randrange(self.plan.nodes)]
        if host.alive:
            try:
                host.node.broadcast(self.transfer(host))
            except InputError as error:
                self.marks.append(Mark(f"refused: {error}", host.place.number, self.loop.now))
        self._transfer_later()

    def transfer(self, host: Host) -> AnyTransaction:
        """Return a transfer of a host's account."""
        chain_id = self.network.chain_id
        to = self.rng.choice(self.places).account
        payload = Transfer(
            from_public_key(to.public_key, chain_id), None, self.rng.randint(1, 10**6), b""
        )
        draft = codec.build(
            type_by_id(4),
            payload,
            sender_public_key=host.place.account.public_key,
            chain_id=chain_id,
            fee=FEE,
            version=2,
            timestamp=self.loop.now,
        )
        return codec.sign(draft, host.place.account.private_key)

    # --- observer ---------------------------------------------------------------------------------

    def block(self, host: Host, event: BlockAppended) -> None:
        """A host has appended a block."""
        if not host.honest:
            return
        self.marks.append(Mark("block", host.place.number, self.loop.now, value=event.height))
        self.finality.block(host)
        for each in self.hosts[self.plan.nodes :]:
            if isinstance(each, Liar) and each.alive:
                each.witness(event.block)
        block_id = event.block.id
        at, who = self._seen.setdefault(block_id, (self.loop.now, set()))
        who.add(host.place.number)
        if len(who) == self.plan.nodes:
            self._spread.append(self.loop.now - at)
            del self._seen[block_id]

    def fork(self, host: Host, depth: int) -> None:
        """A host has removed blocks."""
        if host.honest:
            self.forks[depth] += 1
            self.marks.append(Mark("fork", host.place.number, self.loop.now, value=depth))

    def mined(self, host: Host, _slot: Slot) -> None:
        """A host has made a block."""
        self.blocks += 1
        self.marks.append(Mark("mined", host.place.number, self.loop.now))

    def forged(self, block_id: bytes) -> None:
        """A malicious host has made a block that no honest host may accept."""
        self.invalid.add(block_id)

    def _count(self, host: Host) -> None:
        self.messages += sum(host.core.traffic.messages_out.values())
        if host.honest:
            self.blames.update(host.core.blames)

    # --- the run ----------------------------------------------------------------------------------

    def run(self) -> Summary:
        """Run for the planned time, and then until all honest hosts agree."""
        self.loop.run(self.end)
        self.links.settings = msgspec.structs.replace(self.links.settings, loss=0.0)
        deadline = self.end + self.plan.patience * 1_000
        while self.loop.now < deadline and not (self._agree() or self.finality.split_at):
            self.loop.run(self.loop.now + CHECK_EVERY_MS)
        agreed = (self.loop.now - self.end) / 1_000 if self._agree() else None
        self.finality.settle(self.honest)
        while self.loop.now < deadline and not (
            self.finality.is_done(self.hosts) or self.finality.split_at
        ):
            self.loop.run(self.loop.now + CHECK_EVERY_MS)
        for host in self.hosts:
            self._count(host)
        split_at = self.finality.split_at
        # Each side keeps its final blocks: it never has the chain of the other.
        faults = () if split_at else checks.faults_of(self, agreed)
        chain = self.honest[0].node.chain
        height = max(1, min(each.node.chain.height for each in self.honest) - checks.UNSETTLED)
        summary = Summary(
            seed=self.plan.seed,
            seconds=self.loop.seconds,
            height=chain.height,
            state_hash=chain.meta(height).state_hash.hex(),
            blocks=self.blocks,
            transactions=checks.count_transactions(chain),
            forks=dict(self.forks),
            agree_seconds=agreed,
            spread_ms=int(statistics.median(self._spread)) if self._spread else None,
            messages=self.messages,
            bytes=self.links.bytes,
            segments=self.links.segments,
            lost=self.links.lost,
            broken=self.links.broken,
            blames=dict(self.blames),
            events=self.loop.events,
            faults=(*faults, *self.finality.faults_of(self.hosts)),
            finalized=self.finality.highest,
            punished=self.finality.punished(self.honest[0]),
            split_at=split_at,
        )
        self.close()
        return summary

    def _agree(self) -> bool:
        return all(each.alive for each in self.honest) and checks.agree(self.honest)

    def close(self) -> None:
        """End all hosts."""
        for host in self.hosts:
            if host.alive:
                host.crash()


def _address(number: int) -> PeerAddress:
    return PeerAddress(ipaddress.IPv4Address(f"10.0.{number}.1"), PORT)


def simulate(plan: Plan) -> tuple[Summary, list[Mark]]:
    """Run one simulation; return the summary, and the marks for the picture."""
    with tempfile.TemporaryDirectory(prefix="soliton-simulation-") as directory:
        world = World(plan, Path(directory))
        return world.run(), world.marks
