"""Everything that takes bytes from strangers, behind one function for fuzzers.

The first byte of an input chooses the decoder, the rest is its input. A decoder may refuse with one
of our own errors and with nothing else; what it accepts must survive being written and read again.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import msgspec

from soliton.chain import addresses, blocks, microblocks, snapshots
from soliton.chain.transactions import codec
from soliton.chain.transactions.json_reader import read_signed
from soliton.chain.transactions.model import AnyTransaction
from soliton.crypto import base58
from soliton.errors import SolitonError
from soliton.wire.connection import Connection, MessageReceived
from soliton.wire.handshake import Handshake
from soliton.wire.kinds import BY_RECORD
from soliton.wire.versions import Version

CHAIN_ID: Final = ord("W")


def _legacy_transaction(data: bytes) -> None:
    transaction = codec.decode_legacy(data, CHAIN_ID)
    again = codec.decode_legacy(codec.encode(transaction), transaction.chain_id)
    assert again == transaction
    _usual_handling(transaction)


def _protobuf_transaction(data: bytes) -> None:
    transaction = codec.decode_protobuf(data, CHAIN_ID)
    own = codec.encode_protobuf(transaction)
    assert codec.decode_protobuf(own, CHAIN_ID) == transaction
    assert codec.decode_trusted(own, CHAIN_ID) == transaction
    _usual_handling(transaction)


def _usual_handling(transaction: AnyTransaction) -> None:
    """What happens to any transaction that came in."""
    msgspec.json.encode(codec.to_json(transaction))
    codec.validate(transaction)


def _json_transaction(data: bytes) -> None:
    try:
        value = msgspec.json.decode(data)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return
    if isinstance(value, dict):
        codec.encode(read_signed(value, CHAIN_ID))


def _block(data: bytes) -> None:
    block = blocks.decode(data, CHAIN_ID)
    spans = blocks.transaction_spans(block.data)
    assert len(spans) == len(block.transactions)
    assert blocks.decode(block.data, CHAIN_ID) == block


def _text(data: bytes) -> None:
    text = data.decode("utf-8", "replace")
    assert base58.encode(base58.decode(text)) == text
    addresses.parse_claimed_recipient(text, CHAIN_ID)


def _conversation(data: bytes) -> None:
    """Handshake and frames, in pieces of a length that the first byte says."""
    own = Handshake("wavesW", Version(1, 5, 7), "", 1, None, 0)
    talking = Connection(own, "waves", CHAIN_ID)
    step = 1 + (data[0] if data else 0)
    for start in range(1, len(data), step):
        for event in talking.receive(data[start : start + step]):
            if isinstance(event, MessageReceived):
                kind = BY_RECORD[type(event.message)]
                assert kind.record.decode(event.message.encode()) == event.message
        assert talking.buffered <= len(data)


DECODERS: Final[tuple[Callable[[bytes], object], ...]] = (
    _legacy_transaction,
    _protobuf_transaction,
    _json_transaction,
    _block,
    lambda data: microblocks.decode(data, CHAIN_ID),
    lambda data: snapshots.decode_block(data, CHAIN_ID),
    lambda data: snapshots.decode(data, CHAIN_ID),
    _text,
    _conversation,
)


def one_input(data: bytes) -> None:
    """Feed one input to the decoder that its first byte names."""
    if not data:
        return
    decode = DECODERS[data[0] % len(DECODERS)]
    try:
        decode(data[1:])
    except SolitonError:
        return
