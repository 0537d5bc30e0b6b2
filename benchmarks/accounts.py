"""The cost of a block does not depend on how many accounts the chain has.

Run ``.venv/bin/python benchmarks/accounts.py [COUNT ...]`` (default 1000 100000 5000000). Fills a
store with that many accounts, then applies blocks of transfers between random ones of them. Prints
ms of CPU a block, the ratio to the smallest chain, and the memory in use.
"""

from __future__ import annotations

import hashlib
import random
import resource
import sys
import tempfile
import time
from pathlib import Path

import msgspec

from soliton.chain import blocks, networks
from soliton.chain.addresses import Address, from_public_key_hash
from soliton.chain.transactions import codec
from soliton.chain.transactions.transfer import TYPE, Transfer
from soliton.crypto.keys import key_pair
from soliton.ledger.state import WAVES
from soliton.node import miner
from soliton.node.chain_writer import ChainWriter
from soliton.steps import run_steps
from soliton.storage import layout
from soliton.storage.database import Database
from soliton.storage.store import Store

BLOCKS = 12
TRANSFERS = 500
RICH = key_pair("waves private node seed with waves tokens")
CHAIN_ID = ord("R")
CHUNK = 200_000


def account(number: int) -> Address:
    """The address of a made-up account."""
    digest = hashlib.blake2b(number.to_bytes(8, "big"), digest_size=20).digest()
    return from_public_key_hash(digest, CHAIN_ID)


def fill(directory: Path, count: int) -> None:
    """Write balances for ``count`` accounts straight into a store."""
    row = layout.ROWS[WAVES]
    database = Database(directory, durable=False, exclusive=True)
    for start in range(0, count, CHUNK):
        numbers = range(start, min(start + CHUNK, count))
        database.write({row.prefix + account(number): row.encode(10**9) for number in numbers})
    database.close()


def block_ms(count: int) -> float:
    """Median ms of CPU to check and store a block on a chain with ``count`` accounts."""
    network = networks.load("devnet")
    chosen = random.Random(count)
    with tempfile.TemporaryDirectory() as name:
        directory = Path(name)
        store = Store(directory, network.name, durable=False)
        ChainWriter(network, store)
        store.close()
        fill(directory, count)
        store = Store(directory, network.name, durable=False)
        chain = ChainWriter(network, store)
        times = []
        for _ in range(BLOCKS):
            timestamp = chain.last_block.header.timestamp + 1_000
            transfers = []
            for number in range(TRANSFERS):
                unsigned = codec.build(
                    TYPE,
                    Transfer(account(chosen.randrange(count)), None, 1 + number, b""),
                    version=3,
                    chain_id=CHAIN_ID,
                    sender_public_key=RICH.public_key,
                    fee=100_000,
                    timestamp=timestamp + number,
                )
                transfers.append(msgspec.structs.replace(unsigned, proofs=(bytes(64),)))
            slot = miner.next_slot(chain, RICH)
            forged = run_steps(miner.forging(chain, slot, transfers, timestamp))
            block = blocks.decode(forged.block.data, CHAIN_ID)
            started = time.process_time()
            chain.append(block, verify_signatures=False)
            store.flush()
            times.append(time.process_time() - started)
        store.close()
    return sorted(times)[BLOCKS // 2] * 1e3


def main() -> None:
    """Measure each size and print."""
    counts = [int(text) for text in sys.argv[1:]] or [1_000, 100_000, 5_000_000]
    first = None
    for count in counts:
        cost = block_ms(count)
        first = first or cost
        memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        print(
            f"{count:>9,} accounts: {cost:.1f} ms CPU for a block of {TRANSFERS} transfers, "
            f"{cost / first:.2f} of the first (at most 1.25), {memory:.0f} MB"
        )


if __name__ == "__main__":
    main()
