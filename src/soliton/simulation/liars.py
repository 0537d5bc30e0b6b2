"""Malicious hosts, each with one kind of misbehaviour; otherwise they follow the rules.

What lives here: the misbehaviours. What does not: hosts (``host``), which of them take part
(``plan``).
"""

from __future__ import annotations

import ipaddress
import random
from collections.abc import Collection, Mapping
from typing import Final

import msgspec

from soliton.chain import blocks, snapshots
from soliton.chain.addresses import Address, from_public_key
from soliton.chain.blocks import Block
from soliton.chain.finalization import (
    MAX_ENDORSEMENT_BYTES,
    BlockEndorsement,
    FinalizationVoting,
    encode_endorsement,
    sign_endorsement,
)
from soliton.chain.layouts import SIGNATURE_LENGTH
from soliton.chain.snapshots import BlockSnapshot
from soliton.chain.transactions import codec
from soliton.chain.transactions.model import AnyTransaction
from soliton.chain.transactions.table import type_by_id
from soliton.chain.transactions.transfer import Transfer
from soliton.crypto import bls
from soliton.crypto.curve25519 import sign
from soliton.node.miner import Slot, forging
from soliton.p2p.history import block_message
from soliton.p2p.identity import own_handshake
from soliton.p2p.jobs import own_microblock
from soliton.simulation.host import Host, Observer, Place
from soliton.simulation.links import End, Links
from soliton.simulation.loop import Loop
from soliton.steps import run_steps
from soliton.sync.model import PeerId
from soliton.wire import frames, handshake, messages
from soliton.wire.handshake import PeerAddress
from soliton.wire.kinds import BY_RECORD
from soliton.wire.messages import Message
from soliton.wire.versions import Version

LIE_EVERY_MS: Final = 5_000
FORGED_AT_ONCE: Final = 6
JUNK_AT_ONCE: Final = 20
BOGUS_PEERS: Final = 50
MOLES_AT_ONCE: Final = 5
HUGE_SCORE: Final = 2**160
FEE: Final = 100_000
_LEAST_HEIGHT: Final = 4
"""Below it a voting has no height to name."""
_OF_BLOCKS: Final = frozenset(
    BY_RECORD[each].code
    for each in (
        messages.Score, messages.BlockIds, messages.ProtobufBlock, messages.MicroblockInv,
        messages.ProtobufMicroblock,
    )
)  # fmt: skip
_MOLES_FROM: Final = 0x0AC80000
_BOGUS_FROM: Final = 0x0AFA0000


def _code_of(data: bytes) -> int | None:
    """Return the code of the message in a frame, ``None`` for a handshake."""
    is_frame = int.from_bytes(data[4:8], "big") == frames.MAGIC
    return data[8] if is_frame and len(data) > 8 else None


class Liar(Host):
    """A host that misbehaves periodically."""

    honest = False

    def __init__(
        self, place: Place, loop: Loop, links: Links, rng: random.Random, observer: Observer
    ) -> None:
        self._audience: Collection[PeerId] | None = None
        super().__init__(place, loop, links, rng, observer)
        self.after(LIE_EVERY_MS, self._lie_again)

    def _lie_again(self) -> None:
        self.lie()
        self.after(LIE_EVERY_MS, self._lie_again)

    def lie(self) -> None:
        """Misbehave; called periodically."""

    def write(self, peer: PeerId, data: bytes) -> None:
        """Send bytes to a peer, if it is in the audience."""
        if self._audience is None or peer in self._audience:
            super().write(peer, data)

    def say(self, message: Message, audience: Collection[PeerId] | None = None) -> None:
        """Send a message to all peers, or some."""
        self._audience = audience
        self.carry_out(self.core.announce(message, self.loop.now))
        self._audience = None

    def halves(self) -> tuple[list[PeerId], list[PeerId]]:
        """Return the peers in two halves."""
        peers = sorted(self.ends)
        return peers[::2], peers[1::2]

    def witness(self, block: Block) -> None:
        """An honest host has appended a key block; malicious ones hear of it at once."""

    @property
    def own(self) -> Address:
        """The address of its account."""
        chain_id = self.node.network.chain_id
        return from_public_key(self.place.account.public_key, chain_id)

    def index(self) -> int | None:
        """Return its index among the generators of the last block, ``None`` if it is none."""
        found = self.node.chain.generators_at(self.node.chain.height)
        committed = () if found is None else found.committed
        return next((i for i, each in enumerate(committed) if each.address == self.own), None)

    def endorse(self, final_id: bytes, final_height: int, endorsed_id: bytes) -> None:
        """Send an endorsement with a valid signature to all peers."""
        index = self.index()
        if index is not None:
            secret = bls.generate_key(self.place.account.private_key)
            signed = sign_endorsement(secret, index, final_id, final_height, endorsed_id)
            self.say(messages.EndorseBlock(encode_endorsement(signed)))

    def transfer(self, amount: int) -> AnyTransaction:
        """Return a signed transfer to itself, which may exceed the balance."""
        pair = self.place.account
        chain_id = self.node.network.chain_id
        draft = codec.build(
            type_by_id(4),
            Transfer(from_public_key(pair.public_key, chain_id), None, amount, b""),
            sender_public_key=pair.public_key,
            chain_id=chain_id,
            fee=FEE,
            version=2,
            timestamp=self.loop.now,
        )
        return codec.sign(draft, pair.private_key)


