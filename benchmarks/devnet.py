"""How quick and how small a devnet is: ``python benchmarks/devnet.py``.

Prints the time from starting the command to its first answer, the time from sending one transfer to
seeing it mined, and the memory of the process; beside them the floor: starting Python with nothing,
and a request that asks for nothing.
"""

from __future__ import annotations

import http.client
import json
import statistics
import subprocess
import sys
import time

from _devnet import Devnet, running
from broadcast import signed_transfers

from soliton.chain.transactions import codec

STARTS = 5
TRANSFERS = 100
BAR_READY_SECONDS = 1.0
BAR_MINED_MS = 15.0
BAR_MEGABYTES = 120


def ask(
    connection: http.client.HTTPConnection, path: str, body: bytes | None = None
) -> dict[str, object]:
    """One request over a connection that stays open."""
    headers = {"Content-Type": "application/json"}
    connection.request("GET" if body is None else "POST", path, body, headers)
    response = connection.getresponse()
    answer: dict[str, object] = json.loads(response.read())
    if response.status != 200:
        raise SystemExit(f"{path}: {answer}")
    return answer


def mined_milliseconds(devnet: Devnet) -> tuple[float, float]:
    """From POST to the status ``confirmed``, and for one request: medians."""
    connection = http.client.HTTPConnection("127.0.0.1", devnet.port)
    ask(connection, "/node/status")
    mined, bare = [], []
    for transfer in signed_transfers(TRANSFERS):
        shown = codec.to_json(transfer)
        body, path = json.dumps(shown).encode(), f"/transactions/status/{shown['id']}"
        started = time.perf_counter()
        ask(connection, "/transactions/broadcast", body)
        while ask(connection, path)["status"] != "confirmed":
            pass
        mined.append(time.perf_counter() - started)
        started = time.perf_counter()
        ask(connection, "/node/status")
        bare.append(time.perf_counter() - started)
    connection.close()
    return statistics.median(mined) * 1000, statistics.median(bare) * 1000


def python_seconds() -> float:
    """Starting an interpreter that does nothing."""
    times = []
    for _ in range(STARTS):
        started = time.perf_counter()
        subprocess.run([sys.executable, "-c", "pass"], check=True)
        times.append(time.perf_counter() - started)
    return statistics.median(times)


def show(name: str, value: str, floor: str, reached: bool, bar: str) -> None:
    """One line."""
    verdict = "reached" if reached else "MISSED"
    print(f"{name:<28} {value:>10}   floor {floor:<24} at most {bar}: {verdict}")


def main() -> None:
    """Print the table."""
    ready, megabytes, mined, bare = [], 0.0, 0.0, 0.0
    for number in range(STARTS):
        with running() as devnet:
            ready.append(devnet.ready_seconds)
            if number == STARTS - 1:
                mined, bare = mined_milliseconds(devnet)
                megabytes = devnet.megabytes()
    seconds = statistics.median(ready)
    show(
        f"ready, median of {STARTS}",
        f"{seconds:.2f} s",
        f"{python_seconds():.2f} s, bare Python",
        seconds <= BAR_READY_SECONDS,
        f"{BAR_READY_SECONDS} s",
    )
    show(
        f"mined, median of {TRANSFERS}",
        f"{mined:.1f} ms",
        f"{bare:.1f} ms, bare request",
        mined <= BAR_MINED_MS,
        f"{BAR_MINED_MS} ms",
    )
    show("memory after that", f"{megabytes:.0f} MB", "", megabytes <= BAR_MEGABYTES, "120 MB")


if __name__ == "__main__":
    main()
