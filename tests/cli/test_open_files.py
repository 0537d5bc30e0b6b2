"""A program has files to open while as many clients as may be are connected, also where the system
gives it few at first.
"""

from __future__ import annotations

import resource
import socket
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

import pytest

from soliton.cli import process
from tests.e2e.programs import call, devnet

FEW = 128
MORE = 150


@contextmanager
def few_open_files() -> Iterator[None]:
    """What is started meanwhile may open few files, unless it asks for more."""
    usual, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (FEW, most))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (usual, most))


def test_clients_that_rest_leave_files_to_open() -> None:
    with ExitStack() as stack:
        with few_open_files():
            program = stack.enter_context(devnet())
        host, port = program.node_url.removeprefix("http://").split(":")
        for _ in range(MORE):
            stack.enter_context(socket.create_connection((host, int(port)), 10))
        source = "{-# STDLIB_VERSION 6 #-}\ntrue"
        assert call(f"{program.node_url}/utils/script/compileCode", source).status == 200


def test_a_low_limit_is_reported(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(resource, "getrlimit", lambda _kind: (64, 64))
    process._raise_file_limit()
    (line,) = caplog.messages
    assert "may open 64 files only" in line and "ulimit -n" in line
