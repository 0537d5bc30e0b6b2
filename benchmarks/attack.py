"""A mixed attack beside honest traffic: ``python benchmarks/attack.py --seconds 3600``.

A devnet (node, signer, matcher and gRPC) with a block every two seconds, and a node that has a port
for peers, are attacked by many clients at once (``--clients``, 200), each of whom draws what it
does by chance (``_attacks``; ``--seed``); 1,100 more sockets (``--silent``) are open and say
nothing. Beside them an honest client asks all of these, sends transfers, and places and cancels
orders. Where the system lets us, attackers and the honest client come from addresses of their own,
each out of a network namespace that is made for the run; otherwise, and with ``--local``, all come
from this machine, where no client has limits.

Printed is what became of the requests by kind, the waits of the honest client beside those at a
server that does nothing (the floor: what the machine itself makes wait), memory, file descriptors
and reader slots over time, and the verdict: no wait above 100 ms beyond what the floor waited in
the same moment, and in which the services themselves ran for so long; no status 500, no fault of
the matcher's own, nothing that was accepted lost.
Whether memory and slots are flat is for the reader: what is kept of scripts fills up to its limits
first.
"""

from __future__ import annotations

import argparse
import asyncio
import base64
import contextlib
import json
import os
import random
import re
import signal
import struct
import subprocess
import sys
import tempfile
import time
from collections import Counter, defaultdict, deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import hpack
import msgspec
from _attack_report import BAR_MS, failures, report, sample, tree, watch
from _attacks import DAPP_SOURCE, GRPC, MATCHER, NODE, PEER, SIGNER, Attempt, Manner, Scene, draw
from _devnet import Devnet, port_of, running
from _orders import Market
from devnet_orders import CHAIN_ID, COIN, KEYS, ask, give_gold, now, send
from sync import Running

from soliton.chain.addresses import address_text, from_public_key
from soliton.chain.orders import Side
from soliton.chain.transactions import codec, set_script, transfer
from soliton.chain.transactions.model import AnyTransaction
from soliton.chain.transactions.set_script import SetScript
from soliton.chain.transactions.transfer import Transfer
from soliton.crypto import base58

PATIENCE_SECONDS = 45.0
"""Whoever has heard nothing for so long hangs. Thousands of answers may take longer together, of a
client that has no more than its part of the node.
"""
LISTENING_SECONDS = 20.0
HONEST_PAUSE = 0.02
FLOOR_PAUSE = 0.004
SETTLE_SECONDS = 60.0
MEGABYTE = 1 << 20

NAMESPACE, OUTSIDE, INSIDE = "soliton-attack", "soliton-a0", "soliton-a1"
HOST_ADDRESS, CLIENT_ADDRESS = "10.213.0.1", "10.213.1.{}"
MAX_CLIENTS = 250


# --- attackers ------------------------------------------------------------------------------------


