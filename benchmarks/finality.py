"""Blocks with endorsements of many generators, beside the same blocks without votings.

Run ``.venv/bin/python benchmarks/finality.py [GENERATORS [TRANSFERS]]``. Prints CPU milliseconds a
block: of the event loop, with signatures verified elsewhere, and of an import with everything; the
rate of the import, and the ratios with and without votings.
"""

from __future__ import annotations

import io
import os
import statistics
import sys
import tempfile
import time
from pathlib import Path

from soliton.chain import blocks
from soliton.chain.finalization import sign_endorsement
from soliton.crypto import bls
from soliton.crypto.keys import KeyPair
from soliton.node.chain_writer import ChainWriter
from soliton.node.importer import import_blocks
from tests.node.chains import forge, open_chain, person, record, transfer
from tests.node.committing import (
    ACTIVATION,
    commit,
    finality_network,
    grow,
    voting_of,
    with_voting,
)

BLOCKS = 400
PERIOD = 1000
WARM = 20


def committed(directory: Path, owners: list[KeyPair]) -> ChainWriter:
    """A chain on whose next block all of the owners may vote."""
    network = finality_network(
        *owners, generation_period_length=PERIOD, max_valid_endorsers=len(owners)
    )
    chain = open_chain(directory, network)
    grow(chain, ACTIVATION, owners[0])
    for start in range(0, len(owners), 64):
        first = [commit(chain, pair) for pair in owners[start : start + 64]]
        grow(chain, chain.height + 1, owners[0], first)
    grow(chain, ACTIVATION + PERIOD, owners[0])
    return chain


def extended(
    chain: ChainWriter, owners: list[KeyPair], transfers: int, *, votes: bool
) -> list[bytes]:
    """Records of blocks on top of the chain, by each of the owners in turn."""
    keys = [bls.generate_key(each.private_key) for each in owners]
    records, base = [], chain.height
    for number in range(BLOCKS):
        miner = number % len(owners)
        content = [
            transfer(chain, owners[each % len(owners)], owners[-1], each + 1)
            for each in range(transfers)
        ]
        block = forge(chain, content, owners[miner])
        if votes:
            final, last = chain.finalized_height or 1, chain.last_block.id
            final_id = chain.meta(final).id
            endorsements = [
                sign_endorsement(key, index, final_id, final, last)
                for index, key in enumerate(keys)
                if index != miner
            ]
            block = with_voting(block, voting_of(endorsements, (), final), owners[miner])
        chain.append(block)
        records.append(record(block))
    chain.rollback(base)
    return records


def loop_milliseconds(chain: ChainWriter, records: list[bytes]) -> float:
    """The median of the loop's CPU milliseconds for a block, as if its signatures were verified
    elsewhere.
    """
    spent = []
    for each in records:
        block = blocks.decode(each[4:], chain.network.chain_id)
        begin = time.thread_time()
        chain.append(block, verify_signatures=False)
        spent.append(time.thread_time() - begin)
    return statistics.median(spent[WARM:]) * 1_000


def import_costs(chain: ChainWriter, records: list[bytes]) -> tuple[float, float]:
    """Milliseconds a block of an import: by the clock, and of CPU."""
    begin, cpu = time.perf_counter(), sum(os.times()[:4])
    count = import_blocks(chain, io.BytesIO(b"".join(records)))
    assert count == len(records)
    spent = time.perf_counter() - begin, sum(os.times()[:4]) - cpu
    return spent[0] / count * 1_000, spent[1] / count * 1_000


def main() -> None:
    """Make the blocks, apply them twice, and print."""
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 128
    transfers = int(sys.argv[2]) if len(sys.argv) > 2 else 0
    owners = [person(f"generator {number}") for number in range(count)]
    with tempfile.TemporaryDirectory() as directory:
        chain = committed(Path(directory), owners)
        base, costs = chain.height, []
        for votes in (False, True):
            begin = time.perf_counter()
            records = extended(chain, owners, transfers, votes=votes)
            made = time.perf_counter() - begin
            median = loop_milliseconds(chain, records)
            final = chain.finalized_height
            chain.rollback(base)
            costs.append(import_costs(chain, records))
            chain.rollback(base)
            words = "with votings" if votes else "without votings"
            print(
                f"{words}: loop {median:.2f} ms a block, import {costs[-1][0]:.2f} ms a block, "
                f"CPU {costs[-1][1]:.2f} ms a block, final {final} of {base + BLOCKS}, "
                f"{len(records[-1])} bytes (made in {made:.0f} s)"
            )
        (clock, cpu), (voting_clock, voting_cpu) = costs
        print(f"rate with votings: {clock / voting_clock:.0%}; by CPU {cpu / voting_cpu:.0%}")
        chain.store.close()


if __name__ == "__main__":
    main()
