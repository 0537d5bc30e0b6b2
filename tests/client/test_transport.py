"""Connections of the library: in a program that has many open, and names that lead nowhere."""

from __future__ import annotations

import asyncio
import contextlib
import os
import resource
import socket
import threading
from collections.abc import Iterator

import pytest

from soliton import AsyncNode, Node, NodeUnreachable

FILES = 1_100
"""More than the 1,024 that ``select`` can look at."""
ANSWER = b'HTTP/1.1 200 OK\r\nContent-Length: 12\r\n\r\n{"height":5}'


@contextlib.contextmanager
def many_open_files() -> Iterator[None]:
    given, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    if most != resource.RLIM_INFINITY and most < 2 * FILES:
        pytest.skip("so many files cannot be open here")
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(given, 2 * FILES), most))
    opened = [os.open(os.devnull, os.O_RDONLY) for _ in range(FILES)]
    try:
        yield
    finally:
        for each in opened:
            os.close(each)
        resource.setrlimit(resource.RLIMIT_NOFILE, (given, most))


def _serve(server: socket.socket) -> None:
    connection, _ = server.accept()
    with connection:
        while connection.recv(4_096):
            connection.sendall(ANSWER)


def test_among_many_open_files() -> None:
    with many_open_files(), socket.create_server(("127.0.0.1", 0)) as server:
        thread = threading.Thread(target=_serve, args=(server,))
        thread.start()
        # The second question goes over the connection of the first.
        with Node(f"http://127.0.0.1:{server.getsockname()[1]}") as node:
            assert [node.height(), node.height()] == [5, 5]
        thread.join()


def test_names_that_no_host_can_have() -> None:
    url = "http://a..b"
    with pytest.raises(NodeUnreachable):
        Node(url, retries=0).height()
    with pytest.raises(NodeUnreachable):
        asyncio.run(AsyncNode(url, retries=0).height())
