"""Exporting real mainnet blocks to PostgreSQL, beside importing the same blocks into a store.

Run ``.venv/bin/python benchmarks/export.py [FILE]``; FILE holds ``u32 length ‖ block`` records from
height 2 on. A PostgreSQL server is started for it where one is installed. Prints CPU seconds of
both (the server's own are not among them) and their ratio.
"""

from __future__ import annotations

import sys
import tempfile
import threading
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from benchmarks.import_blocks import DEFAULT_FILE
from soliton.chain import networks
from soliton.export.database import ChainFacts, Database
from soliton.export.running import Export
from soliton.node.chain_writer import ChainWriter
from soliton.node.importer import import_blocks
from soliton.storage.store import Store
from tests.export.following import OwnChain
from tests.export.postgres import Server, find_program, server

RUNS = 3


def run(path: Path, postgres: Server) -> tuple[float, float, float, int]:
    """CPU seconds of an import, CPU and wall seconds of an export, transactions."""
    network = networks.load("waves-mainnet")
    with tempfile.TemporaryDirectory() as directory, path.open("rb") as file:
        store = Store(Path(directory), network.name)
        chain = ChainWriter(network, store)
        start = time.process_time()
        import_blocks(chain, file)
        imported = time.process_time() - start
        source, dsn = OwnChain(chain), postgres.database()
        facts = ChainFacts(source.network, source.chain_id, source.address_of)
        start, wall = time.process_time(), time.perf_counter()
        Export(source, lambda: Database.open(dsn, facts), threading.Event(), once=True).run()
        exported, wall = time.process_time() - start, time.perf_counter() - wall
        count = sum(chain.meta(at).transaction_count for at in range(1, chain.height + 1))
        store.close()
    return imported, exported, wall, count


def main() -> None:
    """Run both several times and print the least of each."""
    path = Path(sys.argv[1]) if len(sys.argv) > 1 else DEFAULT_FILE
    if not path.exists() or find_program("initdb") is None:
        print(f"export: skipped, {path} or PostgreSQL is not here")
        return
    with server() as postgres:
        runs = [run(path, postgres) for _ in range(RUNS)]
    imported, exported, wall = (min(each[at] for each in runs) for at in range(3))
    print(f"import {imported:.2f} s CPU, export {exported:.2f} s CPU ({wall:.2f} s wall), ", end="")
    print(f"{exported / imported:.2f} of the import; {runs[0][3]} transactions")


if __name__ == "__main__":
    main()
