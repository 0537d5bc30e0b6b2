"""How many orders a second the matcher takes: ``python benchmarks/matcher.py``.

A matcher in a process of its own, with its journal on disk and one worker before it
(``rest-api.workers``, as ``soliton matcher init`` sets it up), gets orders that were signed before,
over REST: first over 32 connections, half of them matching what rests, from a load generator on the
same machine; then over one connection. Then the order book of depth 100 is asked for over and over.
Prints orders a second, times, and the matcher's CPU for each, beside what the issue asks for; how
long the disk takes to confirm a write, below which no order on one connection can be; and all of it
once more for a matcher without workers.

The 32 connections get several rounds, each with a new matcher: a host that others use as well makes
a round slower and never faster, so that the fastest says most about the matcher, and how far apart
they are says how much the host had to do with it. ``--count N`` for another number of orders,
``--rounds N`` of rounds, ``--workers N`` of workers.
"""

from __future__ import annotations

import argparse
import http.client
import os
import re
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from _devnet import cpu_seconds
from _load import CONNECTIONS, Load, get_for, post_all, tool
from _matcher_server import DOLLAR, MATCHER, NETWORK
from _orders import Market

from soliton.chain.orders import Side
from soliton.crypto import base58
from soliton.crypto.keys import key_pair

COUNT = 40_000
ROUNDS = 3
WORKERS = 1
ONE_BY_ONE = 1_000
DEPTH_SECONDS = 4.0
ACCOUNTS = 100
LEVELS = 200
COIN = 10**8
PRICE = 25_000
BAR_PER_SECOND = 4_000
BAR_P99_MS = 40.0
BAR_MEDIAN_MS = 1.5
BAR_DEPTH_US = 80.0
PATH = "/matcher/orderbook"
MARKET = Market(NETWORK.chain_id, MATCHER.public_key, None, DOLLAR)
BOOK = f"{PATH}/WAVES/{base58.encode(DOLLAR)}?depth=100"


@dataclass(frozen=True)
class Server:
    """A running matcher."""

    process: subprocess.Popen[str]
    port: int

    def cpu_seconds(self) -> float:
        """CPU that the process and those around it have used so far."""
        return cpu_seconds(self.process.pid)


@contextmanager
def serving(workers: int) -> Iterator[Server]:
    """A matcher with an empty journal, ended afterwards."""
    here = Path(__file__).parent
    with tempfile.TemporaryDirectory(dir=here.parent, prefix=".benchmark-") as directory:
        program = [sys.executable, str(here / "_matcher_server.py"), directory, str(workers)]
        process = subprocess.Popen(program, stdout=subprocess.PIPE, text=True)
        try:
            assert process.stdout is not None
            found = re.match(r"port (\d+)", process.stdout.readline())
            if found is None:
                raise SystemExit("the matcher did not start")
            yield Server(process, int(found[1]))
        finally:
            process.kill()
            process.wait()


def make_bodies(count: int, seed: str) -> list[bytes]:
    """Orders as clients send them: a sale, then a purchase that takes it, at moving prices."""
    keys = [key_pair(f"{seed} {number}") for number in range(ACCOUNTS)]
    now = time.time_ns() // 1_000_000
    return [
        MARKET.order(
            keys[number % ACCOUNTS],
            Side.BUY if number % 2 else Side.SELL,
            COIN,
            PRICE,
            now=now,
            number=number // ACCOUNTS,
        )
        for number in range(count)
    ]


def make_levels() -> list[bytes]:
    """Orders that rest, each at a price of its own."""
    keys = key_pair("levels")
    now = time.time_ns() // 1_000_000
    bodies = []
    for number in range(2 * LEVELS):
        buys = number % 2
        side = Side.BUY if buys else Side.SELL
        price = PRICE - 1 - number if buys else PRICE + 1 + number
        bodies.append(MARKET.order(keys, side, COIN * (1 + number), price, now=now))
    return bodies


