"""Sockets and timers of the node's peer-to-peer network.

What lives here: connections, dialling, timers, and status for operators. What does not: the
protocol (``core``), budgets of one connection (``sockets``), the chain (``jobs``).
"""

from __future__ import annotations

import asyncio
import logging
import random
import time
from collections.abc import Callable, Coroutine, Hashable, Iterable, Mapping
from concurrent.futures import Future
from functools import partial
from pathlib import Path
from typing import Final, cast

import msgspec

from soliton.consensus import pos
from soliton.node.network_settings import HostPort, NetworkSettings
from soliton.node.node import Node
from soliton.node.peering import ConnectedPeer, FaultyFork, NetworkFigures, Peering
from soliton.owners import owner_of
from soliton.p2p import addresses
from soliton.p2p.core import (
    Answer,
    Core,
    Disconnect,
    Effect,
    Write,
)
from soliton.p2p.history import ChainRequest, NodeHistory
from soliton.p2p.identity import core_settings, own_handshake, read_block
from soliton.p2p.jobs import Jobs
from soliton.p2p.receiving import Receiver
from soliton.p2p.sockets import PeerSocket
from soliton.steps import Steps
from soliton.sync.model import PeerId
from soliton.sync.peers import Dial, Restriction
from soliton.turns import Debts, Rounds
from soliton.wire.handshake import Handshake, IpAddress, PeerAddress
from soliton.wire.messages import Message

_log = logging.getLogger(__name__)

LONELY_SECONDS: Final = 30.0
"""After this time without a peer a warning is logged, and then every ten minutes."""
MAX_GONE: Final = 1_000
"""Owners of connections that have ended last."""
RESOLVE_SECONDS: Final = 600.0
"""How often names of peers are resolved again, and known peers are saved."""


