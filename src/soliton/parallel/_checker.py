"""The process beside: reads signed messages from its standard input and writes a verdict for each.

Started by ``signatures``; ends with its input. A request is four bytes of length and a MessagePack
list of (key, message, signature); the answer is a byte for each, after one byte when it is ready.
"""

from __future__ import annotations

import signal
import sys
from typing import Final

import msgspec

from soliton.crypto.curve25519 import SignedMessage, verify

READY: Final = 2
LENGTH_BYTES: Final = 4


def main() -> None:
    """Until there is no more input."""
    # Ctrl-C goes to all processes of a terminal; this one ends when its parent lets go of it.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    given, taken = sys.stdin.buffer, sys.stdout.buffer
    decode = msgspec.msgpack.Decoder(list[SignedMessage]).decode
    taken.write(bytes((READY,)))
    taken.flush()
    while head := given.read(LENGTH_BYTES):
        items = decode(given.read(int.from_bytes(head, "big")))
        taken.write(bytes(verify(*item) for item in items))
        taken.flush()


if __name__ == "__main__":
    main()