class Attacker:
    """Many clients that do what they draw until the time is over."""

    def __init__(self, scene: Scene, ports: dict[str, int], host: str, until: float) -> None:
        self._scene = scene
        self._ports = ports
        self._host = host
        self._until = until
        self.outcomes: Counter[tuple[str, str]] = Counter()
        self.examples: dict[str, str] = {}

    async def client(self, seed: int, own: str | None) -> None:
        """One client after the other, with the same address."""
        chance = random.Random(seed)
        while time.time() < self._until:
            attempt = draw(chance, self._scene)
            outcome = await self._carry_out(attempt, chance, own)
            self.outcomes[attempt.kind, outcome] += 1
            if outcome in ("500", "HANGS"):
                words = attempt.data[:400].decode("latin-1")
                self.examples.setdefault(f"{attempt.kind} {outcome}", words)
            await asyncio.sleep(chance.random() * 0.1)

    async def _carry_out(self, attempt: Attempt, chance: random.Random, own: str | None) -> str:
        try:
            reader, writer = await asyncio.open_connection(
                self._host,
                self._ports[attempt.service],
                limit=MEGABYTE,
                local_addr=None if own is None else (own, 0),
            )
        except OSError:
            return "refused"
        try:
            return await self._talk(attempt, chance, reader, writer)
        except TimeoutError:
            return "HANGS"
        except ConnectionError:
            return "closed"
        finally:
            writer.transport.abort()  # type: ignore[attr-defined]

    async def _talk(
        self,
        attempt: Attempt,
        chance: random.Random,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
    ) -> str:
        data = attempt.data
        if attempt.manner is Manner.BREAK_OFF:
            data = data[: chance.randint(0, len(data))]
        writer.write(data)
        if attempt.manner in (Manner.LEAVE, Manner.BREAK_OFF):
            await asyncio.sleep(chance.random() * 0.3)
            return "left"
        if attempt.manner is Manner.DEAF:
            writer.transport.pause_reading()  # type: ignore[attr-defined]
            await asyncio.sleep(chance.random() * LISTENING_SECONDS)
            return "left"
        if attempt.manner is Manner.LISTEN:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(chance.random() * LISTENING_SECONDS):
                    while await reader.read(MEGABYTE):
                        pass
            return "left"
        first = more = await self._hear(reader, 64)
        while more:
            if time.time() > self._until + PATIENCE_SECONDS:
                return "left"
            more = await self._hear(reader, MEGABYTE)
        return first[9:12].decode("latin-1") if first.startswith(b"HTTP/1.1 ") else "closed"

    @staticmethod
    async def _hear(reader: asyncio.StreamReader, most: int) -> bytes:
        async with asyncio.timeout(PATIENCE_SECONDS):
            return await reader.read(most)

    async def silent(self, service: str, own: str | None) -> None:
        """One connection after the other that says nothing."""
        while time.time() < self._until:
            local = None if own is None else (own, 0)
            try:
                reader, writer = await asyncio.open_connection(
                    self._host, self._ports[service], local_addr=local
                )
            except OSError:
                self.outcomes["silence", "refused"] += 1
                await asyncio.sleep(1)
                continue
            with contextlib.suppress(OSError, TimeoutError):
                async with asyncio.timeout(max(1.0, self._until - time.time())):
                    while await reader.read(MEGABYTE):
                        pass
            self.outcomes["silence", "closed"] += 1
            writer.transport.abort()  # type: ignore[attr-defined]
            await asyncio.sleep(0.5)


async def attack(task: Task) -> dict[str, object]:
    """Attack until the time is over: how often each kind came to what."""
    attacker = Attacker(task.scene, task.ports, task.host, task.until)
    services = (NODE, NODE, NODE, NODE, MATCHER, SIGNER, GRPC, PEER)
    await asyncio.gather(
        *(
            attacker.client(task.seed * 1_000 + number, task.address(number))
            for number in range(task.clients)
        ),
        *(
            attacker.silent(services[number % len(services)], task.address(number % task.clients))
            for number in range(task.silent)
        ),
    )
    rows = [[*key, count] for key, count in attacker.outcomes.items()]
    return {"outcomes": rows, "examples": attacker.examples}


# --- honest traffic -------------------------------------------------------------------------------


@dataclass
class Waits:
    """How long each answer of one kind took, in ms, and the long ones: when they came, what the
    longest wait at the floor was meanwhile, and how long the service ran.
    """

    all: list[float] = field(default_factory=list)
    long: list[tuple[float, float, float, float]] = field(default_factory=list)


