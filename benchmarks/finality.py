"""Blocks with endorsements of many generators, beside the same blocks without votings.

Run ``PYTHONPATH=. .venv/bin/python benchmarks/finality.py [GENERATORS [TRANSFERS [BLOCKS]]]``.
Prints milliseconds a block: CPU of the event loop, with signatures verified elsewhere; of an import
by the clock, and CPU of its two processes, of which the busier one bounds the rate on a machine
with two free cores; and the ratios without and with votings.
"""

from __future__ import annotations

import io
import os
import statistics
import sys
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

from soliton.chain import blocks
from soliton.chain.finalization import FinalizationVoting, sign_endorsement
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
    with_voting,
)

BLOCKS = 1_500
PERIOD = 2_000
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


def sum_of(keys: list[bytes]) -> bytes:
    """The key whose signature is the aggregate of the signatures of all these keys."""
    return (sum(int.from_bytes(each, "big") for each in keys) % bls.ORDER).to_bytes(32, "big")


def extended(
    chain: ChainWriter, owners: list[KeyPair], transfers: int, count: int, *, votes: bool
) -> list[bytes]:
    """Records of blocks on top of the chain, by each of the owners in turn."""
    keys = [bls.generate_key(each.private_key) for each in owners]
    records, base = [], chain.height
    for number in range(count):
        miner = number % len(owners)
        content = [
            transfer(chain, owners[each % len(owners)], owners[-1], each + 1)
            for each in range(transfers)
        ]
        block = forge(chain, content, owners[miner])
        if votes:
            final, last = chain.finalized_height or 1, chain.last_block.id
            final_id = chain.meta(final).id
            others = [index for index in range(len(keys)) if index != miner]
            secret = sum_of([keys[index] for index in others])
            vote = sign_endorsement(secret, miner, final_id, final, last)
            voting = FinalizationVoting(tuple(others), final, vote.signature)
            block = with_voting(block, voting, owners[miner])
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


class Costs(NamedTuple):
    """Milliseconds a block of an import: by the clock, and CPU of this process and the other."""

    clock: float
    own: float
    other: float

    @property
    def busier(self) -> float:
        """CPU of the busier process."""
        return max(self.own, self.other)


def import_costs(chain: ChainWriter, records: list[bytes]) -> Costs:
    """Import all blocks."""
    begin, before = time.perf_counter(), os.times()
    count = import_blocks(chain, io.BytesIO(b"".join(records)))
    assert count == len(records)
    spent, after = time.perf_counter() - begin, os.times()
    cpu = [end - start for start, end in zip(before, after, strict=True)]
    return Costs(*(each / count * 1_000 for each in (spent, sum(cpu[:2]), sum(cpu[2:4]))))


def main() -> None:
    """Make the blocks, apply them twice, and print."""
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 128
    transfers = int(sys.argv[2]) if len(sys.argv) > 2 else 0
    length = int(sys.argv[3]) if len(sys.argv) > 3 else BLOCKS
    owners = [person(f"generator {number}") for number in range(count)]
    with tempfile.TemporaryDirectory() as directory:
        chain = committed(Path(directory), owners)
        base, costs = chain.height, []
        for votes in (False, True):
            records = extended(chain, owners, transfers, length, votes=votes)
            median = loop_milliseconds(chain, records)
            final = chain.finalized_height
            chain.rollback(base)
            costs.append(import_costs(chain, records))
            chain.rollback(base)
            words = "with votings" if votes else "without votings"
            print(
                f"{words}: loop {median:.2f} ms a block, import {costs[-1].clock:.2f} ms, CPU "
                f"{costs[-1].own:.2f} and {costs[-1].other:.2f} ms, final {final} of "
                f"{base + length}, {len(records[-1])} bytes"
            )
        without, voting = costs
        print(
            f"rate with votings: {without.clock / voting.clock:.0%} by the clock, "
            f"{without.busier / voting.busier:.0%} with two free cores"
        )
        chain.store.close()


if __name__ == "__main__":
    main()
