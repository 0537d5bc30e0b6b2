"""What services tell systemd, heard on a socket like its own."""

from __future__ import annotations

import os
import signal
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from soliton.cli.service_manager import notify, watchdog_seconds
from tests.cli.here import run_here
from tests.e2e.programs import WAIT_SECONDS, Program


@pytest.fixture
def manager() -> Iterator[socket.socket]:
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as listening:
        listening.settimeout(WAIT_SECONDS)
        yield listening


def address_of(manager: socket.socket, place: Path, *, abstract: bool) -> str:
    """Bind it, and return its address as systemd writes it."""
    name = str(place / "notify")
    manager.bind(f"\0{name}" if abstract else name)
    return f"@{name}" if abstract else name


def heard(manager: socket.socket, until: str) -> list[str]:
    """All states up to one."""
    found = [manager.recv(4_096).decode()]
    while found[-1] != until:
        found.append(manager.recv(4_096).decode())
    return found


SERVICES = {
    "run": ["run", "--network", "devnet", "--port=0", "--offline"],
    "signer": ["signer", "--port=0"],
    "data-service": ["data-service", "--port=0", "--dsn=host=127.0.0.1 port=1 user=nobody"],
}


@pytest.mark.parametrize("name", SERVICES)
def test_a_service_is_ready_alive_and_stops(
    name: str, manager: socket.socket, tmp_path: Path
) -> None:
    address = address_of(manager, tmp_path, abstract=name == "signer")
    arguments = [*SERVICES[name], *([f"--data-dir={tmp_path}/data"] if name == "run" else [])]
    environment = {"NOTIFY_SOCKET": address, "WATCHDOG_USEC": "300000", "HOME": str(tmp_path)}
    program = Program(arguments, environment)
    try:
        assert heard(manager, "READY=1") == ["READY=1"]
        assert {heard(manager, "WATCHDOG=1")[-1] for _ in range(3)} == {"WATCHDOG=1"}
    finally:
        program.send(signal.SIGTERM)
        code = program.wait()
        program.close()
    assert code == 0, program.output
    assert set(heard(manager, "STOPPING=1")) <= {"WATCHDOG=1", "STOPPING=1"}


def test_a_matcher_is_ready_before_its_node_answers(manager: socket.socket, tmp_path: Path) -> None:
    """Its clients then learn why it takes no orders; a manager would end it."""
    address = address_of(manager, tmp_path, abstract=False)
    environment = {"NOTIFY_SOCKET": address, "HOME": str(tmp_path)}
    made = run_here("matcher", "init", f"--data-dir={tmp_path}")
    assert made.returncode == 0, made.stderr
    options = [f"--data-dir={tmp_path}", "--port=0", "--node-url=http://127.0.0.1:1"]
    program = Program(["matcher", "run", *options], environment)
    try:
        assert heard(manager, "READY=1") == ["READY=1"]
    finally:
        program.close()


def test_nobody_listens(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for address in ("", str(tmp_path / "gone"), f"@{tmp_path}", "relative", "x" * 500, "/" * 500):
        monkeypatch.setenv("NOTIFY_SOCKET", address)
        notify("READY=1")
    monkeypatch.delenv("NOTIFY_SOCKET")
    notify("READY=1")


def test_when_signs_of_life_are_awaited() -> None:
    own, other = str(os.getpid()), str(os.getpid() + 1)
    assert watchdog_seconds({"WATCHDOG_USEC": "3000000"}) == 3
    assert watchdog_seconds({"WATCHDOG_USEC": "3000000", "WATCHDOG_PID": own}) == 3
    assert watchdog_seconds({"WATCHDOG_USEC": "3000000", "WATCHDOG_PID": other}) is None
    for text in ("", "0", "-1", "soon", "1.5", "²"):
        assert watchdog_seconds({"WATCHDOG_USEC": text}) is None
