"""One transfer through the core, without its signature and without a network.

Run ``.venv/bin/python benchmarks/transactions.py``. Prints µs of CPU for parsing a version 3
transfer, its id and every check against the state, and how many transfers a second are encoded and
decoded in each form.
"""

from __future__ import annotations

import json
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from soliton.chain import networks
from soliton.chain.addresses import from_public_key
from soliton.chain.transactions import codec
from soliton.chain.transactions.json_reader import read_signed
from soliton.chain.transactions.model import AnyTransaction
from soliton.chain.transactions.transfer import TYPE, Transfer
from soliton.crypto.keys import key_pair
from soliton.ledger.context import Context
from soliton.ledger.environment import pending_environment
from soliton.ledger.state import Overlay
from soliton.ledger.transactions import apply_transaction
from soliton.node.chain_writer import ChainWriter
from soliton.storage.store import Store

COUNT = 2_000
RUNS = 7
RICH = key_pair("waves private node seed with waves tokens")
CHAIN_ID = ord("R")


def transfers(version: int, timestamp: int) -> list[AnyTransaction]:
    """Different signed transfers of one account to many."""
    made = []
    for number in range(COUNT):
        to = from_public_key(number.to_bytes(32, "big"), CHAIN_ID)
        unsigned = codec.build(
            TYPE,
            Transfer(to, None, 1 + number, b"benchmark"),
            version=version,
            chain_id=CHAIN_ID,
            sender_public_key=RICH.public_key,
            fee=100_000,
            timestamp=timestamp + number,
        )
        made.append(codec.sign(unsigned, RICH.private_key))
    return made


def least_us(work: Callable[[], object], count: int) -> float:
    """µs of CPU for one of ``count`` pieces of work, the least of several runs."""
    least = float("inf")
    for _ in range(RUNS):
        started = time.process_time()
        work()
        least = min(least, time.process_time() - started)
    return least / count * 1e6


def check_all(chain: ChainWriter, pieces: Sequence[bytes]) -> None:
    """Parse, validate and apply each transfer above all earlier ones, as a pool does."""
    height = chain.height + 1
    timestamp = chain.last_block.header.timestamp
    context = Context(pending_environment(chain, timestamp))
    overlay = Overlay(chain.store, height)
    for piece in pieces:
        transaction = codec.decode_protobuf(piece, CHAIN_ID)
        codec.validate(transaction)
        applied = apply_transaction(transaction, overlay, context, verify_signature=False)
        overlay.merge(applied.changes)


def main() -> None:
    """Measure and print."""
    network = networks.load("devnet")
    with tempfile.TemporaryDirectory() as directory:
        store = Store(Path(directory), network.name, durable=False)
        chain = ChainWriter(network, store)
        made = transfers(3, chain.last_block.header.timestamp)
        pieces = [codec.encode(transaction) for transaction in made]
        check = least_us(lambda: check_all(chain, pieces), COUNT)
        store.close()
    print(f"parse, id and full check of a transfer v3: {check:.1f} us CPU (at most 120)")
    for version, name in ((2, "binary"), (3, "protobuf")):
        made = transfers(version, 1_566_817_216_027)
        pieces = [codec.encode(transaction) for transaction in made]
        decode = codec.decode_legacy if version == 2 else codec.decode_protobuf
        there = least_us(lambda made=made: [codec.encode(one) for one in made], COUNT)
        back = least_us(
            lambda pieces=pieces, decode=decode: [decode(one, CHAIN_ID) for one in pieces], COUNT
        )
        texts = [json.dumps(codec.to_json(one)).encode() for one in made]
        objects = [json.loads(text) for text in texts]
        to_json = least_us(lambda made=made: [codec.to_json(one) for one in made], COUNT)
        from_json = least_us(
            lambda objects=objects: [read_signed(one, CHAIN_ID) for one in objects], COUNT
        )
        print(
            f"transfer v{version} {name}: encode {there:.1f} us, decode {back:.1f} us, "
            f"both ways {1e6 / (there + back):,.0f}/s (at least 40,000)"
        )
        print(f"transfer v{version} JSON: write {to_json:.1f} us, read {from_json:.1f} us")


if __name__ == "__main__":
    main()
