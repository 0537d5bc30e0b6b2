"""Abuse of the REST API: ``python benchmarks/abuse.py``.

Against a devnet come, one kind after the other, clients that nobody wants: heads that never end,
bodies that drip, answers that nobody reads, huge and broken requests, JSON without a bottom.
Printed is for each kind how many there were, what became of them (an answer by its status, a
close, or a hang: none may), the memory of the server before and after, and the longest wait of an
honest client meanwhile. ``--workers N`` as ``rest-api.workers``.
"""

from __future__ import annotations

import argparse
import asyncio
import http.client
import select
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from _devnet import Devnet, running

PATIENCE_SECONDS = 45.0
"""Whoever has heard nothing by then hangs; the longest limit is that on who reads nothing."""
MEGABYTE = 1 << 20


@dataclass(frozen=True)
class Attack:
    """What is sent, piece by piece, and how many do it at a time and altogether."""

    name: str
    pieces: tuple[bytes, ...]
    clients: int
    at_a_time: int
    pause: float = 0.0
    reads: bool = True


def post(path: str, body: bytes, kind: bytes = b"application/json") -> bytes:
    """A request with a body, after which the connection is closed."""
    return (
        b"POST %s HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Type: %s\r\n"
        b"Content-Length: %d\r\n\r\n%s" % (path.encode(), kind, len(body), body)
    )


def get(path: bytes, *headers: bytes) -> bytes:
    """A request without a body, after which the connection is closed."""
    lines = (b"GET %s HTTP/1.1" % path, b"Host: x", b"Connection: close", *headers)
    return b"\r\n".join((*lines, b"", b""))


BROADCAST = "/transactions/broadcast"
COMPILE = "/utils/script/compileCode"
TEXT = b"text/plain"
TRUTH = b"{-# STDLIB_VERSION 6 #-}\nlet a = 1 == 1\na"
NUMBER = b"{-# STDLIB_VERSION 6 #-}\n1"
CHUNKED = b"POST /utils/hash/fast HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n"
LENGTH = b"POST /utils/hash/fast HTTP/1.1\r\nHost: x\r\nContent-Length: 1000000\r\n\r\n"
HEAD = b"GET /blocks/height HTTP/1.1\r\nHost: x\r\n"

