"""How many signatures a second a signer gives that keeps keys: ``python benchmarks/signer.py``.

A signer in a process of its own, with 50 rules, each for 20 of the recipients, is asked over one
connection: one transfer at a time, with 16 and 64 requests on their way, and packages; then over
32 connections. Prints signatures a second, and for a whole core of the signer's CPU; with the
audit log on the disk before each signature leaves, and with it in the system's hands only. Then
how long a start takes with 10,000 keys. ``--count N`` for another number of signatures,
``--keys N`` of keys, ``--directory`` on another disk.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import msgspec

from soliton.chain.addresses import address_text, from_public_key_hash
from soliton.crypto import base58
from soliton.crypto.hashes import secure_hash
from soliton.keystore.files import FileStore
from soliton.keystore.keys import NamedSecret, phrase
from soliton.signer.policy_file import policy_hash

COUNT: Final = 8_192
KEYS: Final = 10_000
RULES: Final = 50
EACH: Final = 20
BAR_PER_SECOND: Final = 3_000
BAR_START_SECONDS: Final = 2.0
API_KEY: Final = "the API key of a benchmark"
PASSWORD: Final = "a password of a benchmark"
CHAIN_ID: Final = ord("R")
_RULE: Final = """
[[rule]]
name = "rule-{number}"
signs = ["transfer", "data"]
keys = ["hot"]
callers = ["bot"]
recipients = [{recipients}]
amounts = {{ WAVES = 1000 }}
fees = {{ WAVES = 100_000 }}
windows = [
  {{ amounts = "WAVES", most = 1_000_000_000_000, within = "24h" }},
  {{ signatures = true, most = 1_000_000_000, within = "1h" }},
]
"""


def recipient(number: int) -> str:
    """One of those whom the rules name."""
    key_hash = (number % (RULES * EACH)).to_bytes(20, "big")
    return address_text(from_public_key_hash(key_hash, CHAIN_ID))


def prepared(directory: Path, keys: int, *, sync: bool) -> Path:
    """The configuration of a signer with so many keys."""
    store = FileStore(directory / "keys")
    if not store.names():
        names = ["hot", *(f"key-{number}" for number in range(1, keys))]
        store.add([NamedSecret(name, phrase(f"phrase {name}")) for name in names], PASSWORD)
    rules = directory / "policy.toml"
    rules.write_text(
        "".join(
            _RULE.format(
                number=number,
                recipients=", ".join(f'"{recipient(number * EACH + i)}"' for i in range(EACH)),
            )
            for number in range(RULES)
        )
    )
    config = directory / "signer.conf"
    config.write_text(
        f"""soliton {{ blockchain.type = devnet, signer {{
  port = 0
  keys-directory = "{store.directory}"
  policy-file = "{rules}"
  policy-hash = "{policy_hash(rules.read_bytes())}"
  state-directory = "{directory / f"state-{sync}"}"
  audit-sync = {"yes" if sync else "no"}
  callers = [{{ name = bot, key-hash = "{base58.encode(secure_hash(API_KEY.encode()))}",
               may = [sign, unlock] }}]
}} }}
"""
    )
    return config


class Signer:
    """A running one, and what it has used."""

    def __init__(self, process: subprocess.Popen[str], port: int) -> None:
        self.pid = process.pid
        self.port = port

    def cpu(self) -> float:
        """Seconds of CPU so far."""
        fields = Path(f"/proc/{self.pid}/stat").read_text().split()
        return (int(fields[13]) + int(fields[14])) / os.sysconf("SC_CLK_TCK")


@contextmanager
def running(config: Path) -> Iterator[Signer]:
    """The program, from its start to its end."""
    program = Path(sys.executable).with_name("soliton")
    command = [str(program), "signer", "--config", str(config)]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        try:
            line = next(each for each in process.stderr if "signer on http://" in each)
            port = line.split("signer on http://")[1].split(",")[0].rpartition(":")[2]
            yield Signer(process, int(port))
        finally:
            process.terminate()


def request(path: str, body: object) -> bytes:
    """A whole request."""
    data = msgspec.json.encode(body)
    head = f"POST {path} HTTP/1.1\r\nhost: localhost\r\nx-api-key: {API_KEY}\r\n"
    return head.encode() + b"content-length: %d\r\n\r\n" % len(data) + data


def transfer(number: int) -> dict[str, object]:
    """A thing to sign."""
    fields = {"type": 4, "version": 3, "recipient": recipient(number * 37), "amount": 5}
    return {"transaction": {**fields, "fee": 100_000}}


class Client:
    """One connection."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer

    async def ask(self, data: bytes) -> None:
        """Send a request and read its answer, which has to be a good one."""
        self._writer.write(data)
        await self._read()

    async def ask_all(self, requests: list[bytes], depth: int) -> None:
        """Ask one behind the other, with so many on their way."""
        for number, each in enumerate(requests):
            self._writer.write(each)
            if number >= depth - 1:
                await self._read()
        for _ in requests[: depth - 1]:
            await self._read()

    async def _read(self) -> None:
        head = await self._reader.readuntil(b"\r\n\r\n")
        length = int(head.lower().partition(b"content-length: ")[2].partition(b"\r\n")[0])
        body = await self._reader.readexactly(length)
        assert head.startswith(b"HTTP/1.1 200"), body

    def close(self) -> None:
        """Hang up."""
        self._writer.close()


