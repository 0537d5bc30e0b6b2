"""What a builder waits for: a chain that goes back, a run of tests, many empty blocks, a market.

Each figure stands beside what is asked of it; the floor is a signature of this machine, of which a
transfer and its block take about twenty.

    .venv/bin/python benchmarks/testing_kit.py
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from soliton.crypto import curve25519
from soliton.testing.kit import Kit

ACCOUNTS = 10_000
AT_ONCE = 100
ROUNDS = 300
BLOCKS = 10_000
TESTS = 1_000
FILE = f"""
import pytest

@pytest.mark.parametrize("n", range({TESTS}))
def test_transfer(n, alice, bob, node):
    node.send(alice.transfer(bob, n + 1)).wait()
    assert node.balance(bob) == 10**14 + n + 1
"""


def seconds(work: Callable[[], object]) -> float:
    started = time.perf_counter()
    work()
    return time.perf_counter() - started


def told(what: str, figure: float, asked: float, unit: str) -> None:
    print(f"{what:52} {figure:8.2f} {unit:2} (asked: {asked:g})", flush=True)


def going_back(kit: Kit) -> None:
    """With a transfer in between, which is not counted."""
    alice, bob = kit.accounts[:2]
    taking = leaving = 0.0
    for _ in range(ROUNDS):
        started = time.perf_counter()
        leave = kit.chain.enter()
        taking += time.perf_counter() - started
        kit.node.send(alice.transfer(bob, 1))
        leaving += seconds(leave)
    told(f"snapshot, {ACCOUNTS} accounts", 1_000 * taking / ROUNDS, 1, "ms")
    told("revert, a transfer behind", 1_000 * leaving / ROUNDS, 1, "ms")


def main() -> None:
    key = bytes(31) + b"\x40"
    floor = seconds(lambda: [curve25519.sign(key, b"message") for _ in range(ROUNDS)])
    print(f"{'a signature':52} {1_000 * floor / ROUNDS:8.3f} ms")
    kit = Kit.start()
    for start in range(0, ACCOUNTS, AT_ONCE):
        seeds = range(start, start + AT_ONCE)
        others = [(kit._account(f"one of many {number}"), 1) for number in seeds]
        kit.node.send(kit.rich.mass_transfer(others))
    going_back(kit)
    with kit.chain.isolated():
        told(f"{BLOCKS} empty blocks", seconds(lambda: kit.chain.mine(BLOCKS)), 2, "s")
    kit.close()
    with tempfile.TemporaryDirectory() as directory:
        Path(directory, "test_many.py").write_text(FILE)
        options = (
            "-q",
            "-p",
            "soliton.testing.plugin",
            "-p",
            "no:cacheprovider",
            "-p",
            "no:asyncio",
        )
        command = [sys.executable, "-m", "pytest", *options, directory]
        told(
            f"{TESTS} tests of a transfer each, with pytest's start",
            seconds(lambda: subprocess.run(command, check=True, stdout=subprocess.DEVNULL)),
            5,
            "s",
        )
    ports = ("--port", "0", "--signer-port", "0", "--matcher-port", "0")
    program = str(Path(sys.executable).parent / "soliton")
    started = time.perf_counter()
    with subprocess.Popen(
        [program, "devnet", *ports, "--scenario", "dex", "--json"],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    ) as devnet:
        assert devnet.stdout is not None
        devnet.stdout.readline()
        told("ready, with the market of dex", time.perf_counter() - started, 1, "s")
        devnet.terminate()


if __name__ == "__main__":
    main()
