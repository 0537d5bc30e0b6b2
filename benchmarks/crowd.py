"""A crowd at the port for peers: ``python benchmarks/crowd.py [CONNECTIONS]``.

10,000 connections from 250 addresses of this machine come at a node in a process of its own, in
rounds: some say nothing, some say hello letter by letter, some introduce themselves and send
announcements, ids and questions without end. Meanwhile clients ask the REST API, and a peer that
was there before asks for a block now and then. Printed are the waits of both beside those before
the crowd came, the node's memory and files, and who was let in.
"""

from __future__ import annotations

import asyncio
import contextlib
import http.client
import json
import logging
import os
import sys
import tempfile
import threading
import time
from collections import Counter
from pathlib import Path

from _devnet import cpu_seconds
from relay import megabytes
from sync import Running

from soliton.crypto import base58
from soliton.crypto.keys import key_pair
from soliton.wire import frames, handshake, messages
from soliton.wire.connection import Connection, HandshakeReceived, MessageReceived
from soliton.wire.handshake import Handshake
from soliton.wire.versions import ANNOUNCED

CONNECTIONS, OF_HOST, AT_ONCE = 10_000, 40, 200
SECONDS, LONGEST = 20.0, 240.0
MAX_INBOUND, OF_ONE = 100, 3
BAR_MB = 100.0
CHAIN_ID = ord("R")
CONFIGURATION = """
waves {
  blockchain { type = "devnet" }
  directory = "%s"
  miner.enable = no
  network { bind-address = "127.0.0.1", port = 0, known-peers = [], handshake-timeout = 2s }
  rest-api { port = 0, minimum-peers = 0, api-key-hash = "%s" }
  wallet { file = "", seed = "4vJ9" }
}
"""
API_KEY_HASH = "H6nsiifwYKYEx6YzYD7woP1XCn72RVvx6tC1zjjLXqsu"


def greeting(nonce: int) -> Handshake:
    """Who somebody says that he is."""
    return Handshake("wavesR", ANNOUNCED["waves"], "one of many", nonce, None, int(time.time()))


def floods() -> list[bytes]:
    """What those say who have introduced themselves."""
    pair = key_pair("flood")
    announced = b"".join(
        frames.encode(
            messages.announce(
                pair.private_key,
                pair.public_key,
                number.to_bytes(32, "big"),
                number.to_bytes(32, "little"),
                CHAIN_ID,
                bytes(64),
            )
        )
        for number in range(600)
    )
    ids = tuple(number.to_bytes(32, "big") for number in range(100))
    answers = frames.encode(messages.BlockIds(ids)) * 500
    questions = frames.encode(messages.GetBlockIds(ids)) * 500
    return [announced, answers, questions, os.urandom(200_000)]


