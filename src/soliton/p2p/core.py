"""The sans-I/O core of the network: everything between peers' bytes and the chain.

The owner passes events with the time (ms of a monotonic clock), and executes the returned effects:
bytes to write, connections to open or close, requests to answer, and jobs for the chain. The
outcomes of jobs are passed in again.

What lives here: dispatch of events to the machines, timeouts of connections, counters by message.
What does not: the machines (``soliton.sync``), the chain (``receiving``), sockets (``service``).

Sources: wavesplatform/Waves
``node/src/main/scala/com/wavesplatform/network/{NetworkServer,MessageObserver,HandshakeHandler}.scala``.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from typing import Final, TypeVar

import msgspec

from soliton.chain import blocks, microblocks, snapshots
from soliton.chain.errors import ChainError
from soliton.chain.finalization import BlockEndorsement, decode_endorsement, encode_endorsement
from soliton.chain.transactions import codec
from soliton.chain.transactions.model import AnyTransaction
from soliton.chain.transactions.table import type_by_id
from soliton.owners import owner_of
from soliton.sync.endorsements import CheckEndorsement, Endorsements, RelayEndorsement
from soliton.sync.extensions import (
    Applied,
    ApplyExtension,
    BlockReceived,
    ExtensionLoader,
    LoaderSettings,
    SnapshotReceived,
)
from soliton.sync.microblocks import (
    ApplyMicroblock,
    MicroblockApplied,
    MicroblockReceived,
    Microblocks,
    MicroblockSettings,
    MicroblockSnapshotReceived,
)
from soliton.sync.model import (
    Blame,
    Broadcast,
    ChainMoved,
    History,
    Joined,
    Left,
    NothingNew,
    PeerId,
    Received,
    Send,
    Slow,
    Tick,
)
from soliton.sync.peers import Dial, PeerBook, PeerSettings
from soliton.sync.relay import (
    Accepted,
    Checked,
    CheckTransaction,
    Relay,
    RelaySettings,
    RelayTransaction,
)
from soliton.sync.scores import BestPeer, Scores, ScoreSettings
from soliton.wire import messages
from soliton.wire.connection import Broken, Connection, Dropped, HandshakeReceived, MessageReceived
from soliton.wire.errors import CannotSend, PeerFault, Verdict
from soliton.wire.handshake import Handshake, PeerAddress
from soliton.wire.kinds import BY_RECORD
from soliton.wire.messages import Message
from soliton.wire.versions import BLOCK_IDS_FROM, Version

_TRANSACTION_CODES: Final = frozenset((25, 31))
_SNAPSHOT_CODES: Final = frozenset((36, 37))
MAX_INVALID: Final = 30_000
"""How many ids of recently refused blocks are kept."""

MAX_DEFERRED: Final = 16
"""How many early blocks are kept."""
NEVER: Final = 2**63

T = TypeVar("T")


# --- effects --------------------------------------------------------------------------------------


class Write(msgspec.Struct, frozen=True):
    """Send bytes to a peer."""

    peer: PeerId
    data: bytes


class Disconnect(msgspec.Struct, frozen=True):
    """Close a connection; the machines already know."""

    peer: PeerId
    reason: str


class Answer(msgspec.Struct, frozen=True):
    """Answer a peer's request from the chain, subject to backpressure (``Core.reply``)."""

    peer: PeerId
    request: Message


class ApplyBlock(msgspec.Struct, frozen=True):
    """Append an unsolicited block of a peer, if it fits."""

    received: BlockReceived


Job = ApplyExtension | ApplyMicroblock | ApplyBlock | CheckTransaction | CheckEndorsement
Effect = Write | Disconnect | Dial | Answer | Job


class CoreSettings(msgspec.Struct, frozen=True):
    """The settings of all machines; timeouts in ms of an idle connection and a handshake."""

    peers: PeerSettings
    scores: ScoreSettings = ScoreSettings()
    loader: LoaderSettings = LoaderSettings()
    microblocks: MicroblockSettings = MicroblockSettings()
    relay: RelaySettings = RelaySettings()
    idle: int = 300_000
    handshake: int = 30_000
    invalid: int = 300_000


