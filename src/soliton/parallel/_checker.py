"""The process beside: reads messages from its standard input, and writes whether their signatures
are valid, or signs them.

Started by ``signatures``; ends with its input. A request is four bytes of length and a pair of
MessagePack lists: of (key, message, signature), for each of which a byte is answered, and of
(private key, message, signing point), for each of which a signature is. A byte says that it is
ready.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Sequence
from typing import Final

import msgspec

from soliton.crypto.curve25519 import SignedMessage, sign, verify

COMMAND: Final = (sys.executable, "-P", "-m", "soliton.parallel._checker")
READY: Final = 2
LENGTH_BYTES: Final = 4
_encode: Final = msgspec.msgpack.Encoder().encode


def request(claims: Sequence[object], unsigned: Sequence[object] = ()) -> bytes:
    """What the process is sent: signatures to check, and what it shall sign."""
    data = _encode((claims, unsigned))
    return len(data).to_bytes(LENGTH_BYTES, "big") + data


def main() -> None:
    """Until there is no more input."""
    # Ctrl-C goes to all processes of a terminal; this one ends when its parent lets go of it.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    given, taken = sys.stdin.buffer, sys.stdout.buffer
    decode = msgspec.msgpack.Decoder(
        tuple[list[SignedMessage], list[tuple[bytes, bytes, bytes]]]
    ).decode
    taken.write(bytes((READY,)))
    taken.flush()
    while len(head := given.read(LENGTH_BYTES)) == LENGTH_BYTES:
        length = int.from_bytes(head, "big")
        question = given.read(length)
        if len(question) < length:
            return
        claims, unsigned = decode(question)
        # Somebody waits for the verdicts.
        taken.write(bytes(verify(*claim) for claim in claims))
        taken.flush()
        for key, message, point in unsigned:
            taken.write(sign(key, message, point=point))
        taken.flush()


if __name__ == "__main__":
    try:
        main()
    except BrokenPipeError:
        # Whoever asked was killed: nobody is left to be told, neither now nor at the end.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
