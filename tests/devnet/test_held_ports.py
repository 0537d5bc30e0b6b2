"""The ports of a network of several nodes, between choosing them and listening on them."""

from __future__ import annotations

import contextlib
import socket
import sys

import pytest

from soliton.devnet.held_ports import HeldPorts
from soliton.errors import EnvironmentProblem
from soliton.web.server import bind

HOST = "127.0.0.1"


def answers(port: int) -> bool:
    with contextlib.suppress(ConnectionRefusedError), socket.create_connection((HOST, port)):
        return True
    return False


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere no port can be kept")
def test_a_port_is_kept_from_others_and_free_for_its_process() -> None:
    with contextlib.closing(HeldPorts(HOST)) as ports:
        port = ports.take(0, "--port")
        with socket.socket() as stranger, pytest.raises(OSError, match="in use"):
            stranger.bind((HOST, port))
        # Nothing listens yet; its process can, and again after its end.
        for _ in range(2):
            assert not answers(port)
            with bind(HOST, port) as listener:
                listener.listen()
                assert answers(port)
    with socket.socket() as stranger:
        stranger.bind((HOST, port))


def test_a_port_on_which_somebody_listens_is_refused() -> None:
    with bind(HOST, 0) as other, contextlib.closing(HeldPorts(HOST)) as ports:
        other.listen()
        port = other.getsockname()[1]
        with pytest.raises(EnvironmentProblem, match=f"already in use: --port {port} by process"):
            ports.take(port, "--port")
