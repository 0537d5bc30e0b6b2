"""``soliton devnet --nodes N``: a private network of mining nodes, each in its own process.

A node that ends is restarted from its store.

What lives here: starting, watching and ending the processes. What does not: one of the nodes
(``member``).
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import signal
import sys
import time
import urllib.error
import urllib.request
from pathlib import Path
from typing import BinaryIO, Final

import msgspec

from soliton.cli.logs import current_log
from soliton.cli.process import call_on_signals
from soliton.controls.dump import BEFORE
from soliton.controls.mining import MiningMode
from soliton.devnet.accounts import describe, funded_accounts
from soliton.devnet.banner import Description, announce
from soliton.devnet.features import SHARED_PERIOD, Chosen
from soliton.devnet.held_ports import HeldPorts
from soliton.devnet.keeping import directory_of
from soliton.devnet.member import LEAST_BLOCK_SECONDS, PEER_HOST, Member, miner_seed, settings_of
from soliton.devnet.options import API_KEY, DevnetOptions, OptionsRefused
from soliton.errors import EnvironmentProblem
from soliton.storage.files import replace_file
from soliton.web.ports import url_of

_log = logging.getLogger(__name__)

USUAL_BLOCK_SECONDS: Final = 3.0
START_SECONDS: Final = 120.0
"""Time limit for all nodes to answer."""
AGAIN_SECONDS: Final = 0.5
"""Pause before a node that has ended is restarted."""
MAX_FAILED_STARTS: Final = 5
"""A node that ends so often within ``UP_SECONDS``, without being killed, is not restarted."""
UP_SECONDS: Final = 10.0
STOP_SECONDS: Final = 30.0
LOG: Final = "log.txt"
"""The log file in each node's directory."""
_BEGIN_FILE: Final = "begin.json"


class NodeGone(EnvironmentProblem):
    """A node does not start."""


def run_several(options: DevnetOptions) -> None:
    """Run until Ctrl-C. Without a data directory the chains are in a temporary one."""
    _check(options)
    with (
        directory_of(options.data_dir) as directory,
        contextlib.closing(HeldPorts(options.host)) as public,
        contextlib.closing(HeldPorts(PEER_HOST)) as local,
    ):
        members = _members(options, directory, public, local)
        try:
            asyncio.run(_Network(options, directory, members).run())
        except ExceptionGroup as group:
            # Several nodes may fail for the same reason: report the first.
            gone, others = group.split(NodeGone)
            if gone is None or others is not None:
                raise
            raise gone.exceptions[0] from None


def _check(options: DevnetOptions) -> None:
    options.check()
    seconds = options.rhythm.block_time
    _, _, _, *optional = options.ports
    alone = (options.state, options.scenario, options.workers or None, *optional)
    if options.rhythm.manual or any(each is not None for each in alone):
        raise OptionsRefused(
            "--nodes does not go with --no-mining, --state, --scenario, --workers, --data-service, "
            "--grpc-port or --grpc-updates-port"
        )
    if seconds is not None and seconds < LEAST_BLOCK_SECONDS:
        raise OptionsRefused(f"--block-time of several nodes: at least {LEAST_BLOCK_SECONDS:g}")
    ports = options.ports
    taken = range(ports.node, ports.node + options.nodes) if ports.node else range(0)
    for option, port in (("--signer-port", ports.signer), ("--matcher-port", ports.matcher)):
        if port in taken:
            raise OptionsRefused(
                f"{option} {port} is the port of node {port - ports.node + 1}: the nodes take "
                f"{taken.start} to {taken.stop - 1}"
            )
    if ports.signer and ports.signer == ports.matcher:
        raise OptionsRefused(f"--signer-port and --matcher-port are both {ports.signer}")