class _Link(msgspec.Struct):
    connection: Connection
    inbound: bool
    opened: int
    joined: bool = False


class Traffic(msgspec.Struct):
    """Messages and bytes by kind since the start, and unread dropped messages by kind."""

    messages_in: Counter[str]
    bytes_in: Counter[str]
    messages_out: Counter[str]
    bytes_out: Counter[str]
    dropped: Counter[str]


class Core:
    """All connections of one node."""

    def __init__(
        self,
        own: Callable[[], Handshake],
        family: str,
        chain_id: int,
        history: History,
        read_block: Callable[[bytes], tuple[bytes, bytes]],
        transaction: Callable[[bytes], AnyTransaction | None],
        settings: CoreSettings,
        rng: random.Random,
        endorsements: Endorsements | None = None,
    ) -> None:
        """``own`` makes the node's handshake; ``read_block`` returns id and reference of a block;
        ``transaction`` looks up one of the pool; ``endorsements`` are those of the node.
        """
        self._own, self._family, self._chain_id = own, family, chain_id
        self._read_block = read_block
        self._transaction = transaction
        self._settings = settings
        self._links: dict[PeerId, _Link] = {}
        self._invalid: dict[bytes, int] = {}
        self._deferred: list[tuple[int, ApplyBlock | ApplyExtension]] = []
        self._now = 0
        # A lower bound of the next timeout of a connection: messages only postpone it.
        self._silence_at = NEVER

        def choose(items: Sequence[T]) -> T:
            return rng.choice(items)

        def jitter(most: int) -> int:
            return rng.randint(0, most)

        self.book = PeerBook(settings.peers, choose, jitter)
        self.scores = Scores(history, settings.scores)
        self.loader = ExtensionLoader(history, self._is_invalid, settings.loader)
        self.microblocks = Microblocks(history, chain_id, choose, settings.microblocks)
        self.relay = Relay(settings.relay)
        self.endorsements = Endorsements() if endorsements is None else endorsements
        self.traffic = Traffic(Counter(), Counter(), Counter(), Counter(), Counter())
        self.blames: Counter[str] = Counter()

    # --- queries ----------------------------------------------------------------------------------

    @property
    def connected(self) -> int:
        """The number of peers with completed handshakes."""
        return sum(link.joined for link in self._links.values())

    def version_of(self, peer: PeerId) -> Version | None:
        """Return a peer's version."""
        link = self._links.get(peer)
        shake = None if link is None else link.connection.peer
        return None if shake is None else shake.version

    def buffered(self, peer: PeerId) -> int:
        """Return the number of buffered bytes of an incomplete message."""
        link = self._links.get(peer)
        return 0 if link is None else link.connection.buffered

    def missing(self, peer: PeerId) -> int:
        """Return how many bytes the message still lacks that is being received."""
        link = self._links.get(peer)
        return 0 if link is None else link.connection.missing

    def wake_at(self) -> int:
        """Return the latest time of the next ``tick``."""
        machines = (self.scores, self.loader, self.microblocks)
        times = [at for each in machines if (at := each.wake_at) is not None]
        times += [at for at, _ in self._deferred]
        return min(self.book.wake_at, self._silence_at, *times)

    def _end_silence(self, now: int) -> list[Effect]:
        """Disconnect peers that have exceeded a timeout."""
        effects: list[Effect] = []
        for peer, link in list(self._links.items()):
            if peer in self._links and self._deadline(peer, link) <= now:
                silent = Verdict.CLOSE if link.joined else Verdict.SUSPEND
                what = "it said nothing for too long" if link.joined else "there was no handshake"
                effects += self._blame(Blame(peer, what, silent), now)
        deadlines = [self._deadline(peer, link) for peer, link in self._links.items()]
        self._silence_at = min(deadlines, default=NEVER)
        return effects

    def _deadline(self, peer: PeerId, link: _Link) -> int:
        if not link.joined:
            return link.opened + self._settings.handshake
        return self.book.connections[peer].last_heard + self._settings.idle

    # --- connections ------------------------------------------------------------------------------

    def opened(
        self, peer: PeerId, address: PeerAddress, *, inbound: bool, now: int
    ) -> list[Effect]:
        """Add a connection; ``book.admit`` has admitted inbound ones, for each of which an idle one
        may have to give way.
        """
        effects: list[Effect] = []
        idle = self.book.gives_way(address.ip, now) if inbound else None
        if idle is not None:
            effects = [Disconnect(idle, "it gives way to a new peer"), *self._leave(idle, now)]
        connection = Connection(self._own(), self._family, self._chain_id, self._unwanted())
        self._links[peer] = _Link(connection, inbound, now)
        self._silence_at = min(self._silence_at, now + self._settings.handshake)
        self.book.opened(peer, address, inbound=inbound)
        return effects if inbound else [Write(peer, connection.introduce())]

    def not_opened(self, address: PeerAddress, now: int) -> None:
        """Record that dialling an address has failed."""
        self.book.not_opened(address, now)

    def closed(self, peer: PeerId, now: int) -> list[Effect]:
        """Remove a closed connection."""
        if peer not in self._links:
            return []
        return self._leave(peer, now)

    def _leave(self, peer: PeerId, now: int) -> list[Effect]:
        link = self._links.pop(peer)
        link.connection.close()
        left = Left(peer)
        effects = self._carry_out(self.book.handle(left, now), now)
        if link.joined:
            if self.loader.busy_with == peer:
                # Peers with false scores might each disconnect in place of an answer.
                self.scores.doubt(peer)
            effects += self._carry_out(self.scores.handle(left, now), now)
            effects += self._carry_out(self.loader.handle(left, now), now)
            effects += self._carry_out(self.microblocks.handle(left, now), now)
            self.relay.handle(left)
            self.endorsements.leave(peer)
        return effects

    def _unwanted(self) -> frozenset[int]:
        useless = frozenset() if self._settings.loader.snapshots else _SNAPSHOT_CODES
        return useless if self.relay.is_ready else useless | _TRANSACTION_CODES

    def set_ready(self, ready: bool) -> None:
        """Decode peers' transactions, or drop them unread while the chain is far behind."""
        if ready == self.relay.is_ready:
            return
        self.relay.is_ready = ready
        for link in self._links.values():
            link.connection.discard(self._unwanted())

    # --- bytes ------------------------------------------------------------------------------------

    def received(self, peer: PeerId, data: bytes, now: int) -> list[Effect]:
        """Handle bytes of a peer."""
        link = self._links.get(peer)
        if link is None:
            return []
        effects: list[Effect] = []
        for event in link.connection.receive(data):
            if peer not in self._links:
                break
            match event:
                case HandshakeReceived(handshake=handshake):
                    effects += self._introduced(peer, link, handshake, now)
                case MessageReceived(message=message, size=size):
                    name = type(message).__name__
                    self.traffic.messages_in[name] += 1
                    self.traffic.bytes_in[name] += size
                    effects += self._heard(peer, message, now)
                case Dropped(kind=kind):
                    self.traffic.dropped[kind.name] += 1
                    self.book.connections[peer].last_heard = now
                case Broken(fault=fault):
                    effects += self._blame(Blame(peer, fault.reason, fault.verdict), now)
        return effects

    def _introduced(
        self, peer: PeerId, link: _Link, handshake: Handshake, now: int
    ) -> list[Effect]:
        try:
            self.book.introduced(peer, handshake, now)
        except PeerFault as fault:
            return self._blame(Blame(peer, fault.reason, fault.verdict), now)
        effects: list[Effect] = []
        if link.inbound:
            effects.append(Write(peer, link.connection.introduce()))
        link.joined = True
        self._silence_at = min(self._silence_at, now + self._settings.idle)
        joined = Joined(peer, handshake.version)
        effects += self._carry_out(self.scores.handle(joined, now), now)
        effects += self._carry_out(self.loader.handle(joined, now), now)
        effects += self._carry_out(self.book.handle(joined, now), now)
        return effects + self._carry_out(self.relay.handle(joined), now)

    def _heard(self, peer: PeerId, message: Message, now: int) -> list[Effect]:
        heard = Received(peer, message)
        effects = self._carry_out(self.book.handle(heard, now), now)
        match message:
            case messages.Score():
                effects += self._carry_out(self.scores.handle(heard, now), now)
            case messages.BlockIds() | messages.Signatures():
                effects += self._carry_out(self.loader.handle(heard, now), now)
            case messages.LegacyBlock() | messages.ProtobufBlock():
                effects += self._heard_block(peer, message, now)
            case messages.MicroblockInv():
                effects += self._carry_out(self.microblocks.handle(heard, now), now)
            case messages.LegacyTransaction() | messages.ProtobufTransaction():
                effects += self._carry_out(self.relay.handle(heard), now)
            case (
                messages.GetBlock()
                | messages.GetBlockIds()
                | messages.GetSignatures()
                | messages.GetMicroblock()
                | messages.GetBlockSnapshot()
                | messages.GetMicroblockSnapshot()
            ):
                effects.append(Answer(peer, message))
            case messages.LegacyMicroblock() | messages.ProtobufMicroblock():
                effects += self._heard_microblock(peer, message, now)
            case messages.BlockSnapshot() | messages.MicroblockSnapshot():
                effects += self._heard_snapshot(peer, message, now)
            case messages.EndorseBlock():
                effects += self._heard_endorsement(peer, message, now)
            case _:
                pass
        return effects

    def _heard_endorsement(
        self, peer: PeerId, message: messages.EndorseBlock, now: int
    ) -> list[Effect]:
        try:
            endorsement = decode_endorsement(message.data)
        except ChainError as error:
            return self._unreadable(peer, message, error, now)
        # Its owner pays, since a new connection, and another address of a network, cost nothing.
        source = owner_of(self.book.connections[peer].address.ip)
        return self._carry_out(self.endorsements.receive(peer, source, endorsement), now)

    def _heard_block(
        self, peer: PeerId, message: messages.LegacyBlock | messages.ProtobufBlock, now: int
    ) -> list[Effect]:
        try:
            if isinstance(message, messages.ProtobufBlock):
                message = messages.ProtobufBlock(blocks.canonical(message.data))
            block_id, reference = self._read_block(message.data)
        except ChainError as error:
            return self._unreadable(peer, message, error, now)
        received = BlockReceived(peer, block_id, reference, message)
        if self.loader.expects(peer, block_id):
            return self._carry_out(self.loader.handle(received, now), now)
        return [] if self._is_invalid(block_id) else [ApplyBlock(received)]

    def _heard_microblock(
        self,
        peer: PeerId,
        message: messages.LegacyMicroblock | messages.ProtobufMicroblock,
        now: int,
    ) -> list[Effect]:
        try:
            total_id = microblocks.peek_total_id(message.data)
        except ChainError as error:
            return self._unreadable(peer, message, error, now)
        received = MicroblockReceived(peer, total_id, message)
        return self._carry_out(self.microblocks.handle(received, now), now)

    def _heard_snapshot(
        self,
        peer: PeerId,
        message: messages.BlockSnapshot | messages.MicroblockSnapshot,
        now: int,
    ) -> list[Effect]:
        try:
            block_id = snapshots.peek_id(message.data)
        except ChainError as error:
            return self._unreadable(peer, message, error, now)
        if isinstance(message, messages.BlockSnapshot):
            received = SnapshotReceived(peer, block_id, message)
            return self._carry_out(self.loader.handle(received, now), now)
        part = MicroblockSnapshotReceived(peer, block_id, message)
        return self._carry_out(self.microblocks.handle(part, now), now)

    def _unreadable(
        self, peer: PeerId, message: Message, error: Exception, now: int
    ) -> list[Effect]:
        legacy = isinstance(message, messages.LegacyBlock | messages.LegacyMicroblock)
        # Invalid protobuf is no offence in the reference: it may be of a later version.
        verdict = Verdict.BLACKLIST if legacy else Verdict.CLOSE
        return self._blame(Blame(peer, f"{type(message).__name__}: {error}", verdict), now)

    # --- events of the node -----------------------------------------------------------------------

    def tick(self, now: int) -> list[Effect]:
        """Handle timeouts."""
        effects = self._end_silence(now) if self._silence_at <= now else []
        tick = Tick()
        effects += self._carry_out(self.book.handle(tick, now), now)
        effects += self._carry_out(self.scores.handle(tick, now), now)
        effects += self._carry_out(self.loader.handle(tick, now), now)
        effects += self._carry_out(self.microblocks.handle(tick, now), now)
        due = [job for at, job in self._deferred if at <= now]
        self._deferred = [each for each in self._deferred if each[0] > now]
        return [*effects, *due]

    def defer(self, job: ApplyBlock | ApplyExtension, until: int) -> list[Effect]:
        """Retry a job at a time: ``tick`` returns it. Unsolicited blocks are dropped when there are
        too many.
        """
        if isinstance(job, ApplyExtension) or len(self._deferred) < MAX_DEFERRED:
            self._deferred.append((until, job))
        return []

    def chain_moved(self, now: int) -> list[Effect]:
        """Handle a change of the last block."""
        moved = ChainMoved()
        self.relay.handle(moved)
        effects = self._carry_out(self.scores.handle(moved, now), now)
        return effects + self._carry_out(self.microblocks.handle(moved, now), now)

    def accepted(self, transaction_id: bytes, now: int) -> list[Effect]:
        """Relay a client's transaction that is in the pool."""
        return self._carry_out(self.relay.handle(Accepted(transaction_id)), now)

    def announce(
        self, message: Message, now: int, but: frozenset[PeerId] = frozenset()
    ) -> list[Effect]:
        """Send a message to all peers except ``but``."""
        return self._carry_out((Broadcast(message, but),), now)

    def reply(self, peer: PeerId, message: Message) -> bytes | None:
        """Encode an answer; ``None`` if the peer is gone or its version has no such message."""
        link = self._links.get(peer)
        return None if link is None else self._bytes_for(link, message)

    def blame(
        self, peer: PeerId, reason: str, now: int, verdict: Verdict = Verdict.BLACKLIST
    ) -> list[Effect]:
        """Punish a peer for a fault."""
        return self._blame(Blame(peer, reason, verdict), now)

    def distrust(self, peer: PeerId, now: int) -> list[Effect]:
        """Ignore a peer's score until it sends it again, and use other peers meanwhile."""
        self.scores.doubt(peer)
        effects = self._carry_out(self.scores.handle(Tick(), now), now)
        # If the best peer is still the same, the loader requests from it now.
        return effects + self._carry_out((self.scores.best,), now)

    # --- outcomes of jobs -------------------------------------------------------------------------

    def extension_applied(self, peer: PeerId, *, failed: bool, now: int) -> list[Effect]:
        """Handle the outcome of applying a peer's extension."""
        if not failed:
            self.scores.delivered(peer)
        return self._carry_out(self.loader.handle(Applied(failed=failed), now), now)

    def microblock_applied(self, total_id: bytes, *, failed: bool, now: int) -> list[Effect]:
        """Handle the outcome of applying a microblock."""
        outcome = MicroblockApplied(total_id, failed=failed)
        return self._carry_out(self.microblocks.handle(outcome, now), now)

    def checked(
        self, check: CheckTransaction, transaction_id: bytes, *, is_new: bool, now: int
    ) -> list[Effect]:
        """Handle the outcome of checking a peer's transaction."""
        return self._carry_out(self.relay.handle(Checked(check, transaction_id, is_new)), now)

    def endorsement_checked(
        self, check: CheckEndorsement, *, is_valid: bool, now: int
    ) -> list[Effect]:
        """Handle the outcome of verifying an endorsement."""
        return self._carry_out(self.endorsements.checked(check, is_valid=is_valid), now)

    def endorsed(self, endorsements: Iterable[BlockEndorsement], now: int) -> list[Effect]:
        """Send endorsements of this node's accounts to all peers."""
        return self._carry_out(map(RelayEndorsement, endorsements), now)

    def remember_invalid(self, block_id: bytes, now: int) -> None:
        """Record that a block is invalid."""
        self._now = now
        self._invalid.pop(block_id, None)
        self._invalid[block_id] = now + self._settings.invalid
        if len(self._invalid) > MAX_INVALID:
            del self._invalid[next(iter(self._invalid))]

    def _is_invalid(self, block_id: bytes) -> bool:
        until = self._invalid.get(block_id)
        return until is not None and until > self._now

    # --- actions ----------------------------------------------------------------------------------

    def _carry_out(self, actions: Iterable[object], now: int) -> list[Effect]:
        self._now = now
        effects: list[Effect] = []
        for action in actions:
            match action:
                case Send(peer=peer, message=message):
                    data = self.reply(peer, message)
                    if data is not None:
                        effects.append(Write(peer, data))
                case Broadcast(message=message, but=but):
                    for peer, link in self._links.items():
                        if link.joined and peer not in but:
                            data = self._bytes_for(link, message)
                            if data is not None:
                                effects.append(Write(peer, data))
                case RelayTransaction(transaction_id=transaction_id, but=but):
                    effects += self._relay(transaction_id, but)
                case Blame():
                    effects += self._blame(action, now)
                case NothingNew(peer=peer):
                    effects += self.distrust(peer, now)
                case Slow(peer=peer):
                    self.scores.set_slow(peer, now)
                    effects += self._carry_out(self.scores.handle(Tick(), now), now)
                case BestPeer():
                    effects += self._carry_out(self.loader.handle(action, now), now)
                case RelayEndorsement(endorsement=endorsement, but=but):
                    message = messages.EndorseBlock(encode_endorsement(endorsement))
                    effects += self._carry_out((Broadcast(message, but),), now)
                case (
                    Dial()
                    | ApplyExtension()
                    | ApplyMicroblock()
                    | CheckTransaction()
                    | CheckEndorsement()
                ):
                    effects.append(action)
                case _:
                    raise AssertionError(f"nobody carries out {action!r}")
        return effects

    def _bytes_for(self, link: _Link, message: Message) -> bytes | None:
        try:
            data = link.connection.send(message)
        except CannotSend:
            return None
        name = BY_RECORD[type(message)].name
        self.traffic.messages_out[name] += 1
        self.traffic.bytes_out[name] += len(data)
        return data

    def _relay(self, transaction_id: bytes, but: frozenset[PeerId]) -> list[Effect]:
        transaction = self._transaction(transaction_id)
        if transaction is None:
            return []
        modern: Message | None = None
        old: Message | None = None
        effects: list[Effect] = []
        for peer, link in self._links.items():
            shake = link.connection.peer
            if not link.joined or peer in but or shake is None:
                continue
            if shake.version >= BLOCK_IDS_FROM:
                if modern is None:
                    modern = messages.ProtobufTransaction(codec.encode_protobuf(transaction))
                message = modern
            else:
                kind = type_by_id(transaction.type_id)
                if codec.is_protobuf(kind, transaction.version):
                    # It has no legacy encoding for old peers.
                    continue
                if old is None:
                    old = messages.LegacyTransaction(codec.encode(transaction))
                message = old
            data = self._bytes_for(link, message)
            if data is not None:
                effects.append(Write(peer, data))
        return effects

    def _blame(self, blame: Blame, now: int) -> list[Effect]:
        if blame.peer not in self._links:
            return []
        self.blames[blame.verdict.value] += 1
        effects = self._carry_out(self.book.handle(blame, now), now)
        effects.append(Disconnect(blame.peer, blame.reason))
        return effects + self._leave(blame.peer, now)
