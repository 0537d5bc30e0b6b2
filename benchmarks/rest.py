"""The seven figures of the REST API: ``python benchmarks/rest.py``.

A devnet in a process of its own serves a chain with one block of 4,500 transfers and an empty one
above it. ``wrk`` (2 threads, 32 connections; without it a load generator of ours) asks each route
for some seconds; printed is the CPU of the server process for each request, beside the bar. While
the big block is asked for, another client asks for the height all the time: its longest wait is the
stall; beside it stands what it waits without that load. Last come 60,000 signed transfers in equal
parts with no block between them, so that the pool grows: its cost must stay flat.

``--seconds N`` for steadier figures, ``--only TEXT`` for some of the rows, ``--workers N`` for
``rest-api.workers``.
"""

from __future__ import annotations

import argparse
import http.client
import tempfile
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import msgspec
from _devnet import Devnet, running
from _load import CONNECTIONS, THREADS, get_for, post_all, tool
from broadcast import signed_transfers

from soliton.chain.transactions import codec
from soliton.crypto import base58
from soliton.crypto.keys import key_pair
from soliton.devnet.accounts import RICH_SEED
from soliton.node.node import Node
from soliton.node.settings import load_settings
from soliton.node.wallet import Wallet

SECONDS = 4.0
BIG_BLOCK = 4_500
POOL = 60_000
HEAVY = 1_000
"""A bar above this is that of the big block."""
PARTS = 6
NO_BLOCKS_SECONDS = 86_400
BROADCAST_PER_SECOND = 6_000
STALL_MS = 5.0
FLAT = 1.25
"""The last parts may cost this much more than the first ones: as many of each as ``COMPARED``. One
part alone may be dear because the machine was slow for these seconds.
"""
COMPARED = 2
ADDRESS = "3M4qwDomRabJKLZxuXhwfqLApQkU592nWxF"


@dataclass(frozen=True)
class Row:
    """A route to ask, and what one request may cost in microseconds of CPU."""

    path: str
    bar: float


def make_chain(directory: Path) -> tuple[int, str]:
    """A chain with a block of transfers and an empty one above: its height, a transaction's id."""
    settings = load_settings(network="devnet", data_dir=directory)
    node = Node(settings, Wallet.open(None, None, RICH_SEED.encode()))
    try:
        account = key_pair(RICH_SEED)
        node.mine(account)
        transfers = signed_transfers(BIG_BLOCK)
        for transfer in transfers:
            node.pool.add(transfer, verify_signature=False)
        block = node.mine(account)
        if len(block.transactions) != BIG_BLOCK:
            raise SystemExit(f"the block took {len(block.transactions)} transactions")
        height = node.chain.height
        node.mine(account)
        return height, base58.encode(transfers[0].id)
    finally:
        node.close()


def rows(height: int, transaction_id: str) -> list[Row]:
    """What is asked, in the order of the bars."""
    return [
        Row("/node/status", 40),
        Row("/blocks/height", 40),
        Row(f"/addresses/balance/{ADDRESS}", 60),
        Row(f"/transactions/info/{transaction_id}", 90),
        Row("/blocks/last", 80),
        Row(f"/blocks/at/{height}", 40_000),
    ]


class Watcher:
    """A client that asks for the height again and again and keeps its waits in ms."""

    def __init__(self, port: int) -> None:
        self.waits: list[float] = []
        self._port = port
        self._end = threading.Event()
        self._thread = threading.Thread(target=self._ask)

    def _ask(self) -> None:
        connection = http.client.HTTPConnection("127.0.0.1", self._port)
        while not self._end.is_set():
            started = time.perf_counter()
            connection.request("GET", "/blocks/height")
            connection.getresponse().read()
            self.waits.append((time.perf_counter() - started) * 1000)
            time.sleep(0.001)
        connection.close()

    def during(self, work: Callable[[], None]) -> list[float]:
        """The waits while ``work`` runs, the longest last."""
        self._thread.start()
        work()
        self._end.set()
        self._thread.join()
        return sorted(self.waits)


def verdict(value: float, bar: float, *, at_least: bool = False) -> str:
    """Whether a bar is reached."""
    return "reached" if (value >= bar if at_least else value <= bar) else "MISSED"


def measure_reads(devnet: Devnet, found: list[Row], seconds: float) -> None:
    """Print the CPU for each request of the routes."""
    for row in found:
        get_for(devnet.port, row.path, 0.5)
        before = devnet.cpu_seconds()
        count, errors, elapsed = get_for(devnet.port, row.path, seconds)
        each = (devnet.cpu_seconds() - before) / max(1, count) * 1e6
        remark = f"  {errors} errors" if errors else ""
        print(
            f"{row.path[:44]:<46}{each:>10,.1f} us  at most {row.bar:>9,.0f}  "
            f"{verdict(each, row.bar)}  {count / elapsed:>9,.0f}/s{remark}",
            flush=True,
        )


