"""What the event streams cost: ``python benchmarks/events.py``.

A devnet with a block every second gets transfers while clients follow ``/events``: all events, and
those of one account. Prints the node's CPU for each transfer without clients, for each event that a
client got beyond that, and how long history takes to read. ``--clients N`` and ``--count N`` for
other numbers.
"""

from __future__ import annotations

import argparse
import asyncio
import time
import urllib.request
from collections.abc import Callable

import msgspec
from _devnet import Devnet, running
from _load import post_all
from broadcast import signed_transfers

from soliton.chain.transactions import codec

CLIENTS = 100
COUNT = 2_000
SETTLE_SECONDS = 3.0
ALL = "/events?events=block,microblock,transaction,unconfirmed"
ONE_ACCOUNT = "/events?address=3MMiWb5hjTXwst33rEaebQq8RnXZRFrTjuY"


async def follow(port: int, path: str, ready: Callable[[], None], until: str = "") -> int:
    """Read a stream until it is cancelled or an event comes: how many events there were."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port, limit=1 << 20)
    writer.write(f"GET {path} HTTP/1.1\r\nHost: node\r\n\r\n".encode())
    count = 0
    try:
        while line := await reader.readline():
            if line.startswith(b"event: "):
                count += 1
                name = line[7:].strip().decode()
                if name == "synced":
                    ready()
                if name == until:
                    break
    except asyncio.CancelledError:
        pass
    finally:
        writer.close()
    return count


async def listening(devnet: Devnet, path: str, clients: int, bodies: list[bytes]) -> int:
    """Send all transfers while clients listen: how many events they got."""
    waiting = asyncio.Semaphore(0)
    tasks = [
        asyncio.create_task(follow(devnet.port, path, waiting.release)) for _ in range(clients)
    ]
    for _ in tasks:
        await waiting.acquire()
    await asyncio.to_thread(
        post_all, devnet.port, "/transactions/broadcast", bodies, "application/json"
    )
    await asyncio.sleep(SETTLE_SECONDS)
    for task in tasks:
        task.cancel()
    return sum(await asyncio.gather(*tasks)) - clients


def main(clients: int, count: int) -> None:
    """Print the table."""
    bodies = [msgspec.json.encode(codec.to_json(item)) for item in signed_transfers(3 * count)]
    with running("--block-time", "1") as devnet:
        base = 0.0
        for name, path, number in (
            ("no clients", ALL, 0),
            (f"{clients} clients, everything", ALL, clients),
            (f"{clients} clients, one account", ONE_ACCOUNT, clients),
        ):
            own, bodies = bodies[:count], bodies[count:]
            before = devnet.cpu_seconds()
            events = asyncio.run(listening(devnet, path, number, own))
            seconds = devnet.cpu_seconds() - before
            base = base or seconds
            each = f"{(seconds - base) / events * 1e6:.1f} us CPU for each" if events else ""
            per_transfer = seconds / count * 1e6
            print(f"{name:<32} {per_transfer:>8.0f} us CPU a transfer  {events:>8} events {each}")
        before, started = devnet.cpu_seconds(), time.perf_counter()
        told = asyncio.run(follow(devnet.port, "/events?from=1", lambda: None, "synced"))
        cpu = (devnet.cpu_seconds() - before) / told * 1e6
        wall = time.perf_counter() - started
        print(f"history: {told} events in {wall:.2f} s, {cpu:.1f} us CPU for each")
        with urllib.request.urlopen(devnet.url + "/blocks/height") as answer:
            height = msgspec.json.decode(answer.read())["height"]
        print(f"at height {height}, {devnet.megabytes():.0f} MB")


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--clients", type=int, default=CLIENTS)
    parser.add_argument("--count", type=int, default=COUNT)
    options = parser.parse_args()
    main(options.clients, options.count)