class _Network:
    """The nodes of one private network."""

    def __init__(self, options: DevnetOptions, directory: Path, members: list[Member]) -> None:
        self._options = options
        self._directory = directory
        self._stopped = asyncio.Event()
        self._processes: dict[int, asyncio.subprocess.Process] = {}
        self._members = members

    async def run(self) -> None:
        """Start the nodes, announce them, and restart those that end."""
        call_on_signals(self._stopped.set)
        async with asyncio.TaskGroup() as group:
            keepers = [group.create_task(self._keep(each)) for each in self._members]
            try:
                ready = asyncio.create_task(self._all_ready())
                stopped = asyncio.create_task(self._stopped.wait())
                await asyncio.wait((ready, stopped), return_when=asyncio.FIRST_COMPLETED)
                if ready.done():
                    ready.result()
                    self._announce()
                ready.cancel()
                await stopped
            finally:
                for each in keepers:
                    each.cancel()
                await self._end_all()

    async def _keep(self, member: Member) -> None:
        failed = 0
        while failed < MAX_FAILED_STARTS:
            since = time.monotonic()
            with _log_of(member) as log:
                process = await asyncio.create_subprocess_exec(
                    sys.executable,
                    "-P",
                    "-m",
                    "soliton.devnet.member",
                    msgspec.json.encode(member).decode(),
                    stdin=asyncio.subprocess.PIPE,
                    stdout=log,
                    stderr=log,
                    # Keep Ctrl-C away from it: this process stops it.
                    start_new_session=True,
                )
            self._processes[member.number] = process
            code = await process.wait()
            # Kills do not count as failures.
            is_up = code == -signal.SIGKILL or time.monotonic() - since > UP_SECONDS
            failed = 0 if is_up else failed + 1
            _log.warning(
                "node %d (process %d) has ended with %d; it starts again",
                member.number + 1, process.pid, code,
            )  # fmt: skip
            await asyncio.sleep(AGAIN_SECONDS)
        raise NodeGone(
            f"node {member.number + 1} does not start; see {Path(member.directory) / LOG}"
        )

    async def _all_ready(self) -> None:
        end = time.monotonic() + START_SECONDS
        waiting = [each.rest_ports[each.number] for each in self._members]
        # The matcher's API is the last one to start.
        waiting += [self._members[0].signer_port, self._members[0].matcher_port]
        while waiting:
            if await asyncio.to_thread(_answers, self._options.host, waiting[0]):
                del waiting[0]
            elif time.monotonic() > end:
                raise NodeGone(f"nothing answers on port {waiting[0]}")
            else:
                await asyncio.sleep(0.1)

    async def _end_all(self) -> None:
        running = [each for each in self._processes.values() if each.returncode is None]
        for each in running:
            with contextlib.suppress(ProcessLookupError):
                each.terminate()
        for each in running:
            try:
                async with asyncio.timeout(STOP_SECONDS):
                    await each.wait()
            except TimeoutError:
                each.kill()
                await each.wait()

    def _announce(self) -> None:
        options, first = self._options, self._members[0]
        chain_id = settings_of(first).network.chain_id
        urls = [url_of(options.host, port) for port in first.rest_ports]
        description = Description(
            chain_id=chain_id,
            node=urls[0],
            signer=url_of(options.host, first.signer_port),
            matcher=url_of(options.host, first.matcher_port),
            api_key=API_KEY,
            data=str(self._directory),
            height=_height(urls[0]),
            mining=MiningMode("interval", first.block_seconds),
            balance=options.funding.balance,
            rich=describe(miner_seed(0), chain_id),
            accounts=funded_accounts(chain_id, options.funding),
            nodes=tuple(urls),
            processes=tuple(self._processes[each.number].pid for each in self._members),
        )
        announce(description, options)


def _log_of(member: Member) -> BinaryIO:
    path = Path(member.directory)
    path.mkdir(parents=True, exist_ok=True)
    return (path / LOG).open("ab")


def _answers(host: str, port: int) -> bool:
    try:
        with urllib.request.urlopen(url_of(host, port), timeout=5):  # noqa: S310 - our own
            return True
    except urllib.error.HTTPError:
        return True
    except OSError:
        return False


def _height(url: str) -> int:
    route = f"{url}/blocks/height"
    with urllib.request.urlopen(route, timeout=STOP_SECONDS) as answer:  # noqa: S310 - our own
        height: int = msgspec.json.decode(answer.read())["height"]
        return height


def _members(
    options: DevnetOptions, directory: Path, public: HeldPorts, local: HeldPorts
) -> list[Member]:
    numbers, ports = range(options.nodes), options.ports
    begun = _begun(directory, options)
    first = Member(
        number=0,
        count=options.nodes,
        directory="",
        host=options.host,
        rest_ports=tuple(
            public.take(ports.node and ports.node + each, "--port") for each in numbers
        ),
        peer_ports=tuple(local.take(0, "") for _ in numbers),
        signer_port=public.take(ports.signer, "--signer-port"),
        matcher_port=public.take(ports.matcher, "--matcher-port"),
        block_seconds=options.rhythm.block_time or USUAL_BLOCK_SECONDS,
        begin=begun.begin,
        funding=options.funding,
        durable=options.data_dir is not None,
        logging=current_log(),
        chosen=begun.chosen,
    )
    return [
        msgspec.structs.replace(
            first, number=number, directory=str(directory / f"node-{number + 1}")
        )
        for number in numbers
    ]


class _Begun(msgspec.Struct, frozen=True, rename="camel"):
    """The options of a network, and the time of its genesis block (ms)."""

    begin: int
    nodes: int
    block_time: float | None
    features: tuple[int, ...] | None = None
    generation_period: int = SHARED_PERIOD

    @property
    def chosen(self) -> Chosen:
        """The features of the network."""
        return Chosen(BEFORE if self.features is None else self.features, self.generation_period)


def _begun(directory: Path, options: DevnetOptions) -> _Begun:
    """Return how the network begins; an existing one goes on as it has begun."""
    path = directory / _BEGIN_FILE
    now = time.time_ns() // 1_000_000
    if not path.exists():
        chosen = options.wanted.begun(SHARED_PERIOD)
        begun = _Begun(
            now,
            options.nodes,
            options.rhythm.block_time,
            chosen.features,
            chosen.generation_period,
        )
        replace_file(path, [msgspec.json.encode(begun)])
        return begun
    try:
        found = msgspec.json.decode(path.read_bytes(), type=_Begun)
    except msgspec.DecodeError as error:
        raise EnvironmentProblem(
            f"{path} is damaged: {error}; move {directory} away, and a new network begins"
        ) from error
    if (found.nodes, found.block_time) != (options.nodes, options.rhythm.block_time):
        rhythm = "" if found.block_time is None else f" --block-time {found.block_time:g}"
        raise OptionsRefused(
            f"{directory} holds a network that was begun with --nodes {found.nodes}{rhythm}"
        )
    options.wanted.kept(found.chosen, directory)
    return found