class WrongScores(Liar):
    """Claims to have a better chain than all others."""

    def lie(self) -> None:
        """Send another huge score."""
        self.say(messages.Score(HUGE_SCORE + self.rng.randrange(2)))

    def answer(self, request: Message, version: Version) -> Message | None:
        """Offer no block that others do not have."""
        answer = super().answer(request, version)
        return (
            messages.BlockIds(answer.ids[:1]) if isinstance(answer, messages.BlockIds) else answer
        )


class WithheldBlocks(Liar):
    """Announces blocks and does not send them."""

    def answer(self, request: Message, version: Version) -> Message | None:
        """Send ids, but no blocks."""
        if isinstance(request, messages.GetBlock | messages.GetMicroblock):
            return None
        return super().answer(request, version)


class InvalidBlocks(Liar):
    """Mines invalid blocks, and sends valid ones with wrong signatures."""

    def make_block(self, slot: Slot) -> None:
        """Make a block with a wrong state hash, base target, time or generation signature."""
        chain = self.node.chain
        good = run_steps(forging(chain, slot, (), self._clock())).block
        header = good.header
        wrong = self.rng.choice(
            (
                {"state_hash": bytes(32)},
                {"base_target": header.base_target + 1},
                {"timestamp": slot.earliest - 1},
                {"generation_signature": bytes(len(header.generation_signature))},
            )
        )
        key = self.place.account.private_key
        bad = blocks.sign(msgspec.structs.replace(header, **wrong), (), key)
        self.observer.forged(bad.id)
        self.say(block_message(bad))
        self.after(self.place.settings.network.genesis.average_block_delay_ms, self._plan)

    def answer(self, request: Message, version: Version) -> Message | None:
        """Send blocks with a flipped bit."""
        answer = super().answer(request, version)
        if isinstance(answer, messages.ProtobufBlock):
            data = bytearray(answer.data)
            data[-1] ^= 1
            return messages.ProtobufBlock(bytes(data))
        return answer


class Equivocation(Liar):
    """Makes two blocks on one parent, and two microblocks, one for each half of the network."""

    def make_block(self, slot: Slot) -> None:
        """Make two blocks."""
        some, others = self.halves()
        later = run_steps(forging(self.node.chain, slot, (), self._clock() + 20)).block
        self.say(block_message(later), others)
        self._audience = some
        self.node.mine(slot.account, empty=True)
        self._audience = None

    def make_microblock(self) -> None:
        """Make two microblocks."""
        pair, last = self.place.account, self.node.chain.last_block
        some, others = self.halves()
        one = self.transfer(1)
        state_hash = None
        progress = self.node.chain.liquid_progress()
        if progress is not None:
            run_steps(progress.adding((one,), verify_signatures=False))
            state_hash = progress.snapshot_hash
        self._announce(last, (one,), state_hash, others)
        self._audience = some
        self.node.mine_micro(pair)
        self._audience = None

    def _announce(
        self,
        last: blocks.Block,
        added: tuple[AnyTransaction, ...],
        state_hash: bytes | None,
        audience: Collection[PeerId] | None,
        voting: FinalizationVoting | None = None,
    ) -> bytes:
        """Announce a microblock that is not on its own chain; return the id of the total block."""
        pair = self.place.account
        chain_id = self.node.network.chain_id
        draft = blocks.extended(last, added, state_hash, bytes(SIGNATURE_LENGTH), voting=voting)
        signature = sign(pair.private_key, draft.signed)
        total = blocks.extended(last, added, state_hash, signature, voting=voting)
        message = own_microblock(total, last.id, len(added), pair.private_key, voting=voting)
        self.history.keep_microblock(total.id, message)
        inv = messages.announce(pair.private_key, pair.public_key, total.id, last.id, chain_id)
        self.say(inv, audience)
        return total.id


