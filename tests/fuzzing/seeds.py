"""Valid encodings of everything that the decoders take: where fuzzing starts from."""

from __future__ import annotations

from collections.abc import Iterator
from ipaddress import IPv4Address

import msgspec

from soliton.chain import blocks, networks
from soliton.chain.addresses import from_public_key, make_alias
from soliton.chain.genesis import genesis_block
from soliton.chain.transactions import codec, data, payment, transfer
from soliton.chain.transactions.model import AnyTransaction, TransactionType
from soliton.chain.values import DataEntry
from soliton.crypto.keys import key_pair
from soliton.wire import frames, handshake, messages
from soliton.wire.handshake import Handshake, PeerAddress
from soliton.wire.versions import Version
from tests.fuzzing.decoders import CHAIN_ID, DECODERS
from tests.vectors import shared_root

SENDER = key_pair("fuzzing")
TO = from_public_key(SENDER.public_key, CHAIN_ID)


def _signed(kind: TransactionType, payload: object, version: int) -> AnyTransaction:
    unsigned = codec.build(
        kind,
        payload,
        version=version,
        chain_id=CHAIN_ID,
        sender_public_key=SENDER.public_key,
        fee=100_000,
        timestamp=1_600_000_000_000,
    )
    return codec.sign(unsigned, SENDER.private_key, bytes(64))


def transactions() -> list[AnyTransaction]:
    """Transactions of the common types in all their versions."""
    entries = (
        DataEntry("number", -(2**63)),
        DataEntry("flag", True),
        DataEntry("bytes", bytes(range(9))),
        DataEntry("text", "grüß"),
    )
    made = [_signed(payment.TYPE, payment.Payment(TO, 2**62), 1)]
    made += [
        _signed(transfer.TYPE, transfer.Transfer(to, asset, 1, b"attached"), version)
        for version in (1, 2, 3)
        for to, asset in ((TO, None), (make_alias("alice", CHAIN_ID), bytes(32)))
    ]
    made += [_signed(data.TYPE, data.Data(entries), version) for version in (1, 2)]
    made.append(_signed(data.TYPE, data.Data((DataEntry("gone", None),)), 2))
    return made


def seeds() -> Iterator[bytes]:
    """Inputs for ``decoders.one_input``: each valid encoding before every decoder's number."""
    pieces = [genesis_block(networks.load("waves-mainnet")).data]
    made = transactions()
    for transaction in made:
        pieces += (codec.encode(transaction), codec.encode_protobuf(transaction))
        pieces.append(msgspec.json.encode(codec.to_json(transaction)))
    header = blocks.BlockHeader(
        version=blocks.PROTOBUF_VERSION,
        chain_id=CHAIN_ID,
        timestamp=1,
        reference=bytes(32),
        base_target=1,
        generation_signature=bytes(96),
        generator=SENDER.public_key,
        feature_votes=(1, 2),
        transactions_root=blocks.transactions_root(tuple(made)),
        state_hash=bytes(32),
    )
    pieces.append(blocks.sign(header, tuple(made), SENDER.private_key, bytes(64)).data)
    pieces += [TO, b"3PAWwWa6GbwcJaFzwqXQN5KQm7H96Y7SHTQ", b"alias:W:alice"]
    pieces += _recorded()
    pieces.append(_conversation(pieces))
    for piece in pieces:
        for number in range(len(DECODERS)):
            yield bytes((number,)) + piece


def _conversation(pieces: list[bytes]) -> bytes:
    """A handshake, a message of each simple form, and some that carry pieces; a step before."""
    own = Handshake("wavesW", Version(1, 5, 7), "node", 7, None, 0)
    ids = (bytes(64), bytes(64))
    said: list[messages.Message] = [
        messages.GetPeers(),
        messages.Peers((PeerAddress(IPv4Address(1), 6868),)),
        messages.GetSignatures(ids),
        messages.GetBlockIds(ids),
        messages.Score(2**70),
        messages.GetBlock(bytes(32)),
        messages.MicroblockInv(SENDER.public_key, bytes(32), bytes(32), bytes(64)),
        *(messages.ProtobufTransaction(piece) for piece in pieces[1:4]),
    ]
    return b"\x10" + handshake.encode(own) + b"".join(map(frames.encode, said))


def _recorded() -> list[bytes]:
    """Recorded blocks of a private chain with all transaction types, where they are at hand."""
    path = shared_root() / "golden" / "waves-r" / "blocks-2-82.bin"
    if not path.exists():
        return []
    stored, offset, found = path.read_bytes(), 0, []
    while offset < len(stored):
        length = int.from_bytes(stored[offset : offset + 4], "big")
        # Another chain's byte makes every decoder refuse at once.
        block = stored[offset + 4 : offset + 4 + length].replace(b"\x08R", b"\x08W")
        found += [block[at : at + size] for at, size in blocks.transaction_spans(block)]
        offset += 4 + length
    return found
