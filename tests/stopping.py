"""Stopping processes as if they hung, and the states of processes, without programs that a small
system lacks.
"""

from __future__ import annotations

import os
import signal
import subprocess
import time
from pathlib import Path
from typing import Final

WAIT_SECONDS = 60.0
PROC: Final = Path("/proc")


def stop(process_id: int) -> None:
    """Stop a process with all its threads. After the signal alone they go on until one of them has
    received it, which takes long on a busy machine.
    """
    os.kill(process_id, signal.SIGSTOP)
    limit = time.monotonic() + WAIT_SECONDS
    while state_of(process_id) != "T":
        assert time.monotonic() < limit, f"process {process_id} goes on"
        time.sleep(0.01)


def lives(process_id: int) -> bool:
    """Whether there is such a process, which has not ended."""
    return state_of(process_id) not in ("", "Z")


def state_of(process_id: int) -> str:
    """The letter that ``ps`` has for the state of a process; empty where there is none."""
    if not (PROC / "self").exists():
        command = ("ps", "-o", "state=", "-p", str(process_id))
        return subprocess.run(command, capture_output=True, text=True, check=False).stdout[:1]
    fields = _fields(process_id)
    return fields[0] if fields else ""


def children_of(process_id: int) -> list[int]:
    """The processes that a process has started; it needs Linux."""
    found = [int(each.name) for each in PROC.iterdir() if each.name.isdigit()]
    return [each for each in found if _fields(each)[1:2] == [str(process_id)]]


def _fields(process_id: int) -> list[str]:
    """What the kernel tells behind the name, which may have blanks: state, parent and more."""
    try:
        line = (PROC / str(process_id) / "stat").read_text(errors="replace")
    except (FileNotFoundError, ProcessLookupError):
        return []
    return line.rpartition(")")[2].split()
