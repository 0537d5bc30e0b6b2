"""A node of ours in the place of one side of a recorded conversation, in virtual time.

The other side is its recording: what it told by itself comes at its time, what it was asked for
comes when our node asks. What our side made itself (blocks, microblocks, transactions) is made by
our node at the time at which the recorded one told of it.
"""

from __future__ import annotations

import base64
import contextlib
import heapq
import ipaddress
import json
import random
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future
from functools import cached_property, partial
from itertools import takewhile
from pathlib import Path
from typing import Final, cast

import msgspec

from soliton.chain import blocks, microblocks, snapshots
from soliton.chain.blocks import Block
from soliton.chain.genesis import genesis_block
from soliton.chain.microblocks import Microblock
from soliton.chain.transactions import codec
from soliton.errors import InputError
from soliton.node.node import Node
from soliton.node.settings import load_settings
from soliton.node.wallet import Wallet
from soliton.p2p.core import Answer, Core, Disconnect, Effect, Write
from soliton.p2p.history import ChainRequest, NodeHistory, block_message
from soliton.p2p.identity import core_settings, own_handshake, read_block
from soliton.p2p.jobs import Jobs
from soliton.p2p.receiving import Receiver
from soliton.sync.peers import Dial
from soliton.wire import frames, handshake, messages
from soliton.wire.connection import Broken, Connection, MessageReceived
from soliton.wire.handshake import PeerAddress
from soliton.wire.messages import Message
from soliton.wire.versions import ANNOUNCED
from tests.node import recorded
from tests.p2p.world import done
from tests.wire.talk import framed

PEER: Final = 1
OTHERS: Final = {"A": "B", "B": "A"}
SECONDS_UNTIL: Final = 100_000_000_000
"""Times below this are in seconds: each kind of node has its own unit in the handshake."""
AFTERWARDS_MS: Final = 10_000
EARLIER_MS: Final = 3_000
"""So much earlier than the recorded node ours may ask for ids: that one gathers scores first."""

BLOCKS = (messages.LegacyBlock, messages.ProtobufBlock)
MICROBLOCKS = (messages.LegacyMicroblock, messages.ProtobufMicroblock)
SNAPSHOTS = (messages.BlockSnapshot, messages.MicroblockSnapshot)
ANSWERS: Final[dict[type[Message], tuple[type[Message], ...]]] = {
    messages.GetBlockIds: (messages.BlockIds,),
    messages.GetBlock: BLOCKS,
    messages.GetMicroblock: MICROBLOCKS,
    messages.GetBlockSnapshot: (messages.BlockSnapshot,),
    messages.GetMicroblockSnapshot: (messages.MicroblockSnapshot,),
}
"""What answers which question."""


class Row(msgspec.Struct, frozen=True):
    """A recorded message; ``asked``: whether it answers a question; ``about``: the id of the block
    that it carries or is about.
    """

    time: int
    side: str
    message: Message
    frame: bytes
    asked: bool
    about: bytes