def one_by_one(port: int, bodies: list[bytes]) -> list[float]:
    """Milliseconds that each order takes on one connection."""
    connection = http.client.HTTPConnection("127.0.0.1", port)
    times = []
    for body in bodies:
        started = time.perf_counter()
        connection.request("POST", PATH, body, {"content-type": "application/json"})
        response = connection.getresponse()
        response.read()
        if response.status != 200:
            raise SystemExit(f"an order was refused: {response.status}")
        times.append((time.perf_counter() - started) * 1_000)
    connection.close()
    return times


def disk_milliseconds() -> float:
    """The median time in which the disk confirms a small write."""
    times = []
    with tempfile.TemporaryFile(dir=Path(__file__).parent) as file:
        for _ in range(200):
            started = time.perf_counter()
            os.pwrite(file.fileno(), b"x" * 400, 0)
            os.fdatasync(file.fileno())
            times.append((time.perf_counter() - started) * 1_000)
    return statistics.median(times)


def verdict(good: bool) -> str:
    """In a word."""
    return "reached" if good else "MISSED"


def load_many(server: Server, bodies: list[bytes]) -> Load:
    """Print what a matcher takes over many connections."""
    before = server.cpu_seconds()
    load = post_all(server.port, PATH, bodies, "application/json")
    each = (server.cpu_seconds() - before) / load.answered * 1e6
    print(
        f"{CONNECTIONS} connections: {load.per_second:,.0f} orders/s, "
        f"p50 {load.p50_ms:.1f} ms, p99 {load.p99_ms:.1f} ms, {each:.0f} us CPU each, "
        f"{load.accepted} of {load.answered} accepted",
        flush=True,
    )
    return load


def measure(workers: int, bodies: list[bytes], rounds: int) -> None:
    """Print what a matcher with so many workers does."""
    single = make_bodies(ONE_BY_ONE, "one")
    print(f"\nwith {workers} workers" if workers else "\nwithout workers")
    loads = []
    for _ in range(rounds - 1):
        with serving(workers) as server:
            loads.append(load_many(server, bodies))
    with serving(workers) as server:
        loads.append(load_many(server, bodies))
        best = max(loads, key=lambda load: load.per_second)
        good = best.per_second >= BAR_PER_SECOND and best.p99_ms <= BAR_P99_MS
        slowest = min(load.per_second for load in loads)
        print(
            f"fastest of {rounds}: {best.per_second:,.0f} orders/s, p99 {best.p99_ms:.1f} ms; "
            f"slowest {slowest:,.0f}; asked: {BAR_PER_SECOND:,}/s, p99 {BAR_P99_MS:.0f} ms: "
            f"{verdict(good)}"
        )
        time.sleep(2)
        median = statistics.median(one_by_one(server.port, single))
        print(
            f"one connection: median {median:.2f} ms; asked: {BAR_MEDIAN_MS} ms: "
            f"{verdict(median <= BAR_MEDIAN_MS)}"
        )
        one_by_one(server.port, make_levels())
        time.sleep(1)
        before = server.cpu_seconds()
        answered, others, seconds = get_for(server.port, BOOK, DEPTH_SECONDS)
        cpu = (server.cpu_seconds() - before) / (answered + others) * 1e6
        print(
            f"order book of depth 100: {answered / seconds:,.0f}/s, {cpu:.0f} us CPU each, "
            f"{others} refused; asked: {BAR_DEPTH_US:.0f} us: {verdict(cpu <= BAR_DEPTH_US)}"
        )


def main(count: int, rounds: int, workers: int) -> None:
    """Print the figures."""
    bodies = make_bodies(count, "many")
    print(f"{count} orders, half of them matching, journal on disk, load by {tool()}")
    print(f"the disk confirms a write in {disk_milliseconds():.2f} ms")
    for number in dict.fromkeys((workers, 0)):
        measure(number, bodies, rounds)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=COUNT)
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    parser.add_argument("--workers", type=int, default=WORKERS)
    arguments = parser.parse_args()
    main(arguments.count, max(1, arguments.rounds), arguments.workers)
