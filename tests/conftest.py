"""What all tests share: the place of the outside material, and the table of vectors at the end."""

from __future__ import annotations

import asyncio
import gc
import sys
from collections import Counter
from collections.abc import Generator, Iterator
from pathlib import Path
from typing import Any, Final

import pytest
from hypothesis import HealthCheck, settings
from xdist.scheduler import LoadFileScheduling

from soliton.ride.evaluator import RECURSION_LIMIT
from tests import process_state
from tests.amounts import EXAMPLES, LONG
from tests.e2e.browser import chromium
from tests.matcher.kafka.broker import Broker, running, unavailable
from tests.vectors import SHARED_VARIABLE, report, shared_root

# A busy machine is no defect of what is tested. `make test` judges a change by the same examples
# each time; `make test-all` looks for new ones.
settings.register_profile(
    "soliton",
    deadline=None,
    derandomize=not LONG,
    max_examples=EXAMPLES,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("soliton")


# The first script raises it for good; Hypothesis wants it the same before and after an example.
sys.setrecursionlimit(max(sys.getrecursionlimit(), RECURSION_LIMIT))

# What has none yet would be given one, by whoever asks first, and nobody would close it.
asyncio.set_event_loop(None)


@pytest.fixture(scope="session")
def shared() -> Path:
    """The directory with vectors, real blocks and recorded chains; skips where there is none."""
    root = shared_root()
    if not root.is_dir():
        pytest.skip(f"no test material at {root}; {SHARED_VARIABLE} may name its place")
    return root


@pytest.fixture(scope="session")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker]:
    """A running Kafka broker; skips where there can be none."""
    if (reason := unavailable()) is not None:
        pytest.skip(reason)
    with running(tmp_path_factory.mktemp("kafka")) as broker:
        yield broker


@pytest.fixture(scope="session")
def devtools(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The browser of all tests of a process: each opens tabs of its own, on ports of its own."""
    with chromium(tmp_path_factory.mktemp("profile")) as address:
        yield address


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """While tests are collected all that is made stays: a search for garbage finds none."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.enable()


SLOW_END: Final = 0.85
"""The share of the run by which files with slow tests have begun: a long one at the end would keep
one core busy alone.
"""
GOLDEN_RATIO: Final = (5**0.5 - 1) / 2
"""Multiples of it, without their whole part, spread neighbours evenly, however many there are."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Files with slow tests, which wait for programs and clocks, come between those that compute,
    and those of one directory, which wait for the same, far from one another: all cores are busy
    from the beginning to the end.
    """
    files = list(dict.fromkeys(item.path for item in items))
    slow = {item.path for item in items if item.get_closest_marker("slow")}
    here = Path(__file__).parent
    slow |= {path for path in files if path.parent == here}
    turns: dict[Path, float] = {}
    for some, end in ((slow, SLOW_END), (set(files) - slow, 1.0)):
        in_order = [path for path in files if path in some]
        turns |= {path: at * GOLDEN_RATIO % 1 * end for at, path in enumerate(in_order)}
    items.sort(key=lambda item: turns[item.path])


def pytest_collection_finish() -> None:
    """Take the tests out of garbage collection: they live as long as the run, and are many."""
    gc.freeze()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_teardown(
    item: pytest.Item, nextitem: pytest.Item | None
) -> Generator[None, object, object]:
    """The same for what a file of tests leaves in caches, once its garbage is collected. What it
    has changed in the process is reset: before its fixtures end, since the log would tell of them,
    and again for what they change.
    """
    is_last = nextitem is None or nextitem.path != item.path
    if is_last:
        process_state.restore()
    result = yield
    if is_last:
        process_state.restore()
        gc.collect()
        gc.freeze()
        assert not process_state.running()
    return result


WITH_BROKER = ("test_kafka.py", "test_broker_faults.py")
"""Files whose tests share a Kafka broker, which takes seconds to start."""


class FilesTogether(LoadFileScheduling):
    """A file's tests stay in one process, and so do those that parse all of the source, and those
    that share what takes long to start.
    """

    def _split_scope(self, nodeid: str) -> str:
        path, _, _ = nodeid.partition("::")
        if path.endswith(WITH_BROKER):
            return "broker"
        return "tests" if path.count("/") == 1 else path


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> FilesTogether:
    """How tests are shared out among processes."""
    return FilesTogether(config, log)


def pytest_sessionfinish(session: pytest.Session) -> None:
    """One of several processes hands over what it has counted."""
    output = getattr(session.config, "workeroutput", None)
    if output is not None:
        output["report"] = report.take()


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any, error: object) -> None:
    """The process that began them adds it up."""
    noted = getattr(node, "workeroutput", {}).get("report")
    if noted is not None:
        report.add(noted)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Say how many vectors of each file ran: a number that shrinks unnoticed is a lost test. The
    table of what was skipped stands at the end.
    """
    tell_vectors(terminalreporter)
    tell_comparisons(terminalreporter)
    tell_skips(terminalreporter)


def tell_vectors(terminalreporter: pytest.TerminalReporter) -> None:
    """Say how many vectors ran."""
    rows = report.rows()
    if not rows:
        return
    terminalreporter.section("vectors")
    width = max(len(name) for name, *_ in rows)
    for name, ran, skipped, reasons in rows:
        told = f"   skipped {skipped}: {reasons}" if reasons else ""
        terminalreporter.write_line(f"{name:<{width}}  ran {ran:>6}{told}")
    total = sum(ran for _, ran, _, _ in rows)
    terminalreporter.write_line(f"{'together':<{width}}  ran {total:>6}")


def tell_skips(terminalreporter: pytest.TerminalReporter) -> None:
    """Say how many tests were skipped for want of what."""
    reasons = Counter(
        each.longrepr[2].removeprefix("Skipped: ")
        for each in terminalreporter.stats.get("skipped", ())
        if isinstance(each.longrepr, tuple)
    )
    if not reasons:
        return
    terminalreporter.section("skipped, and for want of what")
    for reason, count in sorted(reasons.items(), key=lambda row: (-row[1], row[0])):
        terminalreporter.write_line(f"{count:>5}  {reason}")
    terminalreporter.write_line(f"{reasons.total():>5}  together")


def tell_comparisons(terminalreporter: pytest.TerminalReporter) -> None:
    """Say how many recorded answers came out equal, of how many."""
    rows = report.comparisons()
    if not rows:
        return
    terminalreporter.section("recorded answers: equal/total")
    width = max(len(name) for name, *_ in rows)
    for name, equal, total, but in rows:
        told = f"   but for: {but}" if but else ""
        terminalreporter.write_line(f"{name:<{width}}  {equal:>4}/{total:<4}{told}")
    equal, total = sum(row[1] for row in rows), sum(row[2] for row in rows)
    terminalreporter.write_line(f"{'together':<{width}}  {equal:>4}/{total:<4}")