def measure_first(devnet: Devnet, path: str) -> None:
    """Print what the big block takes when nobody has asked for it yet."""
    took = []

    def ask() -> None:
        time.sleep(0.2)
        connection = http.client.HTTPConnection("127.0.0.1", devnet.port)
        started = time.perf_counter()
        connection.request("GET", path)
        connection.getresponse().read()
        took.append((time.perf_counter() - started) * 1000)
        connection.close()
        time.sleep(0.2)

    before = devnet.cpu_seconds()
    waits = Watcher(devnet.port).during(ask)
    used = (devnet.cpu_seconds() - before) * 1000
    print(
        f"{path} for the first time: {took[0]:.0f} ms, not more than {used:.0f} ms of CPU; "
        f"longest wait of another client meanwhile {waits[-1]:.1f} ms",
        flush=True,
    )


def measure_stall(devnet: Devnet, path: str, seconds: float) -> None:
    """Print the longest wait of another client while one client asks for the big block."""

    def big() -> None:
        connection = http.client.HTTPConnection("127.0.0.1", devnet.port)
        end = time.perf_counter() + seconds
        while time.perf_counter() < end:
            connection.request("GET", path)
            connection.getresponse().read()
        connection.close()

    calm = Watcher(devnet.port).during(lambda: time.sleep(seconds))
    busy = Watcher(devnet.port).during(big)
    p99 = busy[int(len(busy) * 0.99)]
    print(
        f"{'  longest wait of another client meanwhile':<46}{busy[-1]:>10.1f} ms  "
        f"at most {STALL_MS:>9.0f}  {verdict(busy[-1], STALL_MS)}  "
        f"(p99 {p99:.1f} ms; {calm[-1]:.1f} ms without the load)",
        flush=True,
    )


def measure_broadcast(workers: int) -> None:
    """Print accepted transfers a second while the pool grows."""
    bodies = [msgspec.json.encode(codec.to_json(item)) for item in signed_transfers(POOL)]
    costs, rates = [], []
    options = ("--block-time", str(NO_BLOCKS_SECONDS), "--workers", str(workers))
    with running(*options) as devnet:
        part = POOL // PARTS
        for index in range(PARTS):
            chunk = bodies[index * part : (index + 1) * part]
            before = devnet.cpu_seconds()
            load = post_all(devnet.port, "/transactions/broadcast", chunk, "application/json")
            costs.append((devnet.cpu_seconds() - before) / load.answered * 1e6)
            rates.append(load.per_second)
            print(
                f"  broadcast, pool {index * part:>6,} to {(index + 1) * part:>6,}"
                f"{load.per_second:>18,.0f}/s  {costs[-1]:>6.1f} us each  "
                f"p50 {load.p50_ms:.1f} ms  p99 {load.p99_ms:.1f} ms  "
                f"{load.accepted} of {load.answered} accepted",
                flush=True,
            )
        memory = devnet.megabytes()
    mean = len(rates) / sum(1 / rate for rate in rates)
    growth = sum(costs[-COMPARED:]) / sum(costs[:COMPARED])
    print(
        f"{'broadcast':<46}{mean:>10,.0f}/s  at least {BROADCAST_PER_SECOND:>8,}  "
        f"{verdict(mean, BROADCAST_PER_SECOND, at_least=True)}  "
        f"(the last two parts {growth:.2f} of the first two: {verdict(growth, FLAT)}; "
        f"dearest {max(costs) / min(costs):.2f} of the cheapest; {memory:.0f} MB)"
    )


def main(seconds: float, only: str, workers: int) -> None:
    """Print the table."""
    print(
        "CPU of the server for each request; "
        f"{tool()}, {THREADS} threads, {CONNECTIONS} connections"
    )
    with tempfile.TemporaryDirectory() as name:
        directory = Path(name)
        height, transaction_id = make_chain(directory)
        found = [row for row in rows(height, transaction_id) if only in row.path]
        if found:
            options = ("--data-dir", name, "--block-time", str(NO_BLOCKS_SECONDS))
            options += ("--workers", str(workers))
            with running(*options) as devnet:
                if found[-1].bar > HEAVY:
                    measure_first(devnet, found[-1].path)
                measure_reads(devnet, found, seconds)
                if found[-1].bar > HEAVY:
                    measure_stall(devnet, found[-1].path, seconds)
    if only in "broadcast":
        measure_broadcast(workers)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=SECONDS)
    parser.add_argument("--only", default="")
    parser.add_argument("--workers", type=int, default=0)
    arguments = parser.parse_args()
    main(arguments.seconds, arguments.only, arguments.workers)
