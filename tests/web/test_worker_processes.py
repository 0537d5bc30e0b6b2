"""Worker processes: real ones, with programs as small as possible."""

from __future__ import annotations

import asyncio
import logging
import multiprocessing
import os
import select
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Coroutine
from errno import EAGAIN
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from pathlib import Path

import pytest

from soliton.errors import EnvironmentProblem
from soliton.web import worker_processes
from soliton.web.server import bind
from soliton.web.shared_counters import CONNECTIONS
from soliton.web.worker_processes import (
    Program,
    WorkerContext,
    Workers,
    leave,
    prepare,
    stop_event,
    tell_ready,
)
from tests.vectors import REPOSITORY
from tests.web.handoffs import LOOPS, until

pytestmark = pytest.mark.slow

HOST = "127.0.0.1"
STARTS, GAUGES = 5, 6
CLIENT = "10.0.0.1"


# --- programs -------------------------------------------------------------------------------------


def serve(worker: WorkerContext, lifeline: Connection) -> None:
    """Have the port, and count that it is there, until it is told to end."""
    prepare()

    async def stay() -> None:
        told = stop_event(lifeline)
        counters = worker.counters()
        counters.own[GAUGES] += 1
        counters.counts(CONNECTIONS).add(CLIENT)
        counters.own[STARTS] += 1
        tell_ready(lifeline)
        await told.wait()

    with bind(worker.host, worker.port, shares_port=True) as door:
        door.listen()
        asyncio.run(stay())


def give_up(worker: WorkerContext, lifeline: Connection) -> None:
    """Not to be able to start, as the second of them."""
    if worker.slot == 2:
        sys.exit(3)
    serve(worker, lifeline)


def wait_for_signal(worker: WorkerContext, lifeline: Connection) -> None:
    prepare()
    tell_ready(lifeline)
    signal.pause()


def stay_for_ever(worker: WorkerContext, lifeline: Connection) -> None:
    prepare()
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    tell_ready(lifeline)
    while True:
        signal.pause()


def service() -> None:
    """A service of its own, which tells the process of its worker and is there until it is killed.

    It is told to end by nobody.
    """

    async def stay() -> None:
        made = Workers(HOST, 0, 1)
        await made.start(serve, (), lambda: None)
        print(*made.process_ids(), flush=True)
        await asyncio.Event().wait()

    asyncio.run(stay())


# --- tests ----------------------------------------------------------------------------------------


class Service:
    """Workers, and what their service hears of them."""

    def __init__(self, count: int) -> None:
        self.workers = Workers(HOST, 0, count)
        self.ended = 0
        self.known: list[BaseProcess] = []

    async def start(self, program: Program = serve) -> None:
        def ended() -> None:
            self.ended += 1

        await self.workers.start(program, iter((GAUGES,)), ended)

    def counted(self) -> tuple[int, int, int]:
        """Starts, what workers have for as long as they live, and their connections."""
        counters = self.workers.counters
        connections = counters.counts(CONNECTIONS).of(CLIENT)
        return counters.sum(STARTS), counters.sum(GAUGES), connections


Story = Callable[[Service], Coroutine[None, None, None]]


def play(story: Story, count: int = 1, loop: str = "uvloop") -> list[BaseProcess]:
    """Let workers live as the story says, then stop them; returns the last processes."""

    async def run() -> list[BaseProcess]:
        made = Service(count)
        try:
            async with asyncio.timeout(60):
                await story(made)
        finally:
            there = multiprocessing.active_children()
            await made.workers.stop()
            made.workers.close()
        assert multiprocessing.active_children() == []
        return there

    with asyncio.Runner(loop_factory=LOOPS[loop]) as runner:
        return runner.run(run())


@pytest.mark.parametrize("loop", LOOPS)
def test_all_serve_and_who_is_killed_is_replaced(
    loop: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING)

    async def story(service: Service) -> None:
        await service.start()
        assert service.counted() == (2, 2, 2)
        first, second = service.workers.process_ids()
        os.kill(first, signal.SIGKILL)
        await until(lambda: service.counted() == (3, 2, 2))
        assert service.ended == 1
        assert [record.getMessage() for record in caplog.records] == [
            "worker 1 ended with -9: another begins"
        ]
        os.kill(second, signal.SIGKILL)
        await until(lambda: service.counted() == (4, 2, 2))
        assert not {first, second} & set(service.workers.process_ids())

    last = play(story, 2, loop)
    assert len(last) == 2 and -signal.SIGKILL not in {process.exitcode for process in last}


def test_one_that_cannot_start() -> None:
    async def story(service: Service) -> None:
        with pytest.raises(EnvironmentProblem, match="a worker could not start"):
            await service.start(give_up)

    play(story, 2)


def test_one_that_takes_too_long_to_start(monkeypatch: pytest.MonkeyPatch) -> None:
    async def story(service: Service) -> None:
        monkeypatch.setattr(worker_processes, "START_SECONDS", 0.01)
        with pytest.raises(EnvironmentProblem, match="a worker could not start"):
            await service.start()

    play(story)


