"""The worker process that verifies signatures and signs messages, over standard input and output.

Started by ``signatures`` and ``bulk_verifier``; ends with its input. It writes one byte when it is
ready. A request is four bytes of length and a pair of lists: of (key, message, signature) in the
form of ``crypto.signatures.prepare``, each answered by a byte, and of (private key, message,
signing point), each answered by a signature.
"""

from __future__ import annotations

import marshal
import os
import signal
import sys
from collections.abc import Sequence
from typing import Final

from soliton.crypto.curve25519 import SignedMessage, sign
from soliton.crypto.signatures import prepare, verify_prepared

COMMAND: Final = (sys.executable, "-P", "-m", "soliton.parallel._checker")
READY: Final = 4
"""Each form of the requests has a number of its own, since a running program may have been replaced
on the disk: it does without a worker that has another form.
"""
LENGTH_BYTES: Final = 4


def request(claims: Sequence[SignedMessage], unsigned: Sequence[object] = ()) -> bytes:
    """Encode a request: signatures to verify, and messages to sign."""
    data = marshal.dumps(([prepare(claim) for claim in claims], list(unsigned)))
    return len(data).to_bytes(LENGTH_BYTES, "big") + data


def serve() -> None:
    """Serve requests until the end of input."""
    try:
        _serve()
    except BrokenPipeError:
        # The parent was killed, so there is no one to answer, neither now nor at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _serve() -> None:
    # Ctrl-C goes to all processes of a terminal; this one ends when its parent closes the pipe.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    stdin, stdout = sys.stdin.buffer, sys.stdout.buffer
    stdout.write(bytes((READY,)))
    stdout.flush()
    while len(head := stdin.read(LENGTH_BYTES)) == LENGTH_BYTES:
        length = int.from_bytes(head, "big")
        payload = stdin.read(length)
        if len(payload) < length:
            return
        claims, unsigned = marshal.loads(payload)  # noqa: S302 - by our own parent
        # Verdicts are more urgent than signatures.
        stdout.write(bytes(claim is not None and verify_prepared(claim) for claim in claims))
        stdout.flush()
        for key, message, point in unsigned:
            stdout.write(sign(key, message, point=point))
        stdout.flush()


if __name__ == "__main__":
    serve()
