"""Killing an import at random moments loses nothing that was stored and spoils nothing.

``SOLITON_KILLS`` sets how many kills there are in all (a few by default, so that the suite stays
quick; 200 by hand). A kill comes when the store has written as many
changes as drawn by lot, so that it falls into the import on any machine.
"""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from soliton.chain import networks
from soliton.node.chain_writer import ChainWriter
from soliton.storage.store import Store
from tests.amounts import times

KILLS = int(os.environ.get("SOLITON_KILLS", times(2, 20)))
LAST_HEIGHT = times(5_000, 10_000)
CHANGES = 5_000, 50_000
"""How large the store's file is when a kill comes; in the end it is larger."""
STATE_HASHES = {
    5_000: "0b4cf9cfb2a1d4aa4a529f241e26845a9423c0d48dbe0923a888703c63d42e3c",
    10_000: "bf097b3ab493c26333f1443995896a61dd92da2bbc50229517f8a2f0b55ff02c",
}


def _start_import(path: Path, data_dir: Path) -> subprocess.Popen[bytes]:
    program = Path(sys.executable).parent / "soliton"
    where = ("--network", "waves-mainnet", "--data-dir", data_dir)
    return subprocess.Popen(
        [program, "import", path, *where, "--to-height", str(LAST_HEIGHT)],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
    )


def _tip(data_dir: Path) -> tuple[int, str]:
    network = networks.load("waves-mainnet")
    store = Store(data_dir / "data", network.name)
    try:
        chain = ChainWriter(network, store)
        return chain.height, chain.meta(chain.height).state_hash.hex()
    finally:
        store.close()


def _changes(data_dir: Path) -> int:
    """How many changes the store has written by now, as its readers see it."""
    try:
        return int.from_bytes((data_dir / "data" / "sequence").read_bytes(), "little")
    except FileNotFoundError:
        return 0


@pytest.mark.slow
def test_killed_imports_resume_to_the_same_state(shared: Path, tmp_path: Path) -> None:
    blocks_file = shared / "data" / "waves-mainnet-blocks-2-10000.bin"
    moments = random.Random(20261121)
    kills = rounds = interrupted = 0
    while kills < KILLS:
        rounds += 1
        data_dir = tmp_path / f"round-{rounds}"
        height = 0
        while height < LAST_HEIGHT and kills < KILLS:
            with _start_import(blocks_file, data_dir) as importing:
                assert importing.stderr is not None
                # The first line comes when the store is open and blocks are about to be read.
                importing.stderr.readline()
                changes = moments.randrange(*CHANGES)
                while _changes(data_dir) < changes and importing.poll() is None:
                    time.sleep(0.005)
                importing.send_signal(signal.SIGKILL)
            kills += 1
            reached, _ = _tip(data_dir)
            assert reached >= height
            interrupted += 1 < reached < LAST_HEIGHT
            height = reached
        with _start_import(blocks_file, data_dir) as importing:
            importing.communicate()
            assert importing.returncode == 0
        assert _changes(data_dir) > CHANGES[1]
        assert _tip(data_dir) == (LAST_HEIGHT, STATE_HASHES[LAST_HEIGHT])
    assert interrupted, "no kill came in the middle of an import: the numbers need a change"
    print(f"{kills} kills, {interrupted} of them in mid-import, {rounds} chains completed")
