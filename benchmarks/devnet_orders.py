"""How many orders a second a whole devnet takes: ``python benchmarks/devnet_orders.py``.

Node and matcher in one process. Ten accounts send signed orders over 32 connections, half of them
matching what rests, and each match is settled by an exchange that the node checks, with its three
signatures, and mines. Printed is when all orders were accepted, and when all exchanges were on the
chain: with blocks at once and every two seconds. ``--count N`` for another number of orders.
"""

from __future__ import annotations

import argparse
import time
import urllib.request

import msgspec
from _devnet import Devnet, port_of, running
from _load import CONNECTIONS, post_all, tool
from _orders import Market

from soliton.chain.addresses import from_public_key
from soliton.chain.orders import Side
from soliton.chain.transactions import codec, issue, mass_transfer
from soliton.chain.transactions.issue import Issue
from soliton.chain.transactions.mass_transfer import MassTransfer, TransferItem
from soliton.chain.transactions.model import AnyTransaction
from soliton.crypto import base58
from soliton.crypto.keys import key_pair
from soliton.devnet.accounts import ACCOUNT_COUNT, account_seed_phrase

COUNT = 10_000
CHAIN_ID = ord("R")
COIN = 10**8
ORDERS = "/matcher/orderbook"
SETTLE_SECONDS = 120.0
KEYS = [key_pair(account_seed_phrase(number)) for number in range(1, ACCOUNT_COUNT + 1)]
TRADERS, MATCHER = KEYS[:-1], KEYS[-1]


def ask(url: str, body: bytes | None = None) -> object:
    """The JSON that a route answers."""
    headers = {"content-type": "application/json"}
    with urllib.request.urlopen(urllib.request.Request(url, body, headers)) as response:
        return msgspec.json.decode(response.read())


def now() -> int:
    """The time in ms."""
    return time.time_ns() // 1_000_000


def send(devnet: Devnet, kind: object, payload: object, version: int, fee: int) -> AnyTransaction:
    """A transaction of the first account, on the chain."""
    draft = codec.build(
        kind,  # type: ignore[arg-type]
        payload,
        version=version,
        chain_id=CHAIN_ID,
        sender_public_key=TRADERS[0].public_key,
        fee=fee,
        timestamp=now(),
    )
    transaction = codec.sign(draft, TRADERS[0].private_key)
    ask(f"{devnet.url}/transactions/broadcast", msgspec.json.encode(codec.to_json(transaction)))
    ask(f"{devnet.url}/transactions/wait/{base58.encode(transaction.id)}")
    return transaction


def give_gold(devnet: Devnet) -> bytes:
    """An asset that all traders have."""
    gold = send(devnet, issue.TYPE, Issue(b"Gold", b"", 10**16, 8, True), 3, COIN).id
    addresses = [from_public_key(pair.public_key, CHAIN_ID) for pair in TRADERS[1:]]
    shares = tuple(TransferItem(address, 10**15) for address in addresses)
    send(devnet, mass_transfer.TYPE, MassTransfer(gold, shares, b""), 2, 10**6)
    return gold


def settled(devnet: Devnet, started: float) -> float:
    """Seconds until no exchange waits any more."""
    end = started + SETTLE_SECONDS
    quiet = 0
    while time.perf_counter() < end:
        size = ask(f"{devnet.url}/transactions/unconfirmed/size")
        quiet = quiet + 1 if size == {"size": 0} else 0
        if quiet == 3:
            return time.perf_counter() - started
        time.sleep(0.2)
    raise SystemExit("exchanges wait for a block after two minutes")


def measure(count: int, title: str, *options: str) -> None:
    """Print what one devnet takes."""
    with running(*options) as devnet:
        gold = give_gold(devnet)
        market = Market(CHAIN_ID, MATCHER.public_key, gold, None)
        time_ms = now()
        # Sales and purchases by turns, at one price.
        bodies = [
            market.order(
                TRADERS[number % len(TRADERS)],
                Side.BUY if number % 2 else Side.SELL,
                COIN,
                COIN,
                now=time_ms,
                number=number // len(TRADERS),
            )
            for number in range(count)
        ]
        before, started = devnet.cpu_seconds(), time.perf_counter()
        load = post_all(port_of(devnet.matcher_url), ORDERS, bodies, "application/json")
        seconds = settled(devnet, started)
        each = (devnet.cpu_seconds() - before) / load.answered * 1e6
        print(
            f"{title:<24}{load.per_second:>8,.0f} orders/s  p99 {load.p99_ms:.1f} ms  "
            f"all settled after {seconds:.1f} s  {each:.0f} us CPU each  "
            f"{load.accepted} of {load.answered} accepted",
            flush=True,
        )


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=COUNT)
    arguments = parser.parse_args()
    print(f"{arguments.count} orders, {CONNECTIONS} connections, load by {tool()}")
    measure(arguments.count, "blocks at once")
    measure(arguments.count, "a block every 2 s", "--block-time", "2")
