"""A private chain, matchers against it, and traders who never stop: all as processes of their own,
so that each can be killed. Clocks, money, disks and connections turn against them.

What lives here: starting, load, and what has to be true afterwards. What does not: which faults
happen (``test_faults``), and the network between them (``proxy``).
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
from urllib.parse import urlsplit

from soliton.chain import networks, orders
from soliton.chain.orders import Order, Side
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
from soliton.matcher.renewal import FINAL_DEPTH
from soliton.matcher.settings import MatcherSettings
from soliton.matcher.stores import open_snapshots
from soliton.matching.errors import COMMAND_OUTCOME_UNKNOWN, REQUEST_TIMEOUT
from soliton.matching.pairs import AssetPair
from soliton.node.settings import api_key_hash_text
from soliton.web.clock import wall_clock
from tests.amounts import times
from tests.e2e.programs import API_KEY, Program, call, eventually, height, run
from tests.matcher.faults.proxy import Proxy
from tests.matcher.faults.replays import Replayed, replayed
from tests.matcher.kit import address_of, make_order
from tests.ports import free_port
from tests.stopping import stop

CHAIN_ID: Final = networks.load("devnet").chain_id
RICH: Final = key_pair(RICH_SEED)
SEED: Final = b"the matcher of the fault runs"
ACCOUNT: Final = key_pair_from_account_seed(SEED)
TRADERS: Final = tuple(key_pair(f"trader {number}") for number in range(6))
COIN: Final = 10**8
FUNDS: Final = 10**13
BIG: Final = 2 * 10**11
BIG_PRICE: Final = 10**8
"""``BIG`` times this is more than 64 bits hold."""
LANES: Final = times(4, 12)
PAUSE: Final = times(0.08, 0.04)
PAGE: Final = 1_000
UNCERTAIN: Final = {-1, COMMAND_OUTCOME_UNKNOWN.code, REQUEST_TIMEOUT.code}
"""Answers after which nobody knows whether an order was placed without asking: no number at all,
or one that says so.
"""
READY: Final = "the matcher takes orders"

_CONFIG: Final = """
soliton {{
  blockchain.type = devnet
  matcher {{
    data-directory = "{directory}"
    account-storage.in-mem.seed-in-base-64 = "dGhlIG1hdGNoZXIgb2YgdGhlIGZhdWx0IHJ1bnM="
    node {{ url = "{node}", poll-interval = 200ms }}
    price-assets = ["{usd}", "{eur}"]
    rest-api {{ port = {port}, api-key-hashes = ["{key_hash}"], workers = {workers} }}
    address-actor.max-active-orders = 100000
    snapshots-interval = 1500
    exchange-transaction-broadcast.interval = 1s
    events-queue {queue}
    {more}
  }}
}}
"""


def transaction(
    kind: TransactionType, payload: object, fee: int, timestamp: int, keys: KeyPair = RICH
) -> AnyTransaction:
    """One by an account, signed."""
    draft = codec.build(
        kind,
        payload,
        version=2,
        chain_id=CHAIN_ID,
        sender_public_key=keys.public_key,
        fee=fee,
        timestamp=timestamp,
    )
    return codec.sign(draft, keys.private_key)


@dataclass
class Notes:
    """What the traders were told."""

    accepted: set[bytes] = field(default_factory=set)
    refused: Counter[str] = field(default_factory=Counter)
    denied: set[bytes] = field(default_factory=set)
    """Orders that were refused: they may never be executed."""
    unknown: set[bytes] = field(default_factory=set)
    cancelled: set[bytes] = field(default_factory=set)


class World:
    """The chain, and the matchers that were started on it."""

    def __init__(self, directory: Path, *, block_seconds: float = 0.05) -> None:
        self._directory = directory
        self._port = free_port()
        self._block_seconds = block_seconds
        self._clocks: dict[str, int] = {}
        self._highest = 0
        self.proxy = Proxy(self._port)
        self.node_url = f"http://127.0.0.1:{self._port}"
        self.node = self._start_node()
        self.matchers: dict[str, Program] = {}
        self._configs: dict[str, tuple[Path, int]] = {}
        self.usd, self.eur = self._prepare()
        self.pair, self.big = AssetPair(None, self.usd), AssetPair(None, self.eur)
        self.notes = Notes()
        self._stopping = False

    # --- processes --------------------------------------------------------------------------------

    def _start_node(self) -> Program:
        node = Program(
            [
                *("devnet", "--port", self._port, "--signer-port", 0, "--matcher-port", 0),
                *("--data-dir", self._directory / "chain", "--block-time", self._block_seconds),
                # No block is final by votes: it goes back as far as it likes.
                *("--generation-period", 1_000_000),
            ],
            self._clock_of("node"),
        )
        node.wait_for("Ready.")
        return node

    def _clock_of(self, name: str) -> dict[str, str]:
        path = self._directory / f"{name}.clock"
        before = os.environ.get("PYTHONPATH", "")
        turned = str(Path(__file__).parent / "clock")
        return {
            "PYTHONPATH": f"{turned}{os.pathsep}{before}" if before else turned,
            "SOLITON_TEST_CLOCK": str(path),
        }

    def turn_clock(self, name: str, ahead_ms: int) -> None:
        """Turn the clock of a matcher, or of the ``node``."""
        self._clocks[name] = ahead_ms
        path = self._directory / f"{name}.clock"
        path.with_suffix(".new").write_text(str(ahead_ms))
        path.with_suffix(".new").replace(path)

    def now(self) -> int:
        """The time by which the chain goes."""
        return wall_clock() + self._clocks.get("node", 0)

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
        stop(self.node.process.pid)
        try:
            asyncio.run(asyncio.sleep(seconds))
        finally:
            self.node.send(signal.SIGCONT)

    def roll_back(self, blocks: int, *, keep: bool) -> int:
        """Take blocks off the chain: how many. Their transactions go back into the pool if
        ``keep``, and are forgotten otherwise.
        """
        top = height(self.node_url)
        self._highest = max(self._highest, top)
        # Nothing that was once so deep that the network keeps it may go, in several steps neither.
        keeps = self._highest - FINAL_DEPTH
        eventually(lambda: height(self.node_url) - blocks > keeps, "blocks that may go")
        put = self._blocks_put()
        top = height(self.node_url)
        body = {"rollbackTo": top - blocks, "returnTransactionsToUtx": keep}
        answer = call(f"{self.node_url}/debug/rollback", body, key=API_KEY)
        assert answer.status == 200, answer.body
        # Blocks that came between the question for the height and the rollback were seen, too.
        self._highest = max(self._highest, top + self._blocks_put() - put)
        return blocks

    def _blocks_put(self) -> int:
        """How many blocks have been put on the chain since its node began."""
        text = call(f"{self.node_url}/metrics").body.decode()
        return int(text.partition("\nsoliton_chain_blocks_total ")[2].split()[0])

    def _prepare(self) -> tuple[bytes, bytes]:
        issues = [
            transaction(ISSUE, Issue(name, b"", 10**17, 2, False, None), COIN, self.now())
            for name in (b"Dollar", b"Euro")
        ]
        for issued in issues:
            self._send(issued)
        for keys in (*TRADERS, ACCOUNT):
            for asset in (None, *(issued.id for issued in issues)):
                self.pay(RICH, keys, asset, FUNDS)
        eventually(lambda: self._balance(ACCOUNT, issues[-1].id) == FUNDS, "funds")
        return issues[0].id, issues[1].id

    def pay(self, sender: KeyPair, recipient: KeyPair, asset: bytes | None, amount: int) -> None:
        """Send an amount from one account to another."""
        transfer = Transfer(address_of(recipient), asset, amount, b"")
        self._send(transaction(TRANSFER, transfer, 100_000, self.now(), sender))

    def take_money(self, keys: KeyPair, asset: bytes | None) -> int:
        """Take most of what an account has of an asset: how much. What it trades meanwhile may
        take some of it.
        """
        text = _text(address_of(keys))
        if asset is None:
            told = call(f"{self.node_url}/addresses/balance/details/{text}").json()
            left = int(told["available"]) - 100_000
        else:
            left = self._balance(keys, asset)
        for tenths in (9, 6, 3):
            amount = left * tenths // 10
            transfer = Transfer(address_of(RICH), asset, amount, b"")
            made = transaction(TRANSFER, transfer, 100_000, self.now(), keys)
            path = f"{self.node_url}/transactions/broadcast"
            if call(path, codec.to_json(made)).status == 200:
                return amount
        return 0

    def _send(self, made: AnyTransaction) -> None:
        answer = call(f"{self.node_url}/transactions/broadcast", codec.to_json(made))
        assert answer.status == 200, answer.body

    def _balance(self, keys: KeyPair, asset: bytes) -> int:
        where = f"{_text(address_of(keys))}/{_text(asset)}"
        return int(call(f"{self.node_url}/assets/balance/{where}").json()["balance"])

    def start_matcher(
        self,
        name: str,
        queue: str = "{}",
        *,
        wait: bool = True,
        workers: int = 0,
        more: str = "",
    ) -> Program:
        """Start a matcher, or start it again, as the first time, after its end; ``more`` are
        further settings.
        """
        if name not in self._configs:
            path, port = self._directory / f"{name}.conf", free_port()
            text = _CONFIG.format(
                directory=self._directory / name,
                node=self.proxy.url,
                usd=_text(self.usd),
                eur=_text(self.eur),
                port=port,
                key_hash=api_key_hash_text(API_KEY),
                queue=queue,
                workers=workers,
                more=more,
            )
            path.write_text(text)
            self._configs[name] = path, port
        before = self.matchers.pop(name, None)
        if before is not None:
            before.close()
        path, _ = self._configs[name]
        program = Program(["matcher", "run", "--config", path], self._clock_of(name))
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
        found = height(self.node_url)
        self._highest = max(self._highest, found)
        return found

    def close(self) -> None:
        """End all."""
        programs = (*self.matchers.values(), self.node)
        for program in programs:
            program.send(signal.SIGCONT)
            program.send(signal.SIGTERM)
        for program in programs:
            program.close()
        self.proxy.close()

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
        chances = (random.Random(seed * 100 + lane) for lane in range(LANES))
        await asyncio.gather(*(self._lane(chance) for chance in chances))

    def _order(self, chance: random.Random) -> Order:
        big = chance.random() < 0.1
        amount = chance.randint(1, 50) * COIN // 10
        price = chance.randint(230, 270) * 100
        if big:
            amount, price = chance.randint(BIG, 2 * BIG), BIG_PRICE + chance.randint(-1000, 1000)
        return make_order(
            chance.choice(TRADERS),
            chance.choice((Side.BUY, Side.SELL)),
            amount,
            price,
            pair=self.big if big else self.pair,
            timestamp=self.now() - chance.randrange(10**6),
            matcher=ACCOUNT,
        )

    async def _lane(self, chance: random.Random) -> None:
        urls, number = self.urls(), 0
        own: list[bytes] = []
        while not self._stopping:
            await asyncio.sleep(PAUSE)
            if own and chance.random() < 0.15:
                await self._cancel(urls[number], own.pop(chance.randrange(len(own))))
                continue
            order = self._order(chance)
            body = json.dumps(orders.to_json(order)).encode()
            try:
                status, told = await post(f"{urls[number]}/matcher/orderbook", body)
            except (OSError, ValueError, TimeoutError):
                self.notes.unknown.add(order.id)
                number = (number + 1) % len(urls)
                await asyncio.sleep(0.05)
                continue
            if status == 200:
                self.notes.accepted.add(order.id)
                own.append(order.id)
                continue
            self.notes.refused[f"{status} {told.get('error')}"] += 1
            uncertain = told.get("error", -1) in UNCERTAIN
            (self.notes.unknown if uncertain else self.notes.denied).add(order.id)
            if status >= 500:
                number = (number + 1) % len(urls)
                await asyncio.sleep(0.05)

    async def _cancel(self, url: str, order_id: bytes) -> None:
        with contextlib.suppress(OSError, ValueError, TimeoutError):
            status, _ = await post(f"{url}/matcher/orders/cancel/{base58.encode(order_id)}", b"{}")
            if status == 200:
                self.notes.cancelled.add(order_id)

    # --- what has to be true ----------------------------------------------------------------------

    def settled(self, name: str) -> None:
        """Wait until all executions are on the chain or given up; nobody trades any more."""
        executions = len(self.replayed(name).executions)
        before = -1

        def done() -> int:
            given_up = sum(each["status"] == "GivenUp" for each in self.unsettled(name))
            return int(given_up) + len(self.exchanges())

        def further() -> bool:
            time.sleep(0.5)
            return done() > before

        # However slow the machine is: what matters is that it goes on.
        while before < executions:
            try:
                eventually(further, f"more than {before} of {executions} executions settled")
            except AssertionError as error:
                told = self.matchers[name].output[-3_000:]
                raise AssertionError(f"{error}: {self.unsettled(name)[:5]}\n{told}") from error
            before = done()

    def unsettled(self, name: str) -> list[dict[str, Any]]:
        """What a matcher shows as not settled."""
        url = f"http://127.0.0.1:{self._configs[name][1]}/matcher/debug/unsettled"
        answer = call(url, key=API_KEY)
        found: list[dict[str, Any]] = answer.json() if answer.status == 200 else []
        return found

    def balances(self, name: str) -> dict[str, dict[str, Any]]:
        """What a matcher thinks that the traders have."""
        url = f"http://127.0.0.1:{self._configs[name][1]}/matcher/debug/address"
        found = {}
        for keys in TRADERS:
            text = _text(address_of(keys))
            told = call(f"{url}/{text}", key=API_KEY).json()
            # What others of the same account have made is remembered only by whoever saw it.
            del told["notCreatedTxs"]
            told["unconfirmed"] = {each: n for each, n in told["unconfirmed"].items() if n}
            found[text] = told
        return found

    def check_balances(self, name: str) -> None:
        """They are what a fresh start computes. Nobody trades, and all is settled."""

        def caught_up() -> bool:
            told = self.balances(name).values()
            return not any(each["notObservedTxs"] or each["unconfirmed"] for each in told)

        eventually(caught_up, "balances of which nothing is held back any more")
        live = self.balances(name)
        self.matchers[name].close()
        self.start_matcher(name)
        fresh = self.balances(name)
        wrong = {
            (account, part): (known, fresh[account][part])
            for account, parts in live.items()
            for part, known in parts.items()
            if known != fresh[account][part]
        }
        assert wrong == {}, f"live, and after a fresh start: {wrong}"

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

    def exchanges(self) -> dict[str, frozenset[str]]:
        """The ids of all exchange transactions on the chain, with the orders that each settles."""
        # The matcher's own list leaves out those whose fees leave its balance as it was.
        return {each: ids for keys in TRADERS for each, ids in self._exchanges_of(keys)}

    def _exchanges_of(self, keys: KeyPair) -> Iterator[tuple[str, frozenset[str]]]:
        path = f"{self.node_url}/transactions/address/{_text(address_of(keys))}/limit/{PAGE}"
        after = ""
        while True:
            page: list[dict[str, Any]] = call(path + after).json()[0]
            for each in page:
                if each["type"] == EXCHANGE.type_id:
                    yield each["id"], frozenset((each["order1"]["id"], each["order2"]["id"]))
            if len(page) < PAGE:
                return
            after = f"?after={page[-1]['id']}"

    def replayed(self, name: str) -> Replayed:
        """The journal of a matcher, applied to empty books."""
        return asyncio.run(replayed(self.settings(name)))

    def finish(self, name: str, what: str) -> None:
        """Settle, compare balances with those of a fresh start, end in order, check everything."""
        self.settled(name)
        self.check_balances(name)
        self.end(name, what)

    def end(self, name: str, what: str) -> None:
        """End in order and check all but the balances."""
        shown = self.unsettled(name)
        self.matchers[name].close()
        print(f"\n{what}: {self.check(name, shown)}")

    def check(self, name: str, shown: list[dict[str, Any]]) -> str:
        """Lost 0, doubled 0, books identical, for a matcher that has ended in order and has
        ``shown`` what is not settled.
        """
        found = self.replayed(name)
        notes = self.notes
        lost = notes.accepted - found.placed.keys()
        doubled = {order_id for order_id, count in found.placed.items() if count > 1}
        assert (lost, doubled) == (set(), set())
        assert found.placed.keys() <= notes.accepted | notes.unknown
        assert not found.placed.keys() & notes.denied, f"refused, and executed: {notes.refused}"
        assert not found.waiting & notes.cancelled, "a cancelled order is in the books"
        executed: Counter[bytes] = Counter()
        for event in found.executions:
            executed[event.taker.id] += event.amount
            executed[event.maker.id] += event.amount
        over = [i for i, amount in executed.items() if amount > found.amounts[i]]
        assert over == []
        settled = Counter(self.exchanges().values())
        given_up = {frozenset((each["buyOrderId"], each["sellOrderId"])) for each in shown}
        fills = {frozenset((_text(e.taker.id), _text(e.maker.id))) for e in found.executions}
        assert len(fills) == len(found.executions), "two orders met twice"
        unsettled = fills - settled.keys() - given_up
        twice = {each for each, count in settled.items() if count > 1}
        assert (unsettled, twice, settled.keys() - fills) == (set(), set(), set())
        snapshot = next(open_snapshots(self.settings(name)).all(), None)
        assert snapshot is not None and snapshot.offset == found.engine.last_offset
        assert snapshot.body == found.engine.snapshot(), "the books are not what the journal says"
        proof = run("matcher", "verify", "--config", self._configs[name][0])
        assert (proof.returncode == 0) == (not given_up), proof.stdout + proof.stderr
        assert proof.stdout.count("not settled ") == len(given_up), proof.stdout
        return (
            f"{len(notes.accepted)} accepted, {len(fills)} fills, {len(settled)} settled, "
            f"{len(given_up)} shown as not, lost {len(unsettled)}, doubled {len(twice)}; "
            f"{len(notes.cancelled)} cancelled, {len(notes.unknown)} unanswered "
            f"({len(notes.unknown & found.placed.keys())} of them stored), "
            f"refused {dict(notes.refused)}, books "
            f"{hashlib.sha256(snapshot.body).hexdigest()[:16]} from live and from the journal"
        )


async def post(url: str, body: bytes) -> tuple[int, dict[str, Any]]:
    """One request over a connection of its own, sent once: status and body."""
    parts = urlsplit(url)
    head = (
        f"POST {parts.path} HTTP/1.1\r\nHost: {parts.netloc}\r\nX-API-Key: {API_KEY}\r\n"
        f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n"
        "Connection: close\r\n\r\n"
    )
    async with asyncio.timeout(60):
        reader, writer = await asyncio.open_connection(parts.hostname, parts.port)
        try:
            writer.write(head.encode() + body)
            answer = await reader.read()
        finally:
            writer.transport.abort()
    first, _, rest = answer.partition(b"\r\n\r\n")
    told = json.loads(rest)
    return int(first.split(b" ", 2)[1]), told if isinstance(told, dict) else {}


def _text(data: bytes) -> str:
    return base58.encode(data)