ATTACKS = (
    Attack("slow loris: a header a second", (HEAD, *[b"X: y\r\n"] * 40), 800, 400, pause=1.0),
    Attack("slow body: a byte a second", (LENGTH, *[b"x"] * 40), 800, 400, pause=1.0),
    Attack("a connection that says nothing", (b"",), 800, 400),
    Attack("100,000 bytes of headers", (get(b"/", b"X: " + b"a" * 100_000),), 1_000, 50),
    Attack("30,000 headers", (get(b"/", *[b"a: b"] * 30_000),), 300, 20),
    Attack("a path of 200,000 bytes", (get(b"/" + b"a" * 200_000),), 300, 20),
    Attack("a body of 64 MiB", (post(BROADCAST, bytes(64 * MEGABYTE)),), 30, 5),
    Attack("chunks without end", (CHUNKED, *[b"10000\r\n" + b"x" * 65_536 + b"\r\n"] * 64), 60, 10),
    Attack("a chunk that is none", (CHUNKED + b"ZZ\r\n",), 1_000, 50),
    Attack("JSON of 400,000 brackets", (post(BROADCAST, b"[" * 400_000),), 200, 20),
    Attack("JSON of 100,000 objects", (post(BROADCAST, b'{"a":' * 100_000),), 200, 20),
    Attack("JSON with a huge number", (
        post(BROADCAST, b'{"fee":' + b"9" * 900_000 + b"}"),), 100, 10),
    Attack("JSON with the same member", (
        post(BROADCAST, b'{"a":1' + b',"a":1' * 90_000 + b"}"),), 60, 10),
    Attack("bodies that are no UTF-8", (post(BROADCAST, b'{"type":"\xff\xfe\x00"}'),), 1_000, 50),
    Attack("NUL in path, query and header", (get(b"/a\0b?c=\0", b"X: \0"),), 1_000, 50),
    Attack("percent-encoded NUL", (get(b"/addresses/data/%00/%00?matches=%00"),), 1_000, 50),
    Attack("overlong and broken escapes", (get(b"/alias/by-alias/%C0%AF%ED%A0%80%zz"),), 1_000, 50),
    Attack("a regular expression to death", (
        get(b"/addresses/data/3M4qwDomRabJKLZxuXhwfqLApQkU592nWxF?matches=(a*)*(b*)*(a|a?)*c"),),
        300, 30),
    Attack("a source as deep as it is long", (post(COMPILE, TRUTH + b"||a" * 320_000, TEXT),),
           60, 20),
    Attack("a source that takes for ever", (
        post(COMPILE, NUMBER + b"+1" * 490_000, TEXT),), 60, 20),
    Attack("random bytes", (bytes((i * 7919 + 13) % 256 for i in range(4_096)),), 1_000, 50),
    Attack("HTTP/2 by surprise", (b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",), 1_000, 50),
    Attack("answers that nobody reads", (
        b"GET /api-docs/openapi.json HTTP/1.1\r\nHost: x\r\n\r\n" * 400,), 60, 30, reads=False),
)  # fmt: skip


async def one(port: int, attack: Attack) -> str:
    """What becomes of one client."""
    try:
        reader, writer = await asyncio.open_connection("127.0.0.1", port, limit=MEGABYTE)
    except OSError:
        return "refused"
    first = b""
    try:
        async with asyncio.timeout(PATIENCE_SECONDS):
            answer = asyncio.create_task(reader.read(64))
            for piece in attack.pieces:
                writer.write(piece)
                if attack.reads:
                    await writer.drain()
                if attack.pause:
                    await asyncio.wait((answer,), timeout=attack.pause)
                if reader.at_eof() or answer.done():
                    break
            if not attack.reads:
                await answer
                writer.transport.pause_reading()  # type: ignore[attr-defined]
                while not writer.transport.is_closing():
                    await asyncio.sleep(0.2)
                    writer.write(b"\r\n")
                return "cut off"
            first = await answer
            while await reader.read(MEGABYTE):
                pass
    except TimeoutError:
        return "HANGS" if not first else "answered, left open"
    except ConnectionError:
        pass
    finally:
        writer.transport.abort()  # type: ignore[attr-defined]
    return first[9:12].decode("latin-1") if first.startswith(b"HTTP/1.1 ") else "closed"


def honest(port: int) -> None:
    """Ask for the height until somebody writes a line; print the longest wait in ms."""
    longest = 0.0
    connection = http.client.HTTPConnection("127.0.0.1", port)
    while not select.select([sys.stdin], [], [], 0.002)[0]:
        started = time.perf_counter()
        connection.request("GET", "/blocks/height")
        connection.getresponse().read()
        longest = max(longest, time.perf_counter() - started)
    connection.close()
    print(longest * 1000)


async def carry_out(port: int, attack: Attack) -> Counter[str]:
    """All clients of one kind: what became of them."""
    gate = asyncio.Semaphore(attack.at_a_time)

    async def through(work: Callable[[], Awaitable[str]]) -> str:
        async with gate:
            return await work()

    outcomes = await asyncio.gather(
        *(through(lambda: one(port, attack)) for _ in range(attack.clients))
    )
    return Counter(outcomes)


def show(devnet: Devnet, attack: Attack) -> bool:
    """Carry an attack out and print a line; whether nobody hung."""
    before, started = devnet.megabytes(), time.perf_counter()
    # A process of its own: what the attackers do here must not count as the server's delay.
    other = subprocess.Popen(
        [sys.executable, __file__, "--honest", str(devnet.port)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    outcomes = asyncio.run(carry_out(devnet.port, attack))
    longest = float(other.communicate("\n")[0])
    told = ", ".join(f"{name}: {count}" for name, count in outcomes.most_common())
    print(
        f"{attack.name:<32}{attack.clients:>6}  {time.perf_counter() - started:>6.1f} s  "
        f"memory {before:>5.0f} -> {devnet.megabytes():>5.0f} MB  "
        f"honest client waits {longest:>6.1f} ms at most  {told}",
        flush=True,
    )
    return "HANGS" not in outcomes


def main(workers: int, only: str) -> None:
    """Print the table."""
    with running("--workers", str(workers)) as devnet:
        chosen = [attack for attack in ATTACKS if only in attack.name]
        fine = [show(devnet, attack) for attack in chosen]
        devnet.check()
    total = sum(attack.clients for attack in chosen)
    print(f"{total} clients; {'none hung' if all(fine) else 'SOME HUNG'}; the node still answers")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--workers", type=int, default=0)
    parser.add_argument("--only", default="")
    parser.add_argument("--honest", type=int, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.honest:
        honest(arguments.honest)
        sys.exit()
    main(arguments.workers, arguments.only)
