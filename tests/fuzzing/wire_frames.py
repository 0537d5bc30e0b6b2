"""Handshakes and frames of strangers by the million: ``python -m tests.fuzzing.wire_frames COUNT``.

Each input is a valid handshake or frame that was damaged, or noise in a frame whose checksum is
right, and comes in pieces. A connection may answer with one of our faults and with nothing else,
what it holds is bounded, and what it understands must survive being written and read again; a block
or a snapshot that it lets through is looked into as the node does.
"""

from __future__ import annotations

import random
import sys
import time
from collections import Counter
from collections.abc import Callable

from soliton.chain import microblocks, snapshots
from soliton.errors import SolitonError
from soliton.p2p.identity import read_block
from soliton.wire import frames, handshake, messages
from soliton.wire.connection import Broken, Connection, HandshakeReceived, MessageReceived
from soliton.wire.errors import PeerFault
from soliton.wire.kinds import BY_CODE
from tests.fuzzing.decoders import DECODERS
from tests.fuzzing.seeds import seeds
from tests.wire.talk import R, framed, greeting, pieces

MAX_PAYLOAD = 3_000
"""Larger seeds are cut: it is about forms, and each byte costs time."""


def payloads() -> dict[int, list[bytes]]:
    """Payloads by code; any bytes will do where nothing better is at hand."""
    found: dict[int, list[bytes]] = {code: [b"", b"\x01" * 32, bytes(64)] for code in BY_CODE}
    for seed in seeds():
        data = seed[1:MAX_PAYLOAD]
        name = DECODERS[seed[0] % len(DECODERS)].__name__
        for part, codes in _CODES.items():
            if part in name:
                for code in codes:
                    found[code].append(data)
    ids = messages.BlockIds((bytes(32), b"\x07" * 64)).encode()
    for code in (32, 33):
        found[code].append(ids)
    found[24].append(b"\0\xff" * 4)
    found[2].append(b"\0\0\0\1\x7f\0\0\1\0\0\x1a\xd4")
    found[26].append(bytes(range(160)))
    return found


_CODES = {
    "transaction": (25, 31),
    "microblock": (28, 30),
    "block": (23, 29),
    "snapshot": (36, 37),
}


def damaged(data: bytes, chance: random.Random) -> bytes:
    """One of: as it is, a flipped bit, a cut, an insertion, a repetition, a huge number, noise."""
    if not data:
        return chance.randbytes(chance.randrange(4))
    found = bytearray(data)
    at = chance.randrange(len(found))
    match chance.randrange(7):
        case 0:
            pass
        case 1:
            found[at] ^= 1 << chance.randrange(8)
        case 2:
            del found[at:]
        case 3:
            found[at:at] = chance.randbytes(chance.randrange(1, 9))
        case 4:
            found += found[at:]
        case 5:
            found[at : at + 4] = chance.choice((b"\xff" * 4, b"\x7f\xff\xff\xff", b"\x80\0\0\0"))
        case _:
            found = bytearray(chance.randbytes(chance.randrange(80)))
    return bytes(found)


def _look_into(message: messages.Message) -> None:
    readers: dict[type, Callable[[bytes], object]] = {
        messages.LegacyBlock: lambda data: read_block(R, data),
        messages.ProtobufBlock: lambda data: read_block(R, data),
        messages.LegacyMicroblock: microblocks.peek_total_id,
        messages.ProtobufMicroblock: microblocks.peek_total_id,
        messages.BlockSnapshot: lambda data: (
            snapshots.peek_id(data),
            *snapshots.LazySnapshots(data, R),
        ),
        messages.MicroblockSnapshot: lambda data: (
            snapshots.peek_id(data),
            *snapshots.LazySnapshots(data, R),
        ),
    }
    reader = readers.get(type(message))
    if reader is not None:
        try:
            reader(message.data)  # type: ignore[union-attr]
        except SolitonError:
            return


def one(connection: Connection, data: bytes, chance: random.Random) -> str:
    """What became of these bytes: ``fault``, ``said``, or ``nothing``."""
    sizes = [chance.randrange(1, 40) for _ in range(3)] if chance.random() < 0.2 else []
    outcome = "nothing"
    for part in pieces(data, sizes):
        for event in connection.receive(part):
            if isinstance(event, Broken):
                assert isinstance(event.fault, PeerFault)
                assert event.fault.reason
                assert connection.receive(b"x") == []
                return "fault"
            if isinstance(event, MessageReceived):
                outcome = "said"
                if isinstance(event.message, messages.Score):
                    # Read without a sign and written with one; nobody sends those of others.
                    continue
                again = frames.encode(event.message)
                reader = frames.FrameReader()
                reader.feed(again)
                frame = reader.next()
                assert frame is not None
                assert frame.payload is not None
                assert frame.kind.record.decode(frame.payload) == event.message
                _look_into(event.message)
    assert connection.buffered <= frames.MAX_BUFFERED_BYTES
    return outcome


def run(count: int, seed: int = 1) -> Counter[str]:
    """So many inputs: outcomes by kind."""
    chance = random.Random(seed)
    all_payloads = payloads()
    codes = sorted(all_payloads)
    hello = handshake.encode(greeting(2))
    counts: Counter[str] = Counter()
    connection: Connection | None = None
    for _ in range(count):
        if chance.random() < 0.1:
            fresh = Connection(greeting(), "waves", R)
            counts["handshake " + _first(fresh, damaged(hello, chance), chance)] += 1
            continue
        if connection is None:
            connection = Connection(greeting(), "waves", R)
            connection.receive(hello)
            connection.introduce()
        code = chance.choice(codes)
        payload = damaged(chance.choice(all_payloads[code]), chance)
        data = framed(code, payload)
        if chance.random() < 0.1:
            data = damaged(data, chance)
        outcome = one(connection, data, chance)
        counts["frame " + outcome] += 1
        if outcome != "said":
            # What is left of a frame would swallow the next ones.
            connection = None
    return counts


def _first(connection: Connection, data: bytes, chance: random.Random) -> str:
    for part in pieces(data, [chance.randrange(1, 20) for _ in range(3)]):
        for event in connection.receive(part):
            if isinstance(event, HandshakeReceived):
                return "accepted"
            if isinstance(event, Broken):
                return "fault"
    assert connection.buffered <= handshake.MAX_BYTES
    return "nothing"


def main() -> None:
    """Run as many as the command line says."""
    count = int(sys.argv[1])
    since = time.perf_counter()
    counts = run(count, int(sys.argv[2]) if len(sys.argv) > 2 else 1)
    print(dict(counts), f"{count} inputs in {time.perf_counter() - since:.0f} s")


if __name__ == "__main__":
    main()
