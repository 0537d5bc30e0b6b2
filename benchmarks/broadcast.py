"""How many signed transfers a second the node accepts: ``python benchmarks/broadcast.py``.

A devnet in a process of its own gets transfers that were signed before, over 32 keep-alive
connections, from a load generator on the same machine. Prints accepted transfers a second and the
node's CPU for each, once with a block every 5 s and once with blocks at once; beside them the
floor: a route that does nothing, through the same server, and verifying the signatures alone.
``--count N`` for another number of transfers.
"""

from __future__ import annotations

import argparse
import time

import msgspec
from _devnet import Devnet, running
from _load import CONNECTIONS, Load, post_all, tool

from soliton.chain.addresses import parse_address
from soliton.chain.transactions import codec
from soliton.chain.transactions.model import AnyTransaction
from soliton.chain.transactions.transfer import TYPE, Transfer
from soliton.crypto.curve25519 import verify
from soliton.crypto.keys import key_pair
from soliton.devnet.accounts import funded_accounts

COUNT = 30_000
BAR_PER_SECOND = 4_000
BLOCK_SECONDS = 5
CHAIN_ID = ord("R")
FEE = 100_000
VERIFICATIONS = 5_000


def signed_transfers(count: int) -> list[AnyTransaction]:
    """Transfers between the ten accounts, half of version 2 and half of version 3."""
    accounts = funded_accounts(CHAIN_ID)
    keys = [key_pair(account.seed) for account in accounts]
    addresses = [parse_address(account.address, CHAIN_ID) for account in accounts]
    now = time.time_ns() // 1_000_000
    transfers = []
    for number in range(count):
        pair = keys[number % len(keys)]
        draft = codec.build(
            TYPE,
            Transfer(addresses[(number + 1) % len(keys)], None, number + 1, b""),
            version=2 + number // len(keys) % 2,
            chain_id=CHAIN_ID,
            sender_public_key=pair.public_key,
            fee=FEE,
            timestamp=now,
        )
        transfers.append(codec.sign(draft, pair.private_key))
    return transfers


def verification_microseconds(transfers: list[AnyTransaction]) -> float:
    """CPU that one signature takes, and nothing else."""
    items = [(tx.sender_public_key, tx.body, tx.proofs[0]) for tx in transfers[:VERIFICATIONS]]
    started = time.process_time()
    for key, body, signature in items:
        assert verify(key, body, signature)
    return (time.process_time() - started) / len(items) * 1e6


def measure(devnet: Devnet, path: str, bodies: list[bytes], content_type: str) -> tuple[Load, str]:
    """Send all bodies: what came back, and a line about it."""
    before = devnet.cpu_seconds()
    load = post_all(devnet.port, path, bodies, content_type)
    each = (devnet.cpu_seconds() - before) / load.answered * 1e6
    return load, (
        f"{load.per_second:>7,.0f}/s  {each:>6.1f} us CPU each  "
        f"p50 {load.p50_ms:.1f} ms  p99 {load.p99_ms:.1f} ms  "
        f"{load.accepted} of {load.answered} accepted"
    )


def main(count: int) -> None:
    """Print the table."""
    transfers = signed_transfers(count)
    bodies = [msgspec.json.encode(codec.to_json(transfer)) for transfer in transfers]
    print(f"{count} transfers, {CONNECTIONS} connections, load by {tool()}")
    rows = []
    for name, options in (
        (f"broadcast, a block every {BLOCK_SECONDS} s", ("--block-time", str(BLOCK_SECONDS))),
        ("broadcast, blocks at once", ()),
    ):
        with running(*options) as devnet:
            load, line = measure(devnet, "/transactions/broadcast", bodies, "application/json")
            rows.append((name, load))
            print(f"{name:<32} {line}", flush=True)
            if options:
                _, floor = measure(devnet, "/utils/hash/fast", bodies, "text/plain")
    print(f"{'floor: the same to a bare route':<32} {floor}")
    print(f"{'floor: one signature':<32} {verification_microseconds(transfers):>17.1f} us CPU each")
    for name, load in rows:
        verdict = "reached" if load.per_second >= BAR_PER_SECOND else "MISSED"
        print(f"{name}: {load.per_second:,.0f}/s, at least {BAR_PER_SECOND:,} {verdict}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=COUNT)
    main(parser.parse_args().count)