class P2pService(Peering):
    """The connections of one node."""

    def __init__(
        self,
        node: Node,
        *,
        rng: random.Random | None = None,
    ) -> None:
        """``rng`` chooses between equally good peers."""
        self.node = node
        self.rounds, self.debts = Rounds(), Debts()
        settings = node.settings
        self._settings: NetworkSettings = settings.peers
        self._only = node.settings.peers.only_peer
        self._rng = rng or random.Random()  # noqa: S311 - nothing secret hangs on it
        self._wall = node.clock() - time.monotonic_ns() // 1_000_000
        nonce = self._settings.nonce
        self._nonce = self._rng.randrange(1, 2**31) if nonce is None else nonce
        self._declared: PeerAddress | None = None
        self.history = NodeHistory(node.chain)
        self.core = Core(
            self._handshake,
            node.network.family,
            node.network.chain_id,
            self.history,
            partial(read_block, node.network.chain_id),
            node.pool.get,
            core_settings(node.settings),
            self._rng,
            node.endorser.endorsements,
        )
        self.jobs = Jobs(
            node,
            self.core,
            self.history,
            Receiver(node, node.clock),
            self.now,
            self.carry_out,
            self._name,
            self._call_soon,
            self._on_done,
            self._charge,
        )
        self._links: dict[PeerId, PeerSocket] = {}
        self._gone: dict[PeerId, Hashable] = {}
        self._next_id = 1
        self._timer: asyncio.TimerHandle | None = None
        self._tasks: set[asyncio.Task[None]] = set()
        self._server: asyncio.Server | None = None
        self._reached = False

    # --- time, identity ---------------------------------------------------------------------------

    def now(self) -> int:
        """Return monotonic ms, which began as ms since 1970."""
        return self._wall + time.monotonic_ns() // 1_000_000

    def _handshake(self) -> Handshake:
        return own_handshake(self.node, self._nonce, self._declared)

    # --- lifecycle --------------------------------------------------------------------------------

    @property
    def port(self) -> int | None:
        """The port that peers can dial, once it has started."""
        if self._server is None:
            return None
        return cast("int", self._server.sockets[0].getsockname()[1])

    async def start(self) -> None:
        """Listen, and begin to dial; raises ``OSError`` for a port in use."""
        loop = asyncio.get_running_loop()
        own = self._settings
        if own.bind_address is not None:
            self._server = await loop.create_server(
                lambda: PeerSocket(self, None), own.bind_address, own.port, reuse_address=True
            )
        if own.declared is not None:
            found = await addresses.resolve((own.declared,))
            self._declared = found[0] if found else None
        if self._file is not None:
            self.core.book.remember(addresses.load(self._file))
        await self._find_peers()
        self.node.peering = self
        self.node.events.subscribe(self.jobs.on_event)
        self.jobs.set_ready()
        self._spawn(self._keep())
        self._spawn(self._warn_when_alone())
        self._tick()

    async def stop(self) -> None:
        """Close all connections and save the known peers."""
        self.node.peering = None
        self.node.events.unsubscribe(self.jobs.on_event)
        if self._timer is not None:
            self._timer.cancel()
        if self._server is not None:
            self._server.close()
        for task in tuple(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        for link in list(self._links.values()):
            link.transport.abort()
        self.jobs.stop()
        self._save_file()

    def _spawn(self, work: Coroutine[None, None, None]) -> None:
        task = asyncio.ensure_future(work)
        self._tasks.add(task)
        task.add_done_callback(self._ended)

    def _on_done(self, future: Future[None], then: Callable[[], None]) -> None:
        loop = asyncio.get_running_loop()
        future.add_done_callback(lambda _: loop.call_soon_threadsafe(self._guarded, then))

    def _call_soon(self, work: Callable[[], None]) -> None:
        asyncio.get_running_loop().call_soon(self._guarded, work)

    def _guarded(self, work: Callable[[], None]) -> None:
        """Run work for the chain, and stop the node on an unexpected exception."""
        try:
            work()
        except Exception:  # noqa: BLE001 - logged, and stops the node
            _log.exception("work of the network failed")
            self.node.request_stop()

    def _ended(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and task.exception() is not None:
            _log.error("a task of the network ended", exc_info=task.exception())
            self.node.request_stop()

    async def _keep(self) -> None:
        """Resolve names again and save the known peers, periodically."""
        while True:
            await asyncio.sleep(RESOLVE_SECONDS)
            await self._find_peers()
            self._save_file()

    async def _warn_when_alone(self) -> None:
        pause = LONELY_SECONDS
        while True:
            await asyncio.sleep(pause)
            pause = RESOLVE_SECONDS
            if self.core.connected:
                continue
            known = self._settings.known_peers if self._only is None else (self._only,)
            names = ", ".join(map(str, known[:3])) or "nobody"
            reasons = {each.reason for each in self.suspended().values()}
            _log.warning(
                "no peer has been reached (network.known-peers: %s%s%s); name others there, or "
                "with --sync-from HOST:PORT; a node that shall have none runs with --offline",
                names, " …" if len(known) > 3 else "",
                f"; {'; '.join(sorted(reasons)[:3])}" if reasons else "",
            )  # fmt: skip

    async def _find_peers(self) -> None:
        wanted = self._settings.known_peers if self._only is None else (self._only,)
        found = await addresses.resolve(wanted)
        own = frozenset(self._own_addresses())
        book = self.core.book
        book.settings = msgspec.structs.replace(
            book.settings,
            known_peers=tuple(each for each in found if each not in own),
            own_addresses=own,
        )

    def _own_addresses(self) -> Iterable[PeerAddress]:
        if self._declared is not None:
            yield self._declared
        if self.port is not None:
            yield from addresses.own_addresses(self._settings.bind_address or "", self.port)

    @property
    def _file(self) -> Path | None:
        return self._settings.file if self._only is None else None

    def _save_file(self) -> None:
        if self._file is not None:
            addresses.save(self._file, self.core.book.known(self.now()))

    # --- effects ----------------------------------------------------------------------------------

    def carry_out(self, effects: Iterable[Effect]) -> None:
        """Execute effects of the core, and schedule its next tick."""
        for effect in effects:
            match effect:
                case Write(peer=peer, data=data):
                    link = self._links.get(peer)
                    if link is not None:
                        link.write(data)
                case Disconnect(peer=peer, reason=reason):
                    link = self._links.pop(peer, None)
                    if link is not None:
                        _log.info("peer %s: %s", link.name, reason)
                        link.transport.close()
                case Dial(address=address):
                    self._spawn(self._dial(address))
                case Answer(peer=peer, request=request):
                    link = self._links.get(peer)
                    if link is not None:
                        link.enqueue(request)
                case _:
                    self.jobs.add(effect)
        self._wake()

    def _wake(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        delay = max(0.005, (self.core.wake_at() - self.now()) / 1_000)
        self._timer = asyncio.get_running_loop().call_later(delay, self._tick)

    def _tick(self) -> None:
        self._timer = None
        self.carry_out(self.core.tick(self.now()))

    # --- sockets ----------------------------------------------------------------------------------

    async def _dial(self, address: PeerAddress) -> None:
        loop = asyncio.get_running_loop()
        try:
            # 0 is no limit, as in the reference.
            async with asyncio.timeout(self._settings.connection_ms / 1_000 or None):
                await loop.create_connection(
                    lambda: PeerSocket(self, address), str(address.ip), address.port
                )
        except (OSError, TimeoutError):
            self.core.not_opened(address, self.now())
            self._wake()

    def opened(self, link: PeerSocket, address: PeerAddress, *, inbound: bool) -> None:
        """Handle a new connection."""
        now = self.now()
        if inbound:
            why = self.core.book.admit(address.ip, now)
            if why is not None:
                _log.debug("%s is sent away: %s", address, why)
                link.transport.abort()
                return
        link.peer = self._next_id
        self._next_id += 1
        self._links[link.peer] = link
        self.carry_out(self.core.opened(link.peer, address, inbound=inbound, now=now))

    def received(self, link: PeerSocket, data: bytes) -> None:
        """Handle bytes of a peer."""
        before = self.core.connected
        self.carry_out(self.core.received(link.peer, data, self.now()))
        if not self._reached and self.core.connected > before:
            self._reached = True
            _log.info("the first peer: %s", link.name)

    def missing(self, peer: PeerId) -> int:
        """Return how many bytes the message still lacks that is being received."""
        return self.core.missing(peer)

    def closed(self, link: PeerSocket) -> None:
        """Handle a closed connection."""
        self._links.pop(link.peer, None)
        # It may have left work, which it pays for when it comes back.
        self._gone[link.peer] = link.owner
        if len(self._gone) > MAX_GONE:
            del self._gone[next(iter(self._gone))]
        self.carry_out(self.core.closed(link.peer, self.now()))

    def _charge(self, peer: PeerId, seconds: float) -> None:
        link = self._links.get(peer)
        if link is not None:
            link.charge(seconds)
        elif (owner := self._gone.get(peer)) is not None:
            self.debts.charge(owner, seconds)

    def _name(self, peer: PeerId) -> str:
        link = self._links.get(peer)
        return "a peer that has gone" if link is None else link.name

    def answer(self, peer: PeerId, request: Message) -> Steps[bytes | None]:
        """Make the bytes that answer a request, if there is an answer, in steps."""
        version = self.core.version_of(peer)
        if version is None:
            return None
        message = yield from self.history.answering(cast("ChainRequest", request), version)
        return None if message is None else self.core.reply(peer, message)

    # --- Peering ----------------------------------------------------------------------------------

    @property
    def faulty_forks(self) -> Mapping[str, FaultyFork]:
        """Better chains that were refused, by peer."""
        return self.jobs.faulty_forks

    @property
    def connections(self) -> int:
        """The number of connected peers."""
        return self.core.connected

    def connected(self) -> list[ConnectedPeer]:
        """Return all connected peers."""
        found = []
        for peer, each in self.core.book.connections.items():
            shake = each.handshake
            if shake is not None:
                found.append(
                    ConnectedPeer(
                        each.address, shake.declared, shake.node_name, shake.nonce,
                        shake.application, shake.version, each.inbound,
                        self.core.scores.score_of(peer), each.last_heard,
                    )
                )  # fmt: skip
        return found

    def known(self) -> dict[PeerAddress, int]:
        """Return known working addresses, with the time (ms) of the last contact."""
        return self.core.book.known(self.now())

    def blacklisted(self) -> dict[IpAddress, Restriction]:
        """Return blacklisted addresses, with reasons."""
        return self.core.book.blacklisted(self.now())

    def suspended(self) -> dict[IpAddress, Restriction]:
        """Return addresses that are temporarily not dialled, with reasons."""
        return self.core.book.suspended(self.now())

    def clear_blacklist(self) -> None:
        """Remove all addresses from the blacklist."""
        self.core.book.clear_blacklist()

    def ban(self, ip: IpAddress, reason: str) -> None:
        """Blacklist an address with all of its owner, and close their connections."""
        now, owner = self.now(), owner_of(ip)
        self.core.book.ban(ip, reason, now)
        for peer, each in list(self.core.book.connections.items()):
            if owner_of(each.address.ip) == owner:
                self.carry_out(self.core.blame(peer, reason, now))

    def begin_to_connect(self, where: HostPort) -> None:
        """Dial a peer now, in the background."""
        self._spawn(self._connect(where))

    async def _connect(self, where: HostPort) -> None:
        for address in (await addresses.resolve((where,)))[:1]:
            await self._dial(address)

    @property
    def has_quorum(self) -> bool:
        """Whether there are enough peers for mining."""
        return self.core.connected >= self.node.settings.miner.quorum

    @property
    def is_at_rest(self) -> bool:
        """Whether this node is not catching up with a better chain, so that it may mine."""
        return not self.jobs.receiver.is_catching_up

    def best_score(self) -> int:
        """Return the best score of a peer; 0 if none is known."""
        scores = (self.core.scores.score_of(each) or 0 for each in self.core.book.connections)
        return max(scores, default=0)

    def lag(self) -> int:
        """Return about how many blocks the best peer is ahead, estimated from its score."""
        one = pos.block_score(self.node.chain.last_block.header.base_target)
        return -(-self.core.scores.ahead() // max(1, one))

    def relay(self, transaction_id: bytes) -> None:
        """Send a transaction of the pool to the peers again."""
        self.carry_out(self.core.accepted(transaction_id, self.now()))

    def figures(self) -> NetworkFigures:
        """Return the counters since the start."""
        traffic, jobs = self.core.traffic, self.jobs
        return NetworkFigures(
            traffic.messages_in,
            traffic.messages_out,
            traffic.bytes_in,
            traffic.bytes_out,
            jobs.blocks.total,
            jobs.blocks.per_second(self.now()),
            jobs.forks,
            self.core.blames,
        )