class Floor:
    """Asks a server that does nothing, over and over, in the same process as the honest client."""

    def __init__(self) -> None:
        self.waits: list[float] = []
        self._recent: deque[tuple[float, float]] = deque(maxlen=10_000)
        self._asked_at: float | None = None

    async def run(self, host: str, port: int, own: str | None, until: float) -> None:
        """Ask until the time is over."""
        local = None if own is None else (own, 0)
        reader, writer = await asyncio.open_connection(host, port, local_addr=local)
        while time.time() < until:
            self._asked_at = time.perf_counter()
            writer.write(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
            await reader.readuntil(b"\r\n\r\n")
            ended = time.perf_counter()
            self.waits.append((ended - self._asked_at) * 1e3)
            self._recent.append((ended, self.waits[-1]))
            self._asked_at = None
            await asyncio.sleep(FLOOR_PAUSE)
        writer.close()

    def longest_since(self, started: float) -> float:
        """The longest wait that ended since a moment or has not ended, in ms."""
        waits = [wait for ended, wait in reversed(self._recent) if ended >= started]
        if self._asked_at is not None:
            waits.append((time.perf_counter() - self._asked_at) * 1e3)
        return max(waits, default=0.0)


class Caller:
    """A connection of HTTP/2 that calls one method of gRPC, one call after the other."""

    _HEADERS = (
        (":method", "POST"), (":scheme", "http"), (":authority", "x"),
        (":path", "/waves.node.grpc.BlocksApi/GetCurrentHeight"),
        ("content-type", "application/grpc"), ("te", "trailers"),
    )  # fmt: skip

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader, self._writer = reader, writer
        self._decoder = hpack.Decoder()
        self._number = -1

    @classmethod
    async def open(cls, host: str, port: int, local: tuple[str, int] | None) -> Caller:
        """Connect."""
        reader, writer = await asyncio.open_connection(host, port, local_addr=local)
        # The window is wide enough for all answers of the run.
        wide = cls._frame(8, 0, 0, struct.pack(">I", 2**31 - 2**16))
        writer.write(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + cls._frame(4, 0, 0) + wide)
        return cls(reader, writer)

    @staticmethod
    def _frame(kind: int, flags: int, stream: int, body: bytes = b"") -> bytes:
        head = struct.pack(">I", len(body))[1:] + bytes((kind, flags)) + struct.pack(">I", stream)
        return head + body

    async def call(self) -> str:
        """Return the status of gRPC; raises ``ConnectionError`` at the end of the connection."""
        self._number += 2
        block = b"".join(
            b"\0" + bytes((len(name),)) + name.encode() + bytes((len(value),)) + value.encode()
            for name, value in self._HEADERS
        )
        self._writer.write(self._frame(1, 4, self._number, block))
        self._writer.write(self._frame(0, 1, self._number, bytes(5)))
        while True:
            head = await self._reader.readexactly(9)
            kind, flags, stream = head[3], head[4], int.from_bytes(head[5:], "big")
            body = await self._reader.readexactly(int.from_bytes(head[:3], "big"))
            if kind == 6 and not flags:
                self._writer.write(self._frame(6, 1, 0, body))
            elif kind == 7:
                raise ConnectionError("GOAWAY")
            elif kind == 3 and stream == self._number:
                return "reset"
            elif kind == 1:
                headers = dict(self._decoder.decode(body))
                if flags & 1:
                    return f"status {headers.get('grpc-status')}"


class Honest:
    """A client with keep-alive connections, and what it was answered."""

    def __init__(self, task: Task) -> None:
        self._task = task
        self._open: dict[int, tuple[asyncio.StreamReader, asyncio.StreamWriter]] = {}
        self._floor = Floor()
        self._caller: Caller | None = None
        self.waits: defaultdict[str, Waits] = defaultdict(Waits)
        self.statuses: Counter[str] = Counter()
        self.sent: list[str] = []

    async def ask(
        self, kind: str, service: str, method: str, path: str, body: bytes = b""
    ) -> bytes:
        """Ask and note the wait: the body of the answer, nothing where there was none."""
        port = self._task.ports[service]
        started, ran = time.perf_counter(), self._ran_ms(service)
        try:
            if port not in self._open:
                own = self._task.address(MAX_CLIENTS)
                self._open[port] = await asyncio.open_connection(
                    self._task.host, port, local_addr=None if own is None else (own, 0)
                )
            reader, writer = self._open[port]
            head = f"{method} {path} HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
            writer.write(f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body)
            async with asyncio.timeout(PATIENCE_SECONDS):
                answer = await reader.readuntil(b"\r\n\r\n")
                length = re.search(rb"content-length: (\d+)", answer, re.IGNORECASE)
                content = await reader.readexactly(int(length[1]) if length else 0)
        except (OSError, TimeoutError, asyncio.IncompleteReadError) as error:
            self._open.pop(port, None)
            self.statuses[f"{kind}: {type(error).__name__}"] += 1
            return b""
        self._note(kind, started, self._ran_ms(service) - ran)
        status = answer[9:12].decode()
        self.statuses[f"{kind}: {status}"] += 1
        if b"connection: close" in answer.lower():
            self._open.pop(port)[1].close()
        return content if status == "200" else b""

    async def call(self) -> None:
        """Call a method over HTTP/2 and note the wait."""
        started, ran = time.perf_counter(), self._ran_ms(GRPC)
        try:
            if self._caller is None:
                own = self._task.address(MAX_CLIENTS)
                local = None if own is None else (own, 0)
                self._caller = await Caller.open(self._task.host, self._task.ports[GRPC], local)
            async with asyncio.timeout(PATIENCE_SECONDS):
                outcome = await self._caller.call()
        except (OSError, TimeoutError, asyncio.IncompleteReadError) as error:
            self._caller = None
            self.statuses[f"gRPC height: {type(error).__name__}"] += 1
            return
        self._note("gRPC height", started, self._ran_ms(GRPC) - ran)
        self.statuses[f"gRPC height: {outcome}"] += 1

    def _note(self, kind: str, started: float, ran: float) -> None:
        milliseconds = (time.perf_counter() - started) * 1e3
        self.waits[kind].all.append(milliseconds)
        if milliseconds > BAR_MS:
            floor = self._floor.longest_since(started)
            self.waits[kind].long.append((time.time(), milliseconds, floor, ran))

    def _ran_ms(self, service: str) -> float:
        """How long the main threads of a service have run so far: nobody waits longer for the
        program itself.
        """
        total = 0
        for process in self._task.processes[service]:
            with contextlib.suppress(OSError):
                total += int(Path(f"/proc/{process}/schedstat").read_text().split()[0])
        return total / 1e6

    async def run(self) -> None:
        """Go on until the time is over."""
        task = self._task
        own = task.address(MAX_CLIENTS)
        floor = asyncio.create_task(
            self._floor.run(task.host, task.ports["floor"], own, task.until)
        )
        await self._ask_all()
        await floor
        self.waits["floor"].all = self._floor.waits

    async def _ask_all(self) -> None:
        tick = 0
        while time.time() < self._task.until:
            tick += 1
            await self.ask("node height", NODE, "GET", "/blocks/height")
            address = self._task.scene.addresses[tick % len(self._task.scene.addresses)]
            await self.ask("node balance", NODE, "GET", f"/addresses/balance/{address}")
            await self.ask("matcher book", MATCHER, "GET", self._task.book)
            await self.ask("signer health", SIGNER, "GET", "/health")
            await self.ask("peer height", "peer's REST", "GET", "/blocks/height")
            await self.call()
            if tick % 10 == 0:
                payment = _transfer(tick)
                text = msgspec.json.encode(codec.to_json(payment))
                if await self.ask("node broadcast", NODE, "POST", "/transactions/broadcast", text):
                    self.sent.append(base58.encode(payment.id))
            if tick % 25 == 0:
                await self._order(tick)
            if tick % 50 == 0:
                body = json.dumps({"seed": SEED, "data": [{"key": "tick", "value": tick}]})
                found = await self.ask("signer data", SIGNER, "POST", "/data", body.encode())
                if found:
                    self.sent.append(json.loads(found)["id"])
            await asyncio.sleep(HONEST_PAUSE)

    async def _order(self, tick: int) -> None:
        market = Market(CHAIN_ID, KEYS[-1].public_key, base58.decode(self._task.gold, 50), None)
        side = Side.BUY if tick % 2 else Side.SELL
        order = market.order(KEYS[tick % 3], side, COIN, COIN, now=now(), number=tick % 7)
        await self.ask("matcher order", MATCHER, "POST", "/matcher/orderbook", order)

    async def lost(self) -> list[str]:
        """Which of the accepted transactions are not on the chain in the end."""
        end = time.time() + SETTLE_SECONDS
        left = self.sent
        while left and time.time() < end:
            still = []
            for each in left:
                found = await self.ask("after", NODE, "GET", f"/transactions/info/{each}")
                if not found:
                    still.append(each)
            left = still
            await asyncio.sleep(1 if left else 0)
        return left


SEED = "soliton devnet account 6"


def _transfer(amount: int) -> AnyTransaction:
    sender, receiver = KEYS[3], from_public_key(KEYS[4].public_key, CHAIN_ID)
    draft = codec.build(
        transfer.TYPE,
        Transfer(receiver, None, amount, b""),
        version=3,
        chain_id=CHAIN_ID,
        sender_public_key=sender.public_key,
        fee=10**5,
        timestamp=now(),
    )
    return codec.sign(draft, sender.private_key)


async def honest(task: Task) -> dict[str, object]:
    """Ask until the time is over: waits, statuses, what was lost."""
    client = Honest(task)
    await client.run()
    waits = {kind: {"all": each.all, "long": each.long} for kind, each in client.waits.items()}
    lost = await client.lost()
    return {"waits": waits, "statuses": client.statuses, "sent": len(client.sent), "lost": lost}


async def floor() -> None:
    """A server that does nothing, on a port that it prints."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(asyncio.IncompleteReadError, ConnectionError):
            while await reader.readuntil(b"\r\n\r\n"):
                writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
        writer.close()

    server = await asyncio.start_server(serve, "0.0.0.0", 0)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()


# --- the run --------------------------------------------------------------------------------------


class Task(msgspec.Struct):
    """What a process of the run does: whom it asks, as whom, for how long."""

    host: str
    ports: dict[str, int]
    scene: Scene
    clients: int
    seed: int
    until: float
    own_addresses: bool
    gold: str
    silent: int
    processes: dict[str, tuple[int, ...]]

    @property
    def book(self) -> str:
        """The path of the order book in which there is trade."""
        return f"/matcher/orderbook/{self.gold}/WAVES?depth=10"

    def address(self, number: int) -> str | None:
        """The address of a client, where each has its own."""
        return CLIENT_ADDRESS.format(number + 1) if self.own_addresses else None


@contextlib.contextmanager
def namespace(*, wanted: bool) -> Iterator[bool]:
    """A network namespace with addresses for all clients; whether there is one."""
    if not wanted or os.geteuid() != 0:
        yield False
        return
    inside = f"ip -n {NAMESPACE}"
    commands = [
        f"ip netns add {NAMESPACE}",
        f"ip link add {OUTSIDE} type veth peer name {INSIDE} netns {NAMESPACE}",
        f"ip addr add {HOST_ADDRESS}/16 dev {OUTSIDE}",
        f"ip link set {OUTSIDE} up",
        f"{inside} link set {INSIDE} up",
        *(
            f"{inside} addr add {CLIENT_ADDRESS.format(number)}/16 dev {INSIDE}"
            for number in range(1, MAX_CLIENTS + 2)
        ),
    ]
    subprocess.run(["ip", "netns", "del", NAMESPACE], check=False, stderr=subprocess.DEVNULL)
    made = all(
        subprocess.run(each.split(), check=False, stderr=subprocess.DEVNULL).returncode == 0
        for each in commands
    )
    try:
        yield made
    finally:
        subprocess.run(["ip", "netns", "del", NAMESPACE], check=False, stderr=subprocess.DEVNULL)


def start(name: str, task: Task, directory: Path, *, nice: int = 0) -> subprocess.Popen[str]:
    """A process of the run, inside the namespace where there is one."""
    path = directory / f"{name}.json"
    path.write_bytes(msgspec.json.encode(task))
    inside = ["ip", "netns", "exec", NAMESPACE] if task.own_addresses else []
    return subprocess.Popen(
        [
            *inside,
            "nice",
            "-n",
            str(nice),
            sys.executable,
            __file__,
            "--role",
            name,
            "--task",
            path,
        ],
        stdout=subprocess.PIPE,
        text=True,
    )


PEER_CONFIGURATION = """
waves {{
  blockchain.type = devnet
  directory = {directory}
  miner.enable = no
  network {{ bind-address = "{host}", port = 0, known-peers = [], enable-blacklisting = no }}
  rest-api {{ bind-address = "{host}", port = 0 }}
  wallet {{ file = "", seed = "4vJ9" }}
}}
"""


@contextlib.contextmanager
def peer_node(directory: Path, host: str) -> Iterator[Running]:
    """A node that others may connect to as peers."""
    path = directory / "peer.conf"
    path.write_text(PEER_CONFIGURATION.format(directory=directory / "peer", host=host))
    node = Running(path)
    try:
        yield node
    finally:
        node.stop()


def prepare(devnet: Devnet) -> tuple[Scene, str]:
    """A dApp, an asset that is traded, and what attackers know of both."""
    gold = give_gold(devnet)
    compiled = ask(f"{devnet.url}/utils/script/compileCode", DAPP_SOURCE.encode())
    assert isinstance(compiled, dict)
    raw = base64.b64decode(compiled["script"].removeprefix("base64:"))
    send(devnet, set_script.TYPE, SetScript(raw), 2, 10**7)
    keys = [base58.encode(pair.public_key) for pair in KEYS]
    addresses = [address_text(from_public_key(pair.public_key, CHAIN_ID)) for pair in KEYS]
    market = Market(CHAIN_ID, KEYS[-1].public_key, gold, None)
    orders = [
        market.order(KEYS[5], side, COIN, COIN * factor, now=now(), number=number)
        for number in range(20)
        for side in (Side.BUY, Side.SELL)
        for factor in (1, 10**7)
    ]
    scene = Scene(addresses[0], tuple(keys), tuple(addresses), tuple(orders))
    return scene, base58.encode(gold)


def run(seconds: float, clients: int, seed: int, workers: int, silent: int, *, local: bool) -> bool:
    """Attack a devnet and report; whether all is well."""
    with contextlib.ExitStack() as stack:
        own_addresses = stack.enter_context(namespace(wanted=not local))
        host = "0.0.0.0" if own_addresses else "127.0.0.1"
        directory = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        devnet = stack.enter_context(
            running(
                "--host", host, "--block-time", "2", "--workers", str(workers), "--grpc-port", "0"
            )
        )
        peer = stack.enter_context(peer_node(directory, host))
        nothing = stack.enter_context(
            subprocess.Popen(
                [sys.executable, __file__, "--role", "floor"], stdout=subprocess.PIPE, text=True
            )
        )
        stack.callback(nothing.send_signal, signal.SIGTERM)
        assert nothing.stdout is not None
        scene, gold = prepare(devnet)
        ports = {
            NODE: devnet.port,
            MATCHER: port_of(devnet.matcher_url),
            SIGNER: port_of(devnet.signer_url),
            GRPC: devnet.grpc_port,
            PEER: int(peer.peer_port),
            "peer's REST": port_of(peer.url),
            "floor": int(nothing.stdout.readline()),
        }
        asked_at = HOST_ADDRESS if own_addresses else "127.0.0.1"
        until = time.time() + seconds
        services = (devnet.process.pid, peer.process.pid)
        processes = {
            **dict.fromkeys((NODE, MATCHER, SIGNER), (devnet.process.pid,)),
            GRPC: tuple(tree(devnet.process.pid)[1:]),
            "peer's REST": (peer.process.pid,),
        }
        task = Task(
            asked_at, ports, scene, clients, seed, until, own_addresses, gold, silent, processes
        )
        come_from = "addresses of their own" if own_addresses else "this machine"
        print(f"{clients} clients from {come_from}, {seconds:.0f} s, seed {seed}", flush=True)
        # Attackers have machines of their own: here they must not take the services' turns.
        attackers = start("attack", task, directory, nice=10)
        other = start("honest", task, directory)
        samples = watch(devnet, services, until)
        attacked = json.loads(attackers.communicate()[0])
        asked = json.loads(other.communicate()[0])
        samples.append(sample(devnet, services, until - seconds))
        devnet.check()
        peer.height()
        return report(attacked, asked, samples, failures(devnet))


def main() -> None:
    """Carry out what the command line says."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--clients", type=int, default=200)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--workers", type=int, default=0)
    parser.add_argument("--silent", type=int, default=1_100)
    parser.add_argument("--local", action="store_true")
    parser.add_argument("--role", help=argparse.SUPPRESS)
    parser.add_argument("--task", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.role == "floor":
        asyncio.run(floor())
    elif given.role:
        task = msgspec.json.decode(Path(given.task).read_bytes(), type=Task)
        work = attack if given.role == "attack" else honest
        print(json.dumps(asyncio.run(work(task))))
    elif not 1 <= given.clients <= MAX_CLIENTS:
        parser.error(f"1 to {MAX_CLIENTS} clients")
    elif not run(
        given.seconds, given.clients, given.seed, given.workers, given.silent, local=given.local
    ):
        sys.exit("NOT ALL IS WELL")


if __name__ == "__main__":
    main()
