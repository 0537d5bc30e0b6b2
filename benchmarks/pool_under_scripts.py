"""A full pool with scripts in it: ``python benchmarks/pool_under_scripts.py``.

A node of a private chain with microblocks gets a mixed load, most of it at once: transfers, mass
transfers, data, assets, leases, and calls of a dApp that counts for all, counts for each caller,
takes payments, and works hard. Beside it a client asks small questions at a steady pace. Prints how
many transactions a second came in and were mined, and how long the questions waited, as the client
saw it. The chain is kept in memory: what a disk takes is another matter. ``--count N`` for another
number of transactions, ``--calls N`` of these calls.
"""

from __future__ import annotations

import argparse
import contextlib
import http.client
import json
import os
import random
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import msgspec
from _devnet import PROGRAM, cpu_seconds
from _load import CONNECTIONS, post_all, tool

from soliton.chain.addresses import address_text, from_public_key
from soliton.chain.function_calls import FunctionCall
from soliton.chain.transactions import codec
from soliton.chain.transactions.data import Data
from soliton.chain.transactions.invoke_script import InvokeScript, Payment
from soliton.chain.transactions.issue import Issue
from soliton.chain.transactions.lease import Lease
from soliton.chain.transactions.mass_transfer import MassTransfer, TransferItem
from soliton.chain.transactions.model import AnyTransaction
from soliton.chain.transactions.set_script import SetScript
from soliton.chain.transactions.table import type_by_id
from soliton.chain.transactions.transfer import Transfer
from soliton.chain.values import AssetId, DataEntry
from soliton.crypto import base58
from soliton.crypto.keys import KeyPair, key_pair
from soliton.node.wallet import Wallet
from soliton.ride.compiler import compile_source

COUNT, CALLS = 20_000, 6_000
PEOPLE = 40
COIN = 10**8
CHAIN_ID = ord("S")
WALLET_SEED = b"the miner of the benchmark"
FUNDS = 10**16
MICRO_BLOCK_MS = 100
PROBE_SECONDS = 0.01
MEMORY = Path("/dev/shm")
LIMIT_SECONDS = 50
BAR_P95_MS, BAR_MAX_MS, BAR_MINED = 20.0, 100.0, 600
PATHS = ("/blocks/height", "/node/status", "/transactions/unconfirmed/size", "/addresses/balance/")

CHECKS = " && ".join(f"!sigVerify(base58'{number}', base58'', base58'')" for number in range(1, 8))
DAPP = f"""{{-# STDLIB_VERSION 6 #-}}
{{-# CONTENT_TYPE DAPP #-}}
func of(key: String) = match getInteger(this, key) {{ case n: Int => n case _ => 0 }}
@Callable(i)
func countAll() = [IntegerEntry("all", of("all") + 1)]
@Callable(i)
func countMine() = {{
  let key = "of_" + toBase58String(i.caller.bytes)
  [IntegerEntry(key, of(key) + 1)]
}}
@Callable(i)
func pay() = {{
  let key = "paid_" + toBase58String(i.caller.bytes)
  let amount = i.payments[0].amount
  [IntegerEntry(key, of(key) + amount), ScriptTransfer(i.caller, amount / 2, unit)]
}}
@Callable(i)
func work(n: Int) = if ({CHECKS}) then [IntegerEntry("work_" + toString(n), n)] else []
"""

CONFIGURATION = """
waves {
  directory = "%(directory)s"
  rest-api { enable = yes, bind-address = "127.0.0.1", port = 0 }
  wallet { seed = "%(seed)s" }
  utx { max-scripted-size = 20000 }
  miner { enable = yes, quorum = 0, micro-block-interval = %(micro)dms }
  blockchain {
    type = CUSTOM
    custom {
      address-scheme-character = "S"
      functionality {
        feature-check-blocks-period = 10
        min-block-time = 1s
        pre-activated-features { %(features)s }
      }
      genesis {
        average-block-delay = 3s
        initial-base-target = 1000000
        timestamp = 1538694637902
        block-timestamp = 1538694637902
        initial-balance = %(funds)d
        transactions = [%(shares)s]
      }
    }
  }
}
"""


