"""A store whose state is larger than memory: what a random transfer reads, writes and costs.

Run ``.venv/bin/python benchmarks/large_state.py [--accounts N] [--memory MB] …``. Fills a store
with accounts that have a balance, balances of two assets, data entries, histories of all of them,
and transactions with an index by account, through the store's own writing. Then mines and applies
blocks of transfers between random accounts, and prints per transfer: wall time, CPU of applying,
bytes read from and written to the disk (``/proc/self/io``), and growth of the store.

The filled store is compacted before the blocks, so that what is read and written is the blocks'
own: a store that has just been filled rewrites itself for a while. ``--keep DIR`` keeps the filled
store for the next runs. With ``--memory`` the second part runs in a memory cgroup, where one can be
made (root on Linux); otherwise the page cache holds what fits into the machine, and the benchmark
says so. The histories lie above the height of the chain, so that they share pages with the new
records and are not read.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import random
import shutil
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import msgspec

from soliton.chain import blocks, networks
from soliton.chain.addresses import Address, from_public_key
from soliton.chain.transactions import codec
from soliton.chain.transactions.transfer import TYPE, Transfer
from soliton.chain.values import AssetId
from soliton.crypto.keys import key_pair
from soliton.ledger.state import ASSET_BALANCES, DATA, NO_LEASES, WAVES
from soliton.node import miner
from soliton.node.chain_writer import ChainWriter
from soliton.steps import run_steps
from soliton.storage import layout
from soliton.storage.store import Store

RICH = key_pair("waves private node seed with waves tokens")
CHAIN_ID = ord("R")
TRANSFERS = 500
CHUNK = 20_000
FIRST_HEIGHT = 1_000_000_000
"""The lowest height of the histories: above all blocks."""
BALANCE = 10**12
ASSETS = tuple(AssetId(hashlib.blake2b(b"asset %d" % each).digest()[:32]) for each in range(2))
CGROUP_ROOTS = (
    (Path("/sys/fs/cgroup/memory"), "memory.limit_in_bytes", ":memory:"),
    (Path("/sys/fs/cgroup"), "memory.max", "0::"),
)

Items = dict[bytes, bytes | None]


def public_key(number: int) -> bytes:
    """The public key of a made-up account."""
    return hashlib.blake2b(number.to_bytes(8, "big"), digest_size=32).digest()


def account(number: int) -> Address:
    """The address of a made-up account."""
    return from_public_key(public_key(number), CHAIN_ID)


def records_of(address: Address, number: int, history: int) -> Iterator[tuple[bytes, bytes]]:
    """Yield the records of an account in all tables that grow with accounts."""
    waves, assets, data = layout.ROWS[WAVES], layout.ROWS[ASSET_BALANCES], layout.ROWS[DATA]
    yield waves.prefix + address, waves.encode(BALANCE)
    for asset in ASSETS:
        yield assets.prefix + assets.key((address, asset)), assets.encode(1_000 + number)
    for name in ("counter", "owner"):
        yield data.prefix + data.key((address, name)), data.encode(number)
    for each in range(history):
        height = FIRST_HEIGHT + number * 7_919 % 4_000_000 + each * 1_000
        index = number % 500
        yield layout.history_key(address, height), layout.encode_history(BALANCE, NO_LEASES, 0)
        place = layout.place_key(height, index)
        yield layout.ADDRESS_TRANSACTION + address + place, b""
        if each % 4 == 0:
            at = height.to_bytes(4, "big")
            yield layout.ASSET_HISTORY + ASSETS[0] + address + at, number.to_bytes(8, "big")


def fill(store: Store, accounts: int, history: int) -> None:
    """Write all accounts, in the order of their addresses, and the index of transactions."""
    addresses = sorted((account(number), number) for number in range(accounts))
    for start in range(0, accounts, CHUNK):
        items: Items = {}
        for address, number in addresses[start : start + CHUNK]:
            items.update(records_of(address, number, history))
        store.database.write(items)
    location = layout.TransactionLocation(FIRST_HEIGHT, 0, 0, 154, 0, 0)
    value = layout.encode_location(location)
    slice_size = accounts * history // 2 // 256
    for first in range(256):
        source = random.Random(first)
        store.database.write(
            {
                layout.TRANSACTION + bytes((first,)) + source.randbytes(31): value
                for _ in range(slice_size)
            }
        )


def transfers(count: int, accounts: int, timestamp: int, chosen: random.Random) -> list[object]:
    """Make transfers between random accounts, without valid signatures."""
    made = []
    for number in range(count):
        unsigned = codec.build(
            TYPE,
            Transfer(account(chosen.randrange(accounts)), None, 1 + number, b""),
            version=3,
            chain_id=CHAIN_ID,
            sender_public_key=public_key(chosen.randrange(accounts)),
            fee=100_000,
            timestamp=timestamp + number,
        )
        made.append(msgspec.structs.replace(unsigned, proofs=(bytes(64),)))
    return made


def bytes_of_disk() -> tuple[int, int]:
    """The bytes that this process has read from and written to the disk; zeros where unknown."""
    try:
        lines = dict(
            line.split(": ") for line in Path("/proc/self/io").read_text().splitlines() if line
        )
    except OSError:
        return 0, 0
    return int(lines["read_bytes"]), int(lines["write_bytes"])


def enter_cgroup(limit: int) -> tuple[Path, Path] | None:
    """Limit the memory of this process, page cache included. Return the new cgroup and the one
    before, ``None`` where that is impossible.
    """
    for root, name, line in CGROUP_ROOTS:
        group = root / f"soliton-large-state-{os.getpid()}"
        try:
            own = Path("/proc/self/cgroup").read_text().split(line)[1].split("\n")[0]
            before = root / own.lstrip("/")
            group.mkdir()
            (group / name).write_text(str(limit))
            (group / "cgroup.procs").write_text(str(os.getpid()))
        except (OSError, IndexError):
            if group.is_dir():
                group.rmdir()
            continue
        return group, before
    return None


def leave_cgroup(group: Path, before: Path) -> None:
    """Return to the cgroup before, and remove this one."""
    (before / "cgroup.procs").write_text(str(os.getpid()))
    group.rmdir()


def size_of(directory: Path) -> int:
    """The bytes of all files of a store."""
    return sum(each.stat().st_size for each in directory.rglob("*") if each.is_file())


def copy_of_file(source: str, target: str) -> None:
    """Link a table, copy another file."""
    if source.endswith(".sst"):
        os.link(source, target)
    else:
        shutil.copy2(source, target)


def drop_cache(directory: Path) -> None:
    """Drop the files of a store from the page cache, where the system can."""
    if not hasattr(os, "posix_fadvise"):
        return
    for file in directory.rglob("*"):
        if file.is_file():
            descriptor = os.open(file, os.O_RDONLY)
            try:
                os.fsync(descriptor)
                os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
            finally:
                os.close(descriptor)


def apply_blocks(chain: ChainWriter, count: int, batch: int, accounts: int) -> float:
    """Mine and apply blocks of random transfers; return the CPU seconds of applying them."""
    chosen = random.Random(accounts)
    applying = 0.0
    for number in range(count):
        timestamp = chain.last_block.header.timestamp + 1_000
        pool = transfers(TRANSFERS, accounts, timestamp, chosen)
        slot = miner.next_slot(chain, RICH)
        forged = run_steps(miner.forging(chain, slot, pool, timestamp))
        block = blocks.decode(forged.block.data, CHAIN_ID)
        if len(block.transactions) != TRANSFERS:
            raise SystemExit(f"a block has {len(block.transactions)} transfers, not {TRANSFERS}")
        started = time.process_time()
        chain.append(block, verify_signatures=False)
        if (number + 1) % batch == 0 or number + 1 == count:
            chain.flush()
        applying += time.process_time() - started
    return applying


def measure(directory: Path, options: argparse.Namespace) -> None:
    """Fill a store, apply blocks, print."""
    network = networks.load("devnet")
    kept = options.keep or directory / "filled"
    if not kept.exists():
        started = time.monotonic()
        store = Store(kept, network.name, durable=False)
        ChainWriter(network, store)
        fill(store, options.accounts, options.history)
        store.database.compact()
        store.close()
        print(f"filled in {time.monotonic() - started:.0f} s")
    directory /= "copy"
    # Tables never change, so that links to them do.
    shutil.copytree(kept, directory, copy_function=copy_of_file)
    print(
        f"{options.accounts:,} accounts with {options.history} rows of history each, "
        f"{size_of(directory) / 1e9:.2f} GB"
    )
    drop_cache(directory)
    group = enter_cgroup(options.memory << 20) if options.memory else None
    if group is not None:
        print(f"in a cgroup with {options.memory} MB of memory")
    elif options.memory:
        print("no memory cgroup can be made here: the page cache takes what it can")
    else:
        print("without a limit of memory: the page cache takes what it can")
    try:
        store = Store(directory, network.name)
        chain = ChainWriter(network, store)
        used, (read, written) = store.database.used_bytes(), bytes_of_disk()
        started = time.monotonic()
        applying = apply_blocks(chain, options.blocks, options.batch, options.accounts)
        wall = time.monotonic() - started
        grown = store.database.used_bytes() - used
        store.close()
        now_read, now_written = bytes_of_disk()
    finally:
        if group is not None:
            leave_cgroup(*group)
    count = options.blocks * TRANSFERS
    print(
        f"{options.blocks} blocks of {TRANSFERS} transfers, a write every {options.batch}: "
        f"{wall / options.blocks * 1e3:.0f} ms a block mined and applied, "
        f"{applying / count * 1e6:.0f} µs CPU a transfer applied"
    )
    print(
        f"a transfer: {(now_read - read) / count / 1e3:.1f} KB read, "
        f"{(now_written - written) / count / 1e3:.1f} KB written, {grown / count:.0f} bytes of disk"
    )


def main() -> None:
    """Measure with the options of the command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--accounts", type=int, default=300_000, help="10000000 for the real kind")
    parser.add_argument("--history", type=int, default=8, help="rows of history of each account")
    parser.add_argument("--blocks", type=int, default=24)
    parser.add_argument("--batch", type=int, default=1, help="blocks in one write")
    parser.add_argument("--keep", type=Path, help="where the filled store is, or is to be kept")
    parser.add_argument("--memory", type=int, help="limit in MB")
    parser.add_argument(
        "--directory", type=Path, help="where the store is made; default: temporary"
    )
    options = parser.parse_args()
    directory = Path(tempfile.mkdtemp(prefix="large-state-", dir=options.directory))
    try:
        measure(directory, options)
    finally:
        shutil.rmtree(directory)


if __name__ == "__main__":
    main()