class InvalidMicroblocks(Equivocation):
    """Makes microblocks that overspend, or have a wrong state hash."""

    def make_block(self, slot: Slot) -> None:
        """Make a valid block."""
        Host.make_block(self, slot)

    def make_microblock(self) -> None:
        """Make an invalid microblock."""
        last = self.node.chain.last_block
        added = (self.transfer(2**62 if self.rng.random() < 0.5 else 1),)
        self.observer.forged(self._announce(last, added, bytes(32), None))


class JunkTransactions(Liar):
    """Floods others with garbage and invalid transactions."""

    def lie(self) -> None:
        """Send some of each kind."""
        for number in range(JUNK_AT_ONCE):
            match number % 3:
                case 0:
                    data = self.rng.randbytes(self.rng.randint(1, 300))
                case 1:
                    good = codec.encode_protobuf(self.transfer(number + 1))
                    data = good[:-1] + bytes((good[-1] ^ 1,))
                case _:
                    data = codec.encode_protobuf(self.transfer(2**62 + number))
            self.say(messages.ProtobufTransaction(data))


class Mole:
    """One of many connections of one attacker, which sends only a handshake and a score."""

    def __init__(self, owner: Eclipse, address: PeerAddress) -> None:
        self._owner = owner
        self.address = address

    def opened(self, end: End | None) -> None:
        """Send a handshake and a score."""
        if end is None or not end.is_open:
            return
        nonce = self._owner.rng.randrange(1, 2**31)
        hello = handshake.encode(own_handshake(self._owner.node, nonce, None))
        score = frames.encode(messages.Score(HUGE_SCORE))
        self._owner.links.send(end, hello + score)

    def accepted(self, end: End) -> None:
        """Never called, since it does not listen."""

    def received(self, end: End, data: bytes) -> None:
        """Ignore bytes."""

    def closed(self, end: End) -> None:
        """Ignore the end."""


class Eclipse(Liar):
    """Attempts an eclipse attack: many connections from many addresses, and lists of peers that do
    not exist.
    """

    def lie(self) -> None:
        """Dial a host from several addresses, and send bogus peers."""
        rng = self.rng
        bogus = tuple(
            PeerAddress(ipaddress.IPv4Address(_BOGUS_FROM + rng.randrange(2**16)), 6_868)
            for _ in range(BOGUS_PEERS)
        )
        self.say(messages.Peers(bogus))
        known = [each.address for each in self.core.book.connections.values()]
        victims = [each for each in known if each.port == self.address.port]
        if not victims:
            return
        for _ in range(MOLES_AT_ONCE):
            source = ipaddress.IPv4Address(_MOLES_FROM + rng.randrange(2**16))
            mole = Mole(self, PeerAddress(source, 1))
            self.links.dial(mole, rng.choice(victims), 1_000, mole.opened)


class WrongSnapshots(Liar):
    """Sends light nodes snapshots with wrong balances."""

    def answer(self, request: Message, version: Version) -> Message | None:
        """Send snapshots with wrong balances."""
        answer = super().answer(request, version)
        chain_id = self.node.network.chain_id
        match answer:
            case messages.BlockSnapshot(data=data):
                snapshot = snapshots.decode_block(data, chain_id)
                return messages.BlockSnapshot(snapshots.encode_block(self._wrong(snapshot)))
            case messages.MicroblockSnapshot(data=data):
                snapshot = snapshots.decode_microblock(data, chain_id)
                return messages.MicroblockSnapshot(
                    snapshots.encode_microblock(self._wrong(snapshot))
                )
            case _:
                return answer

    def _wrong(self, snapshot: BlockSnapshot) -> BlockSnapshot:
        found = list(snapshot.snapshots)
        if found:
            place = self.rng.randrange(len(found))
            all_balances = list(found[place].balances)
            if len(all_balances) > 1 and self.rng.random() < 0.5:
                # Keep the sum.
                one, other = all_balances[:2]
                shift = min(one.amount, 1_000)
                all_balances[0] = msgspec.structs.replace(one, amount=one.amount - shift)
                all_balances[1] = msgspec.structs.replace(other, amount=other.amount + shift)
                found[place] = msgspec.structs.replace(found[place], balances=tuple(all_balances))
            else:
                del found[place]
        return BlockSnapshot(snapshot.block_id, tuple(found))


