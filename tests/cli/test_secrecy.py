"""No process of the program leaves a core file, or lets its memory be read."""

from __future__ import annotations

import os
import resource
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from soliton.cli.secrecy import VARIABLE
from tests.e2e.programs import PROGRAM, devnet

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="it looks into /proc")

# With 3, prctl returns whether the process is dumpable.
QUESTION = "import ctypes; print(ctypes.CDLL(None).prctl(3, 0, 0, 0, 0), end=' ')"
LIMIT = "import resource; print(*resource.getrlimit(resource.RLIMIT_CORE), end='')"


def answer_of(program: str, **environment: str) -> str:
    done = subprocess.run(
        [sys.executable, "-c", program],
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
        env={**os.environ, **environment},
        preexec_fn=unlimited,
    )
    return done.stdout


def unlimited() -> None:
    """As after `ulimit -c unlimited`."""
    _, hard = resource.getrlimit(resource.RLIMIT_CORE)
    resource.setrlimit(resource.RLIMIT_CORE, (hard, hard))


def family(process_id: int) -> Iterator[int]:
    yield process_id
    children = Path(f"/proc/{process_id}/task/{process_id}/children").read_text().split()
    for each in map(int, children):
        yield from family(each)


@pytest.mark.parametrize("module", ["soliton.cli.entry", "soliton.devnet.beside"])
def test_what_every_command_and_worker_imports_first(module: str) -> None:
    assert answer_of(f"import {module}; {QUESTION}; {LIMIT}") == "0 0 0"


def test_a_developer_may_allow_it() -> None:
    program = f"import soliton.cli.entry; {QUESTION}"
    assert answer_of(program, **{VARIABLE: "allow"}) == "1 "
    assert answer_of(program, **{VARIABLE: "1"}) == "0 "


def test_a_command_that_waits_for_a_secret(tmp_path: Path) -> None:
    with subprocess.Popen(
        [PROGRAM, "keys", "import", "--phrase", "--name", "x", "--store", tmp_path / "keys"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        cwd=tmp_path,
        preexec_fn=unlimited,
        env={**os.environ, "SOLITON_KEYS_PASSWORD": "a long password"},
    ) as process:
        assert process.stdin is not None
        process.stdin.write(b"a very secret phrase")
        process.stdin.flush()
        # It reads to the end: it cannot have ended.
        wait_for_limit(process.pid)
        process.send_signal(signal.SIGSEGV)
        process.wait(60)
    assert not list(tmp_path.glob("core*"))


def wait_for_limit(process_id: int) -> None:
    end = time.monotonic() + 60
    while not has_no_core(process_id):
        assert time.monotonic() < end
        time.sleep(0.01)


def has_no_core(process_id: int) -> bool:
    text = Path(f"/proc/{process_id}/limits").read_text()
    line = next(each for each in text.splitlines() if each.startswith("Max core file size"))
    return line.split()[4:6] == ["0", "0"]


@pytest.mark.slow
@pytest.mark.parametrize("command", [("--nodes", "2"), ()])
def test_all_processes_of_a_devnet(tmp_path: Path, command: tuple[str, ...]) -> None:
    with devnet("--data-dir", tmp_path / "chain", *command, anew=True) as program:
        processes = list(family(program.process.pid))
        assert all(map(has_no_core, processes))
        if os.getuid():
            # Files of a process that is not dumpable belong to root.
            own = [each for each in processes if Path(f"/proc/{each}/environ").stat().st_uid]
            assert own == []
