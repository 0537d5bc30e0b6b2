"""What the library costs its user: ``python benchmarks/library.py``.

Prints the time to make and sign a transfer beside that of the signature alone, transfers sent one
after the other to a devnet, and the times of importing; beside them the floors: a signature, a
request that asks for nothing over a bare socket, and starting Python with nothing. CPU time is told
where the machine may be busy with something else.
"""

from __future__ import annotations

import http.client
import statistics
import subprocess
import sys
import time
from collections.abc import Callable

from _devnet import running

from soliton import Account, Node
from soliton.crypto import curve25519

ROUNDS = 7
TRANSFERS = 2_000
IMPORTS = 7
BAR_BUILD_US = 60
BAR_TRANSFERS = 1_500
BAR_IMPORT_MS = 150


def microseconds(work: Callable[[], object], count: int = 2_000) -> float:
    """CPU time of one call: the best of some rounds."""
    times = []
    for _ in range(ROUNDS):
        began = time.process_time()
        for _ in range(count):
            work()
        times.append((time.process_time() - began) / count)
    return min(times) * 1e6


def building() -> None:
    """A transfer made and signed, beside its signature."""
    alice = Account.from_seed("soliton devnet account 1", "R")
    bob = Account.from_seed("soliton devnet account 2", "R").address
    body = alice.transfer(bob, 1).body
    private_key = Account.from_seed("soliton devnet account 1", "R")._keys.private_key
    point = curve25519.signing_point(private_key)
    signature = microseconds(lambda: curve25519.sign(private_key, body, None, point))
    whole = microseconds(lambda: alice.transfer(bob, 1))
    as_json = microseconds(alice.transfer(bob, 1).to_json)
    print(f"a signature alone (floor)             {signature:8.1f} us CPU")
    print(
        f"a transfer made and signed            {whole:8.1f} us CPU: {whole - signature:.1f} "
        f"beside the signature (bar {BAR_BUILD_US})"
    )
    print(f"its JSON object                       {as_json:8.1f} us CPU")


def sending() -> None:
    """Transfers one after the other, each taken by the node before the next one is made."""
    with running() as devnet, Node(devnet.url) as node:
        alice = Account.from_seed("soliton devnet account 1", node.chain_id)
        bob = Account.from_seed("soliton devnet account 2", node.chain_id).address
        for _ in range(TRANSFERS // 4):
            node.send(alice.transfer(bob, 1))
        began, mine, its = time.perf_counter(), time.process_time(), devnet.cpu_seconds()
        for _ in range(TRANSFERS):
            node.send(alice.transfer(bob, 1))
        seconds = time.perf_counter() - began
        mine, its = time.process_time() - mine, devnet.cpu_seconds() - its
        bare = _bare_requests(devnet.port)
        print(
            f"transfers sent one after the other    {TRANSFERS / seconds:8.0f} /s "
            f"(bar {BAR_TRANSFERS}); CPU of each: library {mine / TRANSFERS * 1e6:.0f} us, devnet "
            f"{its / TRANSFERS * 1e6:.0f} us"
        )
        print(f"questions, over http.client (floor)   {bare:8.0f} /s")
        heights = _rate(node.height)
        print(f"questions, node.height()              {heights:8.0f} /s")


def _rate(work: Callable[[], object], count: int = 2_000) -> float:
    began = time.perf_counter()
    for _ in range(count):
        work()
    return count / (time.perf_counter() - began)


def _bare_requests(port: int) -> float:
    connection = http.client.HTTPConnection("127.0.0.1", port)

    def ask() -> None:
        connection.request("GET", "/blocks/height")
        connection.getresponse().read()

    rate = _rate(ask)
    connection.close()
    return rate


def importing() -> None:
    """Processes that do nothing but import."""
    for name, code, bar in (
        ("starting Python (floor)", "pass", ""),
        ("import soliton", "import soliton", f" (bar {BAR_IMPORT_MS})"),
        ("from soliton import Account", "from soliton import Account", ""),
        ("from soliton import Account, Node", "from soliton import Account, Node", ""),
        ("from soliton import AsyncNode", "from soliton import AsyncNode", ""),
    ):
        walls, cpus = zip(*(_started(code) for _ in range(IMPORTS)), strict=True)
        print(
            f"{name:37} {min(walls) * 1e3:8.0f} ms, median "
            f"{statistics.median(walls) * 1e3:.0f}, CPU {min(cpus) * 1e3:.0f}{bar}"
        )


def _started(code: str) -> tuple[float, float]:
    text = f"{code}\nimport time; print(time.process_time())"
    began = time.perf_counter()
    done = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, check=True)
    return time.perf_counter() - began, float(done.stdout)


if __name__ == "__main__":
    building()
    importing()
    sending()
