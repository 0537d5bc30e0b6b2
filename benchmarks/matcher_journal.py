"""The journals of a matcher: how long one command waits, and how many there can be.

Run ``.venv/bin/python benchmarks/matcher_journal.py``. For the files of one's own with each policy,
and for Kafka where ``make clients`` has fetched a broker (one node on this machine): milliseconds
for one command at a time, commands a second from 32 callers at once, and commands a second when the
journal is followed from its start. For Kafka also the seconds from a master's death to the first
command that the standby stores, with a lease of 2 s.
"""

from __future__ import annotations

import asyncio
import logging
import statistics
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from soliton.matcher.journal import Journal
from soliton.matcher.journal.candidate import KafkaSettings
from soliton.matcher.journal.embedded import EmbeddedJournal, EmbeddedSettings, Sync
from soliton.matcher.journal.kafka import KafkaJournal
from soliton.matcher.journal.topic import TopicAddress
from soliton.web.clock import wall_clock
from tests.matcher.kafka.broker import Broker, running, unavailable

PAYLOAD = bytes(250)
"""As long as an order of version 3 is in the journal."""
SINGLE = 500
CALLERS = 32
EACH = 500
IDENTITY = bytes(32)
LEASE_SECONDS = 2.0


async def measure(name: str, journal: Journal) -> None:
    """One row of the table."""
    async for _ in journal.follow(0):
        pass
    waits = []
    for _ in range(SINGLE):
        started = time.perf_counter()
        await journal.append([PAYLOAD])
        waits.append((time.perf_counter() - started) * 1000)

    async def call() -> None:
        for _ in range(EACH):
            await journal.append([PAYLOAD])

    cpu, started = time.process_time(), time.perf_counter()
    await asyncio.gather(*(call() for _ in range(CALLERS)))
    rate = CALLERS * EACH / (time.perf_counter() - started)
    cost = (time.process_time() - cpu) / (CALLERS * EACH) * 1e6

    count = 0
    started = time.perf_counter()
    async for batch in journal.records(0):
        count += len(batch)
    reading = count / (time.perf_counter() - started)
    tail = statistics.quantiles(waits, n=100)[98]
    print(
        f"{name:<18} {statistics.median(waits):>7.2f} {tail:>7.2f} ms "
        f"{rate:>10,.0f}/s {cost:>6.1f} µs CPU {reading:>12,.0f}/s"
    )


async def files() -> None:
    """The embedded journal."""
    for sync in Sync:
        with tempfile.TemporaryDirectory(dir=Path.cwd()) as name:
            journal = EmbeddedJournal(Path(name), IDENTITY, wall_clock, EmbeddedSettings(sync))
            await measure(f"files, {sync.value}", journal)
            await journal.close()


def member(broker: Broker, name: str) -> KafkaJournal:
    """One of the matchers that share a topic."""
    address = TopicAddress(broker.servers, "orders")
    return KafkaJournal(
        KafkaSettings(address, name, lease_seconds=LEASE_SECONDS), IDENTITY, wall_clock
    )


async def kafka(broker: Broker) -> None:
    """The shared journal, and taking over."""
    master, standby = member(broker, "a"), member(broker, "b")
    await measure("Kafka, one broker", master)

    async def follow() -> float:
        async for _ in standby.follow(0):
            pass
        await standby.append([PAYLOAD])
        return time.perf_counter()

    takes_over = asyncio.create_task(follow())
    await asyncio.sleep(2 * LEASE_SECONDS)
    died = time.perf_counter()
    assert master._leading_task is not None
    master._leading_task.cancel()
    print(f"taking over after a death, lease {LEASE_SECONDS} s: {await takes_over - died:.2f} s")
    await standby.close()
    await master.close()


def main() -> None:
    """Measure and print."""
    import uvloop

    logging.disable(logging.WARNING)
    print(f"{'':<18} {'median':>7} {'p99':>7}    {'32 callers':>12} {'':>13} {'reading':>13}")
    uvloop.run(files())
    if (reason := unavailable()) is not None:
        print(reason)
        return
    with tempfile.TemporaryDirectory() as name, running(Path(name)) as broker:
        uvloop.run(kafka(broker))


if __name__ == "__main__":
    main()
