"""A host of the simulated network: a node with its core, its jobs, and its miner.

Everything is real except sockets, clock and randomness: the node with its store in a directory, the
machines, applying peers' blocks to the chain.

What lives here: one run of a host, from its start to its crash or end. What does not: the links
between hosts (``links``), the schedule of faults (``world``), malicious hosts (``liars``).
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable
from concurrent.futures import Future
from functools import partial
from typing import Final, Protocol, cast

import msgspec

from soliton.crypto.keys import KeyPair
from soliton.errors import SolitonError
from soliton.node.events import BlockAppended, NodeEvent, RolledBack
from soliton.node.key_blocks import mine_key_block
from soliton.node.miner import Slot
from soliton.node.mining import is_stale, next_turn
from soliton.node.node import Node
from soliton.node.settings import Settings
from soliton.node.wallet import Wallet
from soliton.p2p.core import Answer, Core, Disconnect, Effect, Write
from soliton.p2p.history import ChainRequest, NodeHistory
from soliton.p2p.identity import core_settings, own_handshake, read_block
from soliton.p2p.jobs import Jobs
from soliton.p2p.receiving import Receiver
from soliton.simulation.links import End, Links
from soliton.simulation.loop import Loop, Timer
from soliton.simulation.private_chain import account_seed
from soliton.steps import run_steps
from soliton.sync.model import PeerId
from soliton.sync.peers import Dial
from soliton.wire.handshake import Handshake, IpAddress, PeerAddress
from soliton.wire.messages import Message
from soliton.wire.versions import Version

RETRY_MS: Final = 1_000
STEP_OF_TIMER: Final = 0.004
"""How far (s) the timer of a host advances with each call, so that the lengths of time slices do
not depend on the real time.
"""


class Observer(Protocol):
    """Receives the events of hosts."""

    def block(self, host: Host, event: BlockAppended) -> None:
        """A host has appended a block."""

    def fork(self, host: Host, depth: int) -> None:
        """A host has removed blocks."""

    def mined(self, host: Host, slot: Slot) -> None:
        """A host has made a block."""

    def forged(self, block_id: bytes) -> None:
        """A malicious host has made a block that no honest host may accept."""


class SimulatedNode(Node):
    """A node that does background work synchronously."""

    def settle_in_turns(self) -> None:
        """Recheck the pool completely."""
        self.pool.settle()

    def mine_micro(self, account: KeyPair) -> int:
        """Add transactions of the pool to the last block, made by this account; return their
        number.
        """
        added = self.put_micro(run_steps(self._forging_micro(account)))
        self.pool.settle()
        return added


class Place(msgspec.Struct, frozen=True):
    """The properties of a host that survive a crash; ``skew`` (ms) is how fast its clock is."""

    number: int
    address: PeerAddress
    settings: Settings
    known: tuple[PeerAddress, ...]
    skew: int
    account: KeyPair


class Host:
    """One run of a host."""

    honest = True

    def __init__(
        self, place: Place, loop: Loop, links: Links, rng: random.Random, observer: Observer
    ) -> None:
        self.place = place
        self.loop = loop
        self.links = links
        self.rng = rng
        self.observer = observer
        self.alive = True
        self._passed = 0.0
        wallet = Wallet.in_memory(b"nothing", [account_seed(place.number)])
        self.node = SimulatedNode(place.settings, wallet, clock=self._clock, durable=False)
        self._height = self.node.chain.height
        self.history = NodeHistory(self.node.chain)
        nonce = rng.randrange(1, 2**31)
        chain_id = self.node.network.chain_id
        self.core = Core(
            lambda: self._handshake(nonce),
            self.node.network.family,
            chain_id,
            self.history,
            partial(read_block, chain_id),
            self.node.pool.get,
            core_settings(place.settings),
            rng,
            self.node.endorser.endorsements,
        )
        self.core.book.settings = msgspec.structs.replace(
            self.core.book.settings,
            known_peers=place.known,
            own_addresses=frozenset((place.address,)),
        )
        self.jobs = Jobs(
            self.node,
            self.core,
            self.history,
            Receiver(self.node, self._clock, alone=True),
            self._now,
            self.carry_out,
            self._name,
            self.call_soon,
            self._on_done,
            lambda _peer, _seconds: None,
            self._timer,
        )
        self.ends: dict[PeerId, End] = {}
        self._next_peer = 1
        self._tick_at: Timer | None = None
        self._mine_at: Timer | None = None
        self._grow_at: Timer | None = None
        self.node.events.subscribe(self.on_event)
        self.node.events.subscribe(self.jobs.on_event)
        self.jobs.set_ready()
        links.listen(self)
        self._plan()
        self._tick()

    @property
    def address(self) -> PeerAddress:
        """The address at which it can be dialled."""
        return self.place.address

    @property
    def name(self) -> str:
        """The name for logs."""
        return f"host {self.place.number}"

    # --- time -------------------------------------------------------------------------------------

    def _clock(self) -> int:
        return self.loop.now + self.place.skew

    def _now(self) -> int:
        return self.loop.now

    def _timer(self) -> float:
        self._passed += STEP_OF_TIMER
        return self._passed

    def call_soon(self, call: Callable[[], None]) -> Timer:
        """Call something now, after earlier events, if the host is still alive."""
        return self.after(0, call)

    def _on_done(self, _future: Future[None], then: Callable[[], None]) -> None:
        self.call_soon(then)

    def after(self, delay: int, call: Callable[[], None]) -> Timer:
        """Call something after some ms, if the host is still alive."""

        def if_alive() -> None:
            if self.alive:
                call()

        return self.loop.after(delay, if_alive)

    # --- effects ----------------------------------------------------------------------------------

    def _handshake(self, nonce: int) -> Handshake:
        return own_handshake(self.node, nonce, self.place.address)

    def _name(self, peer: PeerId) -> str:
        end = self.ends.get(peer)
        return "a peer that has gone" if end is None else str(end.address)

    def carry_out(self, effects: Iterable[Effect]) -> None:
        """Execute effects of the core, and schedule its next tick."""
        for effect in effects:
            match effect:
                case Write(peer=peer, data=data):
                    self.write(peer, data)
                case Disconnect(peer=peer):
                    end = self.ends.pop(peer, None)
                    if end is not None:
                        self.links.close(end)
                case Dial(address=address):
                    self.dial(address)
                case Answer(peer=peer, request=request):
                    self.call_soon(partial(self._answer, peer, request))
                case _:
                    self.jobs.add(effect)
        self._wake()

    def write(self, peer: PeerId, data: bytes) -> None:
        """Send bytes to a peer."""
        end = self.ends.get(peer)
        if end is not None:
            self.links.send(end, data)

    def _answer(self, peer: PeerId, request: Message) -> None:
        version = self.core.version_of(peer)
        if version is None:
            return
        message = self.answer(request, version)
        data = None if message is None else self.core.reply(peer, message)
        if data is not None:
            self.write(peer, data)

    def answer(self, request: Message, version: Version) -> Message | None:
        """Return the answer to a request of a peer of this version."""
        return self.history.answer(cast("ChainRequest", request), version)

    def _wake(self) -> None:
        if not self.alive:
            return
        at = max(self.core.wake_at(), self.loop.now + 5)
        tick = self._tick_at
        if tick is not None:
            if tick.at == at:
                return
            tick.cancel()
        self._tick_at = self.loop.at(at, self._tick)

    def _tick(self) -> None:
        self._tick_at = None
        if self.alive:
            self.carry_out(self.core.tick(self.loop.now))

    # --- connections ------------------------------------------------------------------------------

    def dial(self, address: PeerAddress, source: IpAddress | None = None) -> None:
        """Connect to an address."""
        patience = self.place.settings.peers.connection_ms
        self.links.dial(self, address, patience, partial(self._dialled, address), source)

    def _dialled(self, address: PeerAddress, end: End | None) -> None:
        if end is None:
            if self.alive:
                self.core.not_opened(address, self.loop.now)
                self._wake()
        elif not self.alive:
            self.links.lose(end)
        elif end.is_open:
            self._open(end, inbound=False)
        else:
            self.core.not_opened(address, self.loop.now)
            self._wake()

    def accepted(self, end: End) -> None:
        """Handle an inbound connection."""
        if self.core.book.admit(end.address.ip, self.loop.now) is not None:
            self.links.lose(end)
            return
        self._open(end, inbound=True)

    def _open(self, end: End, *, inbound: bool) -> None:
        end.peer = self._next_peer
        self._next_peer += 1
        self.ends[end.peer] = end
        now = self.loop.now
        self.carry_out(self.core.opened(end.peer, end.address, inbound=inbound, now=now))

    def received(self, end: End, data: bytes) -> None:
        """Handle bytes of a peer."""
        if self.alive:
            self.carry_out(self.core.received(end.peer, data, self.loop.now))

    def closed(self, end: End) -> None:
        """Handle a connection closed by the other side."""
        if self.alive:
            self.ends.pop(end.peer, None)
            self.carry_out(self.core.closed(end.peer, self.loop.now))

    # --- mining -----------------------------------------------------------------------------------

    def on_event(self, event: NodeEvent) -> None:
        """Handle an event of the node."""
        match event:
            case BlockAppended(height=height):
                self._height = height
                self.observer.block(self, event)
                self._plan_soon()
            case RolledBack(height=height):
                if height < self._height:
                    self.observer.fork(self, self._height - height)
                self._height = height
                self._plan_soon()
            case _:
                pass

    def _plan_soon(self) -> None:
        if self._mine_at is not None:
            self._mine_at.cancel()
        self._mine_at = self.call_soon(self._plan)

    @property
    def may_mine(self) -> bool:
        """Whether there are enough peers for mining, and this node is not catching up."""
        quorum = self.place.settings.miner.quorum
        return self.core.connected >= quorum and not self.jobs.receiver.is_catching_up

    def _plan(self) -> None:
        """Schedule mining for the account's slot, as the real node does."""
        if self._mine_at is not None:
            self._mine_at.cancel()
        self._mine_at = None
        node = self.node
        if not is_stale(node) and self.may_mine:
            node.committer.follow()
        if self._grow_at is not None:
            self._grow_at.cancel()
        self._grow_at = None
        if is_stale(node) or not self.may_mine or (slot := next_turn(node)) is None:
            self._mine_at = self.after(RETRY_MS, self._plan)
            return
        wait = max(0, slot.earliest - self._clock())
        self._mine_at = self.after(wait, partial(self._mine, slot))
        if node.chain.last_block.header.generator == self.place.account.public_key:
            self._grow_later()

    def _grow_later(self) -> None:
        interval = self.place.settings.miner.micro_block_interval_ms
        self._grow_at = self.after(interval, self._grow)

    def _mine(self, slot: Slot) -> None:
        self._mine_at = None
        if not self.may_mine:
            self._mine_at = self.after(RETRY_MS, self._plan)
            return
        try:
            self.make_block(slot)
        except SolitonError:
            self._mine_at = self.after(RETRY_MS, self._plan)
        else:
            self.observer.mined(self, slot)

    def make_block(self, slot: Slot) -> None:
        """Make the next block, at its slot."""
        mine_key_block(self.node, slot.account)
        self.node.pool.settle()

    def _grow(self) -> None:
        """Add transactions of the pool to the last block, which was made here."""
        self._grow_at = None
        if self.may_mine and len(self.node.pool):
            try:
                self.make_microblock()
            except SolitonError:
                return
        self._grow_later()

    def make_microblock(self) -> None:
        """Add transactions to the last block."""
        self.node.mine_micro(self.place.account)

    # --- the end ----------------------------------------------------------------------------------

    def crash(self) -> None:
        """End like a node after ``kill -9``: what is not in the store is lost."""
        self.alive = False
        self.jobs.stop()
        self.links.stop_listening(self)
        for end in self.ends.values():
            self.links.lose(end)
        self.ends.clear()
        self.node.store.discard_pending()
        self.node.close()

    def tip(self) -> tuple[int, str]:
        """Return height and id of the last block."""
        chain = self.node.chain
        return chain.height, chain.last_block.id.hex()

    def held(self) -> int:
        """Return the number of items held for peers, which must be bounded."""
        core = self.core
        waiting = core.relay.waiting + self.jobs.waiting + len(self.jobs.faulty_forks)
        return waiting + len(core.book.known(self.loop.now)) + len(self.ends)
