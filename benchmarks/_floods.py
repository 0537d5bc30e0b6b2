"""Floods that unwanted clients send: frames of WebSockets, of HTTP/2 and of the peer protocol.

What lives here: their bytes, drawn by chance. What does not: requests (``_attacks``), sending them
(``attack``).
"""

from __future__ import annotations

import base64
import random
import struct

import hpack

from soliton.wire import frames, handshake, messages
from soliton.wire.handshake import Handshake
from soliton.wire.versions import ANNOUNCED

MAX_FLOOD = 2_000_000
"""Bytes of one flood; there are many clients at a time."""
_PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
_CALL = (
    (":method", "POST"), (":scheme", "http"), (":authority", "x"),
    (":path", "/waves.node.grpc.BlocksApi/GetCurrentHeight"), ("content-type", "application/grpc"),
    ("te", "trailers"),
)  # fmt: skip
_EMPTY_MESSAGE = bytes(5)
_HEADER_TABLE = hpack.Encoder().encode(_CALL)

Chance = random.Random


def _count(chance: Chance, size: int) -> int:
    return max(1, int(10 ** chance.uniform(2, 6.3)) // size)


def websocket(chance: Chance, path: str) -> bytes:
    """A handshake, and a flood of frames behind it."""
    key = base64.b64encode(chance.randbytes(16)).decode()
    head = (
        f"GET {path} HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
        f"Sec-WebSocket-Key: {key}\r\nSec-WebSocket-Version: 13\r\n\r\n"
    )
    mask = bytes(4)
    first, rest = chance.choice(
        (
            (b"\x01\x80" + mask, b"\x00\x80" + mask),  # empty continuations
            (b"\x01\x80" + mask, b"\x00\x81" + mask + b"x"),  # one byte each
            (b"", b"\x89\x80" + mask),  # pings
            (b"", b"\x89\xfd" + mask + bytes(125)),  # the longest pings
            (b"", b"\x8a\x80" + mask),  # pongs
            (b"", b"\x81\x80" + mask),  # empty messages
            (b"", b"\x81\x81" + mask + b"1"),  # tiny messages
            (b"", b"\x81\x82" + mask + b"{}"),
            (b"\x88\x80" + mask, b"\x89\x80" + mask),  # behind the end
            (b"\x01\x80" + mask, b"\x89\x80" + mask + b"\x00\x80" + mask),  # pings between
            (b"\x81\xfe\xff\xff" + mask, b"\xff"),  # a text that is none
        )
    )
    return head.encode() + first + rest * _count(chance, len(rest))


def _frame(kind: int, flags: int = 0, stream: int = 0, body: bytes = b"") -> bytes:
    return len(body).to_bytes(3, "big") + bytes((kind, flags)) + stream.to_bytes(4, "big") + body


def http2(chance: Chance) -> bytes:
    """A beginning of HTTP/2, and a flood of frames behind it."""
    call = _frame(1, 4, 1, _HEADER_TABLE)

    def calls(behind: bytes, flags: int) -> bytes:
        """Many calls, each with frames behind it that have its number."""
        parts = []
        for number in range(1, 2 * _count(chance, 60), 2):
            stream = number.to_bytes(4, "big")
            parts.append(_frame(1, flags, number, _HEADER_TABLE))
            parts.append(behind.replace(b"NNNN", stream))
        return b"".join(parts)

    reset = struct.pack(">I", 4)[1:] + b"\x03\x00NNNN" + struct.pack(">I", 8)
    data = len(_EMPTY_MESSAGE).to_bytes(3, "big") + b"\x00\x01NNNN" + _EMPTY_MESSAGE
    kind = chance.randrange(11)
    flood = {
        0: lambda: _frame(6, 0, 0, bytes(8)) * _count(chance, 17),  # pings
        1: lambda: _frame(4) * _count(chance, 9),  # settings
        2: lambda: _frame(4, 0, 0, struct.pack(">HI", 4, 1) * 100) * _count(chance, 609),
        3: lambda: calls(reset, 4),  # rapid resets
        4: lambda: calls(data, 4),  # honest calls, many
        5: lambda: calls(b"", 4),  # calls without a request
        6: lambda: call + _frame(0, 0, 1) * _count(chance, 9),  # empty data
        7: lambda: _frame(1, 0, 1, b"") + _frame(9, 0, 1, b"\x82") * _count(chance, 10),
        8: lambda: call + _frame(8, 0, 1, struct.pack(">I", 1)) * _count(chance, 13),
        9: lambda: _frame(2, 0, 3, bytes(5)) * _count(chance, 14),  # priorities
        10: lambda: _frame(1, 5, 1, b"\x40\x01a\x7f\x80\x01" + b"a" * 255 + b"\xbe" * 14_000),
    }[kind]()
    return (_PREFACE + _frame(4) + flood)[: 4 * MAX_FLOOD]


def peer(chance: Chance) -> bytes:
    """A peer's handshake, and a flood of messages behind it."""
    hello = handshake.encode(
        Handshake("wavesR", ANNOUNCED["waves"], "stranger", chance.getrandbits(62), None, 1)
    )
    one = chance.choice(
        (
            lambda: frames.encode(messages.GetPeers()),
            lambda: frames.encode(messages.GetSignatures((chance.randbytes(64),) * 50)),
            lambda: frames.encode(messages.GetBlock(chance.randbytes(32))),
            lambda: frames.encode(messages.Score(chance.getrandbits(200))),
            lambda: frames.encode(messages.GetPeers())[:-1] + b"\xff",
            lambda: struct.pack(">IIBi", 9, frames.MAGIC, chance.randrange(256), 0),
            lambda: chance.randbytes(100),
        )
    )()
    flood = one * _count(chance, len(one))
    return hello + flood if chance.random() < 0.9 else flood
