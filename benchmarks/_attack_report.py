"""What a mixed attack leads to: samples of memory and slots, and the report at the end.

What lives here: looking at the services from outside, and printing. What does not: the attack and
the honest traffic (``attack``).
"""

from __future__ import annotations

import contextlib
import re
import time
import urllib.request
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from _devnet import Devnet

BAR_MS = 100.0
"""No honest client waits longer than this beyond what the machine itself makes wait."""
SAMPLE_SECONDS = 5.0


@dataclass
class Sample:
    """What the services hold at one time."""

    seconds: float
    megabytes: float
    descriptors: int
    processes: int
    gauges: dict[str, float]


def tree(process_id: int) -> list[int]:
    """A process and all below it."""
    found = [process_id]
    for each in found:
        for path in Path(f"/proc/{each}/task").glob("*/children"):
            with contextlib.suppress(OSError):
                found += map(int, path.read_text().split())
    return found


def sample(devnet: Devnet, services: Sequence[int], started: float) -> Sample:
    """Look at all processes of the services, and at what the node says of itself."""
    megabytes, descriptors, processes = 0.0, 0, 0
    for each in [process for service in services for process in tree(service)]:
        with contextlib.suppress(OSError):
            text = Path(f"/proc/{each}/smaps_rollup").read_text()
            found = re.search(r"Pss:\s+(\d+) kB", text)
            megabytes += int(found[1]) / 1024 if found else 0.0
            descriptors += len(list(Path(f"/proc/{each}/fd").iterdir()))
            processes += 1
    gauges = {}
    with contextlib.suppress(OSError), urllib.request.urlopen(devnet.url + "/metrics") as answer:
        for line in answer.read().decode().splitlines():
            if "reader" in line and not line.startswith("#"):
                name, _, value = line.rpartition(" ")
                gauges[name] = float(value)
    return Sample(time.time() - started, megabytes, descriptors, processes, gauges)


def failures(devnet: Devnet) -> int:
    """How many faults of its own the matcher has answered: it says 503, and counts them."""
    with urllib.request.urlopen(devnet.matcher_url + "/metrics") as answer:
        found = re.search(rb"^soliton_matcher_failures_total (\d+)", answer.read(), re.MULTILINE)
    if found is None:
        raise SystemExit("the matcher does not count its faults")
    return int(found[1])


def watch(devnet: Devnet, services: Sequence[int], until: float) -> list[Sample]:
    """Samples until the time is over; a line now and then."""
    started = time.time()
    samples = [sample(devnet, services, started)]
    while time.time() < until:
        time.sleep(min(SAMPLE_SECONDS, max(0.1, until - time.time())))
        samples.append(sample(devnet, services, started))
        if devnet.process.poll() is not None:
            raise SystemExit(f"the devnet ended with {devnet.process.returncode}")
        if len(samples) % 12 == 0:
            show_sample(samples[-1])
    return samples


def show_sample(each: Sample) -> None:
    """A line about one moment."""
    gauges = ", ".join(f"{name} {value:.0f}" for name, value in sorted(each.gauges.items()))
    print(
        f"  after {each.seconds:>5.0f} s: {each.megabytes:>6.0f} MB in {each.processes} processes, "
        f"{each.descriptors} descriptors, {gauges}",
        flush=True,
    )


def report(
    attacked: dict[str, object], asked: dict[str, object], samples: list[Sample], faults: int
) -> bool:
    """Print what happened; whether all is well."""
    rows: defaultdict[str, Counter[str]] = defaultdict(Counter)
    for kind, outcome, count in attacked["outcomes"]:  # type: ignore[attr-defined]
        rows[kind][outcome] += count
    print("attack, by kind")
    for kind, counts in sorted(rows.items()):
        told = ", ".join(f"{name}: {count}" for name, count in counts.most_common())
        print(f"  {kind:<12}{sum(counts.values()):>8}  {told}")
    bad = {name: sum(each[name] for each in rows.values()) for name in ("500", "HANGS")}
    for name, words in attacked["examples"].items():  # type: ignore[attr-defined]
        print(f"  {name}: {words!r}")
    waits = asked["waits"]
    assert isinstance(waits, dict)
    print("honest client, ms           count     p50     p95     p99     max   above 100")
    for kind, each in sorted(waits.items()):
        ordered = sorted(each["all"])
        parts = [
            ordered[min(len(ordered) - 1, int(len(ordered) * part))]
            for part in (0.5, 0.95, 0.99, 1)
        ]
        print(
            f"  {kind:<20}{len(ordered):>11}" + "".join(f"{part:>8.1f}" for part in parts)
            + f"{len(each['long']):>12}"
        )  # fmt: skip
        if kind not in ("after", "floor"):
            for at, milliseconds, floor, ran in sorted(each["long"], key=_own)[:-6:-1]:
                when = time.strftime("%H:%M:%S", time.gmtime(at))
                print(
                    f"      {milliseconds:.0f} ms at {when}, the floor {floor:.0f} ms meanwhile, "
                    f"the service ran for {ran:.0f} ms"
                )
    print("  statuses:", ", ".join(f"{k} x {v}" for k, v in sorted(asked["statuses"].items())))  # type: ignore[attr-defined]
    lost = asked["lost"]
    print(f"  accepted transactions {asked['sent']}, not on the chain in the end {len(lost)}")  # type: ignore[arg-type]
    quarter = max(1, len(samples) // 4)
    early = sum(each.megabytes for each in samples[quarter : 2 * quarter]) / quarter
    late = sum(each.megabytes for each in samples[-quarter:]) / quarter
    most = max(each.megabytes for each in samples)
    print(f"memory: second quarter {early:.0f} MB, last quarter {late:.0f} MB, most {most:.0f} MB")
    for each in (samples[0], samples[len(samples) // 2], samples[-1]):
        show_sample(each)
    print(f"status 500: {bad['500']}, hung: {bad['HANGS']}, faults of the matcher: {faults}")
    waited = [
        _own(long) for kind, each in waits.items() if kind != "after" for long in each["long"]
    ]
    stalls = [each for each in waited if each > BAR_MS]
    print(f"the longest wait for the services themselves: {max(waited, default=0.0):.0f} ms")
    print(f"such waits of more than {BAR_MS:.0f} ms: {len(stalls)}")
    return not (any(bad.values()) or lost or stalls or faults)


def _own(long: tuple[float, float, float, float]) -> float:
    """How much of a long wait was for the services themselves, at most: not more than beyond the
    floor, nor than they ran. The machine has others, too.
    """
    _, milliseconds, floor, ran = long
    return min(milliseconds - floor, ran)
