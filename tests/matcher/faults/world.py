"""A private chain, matchers against it, and traders who never stop: all as processes of their own,
so that each can be killed.

What lives here: starting, load, and what has to be true afterwards. What does not: which faults
happen (``test_faults``).
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import json
import os
import random
import resource
import signal
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from soliton.chain import networks, orders
from soliton.chain.orders import Side
from soliton.chain.transactions import codec
from soliton.chain.transactions.exchange import TYPE as EXCHANGE
from soliton.chain.transactions.issue import TYPE as ISSUE
from soliton.chain.transactions.issue import Issue
from soliton.chain.transactions.model import AnyTransaction, TransactionType
from soliton.chain.transactions.transfer import TYPE as TRANSFER
from soliton.chain.transactions.transfer import Transfer
from soliton.cli.matcher_config import matcher_settings
from soliton.crypto import base58
from soliton.crypto.keys import KeyPair, key_pair, key_pair_from_account_seed
from soliton.devnet.accounts import RICH_SEED
from soliton.matcher.journal.segments import encode_records
from soliton.matcher.settings import MatcherSettings
from soliton.matcher.stores import open_snapshots, reading
from soliton.matching.commands import PlaceMarketOrder, PlaceOrder, decode
from soliton.matching.engine import Engine
from soliton.matching.errors import ORDER_DUPLICATE
from soliton.matching.events import OrderExecuted
from soliton.matching.pairs import AssetPair
from soliton.node.settings import api_key_hash_text
from soliton.web.client import ClientLimits, HttpClient, HttpTrouble
from soliton.web.clock import wall_clock
from tests.e2e.programs import API_KEY, Program, call, eventually, free_port, height, run
from tests.matcher.kit import address_of, make_order

CHAIN_ID: Final = networks.load("devnet").chain_id
RICH: Final = key_pair(RICH_SEED)
SEED: Final = b"the matcher of the fault runs"
ACCOUNT: Final = key_pair_from_account_seed(SEED)
TRADERS: Final = tuple(key_pair(f"trader {number}") for number in range(6))
COIN: Final = 10**8
FUNDS: Final = 10**13
LANES: Final = 12
PAUSE: Final = 0.04
PAGE: Final = 1_000
READY: Final = "the matcher takes orders"

_CONFIG: Final = """
soliton {{
  blockchain.type = devnet
  matcher {{
    data-directory = "{directory}"
    account-storage.in-mem.seed-in-base-64 = "dGhlIG1hdGNoZXIgb2YgdGhlIGZhdWx0IHJ1bnM="
    node {{ url = "{node}", poll-interval = 200ms }}
    price-assets = ["{usd}"]
    rest-api {{ port = {port}, api-key-hashes = ["{key_hash}"], workers = {workers} }}
    address-actor.max-active-orders = 100000
    snapshots-interval = 1500
    exchange-transaction-broadcast.interval = 1s
    events-queue {queue}
  }}
}}
"""


def transaction(kind: TransactionType, payload: object, fee: int) -> AnyTransaction:
    """One by the rich account, signed."""
    draft = codec.build(
        kind,
        payload,
        version=2,
        chain_id=CHAIN_ID,
        sender_public_key=RICH.public_key,
        fee=fee,
        timestamp=wall_clock(),
    )
    return codec.sign(draft, RICH.private_key)


@dataclass
class Notes:
    """What the traders were told."""

    accepted: set[bytes] = field(default_factory=set)
    refused: Counter[str] = field(default_factory=Counter)
    unknown: set[bytes] = field(default_factory=set)
    cancelled: set[bytes] = field(default_factory=set)


class World:
    """The chain, and the matchers that were started on it."""

    def __init__(self, directory: Path, *, block_seconds: float = 0.05) -> None:
        self._directory = directory
        self._port = free_port()
        self._block_seconds = block_seconds
        self.node_url = f"http://127.0.0.1:{self._port}"
        self.node = self._start_node()
        self.matchers: dict[str, Program] = {}
        self._configs: dict[str, tuple[Path, int]] = {}
        self.usd = self._prepare()
        self.pair = AssetPair(None, self.usd)
        self.notes = Notes()
        self._stopping = False

    # --- processes --------------------------------------------------------------------------------

    def _start_node(self) -> Program:
        node = Program(
            [
                *("devnet", "--port", self._port, "--signer-port", 0, "--matcher-port", 0),
                *("--data-dir", self._directory / "chain", "--block-time", self._block_seconds),
            ],
            {},
        )
        node.wait_for("Ready.")
        return node

    def kill_workers(self, name: str) -> None:
        """End those of a matcher."""
        process_id = self.matchers[name].process.pid
        children = Path(f"/proc/{process_id}/task/{process_id}/children").read_text().split()
        for child in map(int, children):
            if b"spawn_main" in Path(f"/proc/{child}/cmdline").read_bytes():
                os.kill(child, signal.SIGKILL)

    def kill_node(self) -> None:
        """End it as a crash would, and start it again."""
        self.node.kill()
        self.node.close()
        self.node = self._start_node()

    def pause_node(self, seconds: float) -> None:
        """Let it hang for a while."""
        self.node.send(signal.SIGSTOP)
        try:
            asyncio.run(asyncio.sleep(seconds))
        finally:
            self.node.send(signal.SIGCONT)

    def roll_back(self, blocks: int, *, keep: bool) -> int:
        """Take blocks off the chain: how many. Their transactions go back into the pool if
        ``keep``, and are forgotten otherwise.
        """
        top = height(self.node_url)
        body = {"rollbackTo": top - blocks, "returnTransactionsToUtx": keep}
        answer = call(f"{self.node_url}/debug/rollback", body, key=API_KEY)
        assert answer.status == 200, answer.body
        return blocks

    def _prepare(self) -> bytes:
        issued = transaction(ISSUE, Issue(b"Dollar", b"", 10**17, 2, False, None), COIN)
        self._send(issued)
        for keys in (*TRADERS, ACCOUNT):
            for asset in (None, issued.id):
                transfer = Transfer(address_of(keys), asset, FUNDS, b"")
                self._send(transaction(TRANSFER, transfer, 100_000))
        eventually(lambda: self._balance(ACCOUNT, issued.id) == FUNDS, "funds")
        return issued.id

    def _send(self, made: AnyTransaction) -> None:
        answer = call(f"{self.node_url}/transactions/broadcast", codec.to_json(made))
        assert answer.status == 200, answer.body

    def _balance(self, keys: KeyPair, asset: bytes) -> int:
        where = f"{_text(address_of(keys))}/{_text(asset)}"
        found: int = call(f"{self.node_url}/assets/balance/{where}").json()["balance"]
        return found

    def start_matcher(
        self, name: str, queue: str = "{}", *, wait: bool = True, workers: int = 0
    ) -> Program:
        """Start a matcher, or start it again, as the first time, after its end."""
        if name not in self._configs:
            path, port = self._directory / f"{name}.conf", free_port()
            text = _CONFIG.format(
                directory=self._directory / name,
                node=self.node_url,
                usd=_text(self.usd),
                port=port,
                key_hash=api_key_hash_text(API_KEY),
                queue=queue,
                workers=workers,
            )
            path.write_text(text)
            self._configs[name] = path, port
        before = self.matchers.pop(name, None)
        if before is not None:
            before.close()
        path, _ = self._configs[name]
        program = Program(["matcher", "run", "--config", path], {})
        self.matchers[name] = program
        if wait:
            program.wait_for(READY)
        return program

    def settings(self, name: str) -> MatcherSettings:
        """What a matcher was told."""
        return matcher_settings(self._configs[name][0], None, None)

    def urls(self) -> list[str]:
        """Where the matchers listen, running or not."""
        return [f"http://127.0.0.1:{port}" for _, port in self._configs.values()]

    def tear_tail(self, name: str, length: int) -> None:
        """Leave a piece of a command behind the journal's end, as an interrupted write would."""
        path = max((self._directory / name / "journal").glob("*.journal"))
        torn = encode_records(10**6, 1, 0, [bytes(300)])[:length]
        with path.open("ab") as file:
            file.write(torn)

    def fill_disk(self, name: str) -> None:
        """No file of a matcher may grow any more, until ``free_disk``."""
        path = max((self._directory / name / "journal").glob("*.journal"))
        self._limit(name, path.stat().st_size)

    def free_disk(self, name: str) -> None:
        """The end of ``fill_disk``."""
        self._limit(name, resource.RLIM_INFINITY)

    def _limit(self, name: str, size: int) -> None:
        pid = self.matchers[name].process.pid
        resource.prlimit(pid, resource.RLIMIT_FSIZE, (size, resource.RLIM_INFINITY))

    def blocks(self) -> int:
        """How high the chain is."""
        return height(self.node_url)

    def close(self) -> None:
        """End all."""
        for program in (*self.matchers.values(), self.node):
            program.send(signal.SIGCONT)
            program.close()

    # --- load -------------------------------------------------------------------------------------

    @contextlib.contextmanager
    def trading(self, seed: int) -> Iterator[Notes]:
        """Traders place and cancel in a thread of their own, whoever answers."""
        self._stopping = False
        with ThreadPoolExecutor(1) as threads:
            traders = threads.submit(asyncio.run, self._trade(seed))
            try:
                yield self.notes
            finally:
                self._stopping = True
                traders.result()

    async def _trade(self, seed: int) -> None:
        headers = {"X-API-Key": API_KEY}
        limits = ClientLimits(LANES, answer_seconds=60)
        clients = [HttpClient(url, limits, headers) for url in self.urls()]
        try:
            await asyncio.gather(
                *(self._lane(clients, random.Random(seed * 100 + lane)) for lane in range(LANES))
            )
        finally:
            for client in clients:
                await client.close()

    async def _lane(self, clients: list[HttpClient], chance: random.Random) -> None:
        number = 0
        own: list[bytes] = []
        while not self._stopping:
            await asyncio.sleep(PAUSE)
            if own and chance.random() < 0.15:
                await self._cancel(clients[number], own.pop(chance.randrange(len(own))))
                continue
            order = make_order(
                chance.choice(TRADERS),
                chance.choice((Side.BUY, Side.SELL)),
                chance.randint(1, 50) * COIN // 10,
                chance.randint(230, 270) * 100,
                pair=self.pair,
                timestamp=wall_clock() - chance.randrange(10**6),
                matcher=ACCOUNT,
            )
            body = json.dumps(orders.to_json(order)).encode()
            try:
                answer = await clients[number].request("POST", "/matcher/orderbook", body)
            except HttpTrouble:
                self.notes.unknown.add(order.id)
                number = (number + 1) % len(clients)
                await asyncio.sleep(0.05)
                continue
            if answer.status == 200:
                self.notes.accepted.add(order.id)
                own.append(order.id)
                continue
            told = json.loads(answer.body)
            self.notes.refused[f"{answer.status} {told.get('error')}"] += 1
            if told.get("error") == ORDER_DUPLICATE.code:
                # The client has sent it once more when its connection broke.
                self.notes.unknown.add(order.id)
            elif answer.status >= 500:
                self.notes.unknown.add(order.id)
                number = (number + 1) % len(clients)
                await asyncio.sleep(0.05)

    async def _cancel(self, client: HttpClient, order_id: bytes) -> None:
        path = f"/matcher/orders/cancel/{base58.encode(order_id)}"
        with contextlib.suppress(HttpTrouble):
            answer = await client.request("POST", path, b"{}")
            if answer.status == 200:
                self.notes.cancelled.add(order_id)

    # --- what has to be true ----------------------------------------------------------------------

    def settled(self, name: str) -> None:
        """Wait until all executions are on the chain; nobody trades any more."""
        executions = len(self.replayed(name).executions)
        before = -1

        def further() -> bool:
            time.sleep(0.5)
            return len(self.exchanges()) > before

        # However slow the machine is: what matters is that it goes on.
        while before < executions:
            eventually(further, f"more than {before} of {executions} executions on the chain")
            before = len(self.exchanges())

    def book(self, name: str) -> Any:
        """The order book as a matcher shows it."""
        url = f"http://127.0.0.1:{self._configs[name][1]}/matcher/orderbook"
        told = call(f"{url}/WAVES/{_text(self.usd)}").json()
        return {side: told.get(side) for side in ("bids", "asks")}

    def leader(self) -> str:
        """The matcher that takes orders, as soon as one does."""
        found: list[str] = []

        def some() -> bool:
            found.extend(name for name in self._configs if self.book(name)["bids"])
            return bool(found)

        eventually(some, "a matcher that takes orders")
        return found[0]

    def exchanges(self) -> set[str]:
        """The ids of all exchange transactions on the chain."""
        # The matcher's own list leaves out those whose fees leave its balance as it was.
        return {each for keys in TRADERS for each in self._exchanges_of(keys)}

    def _exchanges_of(self, keys: KeyPair) -> Iterator[str]:
        path = f"{self.node_url}/transactions/address/{_text(address_of(keys))}/limit/{PAGE}"
        after = ""
        while True:
            page: list[dict[str, Any]] = call(path + after).json()[0]
            yield from (each["id"] for each in page if each["type"] == EXCHANGE.type_id)
            if len(page) < PAGE:
                return
            after = f"?after={page[-1]['id']}"

    def replayed(self, name: str) -> Replayed:
        """The journal of a matcher, applied to empty books."""
        return asyncio.run(_replayed(self.settings(name)))

    def check(self, name: str) -> str:
        """Lost 0, doubled 0, books identical, for a matcher that has ended in order."""
        found = self.replayed(name)
        notes = self.notes
        lost = notes.accepted - found.placed.keys()
        doubled = {order_id for order_id, count in found.placed.items() if count > 1}
        assert (lost, doubled) == (set(), set())
        assert found.placed.keys() <= notes.accepted | notes.unknown
        assert not found.waiting & notes.cancelled, "a cancelled order is in the books"
        executed: Counter[bytes] = Counter()
        for event in found.executions:
            executed[event.taker.id] += event.amount
            executed[event.maker.id] += event.amount
        over = [i for i, amount in executed.items() if amount > found.amounts[i]]
        assert over == []
        assert len(self.exchanges()) == len(found.executions)
        snapshot = open_snapshots(self.settings(name)).newest()
        assert snapshot is not None and snapshot.offset == found.engine.last_offset
        assert snapshot.body == found.engine.snapshot(), "the books are not what the journal says"
        proof = run("matcher", "verify", "--config", self._configs[name][0])
        assert proof.returncode == 0, proof.stderr
        return (
            f"{len(notes.accepted)} accepted, {len(found.executions)} executions, "
            f"{len(notes.cancelled)} cancelled, {len(notes.unknown)} unanswered "
            f"({len(notes.unknown & found.placed.keys())} of them stored), "
            f"refused {dict(notes.refused)}; lost {len(lost)}, doubled {len(doubled)}, books "
            f"{hashlib.sha256(snapshot.body).hexdigest()[:16]} from live and from the journal"
        )


@dataclass
class Replayed:
    """What a journal says: how often each order was placed, what was executed, who still waits."""

    engine: Engine
    placed: Counter[bytes]
    amounts: dict[bytes, int]
    executions: list[OrderExecuted]

    @property
    def waiting(self) -> set[bytes]:
        """The orders in the books."""
        return {order.id for book in self.engine.books() for order in book.orders()}


async def _replayed(settings: MatcherSettings) -> Replayed:
    engine = Engine(settings.trading.matching(lambda _: 8))
    found = Replayed(engine, Counter(), {}, [])
    async with reading(settings) as (first, batches):
        assert first == 0
        async for batch in batches:
            for offset, timestamp, payload in batch:
                command = decode(payload)
                if isinstance(command, PlaceOrder | PlaceMarketOrder):
                    found.placed[command.order.id] += 1
                    found.amounts[command.order.id] = command.order.amount
                events = engine.apply(offset, timestamp, command)
                found.executions += [each for each in events if isinstance(each, OrderExecuted)]
    return found


def _text(data: bytes) -> str:
    return base58.encode(data)