async def connected(signer: Signer) -> Client:
    """A client of it."""
    return Client(*await asyncio.open_connection("127.0.0.1", signer.port))


async def measure(
    signer: Signer, name: str, count: int, size: int = 1, connections: int = 1, depth: int = 1
) -> None:
    """Ask for so many signatures, and print how many that were a second."""
    clients = [await connected(signer) for _ in range(connections)]
    requests = [
        request(
            "/sign",
            {"key": "hot", "package": [transfer(start + i) for i in range(size)]}
            if size > 1
            else {"key": "hot", **transfer(start)},
        )
        for start in range(0, count, size)
    ]

    cpu, started = signer.cpu(), time.perf_counter()
    shares = [requests[number::connections] for number in range(connections)]
    await asyncio.gather(
        *(client.ask_all(own, depth) for client, own in zip(clients, shares, strict=True))
    )
    seconds, used = time.perf_counter() - started, signer.cpu() - cpu
    signed = len(requests) * size
    print(f"  {name:32} {signed / seconds:8.0f}/s   {signed / max(used, 0.01):8.0f}/s a core")
    for client in clients:
        client.close()


async def measure_all(signer: Signer, count: int) -> None:
    """All ways of asking."""
    client = await connected(signer)
    await client.ask(request("/keys/unlock", {"password": PASSWORD, "keys": ["hot"]}))
    client.close()
    await measure(signer, "one at a time, one connection", count // 4)
    for depth in (16, 64):
        await measure(signer, f"{depth} on their way, one connection", count, depth=depth)
    for size in (16, 64, 256):
        await measure(signer, f"packages of {size}, one connection", count, size=size)
    await measure(signer, "one at a time, 32 connections", count, connections=32)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=COUNT)
    parser.add_argument("--keys", type=int, default=KEYS)
    parser.add_argument("--directory", help="where the signer keeps its files")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=options.directory) as name:
        directory = Path(name)
        (directory / "few").mkdir()
        for sync in (True, False):
            print(f"audit-sync = {'yes' if sync else 'no'} (bar {BAR_PER_SECOND}/s a core)")
            with running(prepared(directory / "few", 2, sync=sync)) as signer:
                asyncio.run(measure_all(signer, options.count))
        (directory / "many").mkdir()
        config = prepared(directory / "many", options.keys, sync=True)
        started = time.perf_counter()
        with running(config) as signer:
            seconds, cpu = time.perf_counter() - started, signer.cpu()
        print(
            f"start with {options.keys} keys: {seconds:.1f} s, {cpu:.1f} s of CPU "
            f"(bar {BAR_START_SECONDS:g} s)"
        )


if __name__ == "__main__":
    main()
