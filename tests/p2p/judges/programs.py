"""Nodes as processes on a private chain, and the lines between them, which can be cut.

What lives here: starting, ending, asking over REST, waiting. What does not: any check.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import socket
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from soliton.chain.transactions import codec
from soliton.chain.transactions.model import AnyTransaction
from soliton.crypto import base58
from soliton.node.rest_settings import api_key_hash_text
from tests.p2p.judges.chain import PrivateChain, account
from tests.ports import free_port

GO = os.environ.get("SOLITON_JUDGE_GO")
SCALA = os.environ.get("SOLITON_JUDGE_SCALA")
API_KEY = "judges"
PATIENCE_SECONDS = 600.0
HTTP_SECONDS = 60.0
MAX_HEADERS = 100


class NotYet(Exception):
    """A node does not answer, or has not what it is asked for."""


def until(holds: Callable[[], bool], what: str, seconds: float = PATIENCE_SECONDS) -> None:
    """Return when something holds; a test fails that waits too long."""
    end = time.monotonic() + seconds
    while True:
        with contextlib.suppress(NotYet):
            if holds():
                return
        if time.monotonic() > end:
            raise AssertionError(f"{what} has not come")
        time.sleep(0.2)


class Judged:
    """A program that runs, and answers by HTTP."""

    kind: str

    def __init__(self, directory: Path) -> None:
        directory.mkdir(parents=True, exist_ok=True)
        self.directory = directory
        self.port = free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        self.process: subprocess.Popen[bytes] | None = None
        self.log = directory / "log.txt"

    def begin(self, command: list[str]) -> None:
        """Start it."""
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(
                command, cwd=self.directory, stdin=subprocess.DEVNULL, stdout=log, stderr=log
            )

    def stop(self, *, kill: bool = False) -> None:
        if self.process is not None:
            (self.process.kill if kill else self.process.terminate)()
            try:
                self.process.wait(HTTP_SECONDS)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()
            self.process = None

    def ask(self, path: str, body: object = None) -> Any:
        """The answer to ``GET``, or to ``POST`` with a body; raises ``NotYet``."""
        request = urllib.request.Request(
            self.url + path,
            None if body is None else json.dumps(body).encode(),
            {"Content-Type": "application/json", "X-API-Key": API_KEY},
        )
        if self.process is not None and self.process.poll() is not None:
            raise AssertionError(f"the {self.kind} has ended: {self.log}")
        try:
            with urllib.request.urlopen(request, timeout=HTTP_SECONDS) as answer:
                return json.load(answer)
        except urllib.error.HTTPError as error:
            raise NotYet(f"{path}: {error.read()[:500]!r}") from error
        except (OSError, ValueError) as error:
            raise NotYet(f"{path}: {error}") from error


class NodeProcess(Judged, ABC):
    """A node that runs; ``number`` says which account it mines with, if it mines."""

    def __init__(
        self,
        chain: PrivateChain,
        directory: Path,
        number: int,
        *,
        mines: bool,
        light: bool = False,
        more: tuple[int, ...] = (),
        hidden: bool = False,
        votes: tuple[int, ...] = (),
    ) -> None:
        """``more`` accounts mine here as well, at a node of ours. It is only ours, too, that can be
        ``hidden``: it tells nobody where it can be dialled, and asks nobody for others. Its blocks
        vote for the features ``votes``.
        """
        super().__init__(directory)
        self.chain, self.number = chain, number
        self.accounts = (number, *more)
        self.mines, self.light, self.hidden = mines, light, hidden
        self.votes = votes
        self.host = f"127.0.{10 + number}.1"
        self.peer_port = free_port()

    @abstractmethod
    def command(self, peers: tuple[str, ...]) -> list[str]:
        """What starts it, dialling these peers."""

    @property
    def where(self) -> str:
        return f"{self.host}:{self.peer_port}"

    def start(self, *peers: str) -> None:
        """Start it, and wait until it answers."""
        self.begin(self.command(peers))
        until(lambda: self.height() > 0, f"{self.kind}: {self.log}")

    def forget(self) -> None:
        """Remove what does not survive a kill."""

    # --- what it says -----------------------------------------------------------------------------

    def height(self) -> int:
        return int(self.ask("/blocks/height")["height"])

    def headers(self, first: int, last: int) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = []
        for start in range(first, last + 1, MAX_HEADERS):
            end = min(last, start + MAX_HEADERS - 1)
            found += self.ask(f"/blocks/headers/seq/{start}/{end}")
        if len(found) != last - first + 1:
            # It has gone to another chain since it was asked how far it is.
            raise NotYet(f"blocks {first} to {last}: {len(found)} of them")
        return found

    def ids(self, first: int, last: int) -> list[str]:
        return [each["id"] for each in self.headers(first, last)]

    def score(self) -> int:
        headers = self.headers(1, self.height())
        return sum(2**64 // each["nxt-consensus"]["base-target"] for each in headers)

    def hashes(self, height: int) -> tuple[str, str]:
        """The state hash and the snapshot hash at a height below the last one."""
        found = self.ask(f"/debug/stateHash/{height}")
        return found["stateHash"], found["snapshotHash"]

    def broadcast(self, transaction: AnyTransaction) -> str:
        self.ask("/transactions/broadcast", codec.to_json(transaction))
        return base58.encode(transaction.id)

    def has(self, transaction_id: str) -> bool:
        """Whether a transaction is in its chain."""
        try:
            return bool(self.ask(f"/transactions/info/{transaction_id}"))
        except NotYet:
            return False


class Ours(NodeProcess):
    kind = "node of ours"

    def command(self, peers: tuple[str, ...]) -> list[str]:
        settings = {
            "miner.enable": self.mines,
            "miner.quorum": 0,
            "miner.private-keys": [
                base58.encode(account(each).private_key) for each in self.accounts
            ],
            "miner.min-micro-block-age": "500ms",
            "miner.micro-block-interval": "1500ms",
            "miner.interval-after-last-block-then-generation-is-allowed": "1000d",
            "wallet.seed": base58.encode(f"wallet {self.number}".encode()),
            "wallet.password": "judges",
            "network.bind-address": self.host,
            "network.port": self.peer_port,
            "network.node-name": f"ours {self.number}",
            "network.known-peers": list(peers),
            "network.suspension-residence-time": "1s",
            "network.black-list-residence-time": "5s",
            "rest-api.port": self.port,
            "rest-api.api-key-hash": api_key_hash_text(API_KEY),
            "rest-api.minimum-peers": 0,
            "db.store-state-hashes": True,
            "features.supported": list(self.votes),
            "ntp-server": "",
        }
        if self.hidden:
            settings["network.enable-peers-exchange"] = False
        else:
            settings["network.declared-address"] = self.where
        if self.light:
            settings["enable-light-mode"] = True
        path = self.directory / "node.conf"
        path.write_text(self.chain.settings(**settings))
        program = str(Path(sys.executable).parent / "soliton")
        data = str(self.directory / "data")
        return [
            program, "--log-level", "debug", "run", "--config", str(path), "--data-dir", data,
            "--peer-port", str(self.peer_port),
        ]  # fmt: skip


class Go(NodeProcess):
    kind = "Go node"

    def forget(self) -> None:
        """Remove its state, which it cannot open again: it starts from nothing."""
        shutil.rmtree(self.directory / "state")

    def command(self, peers: tuple[str, ...]) -> list[str]:
        assert GO is not None
        settings, wallet = self.directory / "chain.json", self.directory / "wallet"
        settings.write_text(self.chain.go_settings())
        self.chain.go_wallet(wallet, self.number, API_KEY)
        return [
            GO,
            *("-cfg-path", str(settings)),
            *("-blockchain-type", "custom"),
            *("-state-path", str(self.directory / "state")),
            *("-wallet-path", str(wallet)),
            *("-wallet-password", API_KEY),
            *("-declared-address", self.where),
            *("-bind-address", self.where),
            *("-api-address", f"127.0.0.1:{self.port}"),
            *("-api-key", API_KEY),
            *("-peers", ",".join(peers)),
            *("-blacklist-residence-time", "0"),
            *("-obsolescence", "87600h"),
            *("-reward", "600000000"),
            *("-min-peers-mining", "0"),
            *("-microblock-interval", "2s"),
            *("-rate-limiter-opts", "rps=1000&burst=1000"),
            *("-log-level", "debug"),
            "-build-extended-api",
            "-serve-extended-api",
            "-build-state-hashes",
            "-disable-ntp",
            "-log-network",
            "-log-fsm",
            *(["-vote", ",".join(map(str, self.votes))] if self.votes else []),
            *([] if self.mines else ["-disable-miner"]),
            *(["-enable-light-mode"] if self.light else []),
        ]


class Scala(NodeProcess):
    kind = "Scala node"

    def command(self, peers: tuple[str, ...]) -> list[str]:
        assert SCALA is not None
        path = Path(SCALA)
        classes = path.read_text().strip() if path.suffix == ".txt" else SCALA
        settings = {
            "directory": str(self.directory / "data"),
            "enable-light-mode": self.light,
            "miner.enable": self.mines,
            "miner.quorum": 0,
            "miner.min-micro-block-age": "500ms",
            "miner.micro-block-interval": "1500ms",
            "miner.interval-after-last-block-then-generation-is-allowed": "1000d",
            "miner.private-keys": [base58.encode(account(each).private_key)
                                   for each in self.accounts],
            "wallet.seed": base58.encode(f"wallet {self.number}".encode()),
            "wallet.password": "judges",
            "network.bind-address": self.host,
            "network.port": self.peer_port,
            "network.declared-address": self.where,
            "network.node-name": f"scala {self.number}",
            "network.known-peers": list(peers),
            "network.suspension-residence-time": "2s",
            "network.black-list-residence-time": "5s",
            "network.max-single-host-connections": 100,
            "network.upnp.enable": False,
            "rest-api.enable": True,
            "rest-api.bind-address": "127.0.0.1",
            "rest-api.port": self.port,
            "rest-api.api-key-hash": api_key_hash_text(API_KEY),
            "rest-api.minimum-peers": 0,
            "db.store-state-hashes": True,
            "ntp-server": "127.0.0.1",
        }  # fmt: skip
        own = self.directory / "node.conf"
        own.write_text(self.chain.settings(**settings))
        memory = ["-Xmx600m", "-Xss4m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1"]
        opened = ["--add-opens=java.base/sun.nio.ch=ALL-UNNAMED"]
        main = "com.wavesplatform.Application"
        return ["java", *memory, *opened, "-cp", classes, main, str(own)]


class Line:
    """A door of a node on an address of its own, which can be shut."""

    def __init__(self, number: int, to: NodeProcess) -> None:
        self._to = (to.host, to.peer_port)
        self._server = socket.create_server((f"127.0.{100 + number}.1", 0))
        self._open = True
        self._sockets: set[socket.socket] = set()
        self._lock = threading.Lock()
        self._thread = threading.Thread(target=self._accept, daemon=True)
        self._thread.start()

    @property
    def where(self) -> str:
        host, port = self._server.getsockname()[:2]
        return f"{host}:{port}"

    def cut(self) -> None:
        """End all conversations, and let nobody in."""
        with self._lock:
            self._open = False
            for each in self._sockets:
                with contextlib.suppress(OSError):
                    each.shutdown(socket.SHUT_RDWR)
            self._sockets.clear()

    def mend(self) -> None:
        with self._lock:
            self._open = True

    def close(self) -> None:
        self.cut()
        # Closing alone does not wake up who accepts.
        with contextlib.suppress(OSError):
            self._server.shutdown(socket.SHUT_RDWR)
        self._server.close()
        self._thread.join()

    def _accept(self) -> None:
        while True:
            try:
                here, _ = self._server.accept()
            except OSError:
                return
            with self._lock:
                if not self._open:
                    here.close()
                    continue
                try:
                    there = socket.create_connection(self._to, source_address=("127.0.0.1", 0))
                except OSError:
                    here.close()
                    continue
                self._sockets |= {here, there}
            for one, other in ((here, there), (there, here)):
                threading.Thread(target=self._carry, args=(one, other), daemon=True).start()

    def _carry(self, one: socket.socket, other: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while data := one.recv(65_536):
                other.sendall(data)
        for each in (one, other):
            with contextlib.suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)
        # The other direction closes the other one.
        one.close()


@contextlib.contextmanager
def running(*nodes: NodeProcess) -> Iterator[None]:
    """End all of these at the end, whatever happens."""
    try:
        yield
    finally:
        for each in nodes:
            each.stop()


def common(nodes: tuple[NodeProcess, ...]) -> int:
    """The height up to which all must agree: all but the last two blocks."""
    return min(each.height() for each in nodes) - 2


def agree(*nodes: NodeProcess) -> bool:
    """Whether all have the same block below the last two."""
    height = common(nodes)
    return height > 0 and len({each.ids(height, height)[0] for each in nodes}) == 1


def same_chain(*nodes: NodeProcess) -> int:
    """Check that blocks and states are the same up to the height that comes back."""
    height = common(nodes)
    first, *others = nodes
    ids = first.ids(1, height)
    for each in others:
        assert each.ids(1, height) == ids, (first.log, each.log)
    for at in range(1, height + 1):
        want = first.hashes(at)
        for each in others:
            assert each.hashes(at) == want, (at, first.log, each.log)
    return height
