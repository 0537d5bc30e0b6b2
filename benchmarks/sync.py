"""A node that gets its chain from another one: ``python benchmarks/sync.py [FILE]``.

One node has the blocks of FILE (real mainnet blocks, ``u32 length ‖ block`` from height 2 on) and
serves them on loopback; another one begins with nothing and syncs from it. Prints CPU and wall
seconds of the one that syncs beside those of an import of the same file, what serving costs, and
how long the one that serves lets its clients wait meanwhile.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request
from pathlib import Path

from _devnet import PROGRAM, cpu_seconds

_SHARED = Path(os.environ.get("SOLITON_SHARED", Path(__file__).resolve().parents[2] / "shared"))
DEFAULT_FILE = _SHARED / "data" / "waves-mainnet-blocks-2-10000.bin"
LIMIT_SECONDS = 120
BAR_RATIO, BAR_SERVED, BAR_WAIT_MS = 1.35, 5_000, 20.0
CONFIGURATION = """
waves {
  blockchain.type = MAINNET
  directory = "%s"
  miner.enable = no
  network { bind-address = "127.0.0.1", port = 0, known-peers = [] }
  rest-api.port = 0
  wallet { file = "", seed = "4vJ9" }
}
"""


def configuration(directory: Path) -> Path:
    """The settings of a node that knows nobody."""
    directory.mkdir()
    path = directory / "node.conf"
    path.write_text(CONFIGURATION % directory)
    return path


class Running:
    """A node until it is stopped."""

    def __init__(self, config: Path, *options: str) -> None:
        self.process = subprocess.Popen(
            [PROGRAM, "run", "--config", str(config), *options],
            stderr=subprocess.PIPE,
            text=True,
            env={**os.environ, "PYTHONUNBUFFERED": "1"},
        )
        assert self.process.stderr is not None
        self.peer_port = self.url = ""
        for line in self.process.stderr:
            if match := re.search(r"peers on \S+:(\d+)", line):
                self.peer_port = match[1]
            if match := re.search(r"REST API on (http://\S+)", line):
                self.url = match[1]
                break
        threading.Thread(target=self.process.stderr.read, daemon=True).start()

    def height(self) -> int:
        """Its height, as a client hears it."""
        with urllib.request.urlopen(self.url + "/blocks/height", timeout=10) as answer:
            return int(re.sub(rb"\D", b"", answer.read()))

    def stop(self) -> None:
        """End it politely."""
        self.process.terminate()
        self.process.wait()


def main() -> None:
    """Import, then sync, then compare."""
    path = Path(sys.argv[1]) if len(sys.argv) > 1 else DEFAULT_FILE
    if not path.exists():
        print(f"sync: skipped, {path} is not here")
        return
    with tempfile.TemporaryDirectory() as directory:
        place = Path(directory)
        full, empty = configuration(place / "full"), configuration(place / "empty")
        before, started = os.times(), time.perf_counter()
        subprocess.run([PROGRAM, "import", "--config", full, path], check=True, capture_output=True)
        after = os.times()
        cpu = (after[2] + after[3]) - (before[2] + before[3])
        print(f"import: CPU {cpu:.1f} s, wall {time.perf_counter() - started:.1f} s")
        server = Running(full)
        try:
            sync(server, empty, cpu)
        finally:
            server.stop()


def sync(server: Running, empty: Path, imported: float) -> None:
    """Let a new node get everything from the server."""
    wanted, served = server.height(), cpu_seconds(server.process.pid)
    waits = []
    started = time.perf_counter()
    client = Running(empty, "--sync-from", f"127.0.0.1:{server.peer_port}")
    try:
        height = 0
        while height < wanted and time.perf_counter() - started < LIMIT_SECONDS:
            asked = time.perf_counter()
            server.height()
            waits.append((time.perf_counter() - asked) * 1_000)
            time.sleep(0.02)
            if len(waits) % 10 == 0:
                height = client.height()
        wall = time.perf_counter() - started
        cpu = cpu_seconds(client.process.pid)
        served = cpu_seconds(server.process.pid) - served
    finally:
        client.stop()
    waits.sort()
    p99 = waits[len(waits) * 99 // 100]
    print(f"sync:   CPU {cpu:.1f} s, wall {wall:.1f} s, height {height}; start included")
    print(f"ratio of CPU {cpu / imported:.2f} (bar {BAR_RATIO})")
    rate = height / served if served else 0.0
    print(f"serving: {rate:.0f} blocks per CPU second (bar {BAR_SERVED}/s)")
    print(f"GET at the server meanwhile: p99 {p99:.1f} ms (bar {BAR_WAIT_MS})")


if __name__ == "__main__":
    main()
