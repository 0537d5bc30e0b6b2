"""Everything between bytes of peers and the chain, without sockets, clock and chance of its own.

The owner hands in what happens with the time (ms of a clock that never goes back), and carries out
the effects that come back: bytes to write, connections to close or to open, questions to answer,
and jobs for the chain. A job's outcome is handed in again.

What lives here: which machine hears of what, time-outs of connections, figures by message. What
does not: the machines (``soliton.sync``), the chain (``receiving``), sockets (``service``).

Sources: wavesplatform/Waves
``node/src/main/scala/com/wavesplatform/network/{NetworkServer,MessageObserver,HandshakeHandler}.scala``.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from typing import Final, TypeVar

import msgspec

from soliton.chain import microblocks, snapshots
from soliton.chain.errors import ChainError
from soliton.chain.transactions import codec
from soliton.chain.transactions.model import AnyTransaction
from soliton.chain.transactions.table import type_by_id
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
"""Blocks that were refused lately, remembered at a time."""

MAX_HELD: Final = 16
"""Blocks that wait for their time."""
NEVER: Final = 2**63

T = TypeVar("T")


# --- effects --------------------------------------------------------------------------------------


class Write(msgspec.Struct, frozen=True):
    """Send bytes to a peer."""

    peer: PeerId
    data: bytes


class HangUp(msgspec.Struct, frozen=True):
    """Close a connection; the machines know already."""

    peer: PeerId
    reason: str


class Answer(msgspec.Struct, frozen=True):
    """Answer a peer's question from the chain, when there is room for it (``Core.reply``)."""

    peer: PeerId
    question: Message


class ApplyBlock(msgspec.Struct, frozen=True):
    """Put a block that a peer has sent unasked on the chain, if it belongs there."""

    came: BlockReceived


Job = ApplyExtension | ApplyMicroblock | ApplyBlock | CheckTransaction
Effect = Write | HangUp | Dial | Answer | Job


class CoreSettings(msgspec.Struct, frozen=True):
    """The settings of all machines; time-outs in ms for a silent connection and a handshake."""

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
    """Messages and bytes by kind since the start; what was dropped unread by kind."""

    messages_in: Counter[str]
    bytes_in: Counter[str]
    messages_out: Counter[str]
    bytes_out: Counter[str]
    dropped: Counter[str]


