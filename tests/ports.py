"""Ports for programs of the tests."""

from __future__ import annotations

import atexit
import socket

_held: list[socket.socket] = []


def free_port() -> int:
    """A port that nobody listens on. Until the tests end the system gives it to nobody who asks for
    any port, so that a program can be told to listen there.
    """
    held = socket.socket()
    held.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    held.bind(("127.0.0.1", 0))
    _held.append(held)
    port: int = held.getsockname()[1]
    return port


@atexit.register
def _release() -> None:
    for held in _held:
        held.close()