class Recording:
    """A conversation, and all blocks that are in it or can be put together from it."""

    def __init__(self, folder: Path, stem: str) -> None:
        self.meta = json.loads((folder / "meta.json").read_text())
        self.network = recorded.configured_network(folder / "network.conf")
        self.greetings: dict[str, bytes] = {}
        self.blocks: dict[bytes, Block] = {}
        self.microblocks: dict[bytes, Microblock] = {}
        first = genesis_block(self.network)
        self.blocks[first.id] = first
        for each in sorted(folder.glob("*.jsonl.gz")):
            rows = self._read(each)
            if each.name == f"{stem}.jsonl.gz":
                self.rows = rows
                self.greetings = self._greetings
        for micro in self.microblocks.values():
            self._grow(micro)

    def _read(self, path: Path) -> list[Row]:
        self._greetings = {}
        found: list[Row] = []
        requests: dict[str, set[bytes]] = {"A": set(), "B": set()}
        decoders = {"A": self._decoder(), "B": self._decoder()}
        for row in recorded.lines(path):
            side, payload = row["from"], base64.b64decode(row["base64"])
            if row["kind"] == "handshake":
                self._greetings[side] = payload
                decoders[side].receive(payload)
                continue
            frame = framed(row["code"], payload)
            (said,) = decoders[side].receive(frame)
            assert isinstance(said, MessageReceived), said
            message, asked, about = said.message, False, b""
            if isinstance(message, messages.GetBlock):
                requests[side].add(message.block_id)
            elif isinstance(message, BLOCKS):
                block = blocks.decode(message.data, self.network.chain_id)
                self.blocks[block.id] = block
                wanted = requests[OTHERS[side]]
                asked = block.id in wanted
                wanted.discard(block.id)
                about = block.id
            elif isinstance(message, MICROBLOCKS):
                micro = microblocks.decode(message.data, self.network.chain_id)
                self.microblocks[micro.total_block_id] = micro
                asked, about = True, micro.total_block_id
            elif isinstance(message, messages.BlockSnapshot):
                decoded = snapshots.decode_block(message.data, self.network.chain_id)
                asked, about = True, decoded.block_id
            elif isinstance(message, messages.MicroblockSnapshot):
                decoded = snapshots.decode_microblock(message.data, self.network.chain_id)
                asked, about = True, decoded.block_id
            elif isinstance(message, (messages.BlockIds, messages.Peers)):
                asked = True
            found.append(Row(row["t"], side, message, frame, asked, about))
        return found

    def _decoder(self) -> Connection:
        network = self.network
        own = handshake.Handshake(
            f"waves{chr(network.chain_id)}", ANNOUNCED["waves"], "recorder", 1, None, 0
        )
        return Connection(own, "waves", network.chain_id)

    def _grow(self, micro: Microblock) -> None:
        before = self.blocks.get(micro.reference)
        if before is not None:
            grown = blocks.extended(
                before, micro.transactions, micro.state_hash, micro.total_signature
            )
            self.blocks.setdefault(grown.id, grown)

    def path(self, block_id: bytes) -> list[Block]:
        """All blocks up to this one, from the genesis block on; none if one is missing."""
        found: list[Block] = []
        block = self.blocks.get(block_id)
        while block is not None:
            found.append(block)
            if block.id == genesis_block(self.network).id:
                return found[::-1]
            block = self.blocks.get(block.header.reference)
        return []

    def chain_at_start(self, side: str) -> list[Block]:
        """What a side had when the conversation began, as far as it told of it."""
        for row in self.rows:
            if row.side == side and isinstance(row.message, messages.BlockIds):
                newest_first = row.message.ids[::-1]
            elif row.side == side and isinstance(row.message, messages.GetBlockIds):
                newest_first = row.message.ids
            else:
                continue
            path = next((path for each in newest_first if (path := self.path(each))), [])
            return list(takewhile(lambda block: block.id not in self.news, path))[1:]
        return []

    @cached_property
    def news(self) -> dict[bytes, str]:
        """The blocks that somebody told of without being asked: who was the first."""
        found: dict[bytes, str] = {}
        for row in self.rows:
            if isinstance(row.message, BLOCKS) and not row.asked:
                found.setdefault(row.about, row.side)
        return found

    def time_at_start(self) -> int:
        """Ms since 1970: of the handshake, in seconds or ms, and late enough for the blocks."""
        decoded = handshake.decode(self.greetings["A"])
        assert decoded is not None
        time = decoded[0].time
        times = [time * 1_000 if time < SECONDS_UNTIL else time]
        times += [
            self.blocks[row.about].header.timestamp - row.time
            for row in self.rows
            if isinstance(row.message, BLOCKS)
        ]
        return max(times)


