"""A devnet in a process of its own, for the benchmarks: start, measure from outside, stop.

What lives here: the process and what the system says about it. What does not: any load.
"""

from __future__ import annotations

import contextlib
import os
import re
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import IO

PROGRAM = Path(sys.executable).parent / "soliton"
TICKS = os.sysconf("SC_CLK_TCK")
ENDING_SECONDS = 0.2
LAST_WORDS_BYTES = 16 * 1024
FREE_PORTS = ("--port", "0", "--signer-port", "0", "--matcher-port", "0")


class Devnet:
    """A running one; ``ready_seconds`` is the time from its start to its first answer."""

    def __init__(
        self, process: subprocess.Popen[str], urls: dict[str, str], ready_seconds: float
    ) -> None:
        self.process = process
        self.url = urls["node"]
        self.matcher_url = urls["matcher"]
        self.signer_url = urls["signer"]
        self.grpc_port = port_of(urls["gRPC"]) if "gRPC" in urls else 0
        self.ready_seconds = ready_seconds

    @property
    def port(self) -> int:
        """Where the REST API listens."""
        return port_of(self.url)

    def cpu_seconds(self) -> float:
        """CPU that the process and those that it has started have used so far."""
        return cpu_seconds(self.process.pid)

    def megabytes(self) -> float:
        """Memory of the process now."""
        text = Path(f"/proc/{self.process.pid}/status").read_text()
        found = re.search(r"VmRSS:\s+(\d+) kB", text)
        return int(found[1]) / 1024 if found else 0.0

    def check(self) -> None:
        """Ask for the node's status."""
        with urllib.request.urlopen(self.url + "/node/status") as response:
            response.read()


def port_of(url: str) -> int:
    """Where something listens."""
    return int(url.rsplit(":", 1)[1])


def cpu_seconds(process_id: int) -> float:
    """CPU that a process and its children have used so far."""
    children = Path(f"/proc/{process_id}/task/{process_id}/children").read_text().split()
    return sum(_own_cpu_seconds(number) for number in (process_id, *map(int, children)))


def _own_cpu_seconds(process_id: int) -> float:
    fields = Path(f"/proc/{process_id}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / TICKS


@contextlib.contextmanager
def running(*options: str) -> Iterator[Devnet]:
    """A devnet on free ports with a temporary directory, stopped afterwards."""
    started = time.perf_counter()
    with tempfile.TemporaryFile() as words:
        process = subprocess.Popen(
            [PROGRAM, "devnet", *FREE_PORTS, "--heartbeat", "0", *options],
            stdout=subprocess.PIPE,
            stderr=words,
            text=True,
            env={**os.environ, "PYTHONUNBUFFERED": "1", "PYTHONFAULTHANDLER": "1"},
        )
        with _stopped(process, words):
            yield _begun(process, started)


def _begun(process: subprocess.Popen[str], started: float) -> Devnet:
    """Wait until it says that it is ready, and has answered."""
    assert process.stdout is not None
    urls = {}
    for line in process.stdout:
        if match := re.match(r"\s+(node|signer|matcher|gRPC) +(\S+:\d+)\S*", line):
            urls[match[1]] = match[2]
        if line.startswith("Ready."):
            break
    if not urls:
        raise SystemExit("the devnet did not start")
    devnet = Devnet(process, urls, 0.0)
    devnet.check()
    devnet.ready_seconds = time.perf_counter() - started
    return devnet


@contextlib.contextmanager
def _stopped(process: subprocess.Popen[str], words: IO[bytes]) -> Iterator[None]:
    """Stop it afterwards. If it has ended by then, print how, and its last words."""
    try:
        yield
    finally:
        with contextlib.suppress(subprocess.TimeoutExpired):
            # Whoever saw its connections end may be quicker than the system.
            process.wait(ENDING_SECONDS)
        unasked = process.poll()
        process.terminate()
        process.communicate()
        if unasked is not None:
            words.seek(max(0, words.seek(0, os.SEEK_END) - LAST_WORDS_BYTES))
            print(f"the devnet has ended unasked, with {unasked}; its last words:", flush=True)
            print(words.read().decode(errors="replace"), flush=True)
