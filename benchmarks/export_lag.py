"""How far the export to PostgreSQL is behind a devnet under load: ``benchmarks/export_lag.py``.

A devnet gets signed transfers at a steady rate, over keep-alive connections; ``soliton export
postgres`` follows its data directory. For each block that the node shows, it is measured how long
after that the database has it. Prints what the generator reached, and median, 99th percentile and
worst of the lag. ``--rate`` transfers a second, for ``--seconds``.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import subprocess
import sys
import tempfile
import threading
import time
from http.client import HTTPConnection
from pathlib import Path

import psycopg

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from benchmarks._devnet import PROGRAM, Devnet, cpu_seconds, running
from benchmarks.broadcast import signed_transfers
from soliton.chain.transactions import codec
from tests.export.postgres import find_program, server

CONNECTIONS = 64
TICK_SECONDS = 0.02
LOOK_SECONDS = 0.005
BAR_MS = 200
LAST = "SELECT id FROM blocks_microblocks ORDER BY uid DESC LIMIT 1"


class Seen:
    """When each last block was first seen at a place."""

    def __init__(self) -> None:
        self.times: dict[str, float] = {}
        self.stopped = threading.Event()

    def note(self, name: str) -> None:
        """It is the last one now."""
        self.times.setdefault(name, time.monotonic())


def look_at_node(port: int, seen: Seen) -> None:
    """Ask for the last block, again and again."""
    connection = HTTPConnection("127.0.0.1", port)
    while not seen.stopped.wait(LOOK_SECONDS):
        connection.request("GET", "/blocks/headers/last")
        seen.note(json.loads(connection.getresponse().read())["id"])
    connection.close()


def look_at_database(dsn: str, seen: Seen) -> None:
    """The same of the database."""
    with psycopg.connect(dsn, autocommit=True) as connection:
        while not seen.stopped.wait(LOOK_SECONDS):
            found = connection.execute(LAST).fetchone()
            if found is not None:
                seen.note(found[0])


async def send(port: int, bodies: list[bytes], rate: float) -> tuple[int, float]:
    """Send all bodies at a rate; how many were accepted, in how many seconds."""
    opened = [await asyncio.open_connection("127.0.0.1", port) for _ in range(CONNECTIONS)]
    waiting: asyncio.Queue[bytes | None] = asyncio.Queue()
    head = b"POST /transactions/broadcast HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\n"

    async def post(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> int:
        accepted = 0
        while (body := await waiting.get()) is not None:
            writer.write(b"%scontent-length: %d\r\n\r\n%s" % (head, len(body), body))
            answer = await reader.readuntil(b"\r\n\r\n")
            length = int(answer.lower().partition(b"content-length:")[2].split()[0])
            await reader.readexactly(length)
            accepted += answer.startswith(b"HTTP/1.1 200")
        return accepted

    posting = [asyncio.create_task(post(*each)) for each in opened]
    began, sent = time.monotonic(), 0
    while sent < len(bodies):
        due = min(len(bodies), int((time.monotonic() - began) * rate))
        for body in bodies[sent:due]:
            waiting.put_nowait(body)
        sent = max(sent, due)
        await asyncio.sleep(TICK_SECONDS)
    for _ in posting:
        waiting.put_nowait(None)
    accepted = sum(await asyncio.gather(*posting))
    for _, writer in opened:
        writer.close()
    return accepted, time.monotonic() - began


def measure(devnet: Devnet, directory: Path, dsn: str, rate: float, seconds: float) -> None:
    """Run the export beside the load, and print."""
    made = signed_transfers(int(rate * seconds))
    bodies = [json.dumps(codec.to_json(each)).encode() for each in made]
    command = [PROGRAM, "export", "postgres", "--dsn", dsn, "--data-dir", directory]
    export = subprocess.Popen(command, stderr=subprocess.DEVNULL)
    node, database = Seen(), Seen()
    threads = [
        threading.Thread(target=look_at_node, args=(devnet.port, node)),
        threading.Thread(target=look_at_database, args=(dsn, database)),
    ]
    try:
        wait_for_table(dsn)
        for each in threads:
            each.start()
        time.sleep(1)
        cpu = devnet.cpu_seconds(), cpu_seconds(export.pid)
        accepted, took = asyncio.run(send(devnet.port, bodies, rate))
        cpu = devnet.cpu_seconds() - cpu[0], cpu_seconds(export.pid) - cpu[1]
        time.sleep(2)
    finally:
        for seen in (node, database):
            seen.stopped.set()
        for each in threads:
            each.join()
        export.terminate()
        export.wait()
    lags = sorted(
        max(0.0, database.times[name] - at) * 1_000
        for name, at in node.times.items()
        if name in database.times
    )
    missed = len(node.times.keys() - database.times.keys())
    print(
        f"{accepted} accepted, {accepted / took:,.0f}/s; CPU of the node {cpu[0] / took:.0%}, of "
        f"the export {cpu[1] / took:.0%}\n"
        f"lag over {len(lags)} blocks: median {lags[len(lags) // 2]:.0f} ms, "
        f"p99 {lags[int(len(lags) * 0.99)]:.0f} ms, worst {lags[-1]:.0f} ms (bar {BAR_MS}); "
        f"{missed} were replaced before the database had them"
    )


def wait_for_table(dsn: str) -> None:
    """Until the export has made its tables and begun."""
    while True:
        with psycopg.connect(dsn, autocommit=True) as connection:
            try:
                if connection.execute(LAST).fetchone() is not None:
                    return
            except psycopg.errors.UndefinedTable:
                pass
        time.sleep(0.1)


def main() -> None:
    """Start all and measure."""
    parser = argparse.ArgumentParser(description="the export's lag behind a devnet")
    parser.add_argument("--rate", type=float, default=1_000)
    parser.add_argument("--seconds", type=float, default=30)
    parser.add_argument("--block-time", default="")
    options = parser.parse_args()
    if find_program("initdb") is None:
        print("export lag: skipped, PostgreSQL is not here")
        return
    more = ("--block-time", options.block_time) if options.block_time else ()
    with (
        tempfile.TemporaryDirectory() as name,
        server("synchronous_commit=on", "max_wal_size=1GB") as postgres,
        running("--data-dir", name, "--log-level", "warning", *more) as devnet,
    ):
        measure(devnet, Path(name), postgres.database(), options.rate, options.seconds)


if __name__ == "__main__":
    main()
