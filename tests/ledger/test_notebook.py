"""The page about the ledger in memory is one program, which runs."""

from __future__ import annotations

import subprocess
import sys

from tests.blocks import blocks

PAGE = "docs/how-to/look-into-the-ledger.md"
SECONDS = 300
COIN = 10**8
TOTAL = 110_000_000 * COIN
BALANCE = 1_000_000 * COIN
FEE = 100_000
MAINNET_FIRST = "fab947262e8f5f03807ee7a888c750e46d0544a04d5777f50cc6daaf5f4e8d19"
"""The state hash of the first block of mainnet, as its nodes tell it."""


def test_the_page_runs() -> None:
    source = "\n".join(blocks(PAGE, "python"))
    done = subprocess.run(
        [sys.executable, "-W", "error::DeprecationWarning", "-c", source],
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert lines[:2] == [f"{TOTAL} {TOTAL}", str(BALANCE)]
    assert lines[2] == MAINNET_FIRST
    assert lines[3:6] == [str(-5 * COIN // 2 - FEE), str(5 * COIN // 2), str(2 * FEE // 5)]
    assert lines[6] == f"((None, {3 * FEE // 5}),) {BALANCE}"
    assert lines[7].startswith("TransactionRejected ") and "unavailable funds" in lines[7]
    assert "'square'" in lines[8]
    assert "'square'): 144}" in lines[9]
    assert lines[10] == "(DataEntry(key='square', value=144),)"