def test_a_replacement_that_takes_too_long_is_replaced_itself(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def story(service: Service) -> None:
        await service.start()
        with monkeypatch.context() as hasty:
            hasty.setattr(worker_processes, "START_SECONDS", 0.01)
            os.kill(service.workers.process_ids()[0], signal.SIGKILL)
            await until(lambda: service.ended == 2)
        await until(lambda: service.counted() == (2, 1, 1))

    play(story)


class Full:
    """A system that has no place for another process."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.refused = 0
        self._usual = worker_processes._spawn
        self.is_full = True
        monkeypatch.setattr(worker_processes, "_spawn", self._spawn)

    def _spawn(self, program: Program, worker: WorkerContext) -> tuple[BaseProcess, Connection]:
        if not self.is_full:
            return self._usual(program, worker)
        self.refused += 1
        raise OSError(EAGAIN, "Resource temporarily unavailable")


def test_no_place_for_a_worker(monkeypatch: pytest.MonkeyPatch) -> None:
    async def story(service: Service) -> None:
        Full(monkeypatch)
        with pytest.raises(EnvironmentProblem, match="a worker could not start"):
            await service.start()

    play(story)


def test_no_place_for_a_replacement_for_a_while(monkeypatch: pytest.MonkeyPatch) -> None:
    async def story(service: Service) -> None:
        await service.start()
        system = Full(monkeypatch)
        os.kill(service.workers.process_ids()[0], signal.SIGKILL)
        await until(lambda: system.refused == 2)
        assert service.workers.process_ids() == []
        system.is_full = False
        await until(lambda: service.counted() == (2, 1, 1))

    play(story)


def test_faults_of_ours_are_heard(caplog: pytest.LogCaptureFixture) -> None:
    async def story(service: Service) -> None:
        with pytest.raises(AttributeError, match=r"pickle|local object"):
            await service.start(lambda _worker, _lifeline: None)

        def ended() -> None:
            raise ValueError("not expected")

        await service.workers.start(serve, (), ended)
        os.kill(service.workers.process_ids()[0], signal.SIGKILL)
        await until(lambda: "worker 1 is not replaced" in caplog.text)

    play(story)
    assert "ValueError: not expected" in caplog.text


def test_who_listens_to_signals_only() -> None:
    (last,) = play(lambda service: service.start(wait_for_signal))
    assert last.exitcode == -signal.SIGTERM


def test_who_does_not_want_to_end_is_killed(monkeypatch: pytest.MonkeyPatch) -> None:
    async def story(service: Service) -> None:
        monkeypatch.setattr(worker_processes, "STOP_SECONDS", 0.1)
        await service.start(stay_for_ever)

    (last,) = play(story)
    assert last.exitcode == -signal.SIGKILL


def is_free(port: int) -> bool:
    """For somebody who does not share it."""
    with socket.socket() as plug:
        try:
            plug.bind((HOST, port))
        except OSError:
            return False
    return True


def test_port_and_directory_are_free_after_the_end() -> None:
    made = Workers(HOST, 0, 1)
    directory = made.context.directory
    assert directory.stat().st_mode & 0o777 == 0o700
    assert not is_free(made.port)
    made.close()
    assert is_free(made.port)
    assert not directory.exists()


def test_a_port_that_others_share_is_taken() -> None:
    with bind(HOST, 0, shares_port=True) as another:
        another.listen()
        with pytest.raises(EnvironmentProblem):
            Workers(HOST, another.getsockname()[1], 1)


def test_workers_end_with_their_service(tmp_path: Path) -> None:
    call = "from tests.web.test_worker_processes import service; service()"
    with subprocess.Popen(
        [sys.executable, "-c", call],
        cwd=REPOSITORY,
        env={**os.environ, "TMPDIR": str(tmp_path)},
        stdout=subprocess.PIPE,
    ) as process:
        assert process.stdout is not None
        worker = os.pidfd_open(int(process.stdout.readline()))
        process.kill()
    try:
        assert select.select([worker], [], [], 20)[0] == [worker]
    finally:
        os.close(worker)


@pytest.mark.parametrize("loop", LOOPS)
def test_a_worker_is_told_to_end_once(loop: str) -> None:
    async def hear() -> None:
        ours, theirs = multiprocessing.Pipe()
        told = stop_event(theirs)
        ours.close()
        await told.wait()
        # An end that stays readable would keep the loop busy until the worker has ended.
        assert not asyncio.get_running_loop().remove_reader(theirs.fileno())
        theirs.close()

    with asyncio.Runner(loop_factory=LOOPS[loop]) as runner:
        runner.run(hear())


def test_the_directory_of_a_service_that_has_gone_goes_with_its_worker(tmp_path: Path) -> None:
    worker = WorkerContext(tmp_path / "worker", 2, 1, "127.0.0.1", 0)
    worker.directory.mkdir()
    worker.new_counters()
    service, lifeline = multiprocessing.Pipe()
    leave(worker, lifeline)
    assert worker.directory.exists()
    service.close()
    leave(worker, lifeline)
    assert not worker.directory.exists()
    # The next one finds nothing to do.
    leave(worker, lifeline)