class Core:
    """All conversations of one node."""

    def __init__(
        self,
        own: Callable[[], Handshake],
        family: str,
        chain_id: int,
        history: History,
        read_block: Callable[[bytes], tuple[bytes, bytes]],
        transaction: Callable[[bytes], AnyTransaction | None],
        settings: CoreSettings,
        chance: random.Random,
    ) -> None:
        """``own`` makes our handshake; ``read_block`` reads id and reference of a block;
        ``transaction`` finds one of the pool.
        """
        self._own, self._family, self._chain_id = own, family, chain_id
        self._read_block = read_block
        self._transaction = transaction
        self._settings = settings
        self._links: dict[PeerId, _Link] = {}
        self._invalid: dict[bytes, int] = {}
        self._held: list[tuple[int, ApplyBlock | ApplyExtension]] = []
        self._now = 0
        # Nobody has been silent for too long before this: what is heard only puts that off.
        self._silence_at = NEVER

        def choose(items: Sequence[T]) -> T:
            return chance.choice(items)

        def jitter(most: int) -> int:
            return chance.randint(0, most)

        self.book = PeerBook(settings.peers, choose, jitter)
        self.scores = Scores(history, settings.scores)
        self.loader = ExtensionLoader(history, self._is_invalid, settings.loader)
        self.microblocks = Microblocks(history, chain_id, choose, settings.microblocks)
        self.relay = Relay(settings.relay)
        self.traffic = Traffic(Counter(), Counter(), Counter(), Counter(), Counter())
        self.blames: Counter[str] = Counter()

    # --- what is known ----------------------------------------------------------------------------

    @property
    def connected(self) -> int:
        """Peers with whom both handshakes are through."""
        return sum(link.joined for link in self._links.values())

    def version_of(self, peer: PeerId) -> Version | None:
        """What a peer's version is."""
        link = self._links.get(peer)
        shake = None if link is None else link.connection.peer
        return None if shake is None else shake.version

    def buffered(self, peer: PeerId) -> int:
        """Bytes of a peer that are held and not yet a message."""
        link = self._links.get(peer)
        return 0 if link is None else link.connection.buffered

    def wake_at(self) -> int:
        """When ``tick`` is to be called at the latest."""
        machines = (self.scores, self.loader, self.microblocks)
        times = [at for each in machines if (at := each.wake_at) is not None]
        times += [at for at, _ in self._held]
        return min(self.book.wake_at, self._silence_at, *times)

    def _end_silence(self, now: int) -> list[Effect]:
        """Blame those who have said nothing for too long."""
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
        """A connection is there. Of inbound ones ``book.admit`` was asked before."""
        connection = Connection(self._own(), self._family, self._chain_id, self._unwanted())
        self._links[peer] = _Link(connection, inbound, now)
        self._silence_at = min(self._silence_at, now + self._settings.handshake)
        self.book.opened(peer, address, inbound=inbound)
        return [] if inbound else [Write(peer, connection.introduce())]

    def not_opened(self, address: PeerAddress, now: int) -> None:
        """Nobody answered there."""
        self.book.not_opened(address, now)

    def closed(self, peer: PeerId, now: int) -> list[Effect]:
        """A connection has ended."""
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
                # Whoever goes in place of an answer may be followed by others that claim more.
                self.scores.doubt(peer)
            effects += self._carry_out(self.scores.handle(left, now), now)
            effects += self._carry_out(self.loader.handle(left, now), now)
            effects += self._carry_out(self.microblocks.handle(left, now), now)
            self.relay.handle(left)
        return effects

    def _unwanted(self) -> frozenset[int]:
        useless = frozenset() if self._settings.loader.snapshots else _SNAPSHOT_CODES
        return useless if self.relay.is_ready else useless | _TRANSACTION_CODES

    def be_ready(self, ready: bool) -> None:
        """Read peers' transactions, or leave them unread while the chain is far behind."""
        if ready == self.relay.is_ready:
            return
        self.relay.is_ready = ready
        for link in self._links.values():
            link.connection.discard(self._unwanted())

    # --- bytes ------------------------------------------------------------------------------------

    def received(self, peer: PeerId, data: bytes, now: int) -> list[Effect]:
        """A peer's next bytes."""
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
        return effects

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
            case _:
                pass
        return effects

    def _heard_block(
        self, peer: PeerId, message: messages.LegacyBlock | messages.ProtobufBlock, now: int
    ) -> list[Effect]:
        try:
            block_id, reference = self._read_block(message.data)
        except ChainError as error:
            return self._unreadable(peer, message, error, now)
        came = BlockReceived(peer, block_id, reference, message)
        if self.loader.expects(peer, block_id):
            return self._carry_out(self.loader.handle(came, now), now)
        return [] if self._is_invalid(block_id) else [ApplyBlock(came)]

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
        came = MicroblockReceived(peer, total_id, message)
        return self._carry_out(self.microblocks.handle(came, now), now)

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
            came = SnapshotReceived(peer, block_id, message)
            return self._carry_out(self.loader.handle(came, now), now)
        part = MicroblockSnapshotReceived(peer, block_id, message)
        return self._carry_out(self.microblocks.handle(part, now), now)

    def _unreadable(
        self, peer: PeerId, message: Message, error: Exception, now: int
    ) -> list[Effect]:
        legacy = isinstance(message, messages.LegacyBlock | messages.LegacyMicroblock)
        # Others take no offence at protobuf that they cannot read: it may be of a later version.
        verdict = Verdict.BLACKLIST if legacy else Verdict.CLOSE
        return self._blame(Blame(peer, f"{type(message).__name__}: {error}", verdict), now)

    # --- events of the node -----------------------------------------------------------------------

    def tick(self, now: int) -> list[Effect]:
        """Time has passed."""
        effects = self._end_silence(now) if self._silence_at <= now else []
        tick = Tick()
        effects += self._carry_out(self.book.handle(tick, now), now)
        effects += self._carry_out(self.scores.handle(tick, now), now)
        effects += self._carry_out(self.loader.handle(tick, now), now)
        effects += self._carry_out(self.microblocks.handle(tick, now), now)
        due = [job for at, job in self._held if at <= now]
        self._held = [each for each in self._held if each[0] > now]
        return [*effects, *due]

    def hold(self, job: ApplyBlock | ApplyExtension, until: int) -> list[Effect]:
        """Do a job again at a time: ``tick`` gives it back. Blocks that nobody asked for are let go
        where too many wait.
        """
        if isinstance(job, ApplyExtension) or len(self._held) < MAX_HELD:
            self._held.append((until, job))
        return []

    def chain_moved(self, now: int) -> list[Effect]:
        """The own chain has another last block, or that has grown or shrunk."""
        moved = ChainMoved()
        self.relay.handle(moved)
        effects = self._carry_out(self.scores.handle(moved, now), now)
        return effects + self._carry_out(self.microblocks.handle(moved, now), now)

    def accepted(self, transaction_id: bytes, now: int) -> list[Effect]:
        """The pool has taken a transaction of a client of ours."""
        return self._carry_out(self.relay.handle(Accepted(transaction_id)), now)

    def announce(
        self, message: Message, now: int, but: frozenset[PeerId] = frozenset()
    ) -> list[Effect]:
        """Say something to all peers."""
        return self._carry_out((Broadcast(message, but),), now)

    def reply(self, peer: PeerId, message: Message) -> bytes | None:
        """The bytes of an answer; ``None`` when the peer has gone or does not understand it."""
        link = self._links.get(peer)
        return None if link is None else self._bytes_for(link, message)

    def blame(
        self, peer: PeerId, reason: str, now: int, verdict: Verdict = Verdict.BLACKLIST
    ) -> list[Effect]:
        """A peer did wrong."""
        return self._blame(Blame(peer, reason, verdict), now)

    def disbelieve(self, peer: PeerId, now: int) -> list[Effect]:
        """A peer's score counts no more until it says it again; others are asked meanwhile."""
        self.scores.doubt(peer)
        effects = self._carry_out(self.scores.handle(Tick(), now), now)
        # Where the best one is still the same, the loader asks it now.
        return effects + self._carry_out((self.scores.best,), now)

    # --- outcomes of jobs -------------------------------------------------------------------------

    def extension_applied(self, peer: PeerId, *, failed: bool, now: int) -> list[Effect]:
        """An extension of a peer is on the chain, or not all of it is."""
        if not failed:
            self.scores.delivered(peer)
        return self._carry_out(self.loader.handle(Applied(failed=failed), now), now)

    def microblock_applied(self, total_id: bytes, *, failed: bool, now: int) -> list[Effect]:
        """A microblock is on the last block, or was refused."""
        outcome = MicroblockApplied(total_id, failed=failed)
        return self._carry_out(self.microblocks.handle(outcome, now), now)

    def checked(
        self, check: CheckTransaction, transaction_id: bytes, *, is_new: bool, now: int
    ) -> list[Effect]:
        """The check of a peer's transaction is over."""
        return self._carry_out(self.relay.handle(Checked(check, transaction_id, is_new)), now)

    def remember_invalid(self, block_id: bytes, now: int) -> None:
        """A block was refused for good."""
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
                    effects += self.disbelieve(peer, now)
                case BestPeer():
                    effects += self._carry_out(self.loader.handle(action, now), now)
                case Dial() | ApplyExtension() | ApplyMicroblock() | CheckTransaction():
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
                    # It has no form that old peers read.
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
        effects.append(HangUp(blame.peer, blame.reason))
        return effects + self._leave(blame.peer, now)