class Sender:
    """Makes signed transactions; no two are equal."""

    def __init__(self) -> None:
        self.people = [key_pair(f"benchmark {number}") for number in range(PEOPLE)]
        self.addresses = [from_public_key(each.public_key, CHAIN_ID) for each in self.people]
        self.issuer, self.dapp = key_pair("benchmark issuer"), key_pair("benchmark dapp")
        self.asset: AssetId | None = None
        self._time = time.time_ns() // 1_000_000

    def sign(
        self, pair: KeyPair, type_id: int, payload: object, fee: int, version: int = 2
    ) -> AnyTransaction:
        """One more transaction."""
        self._time += 1 if type_id in (3, 13) else 0
        draft = codec.build(
            type_by_id(type_id),
            payload,
            version=version,
            chain_id=CHAIN_ID,
            sender_public_key=pair.public_key,
            fee=fee,
            timestamp=self._time,
        )
        return codec.sign(draft, pair.private_key)

    def first(self) -> list[AnyTransaction]:
        """The dApp, and an asset of which all get some later."""
        script = compile_source(DAPP).script.source
        issue = self.sign(self.issuer, 3, Issue(b"asset", b"", 10**12, 0, False, None), COIN)
        self.asset = AssetId(issue.id)
        return [issue, self.sign(self.dapp, 13, SetScript(script), COIN // 10)]

    def second(self) -> list[AnyTransaction]:
        """The asset for everybody."""
        shares = tuple(TransferItem(to, 10**6) for to in self.addresses)
        return [self.sign(self.issuer, 11, MassTransfer(self.asset, shares, b""), COIN, 1)]

    def call(self, number: int) -> AnyTransaction:
        """One of the calls."""
        to = from_public_key(self.dapp.public_key, CHAIN_ID)
        name = ("countAll", "countMine", "pay", "work")[number % 4]
        arguments = (number,) if name == "work" else ()
        payments = (Payment(1000 + number, None),) if name == "pay" else ()
        call = InvokeScript(to, FunctionCall(name, arguments), payments)
        fee = 500_000 + number
        return self.sign(self.people[number % PEOPLE], 16, call, fee)

    def other(self, number: int) -> AnyTransaction:
        """One of all others: 6 of 10 transfers, and one of each other kind."""
        pair = self.people[number % PEOPLE]
        to = self.addresses[(number * 7 + number // PEOPLE) % PEOPLE]
        kind = number // PEOPLE % 10
        if kind < 6:
            return self.sign(pair, 4, Transfer(to, None, 1 + number, b""), 100_000)
        if kind == 6:
            sent = self.sign(pair, 4, Transfer(to, self.asset, 1, b""), 100_000 + number)
        elif kind == 7:
            shares = tuple(TransferItem(each, 1 + number) for each in self.addresses[:5])
            sent = self.sign(pair, 11, MassTransfer(None, shares, b""), 400_000, 1)
        elif kind == 8:
            entry = DataEntry(f"key {number}", number)
            sent = self.sign(pair, 12, Data((entry,)), 200_000, 1)
        else:
            sent = self.sign(pair, 8, Lease(self.issuer_address, 1 + number), 100_000)
        return sent

    @property
    def issuer_address(self) -> object:
        """Who gets all leases."""
        return from_public_key(self.issuer.public_key, CHAIN_ID)


@contextlib.contextmanager
def running(directory: Path, sender: Sender) -> Iterator[tuple[int, int]]:
    """The node of a private chain: its process and its port."""
    (miner,) = Wallet.open(None, None, WALLET_SEED).accounts(CHAIN_ID)
    owners = [*sender.addresses, sender.issuer_address]
    owners.append(from_public_key(sender.dapp.public_key, CHAIN_ID))
    part = FUNDS // 100
    shares = [(miner, FUNDS - part * len(owners)), *((owner, part) for owner in owners)]
    text = ", ".join(
        f'{{ recipient = "{address_text(to)}", amount = {amount} }}' for to, amount in shares
    )
    path = directory / "node.conf"
    values = {"directory": directory, "seed": base58.encode(WALLET_SEED), "funds": FUNDS}
    values |= {"shares": text, "micro": MICRO_BLOCK_MS}
    values["features"] = ", ".join(f"{number} = 0" for number in range(1, 24))
    path.write_text(CONFIGURATION % values)
    process = subprocess.Popen(
        [PROGRAM, "--verbose", "run", "--offline", "--config", str(path)],
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONUNBUFFERED": "1"},
    )
    try:
        assert process.stderr is not None
        for line in process.stderr:
            if "REST API on http://" in line:
                port = int(line.rstrip().rsplit(":", 1)[1])
                break
        else:
            raise SystemExit("the node did not start")
        # Nobody reads on: the pipe must not fill up.
        drain = subprocess.Popen(["cat"], stdin=process.stderr, stdout=subprocess.DEVNULL)
        yield process.pid, port
    finally:
        process.terminate()
        process.wait()
    drain.wait()


def ask(port: int, path: str, body: bytes | None = None) -> object:
    """One request."""
    headers = {"Content-Type": "application/json"}
    request = urllib.request.Request(f"http://127.0.0.1:{port}{path}", body, headers)
    with urllib.request.urlopen(request, timeout=60) as response:
        return json.loads(response.read())


def prepare(port: int, transactions: list[AnyTransaction]) -> None:
    """Send what the load needs and wait until it is mined."""
    for each in transactions:
        ask(port, "/transactions/broadcast", msgspec.json.encode(codec.to_json(each)))
    for each in transactions:
        path = f"/transactions/status/{base58.encode(each.id)}"
        while ask(port, path)["status"] != "confirmed":  # type: ignore[index]
            time.sleep(0.05)


def probe(port: int, owner: str) -> None:
    """Ask small questions at a steady pace until told to stop; print how long each waited.

    What is late is counted from when it should have been sent.
    """
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    connection.connect()
    waits: list[float] = []
    due, number = time.perf_counter(), 0
    stopping = Path(sys.argv[3])
    while not stopping.exists():
        time.sleep(max(0.0, due - time.perf_counter()))
        path = PATHS[number % len(PATHS)]
        connection.request("GET", path + owner if path.endswith("/") else path)
        connection.getresponse().read()
        ended = time.perf_counter()
        waits.append(ended - due)
        # Those that would have been sent meanwhile have waited as well.
        due += PROBE_SECONDS
        while due < ended:
            waits.append(ended - due)
            due += PROBE_SECONDS
        number += 1
    print(json.dumps(waits))


def mined_since(port: int, height: int) -> tuple[int, int]:
    """How many transactions all blocks above a height hold, and the height."""
    now = ask(port, "/blocks/height")["height"]  # type: ignore[index]
    total = 0
    for at in range(height + 1, now + 1):
        header = ask(port, f"/blocks/headers/at/{at}")
        total += header["transactionCount"]  # type: ignore[index]
    return total, now


def main(count: int, calls: int) -> None:
    """Measure and print."""
    sender = Sender()
    memory = MEMORY if MEMORY.is_dir() else None
    with (
        tempfile.TemporaryDirectory(dir=memory) as name,
        running(Path(name), sender) as (process, port),
    ):
        prepare(port, sender.first())
        prepare(port, sender.second())
        made = [sender.call(number) for number in range(calls)]
        made += [sender.other(number) for number in range(count - calls)]
        random.Random(1).shuffle(made)
        bodies = [msgspec.json.encode(codec.to_json(each)) for each in made]
        print(f"{count} transactions, {calls} of them calls, {CONNECTIONS} connections by {tool()}")
        height = ask(port, "/blocks/height")["height"]  # type: ignore[index]
        before = mined_since(port, height - 1)[0]
        stopping = Path(name) / "stop"
        owner = address_text(sender.addresses[0])
        command = [sys.executable, __file__, "--probe", str(port), str(stopping), owner]
        prober = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        started, used = time.perf_counter(), cpu_seconds(process)
        load = post_all(port, "/transactions/broadcast", bodies, "application/json")
        sent = time.perf_counter() - started
        left = ask(port, "/transactions/unconfirmed/size")["size"]  # type: ignore[index]
        waiting = left
        while waiting and time.perf_counter() - started < LIMIT_SECONDS:
            time.sleep(0.2)
            waiting = ask(port, "/transactions/unconfirmed/size")["size"]  # type: ignore[index]
        seconds = time.perf_counter() - started
        cpu = cpu_seconds(process) - used
        stopping.touch()
        output, _ = prober.communicate()
        mined = mined_since(port, height - 1)[0] - before
    waits = sorted(json.loads(output))
    p50, p95, p99 = (waits[int(len(waits) * part)] * 1000 for part in (0.5, 0.95, 0.99))
    rate, longest = mined / seconds, waits[-1] * 1000
    print(
        f"accepted {load.accepted} of {load.answered} in {sent:.1f} s, {load.per_second:,.0f}/s;"
        f" {left} waited then; POST p50 {load.p50_ms:.0f} ms p99 {load.p99_ms:.0f} ms"
    )
    print(f"mined {mined} in {seconds:.1f} s: {rate:,.0f}/s, {waiting} left; CPU {cpu:.1f} s")
    print(
        f"GET, {len(waits)} of them: p50 {p50:.1f} ms  p95 {p95:.1f} ms  p99 {p99:.1f} ms"
        f"  max {longest:.0f} ms"
    )
    for what, good in (
        (f"GET p95 at most {BAR_P95_MS:.0f} ms", p95 <= BAR_P95_MS),
        (f"GET max at most {BAR_MAX_MS:.0f} ms", longest <= BAR_MAX_MS),
        (f"mined at least {BAR_MINED}/s", rate >= BAR_MINED),
    ):
        print(f"{what}: {'reached' if good else 'MISSED'}")


if __name__ == "__main__":
    if sys.argv[1:2] == ["--probe"]:
        probe(int(sys.argv[2]), sys.argv[4])
    else:
        parser = argparse.ArgumentParser(description=__doc__)
        parser.add_argument("--count", type=int, default=COUNT)
        parser.add_argument("--calls", type=int, default=CALLS)
        arguments = parser.parse_args()
        main(arguments.count, arguments.calls)
