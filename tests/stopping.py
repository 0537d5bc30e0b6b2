"""Stopping processes as if they hung."""

from __future__ import annotations

import os
import signal
import subprocess
import time

WAIT_SECONDS = 60.0


def stop(process_id: int) -> None:
    """Stop a process with all its threads. After the signal alone they go on until one of them has
    received it, which takes long on a busy machine.
    """
    os.kill(process_id, signal.SIGSTOP)
    limit = time.monotonic() + WAIT_SECONDS
    command = ("ps", "-o", "state=", "-p", str(process_id))
    while not subprocess.check_output(command, text=True).startswith("T"):
        assert time.monotonic() < limit, f"process {process_id} goes on"
        time.sleep(0.01)