class Replay:
    """Our node in the place of ``side``."""

    def __init__(self, directory: Path, recording: Recording, side: str) -> None:
        self.recording, self.side, self.other = recording, side, OTHERS[side]
        self.light = recording.meta[side]["mode"] == "light"
        self.time = 0
        self._start = recording.time_at_start()
        self.said: list[Message] = []
        """What our node said, but for its answers."""
        self.answers: list[tuple[Message, Message | None, Message | None]] = []
        """Questions, with our answer and the recorded one."""
        self.hung_up: list[str] = []
        self.refused: dict[bytes, str] = {}
        """Transactions of our side that our pool did not take."""
        self._later: list[tuple[int, bytes]] = []
        self._soon: deque[Callable[[], None]] = deque()
        self._carrying = False
        self.node = self._make_node(directory)
        for block in recording.chain_at_start(side):
            self.node.chain.append(block)
        self.node.chain.flush()
        self.node.follow_chain()
        self._make_core()
        self._scripted = self._script()

    def _make_node(self, directory: Path) -> Node:
        overrides = {"enable-light-mode": self.light}
        settings = load_settings(network="devnet", data_dir=directory, overrides=overrides)
        settings = msgspec.structs.replace(settings, network=self.recording.network)
        seeds = [each["seed"].encode() for each in self.recording.meta.get("accounts", ())]
        wallet = Wallet.in_memory(b"nothing", seeds)
        return Node(settings, wallet, clock=self.clock, durable=False)

    def _make_core(self) -> None:
        node, network = self.node, self.recording.network
        self.history = NodeHistory(node.chain)
        self.core = Core(
            lambda: own_handshake(node, 77, None),
            network.family,
            network.chain_id,
            self.history,
            partial(read_block, network.chain_id),
            node.pool.get,
            core_settings(node.settings),
            random.Random(1),
        )
        self.jobs = Jobs(
            node,
            self.core,
            self.history,
            Receiver(node, self.clock),
            self.now,
            self.carry_out,
            lambda _peer: "the recorded peer",
            self._soon.append,
            self._when_done,
            lambda _peer, _seconds: None,
        )
        greeting = handshake.decode(self.recording.greetings[self.other])
        assert greeting is not None
        self._theirs = Connection(greeting[0], network.family, network.chain_id)
        self._theirs.introduce()

    def recorded(self, *kinds: type[Message], side: str = "") -> list[Row]:
        """Messages of some kinds that a side, or ours, said in the recording."""
        side = side or self.side
        return [
            row
            for row in self.recording.rows
            if row.side == side and isinstance(row.message, kinds)
        ]

    def close(self) -> None:
        """End it."""
        self.jobs.receiver.close()
        self.node.close()

    def clock(self) -> int:
        """The network's time."""
        return self._start + self.time

    now = clock

    # --- what the other side would say ------------------------------------------------------------

    def _script(self) -> list[Row]:
        self._blocks: dict[bytes, Row] = {}
        self._microblocks: dict[bytes, Row] = {}
        self._snapshots: dict[bytes, Row] = {}
        self._ids: list[Row] = []
        told: list[Row] = []
        for row in self.recording.rows:
            message = row.message
            if row.side != self.other:
                told.append(row)
                continue
            if isinstance(message, BLOCKS):
                self._blocks[row.about] = row
            elif isinstance(message, MICROBLOCKS):
                self._microblocks[row.about] = row
            elif isinstance(message, SNAPSHOTS):
                self._snapshots[row.about] = row
            elif isinstance(message, messages.BlockIds):
                self._ids.append(row)
            if not row.asked:
                told.append(row)
        return told

    def _hear(self, data: bytes) -> None:
        """The other side gets bytes of ours."""
        for event in self._theirs.receive(data):
            assert not isinstance(event, Broken), event.fault
            if not isinstance(event, MessageReceived):
                continue
            self.said.append(event.message)
            row = self._reaction(event.message)
            if row is not None:
                # It is not there before it was recorded.
                heapq.heappush(self._later, (max(self.time, row.time), row.frame))

    def _reaction(self, message: Message) -> Row | None:
        match message:
            case messages.GetBlock(block_id=block_id):
                return self._block(block_id)
            case messages.GetMicroblock(block_id=block_id):
                return self._microblocks.get(block_id)
            case (
                messages.GetBlockSnapshot(block_id=block_id)
                | messages.GetMicroblockSnapshot(block_id=block_id)
            ):
                return self._snapshots.get(block_id)
            case messages.GetBlockIds(ids=ids):
                return self._ids_after(ids)
            case _:
                return None

    def _ids_after(self, ids: tuple[bytes, ...]) -> Row:
        for place, row in enumerate(self._ids):
            answer = cast("messages.BlockIds", row.message)
            if answer.ids and answer.ids[0] in ids and row.time < self.time + EARLIER_MS:
                del self._ids[: place + 1]
                return row
        return self._made_up(messages.BlockIds(self._following(ids)))

    def _following(self, ids: tuple[bytes, ...]) -> tuple[bytes, ...]:
        """What it would have answered to a question that was not recorded."""
        tips = [
            row.message.ids[-1] if isinstance(row.message, messages.BlockIds) else row.about
            for row in self.recorded(messages.BlockIds, *BLOCKS, side=self.other)
            if row.time <= self.time
        ]
        chain = [each.id for each in self.recording.path(tips[-1])] if tips else []
        common = next((each for each in ids if each in chain), None)
        return ids[:1] if common is None else tuple(chain[chain.index(common) :])

    def _block(self, block_id: bytes) -> Row | None:
        block = self.recording.blocks.get(block_id)
        if block_id in self._blocks or block is None:
            return self._blocks.get(block_id)
        return self._made_up(block_message(block))

    def _made_up(self, message: Message) -> Row:
        return Row(self.time, self.other, message, frames.encode(message), True, b"")

    # --- effects ----------------------------------------------------------------------------------

    def carry_out(self, effects: Iterable[Effect]) -> None:
        """Do what the core wants."""
        for effect in effects:
            match effect:
                case Write(data=data):
                    self._hear(data)
                case Disconnect(reason=reason):
                    self.hung_up.append(reason)
                case Dial():
                    pass
                case Answer(request=request):
                    self._answer(request)
                case _:
                    self.jobs.add(effect)

    def _answer(self, request: Message) -> None:
        version = self.core.version_of(PEER)
        assert version is not None
        ours = self.history.answer(cast("ChainRequest", request), version)
        self.answers.append((request, ours, self._recorded_answer(request)))
        if ours is not None:
            data = self.core.reply(PEER, ours)
            assert data is not None

    def _recorded_answer(self, request: Message) -> Message | None:
        """The first message of this side from now on that answers the question."""
        for row in self.recording.rows:
            if row.side == self.side and row.time >= self.time and _answers(row, request):
                return row.message
        return None

    def _when_done(self, future: Future[None], then: Callable[[], None]) -> None:
        future.result()
        self._soon.append(then)

    def _send(self, frame: bytes) -> None:
        self.carry_out(self.core.received(PEER, frame, self.now()))

    async def _settle(self) -> None:
        while self._soon:
            self._soon.popleft()()
        # The pool checks again what a block has touched.
        await self.node.settled()

    # --- the conversation -------------------------------------------------------------------------

    async def run(self) -> None:
        """From the handshakes to some seconds after the last message."""
        self.node.events.subscribe(self.jobs.on_event)
        self.jobs.set_ready()
        address = PeerAddress(ipaddress.IPv4Address("127.0.3.1"), 6_863)
        dials = self.side == "B"
        self.carry_out(self.core.opened(PEER, address, inbound=not dials, now=self.now()))
        self._send(self.recording.greetings[self.other])
        await self._settle()
        for row in self._scripted:
            await self._wait(row.time)
            if row.side == self.other:
                self._send(row.frame)
            else:
                self._make(row)
            await self._settle()
        await self._wait(self.time + AFTERWARDS_MS)

    async def _wait(self, time: int) -> None:
        while True:
            wake = self.core.wake_at() - self._start
            answer = self._later[0][0] if self._later else time + 1
            if min(wake, answer) > time:
                break
            if answer <= wake:
                self.time, frame = heapq.heappop(self._later)
                self._send(frame)
            else:
                self.time = max(self.time + 1, wake)
                self.carry_out(self.core.tick(self.now()))
            await self._settle()
        self.time = max(self.time, time)

    @contextlib.contextmanager
    def _noting_refusal(self, data: bytes) -> Iterator[None]:
        try:
            yield
        except InputError as error:
            self.refused[data] = str(error)

    # --- what our side made -----------------------------------------------------------------------

    def _make(self, row: Row) -> None:
        chain = self.node.chain
        match row.message:
            case messages.LegacyBlock(data=data) | messages.ProtobufBlock(data=data):
                block = blocks.decode(data, self.recording.network.chain_id)
                if not row.asked and chain.height_of(block.id) is None:
                    self._grow_to(block.header.reference)
                    self._make_block(block)
            case messages.MicroblockInv(total_id=total_id):
                if chain.height_of(total_id) is None:
                    self._grow_to(total_id)
            case messages.ProtobufTransaction(data=data):
                with self._noting_refusal(row.message.data):
                    self.node.broadcast(
                        codec.decode_protobuf(data, self.recording.network.chain_id)
                    )
            case _:
                pass

    def _make_block(self, block: Block) -> None:
        reference = block.header.reference
        chain = self.node.chain
        if reference == chain.last_block.id or chain.knows_liquid(reference):
            with self.node.writing():
                chain.append(block)
            self.node.follow_chain(block.transactions)
        else:
            done(self.jobs.receiver.block(block.data))

    def _grow_to(self, total_id: bytes) -> None:
        """Let the last block become the form with this id, by one microblock."""
        chain = self.node.chain
        total = self.recording.blocks.get(total_id)
        last = chain.last_block
        if total is None or chain.height_of(total_id) is not None:
            return
        if total.header.reference != last.header.reference:
            return
        added = total.transactions[len(last.transactions) :]
        with self.node.writing():
            chain.extend(added, total.header.state_hash, total.signature)
        self.node.follow_chain(added)


def _answers(row: Row, request: Message) -> bool:
    about = getattr(request, "block_id", b"")
    return isinstance(row.message, ANSWERS.get(type(request), ())) and row.about == about