class Crowd:
    """All who come, until they are told to go."""

    def __init__(self, port: int) -> None:
        """``port`` is the node's."""
        self._port = port
        self._floods = floods()
        self._ends = False
        self.let_in = 0
        self.came: Counter[str] = Counter()

    def end(self) -> None:
        """Nobody comes any more."""
        self._ends = True

    async def come(self, count: int) -> None:
        """So many at a time, and again when all have gone."""
        while not self._ends:
            gate = asyncio.Semaphore(AT_ONCE)
            found = await asyncio.gather(*(self._one(number, gate) for number in range(count)))
            await asyncio.gather(*(self._speak(*each) for each in found if each is not None))

    async def _one(
        self, number: int, gate: asyncio.Semaphore
    ) -> tuple[int, asyncio.StreamReader, asyncio.StreamWriter] | None:
        host = number // OF_HOST
        async with gate:
            if self._ends:
                return None
            try:
                reader, writer = await asyncio.open_connection(
                    "127.0.0.1", self._port, local_addr=(f"127.9.0.{host % 250 + 1}", 0)
                )
            except OSError:
                self.came["refused by the system"] += 1
                return None
            self.came["connected"] += 1
            return number, reader, writer

    async def _speak(
        self, number: int, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        hello = handshake.encode(greeting(number + 1))
        try:
            match number % 3:
                case 0:
                    await reader.read()
                case 1:
                    for at in range(len(hello)):
                        writer.write(hello[at : at + 1])
                        await asyncio.sleep(0.1)
                        if reader.at_eof() or self._ends:
                            break
                case _:
                    writer.write(hello)
                    await reader.readexactly(1)
                    self.let_in += 1
                    writer.write(self._floods[number // 3 % len(self._floods)])
                    await asyncio.wait_for(reader.read(), 5.0)
        except (OSError, TimeoutError, asyncio.IncompleteReadError):
            pass
        finally:
            writer.transport.abort()


class Friend(asyncio.Protocol):
    """A peer that was there first, and goes on asking."""

    def __init__(self) -> None:
        """Not connected yet."""
        self._connection = Connection(greeting(2**31 - 2), "waves", CHAIN_ID)
        self._answered: asyncio.Future[None] | None = None
        self.is_met = asyncio.Event()
        self.waits: list[float] = []
        self.is_lost = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Say hello."""
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        transport.write(self._connection.introduce())

    def connection_lost(self, _error: Exception | None) -> None:
        """That must not be."""
        self.is_lost = True

    def data_received(self, data: bytes) -> None:
        """The answer is somewhere in it."""
        for event in self._connection.receive(data):
            match event:
                case HandshakeReceived():
                    self.is_met.set()
                case MessageReceived(message=messages.BlockIds()):
                    if self._answered is not None and not self._answered.done():
                        self._answered.set_result(None)

    async def ask(self, genesis: bytes) -> None:
        """Ask for what comes after the first block, over and over."""
        while not self.is_lost:
            self._answered = asyncio.get_running_loop().create_future()
            since = time.perf_counter()
            self._transport.write(self._connection.send(messages.GetBlockIds((genesis,))))
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._answered, 10.0)
            self.waits.append(1_000 * (time.perf_counter() - since))
            await asyncio.sleep(0.02)


def ask(url: str, path: str) -> object:
    """One request."""
    connection = http.client.HTTPConnection(url.removeprefix("http://"), timeout=30)
    connection.request("GET", path)
    answer: object = json.loads(connection.getresponse().read())
    connection.close()
    return answer


class Client(threading.Thread):
    """Asks the REST API, over and over."""

    def __init__(self, url: str) -> None:
        """``url`` is the node's."""
        super().__init__(daemon=True)
        self._url = url
        self.waits: list[float] = []
        self.most_peers = 0
        self.of_one = 0
        self.ends = False

    def run(self) -> None:
        """Until it is told to end."""
        while not self.ends:
            since = time.perf_counter()
            ask(self._url, "/blocks/height")
            self.waits.append(1_000 * (time.perf_counter() - since))
            found = ask(self._url, "/peers/connected")
            assert isinstance(found, dict)
            hosts = Counter(each["address"].split(":")[0] for each in found["peers"])
            self.most_peers = max(self.most_peers, hosts.total())
            self.of_one = max(self.of_one, *hosts.values(), 0)
            time.sleep(0.02)


def told(name: str, waits: list[float]) -> str:
    """Median and p99."""
    waits = sorted(waits) or [0.0]
    late = waits[len(waits) * 99 // 100]
    return f"{name} {waits[len(waits) // 2]:.1f} ms, p99 {late:.1f} ms ({len(waits)} asked)"


def files_of(pid: int) -> int:
    """How many files and sockets a process has open."""
    return sum(1 for _ in Path(f"/proc/{pid}/fd").iterdir())


async def measured(node: Running, friend: Friend, crowd: Crowd, count: int) -> tuple[float, Client]:
    """Ask for a while, ``count`` connections come meanwhile: how much more memory was in use."""
    pid = node.process.pid
    client = Client(node.url)
    friend.waits.clear()
    memory, cpu = megabytes(pid), cpu_seconds(pid)
    client.start()
    coming = asyncio.create_task(crowd.come(count)) if count else None
    files, most, since = 0, memory, time.perf_counter()
    while (passed := time.perf_counter() - since) < LONGEST:
        if passed > SECONDS and crowd.came["connected"] >= count:
            break
        await asyncio.sleep(0.2)
        files = max(files, files_of(pid))
        most = max(most, megabytes(pid))
    client.ends = True
    crowd.end()
    spent = cpu_seconds(pid) - cpu
    print(
        f"{count} come: {told('REST', client.waits)}; {told('a peer', friend.waits)}; memory "
        f"{memory:.0f} MB, at most {most:.0f} MB; files {files}; CPU {spent:.1f} s"
    )
    await asyncio.to_thread(client.join)
    if coming is not None:
        await coming
    return most - memory, client


async def comes_behind(port: int) -> bool:
    """Whether somebody new is let in."""
    until = time.perf_counter() + LONGEST
    while time.perf_counter() < until:
        with contextlib.suppress(OSError, TimeoutError, asyncio.IncompleteReadError):
            reader, writer = await asyncio.open_connection(
                "127.0.0.1", port, local_addr=("127.7.7.8", 0)
            )
            writer.write(handshake.encode(greeting(5)))
            await asyncio.wait_for(reader.readexactly(1), 10)
            writer.transport.abort()
            return True
        await asyncio.sleep(0.2)
    return False


async def attack(node: Running, count: int) -> bool:
    """Measure without a crowd, then with it."""
    port = int(node.peer_port)
    first = ask(node.url, "/blocks/headers/at/1")
    assert isinstance(first, dict)
    loop = asyncio.get_running_loop()
    _, friend = await loop.create_connection(Friend, "127.0.0.1", port, local_addr=("127.7.7.7", 0))
    await friend.is_met.wait()
    asking = asyncio.create_task(friend.ask(base58.decode(first["id"])))
    await measured(node, friend, Crowd(port), 0)
    crowd = Crowd(port)
    more, client = await measured(node, friend, crowd, count)
    asking.cancel()
    print(
        f"{dict(crowd.came)}; {crowd.let_in} introduced themselves; at one time at most "
        f"{client.most_peers} peers ({MAX_INBOUND} may come), {client.of_one} of one address "
        f"({OF_ONE} may)"
    )
    again = await comes_behind(port)
    print(
        f"the peer that was there first {'has gone' if friend.is_lost else 'is still there'}; "
        f"who comes behind the crowd is {'let in' if again else 'sent away'}"
    )
    limits = client.most_peers <= MAX_INBOUND and client.of_one <= OF_ONE
    return (
        limits and again and not friend.is_lost
        and more < BAR_MB and crowd.came["connected"] >= count
    )  # fmt: skip


def main() -> None:
    """Start a node and the crowd."""
    # Many write to those who have hung up.
    logging.getLogger("asyncio").setLevel(logging.ERROR)
    count = int(sys.argv[1]) if len(sys.argv) > 1 else CONNECTIONS
    with tempfile.TemporaryDirectory() as directory:
        config = Path(directory) / "node.conf"
        config.write_text(CONFIGURATION % (Path(directory) / "node", API_KEY_HASH))
        node = Running(config)
        try:
            good = asyncio.run(attack(node, count))
        finally:
            node.stop()
    print("limits held" if good else "a limit did not hold")
    if not good:
        sys.exit(1)


if __name__ == "__main__":
    main()