class ConflictingEndorsements(Liar):
    """Endorses with other final blocks than those of the network, which costs its deposit."""

    def lie(self) -> None:
        """Name a final block that does not exist."""
        chain = self.node.chain
        self.endorse(
            self.rng.randbytes(32), chain.finalized_height, chain.last_block.header.reference
        )


class TwoFacedEndorsements(Liar):
    """Endorses everything that it sees on either side of a partition: its lines are never cut, but
    it carries no blocks from one side to the other.
    """

    def write(self, peer: PeerId, data: bytes) -> None:
        """Send neither blocks nor what announces them."""
        if _code_of(data) not in _OF_BLOCKS:
            super().write(peer, data)

    def witness(self, block: Block) -> None:
        """Endorse the parent, whatever it is."""
        chain = self.node.chain
        final = chain.finalized_height
        self.call_soon(lambda: self.endorse(chain.meta(final).id, final, block.header.reference))


class WithheldEndorsements(Liar):
    """Commits and makes key blocks, but neither endorses nor publishes the votes of others."""

    def write(self, peer: PeerId, data: bytes) -> None:
        """Send everything but endorsements."""
        if _code_of(data) != BY_RECORD[messages.EndorseBlock].code:
            super().write(peer, data)

    def make_microblock(self) -> None:
        """Publish nothing."""


class ForgedEndorsements(Liar):
    """Floods others with endorsements that are none: of others, of other rounds, of no form."""

    def lie(self) -> None:
        """Send some of each kind."""
        chain, rng = self.node.chain, self.rng
        final = chain.finalized_height
        committed = chain.generators_at(chain.height)
        count = 0 if committed is None else len(committed.committed)
        for number in range(FORGED_AT_ONCE):
            index = rng.choice((rng.randrange(max(1, count)), count, -1, 2**31 - 1))
            height = rng.choice((final, final - 1, final + 1, 0, 2**31 - 1))
            same = chain.meta(height).id if 1 <= height <= chain.height else bytes(32)
            forged = BlockEndorsement(
                index,
                rng.choice((same, rng.randbytes(32))),
                height,
                rng.choice((chain.last_block.header.reference, rng.randbytes(32))),
                rng.randbytes(bls.SIGNATURE_LENGTH),
            )
            data = encode_endorsement(forged)
            if number % 3 == 1:
                data = rng.randbytes(rng.randint(1, 2 * MAX_ENDORSEMENT_BYTES))
            self.say(messages.EndorseBlock(data))
            self.say(messages.EndorseBlock(data))


class FalseVotings(Equivocation):
    """Publishes votings that are wrong: votes of others without their signatures, for another
    block, and conflicts that are none.
    """

    def make_block(self, slot: Slot) -> None:
        """Make a valid block."""
        Host.make_block(self, slot)

    def make_microblock(self) -> None:
        """Publish a wrong voting with a valid transaction."""
        chain, last = self.node.chain, self.node.chain.last_block
        found = chain.generators_at(chain.height)
        others = [] if found is None else [m for m in found.members if m.address != self.own]
        if not others or chain.height < _LEAST_HEIGHT:
            super().make_microblock()
            return
        final, secret = chain.finalized_height, bls.generate_key(self.rng.randbytes(32))
        indexes = tuple(each.index for each in others)
        false = sign_endorsement(secret, indexes[0], bytes(32), final, last.header.reference)
        voting = self.rng.choice(
            (
                FinalizationVoting(indexes, final, false.signature),
                FinalizationVoting((indexes[0],) * 2, final, false.signature),
                FinalizationVoting((), final, None, (false,)),
                FinalizationVoting(indexes, chain.height, false.signature),
            )
        )
        added = (self.transfer(1),)
        progress = chain.liquid_progress()
        if progress is not None:
            run_steps(progress.adding(added, verify_signatures=False))
            self.observer.forged(self._announce(last, added, progress.snapshot_hash, None, voting))


FINALITY_LIARS: Final[Mapping[str, type[Liar]]] = {
    "conflicting-endorsements": ConflictingEndorsements,
    "two-faced-endorsements": TwoFacedEndorsements,
    "withheld-endorsements": WithheldEndorsements,
    "forged-endorsements": ForgedEndorsements,
    "false-votings": FalseVotings,
}
LIARS: Final[Mapping[str, type[Host]]] = {
    "scores": WrongScores,
    "withheld-blocks": WithheldBlocks,
    "invalid-blocks": InvalidBlocks,
    "equivocation": Equivocation,
    "invalid-microblocks": InvalidMicroblocks,
    "junk-transactions": JunkTransactions,
    "eclipse": Eclipse,
    "snapshots": WrongSnapshots,
    **FINALITY_LIARS,
}
