"""Importing real mainnet blocks with everything verified, beside the floor of its signatures alone.

Run ``.venv/bin/python benchmarks/import_blocks.py [FILE]``; FILE holds ``u32 length ‖ block``
records from height 2 on. Prints CPU seconds of both, their ratio, and the memory in use.
"""

from __future__ import annotations

import os
import resource
import sys
import tempfile
import time
from pathlib import Path

from soliton.chain import blocks, networks
from soliton.node.chain_writer import ChainWriter
from soliton.node.importer import import_blocks
from soliton.parallel.threads import verify_many
from soliton.storage.store import Store

_SHARED = Path(os.environ.get("SOLITON_SHARED", Path(__file__).resolve().parents[2] / "shared"))
DEFAULT_FILE = _SHARED / "data" / "waves-mainnet-blocks-2-10000.bin"
RUNS = 3


def signed_messages(path: Path, chain_id: int) -> list[tuple[bytes, bytes, bytes]]:
    """Everything that is signed in the file's blocks."""
    data, offset = path.read_bytes(), 0
    messages = []
    while offset < len(data):
        length = int.from_bytes(data[offset : offset + 4], "big")
        block = blocks.decode(data[offset + 4 : offset + 4 + length], chain_id)
        messages += blocks.signed_messages(block)
        messages += [(tx.sender_public_key, tx.body, tx.proofs[0]) for tx in block.transactions]
        offset += 4 + length
    return messages


def cpu_with_ended_children() -> float:
    """CPU seconds of this process, and of that which checked signatures for it."""
    return sum(os.times()[:4])


def cpu_of_import(path: Path) -> tuple[float, float, int]:
    """CPU seconds, wall seconds and blocks of one import into an empty store."""
    network = networks.load("waves-mainnet")
    with tempfile.TemporaryDirectory() as directory, path.open("rb") as file:
        store = Store(Path(directory), network.name)
        chain = ChainWriter(network, store)
        cpu, wall = cpu_with_ended_children(), time.perf_counter()
        count = import_blocks(chain, file)
        result = cpu_with_ended_children() - cpu, time.perf_counter() - wall, count
        store.close()
    return result


def main() -> None:
    """Run both several times and print the least of each."""
    path = Path(sys.argv[1]) if len(sys.argv) > 1 else DEFAULT_FILE
    if not path.exists():
        print(f"import: skipped, {path} is not here")
        return
    imports = [cpu_of_import(path) for _ in range(RUNS)]
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    messages = signed_messages(path, networks.load("waves-mainnet").chain_id)
    floors = []
    for _ in range(RUNS):
        cpu = time.process_time()
        if not all(verify_many(messages)):
            raise SystemExit("a signature of the file is wrong")
        floors.append(time.process_time() - cpu)
    cpu, floor = min(imports)[0], min(floors)
    wall = min(wall for _, wall, _ in imports)
    print(f"import: {imports[0][2]} blocks, {cpu:.2f} s CPU, {wall:.2f} s wall, {memory:.0f} MB")
    print(f"floor: {len(messages)} signatures, {floor:.2f} s CPU in the same process")
    print(f"ratio: {cpu / floor:.2f} (at most 2.0)")


if __name__ == "__main__":
    main()
