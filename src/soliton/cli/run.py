"""``soliton run`` and ``soliton signer``: programs that run until a signal or a request ends them.

What lives here: assembling a program from its parts. What does not: the parts.
"""

from __future__ import annotations

import asyncio
import logging
import sys
from typing import TYPE_CHECKING, Final

import msgspec

from soliton.cli.process import call_on_signals, end_start_of_service, run_program
from soliton.cli.rest_api import api_context, server_limits, signature_checker
from soliton.errors import EnvironmentProblem, InvariantBroken
from soliton.node.chain_writer import open_store
from soliton.node.mining import mine_by_schedule
from soliton.node.network_time import NetworkClock, keep_time
from soliton.node.node import Node, system_clock
from soliton.node.pruning import prune_in_steps
from soliton.node.remote_keys import AnyWallet
from soliton.node.rest_settings import is_local
from soliton.node.settings import Settings
from soliton.node.wallet import Wallet
from soliton.parallel.signatures import SignatureChecker

if TYPE_CHECKING:
    from soliton.cli.grpc_server import GrpcService
    from soliton.controls.control import Controls
    from soliton.node.signer_settings import SignerCaller
    from soliton.p2p.service import P2pService
    from soliton.signer.settings import KeySettings
    from soliton.web.server import RunningService

_log = logging.getLogger(__name__)

FAR_BEHIND_SECONDS: Final = 600
"""A node whose last block is older than this is syncing."""
TOO_OLD_EXIT_CODE: Final = 38
"""The exit code of a node that is too old for the next block, as of the reference: a restart does
not help.
"""


async def start_api(
    node: Node,
    signatures: SignatureChecker,
    controls: Controls | None = None,
    *,
    no_controls: str = "",
) -> RunningService:
    """Serve the node's REST API as its settings say, with worker processes or in this process.

    ``signatures`` checks the signatures of transactions if there are no workers, which check their
    own. ``no_controls`` is the reason why a private chain has no controls.
    """
    from soliton.api.app import build_app
    from soliton.web.server import serve

    settings = node.settings.rest_api
    if settings.workers:
        from soliton.cli.workers import start_workers

        return await start_workers(node, api_context(node, controls=controls))
    context = msgspec.structs.replace(
        api_context(node, signatures, controls), no_controls=no_controls
    )
    app = build_app(context)
    limits = server_limits(settings)
    counters = context.traffic.counters
    return await serve(app, settings.bind_address, settings.port, limits, counters=counters)


async def start_signer(settings: Settings, node_url: str) -> RunningService:
    """Serve the signer, which broadcasts through ``node_url``."""
    from soliton.cli.signer_doors import server_tls, with_socket
    from soliton.signer.app import build_app
    from soliton.signer.settings import SERVER_LIMITS, SignerSettings
    from soliton.web.server import serve

    keys = _key_settings(settings)
    app = build_app(SignerSettings(node_url=node_url, network=settings.network, keys=keys))
    where = settings.signer.bind_address, settings.signer.port
    app.begin()
    try:
        tls = None if settings.signer.tls is None else server_tls(settings.signer.tls)
        counters = app.traffic.counters
        server = await serve(
            app, *where, SERVER_LIMITS, counters=counters, close=app.close, tls=tls
        )
        if settings.signer.unix_socket is None:
            return server
        return await with_socket(server, app, settings.signer.unix_socket)
    except BaseException:
        app.close()
        raise


def _key_settings(settings: Settings) -> KeySettings | None:
    """The settings of a signer that keeps keys, ``None`` for one that does not."""
    from soliton.signer.callers import Caller
    from soliton.signer.settings import (
        FetchedSettings,
        KeySettings,
        StoreSettings,
        WebhookSettings,
    )

    keys = settings.signer.keys
    if keys is None:
        return None
    return KeySettings(
        directory=keys.directory,
        policy_file=keys.policy_file,
        policy_hash=keys.policy_hash,
        state_directory=keys.state_directory,
        callers=tuple(
            Caller(it.name, it.key_hash, it.may, it.rate, _peers(it)) for it in keys.callers
        ),
        hosts=keys.hosts,
        durable=keys.sync,
        stores=tuple(
            StoreSettings(it.name, it.kind, it.where, it.within, it.key, it.secret_file)
            for it in keys.stores
        ),
        webhook=None if keys.webhook is None else WebhookSettings(*keys.webhook),
        origins=keys.origins,
        fetched=tuple(FetchedSettings(**msgspec.structs.asdict(it)) for it in keys.fetched),
    )


def _peers(caller: SignerCaller) -> frozenset[str]:
    from soliton.web import peers

    users = {peers.user(caller.uid)} if caller.uid >= 0 else set[str]()
    named = {peers.certificate(caller.certificate)} if caller.certificate else set[str]()
    return frozenset(users | named)


def run_node(settings: Settings) -> None:
    """Run a node on the chain in the settings' data directory until it is stopped."""
    # A new wallet must not be left in the directory of another node.
    open_store(settings).close()
    clock = NetworkClock(system_clock)
    node = Node(settings, _open_wallet(settings), clock=clock)
    try:
        node.feature_watch.check()
        if not node.is_stopping:
            run_program(lambda: _serve_node(node, clock))
    finally:
        node.close()
    if node.feature_watch.has_stopped:
        sys.exit(TOO_OLD_EXIT_CODE)


def _open_wallet(settings: Settings) -> AnyWallet:
    if settings.wallet.signer:
        from soliton.cli.wallet_signer import open_wallet

        return open_wallet(settings.wallet, settings.network.chain_id)
    wallet = Wallet.open(settings.wallet.file, settings.wallet.password, settings.wallet.seed)
    for warning in wallet.warnings:
        _log.warning("%s", warning)
    return wallet


async def _serve_node(node: Node, clock: NetworkClock) -> None:
    call_on_signals(node.request_stop)
    _log.info("%s at height %d", node.network.name, node.chain.height)
    server = None
    signatures = signature_checker()
    network = await start_network(node)
    if node.settings.rest_api.enable:
        server = await start_api(node, signatures)
        _log.info("REST API on http://%s:%d", server.host, server.port)
    grpc = await start_grpc(node)
    mining = asyncio.create_task(mining_of(node, network))
    heartbeat = asyncio.create_task(log_heartbeat(node))
    timing = asyncio.create_task(time_of(node, clock))
    pruning = asyncio.create_task(prune_in_steps(node))
    try:
        await until_stopped(node, mining)
    finally:
        mining.cancel()
        heartbeat.cancel()
        timing.cancel()
        pruning.cancel()
        if grpc is not None:
            await grpc.stop()
        if server is not None:
            await server.stop()
        if network is not None:
            await network.stop()
        await signatures.close()


async def start_grpc(node: Node) -> GrpcService | None:
    """Serve gRPC if the settings enable it; raises ``EnvironmentProblem``."""
    if not node.settings.grpc.enable:
        return None
    from soliton.cli.grpc_server import GrpcService

    service = GrpcService(node)
    await service.start()
    return service


async def start_network(node: Node) -> P2pService | None:
    """Start the peer-to-peer network if the settings enable it; raises ``PortTaken``."""
    settings = node.settings.peers
    if not settings.enable:
        return None
    from soliton.p2p.service import P2pService

    network = P2pService(node)
    try:
        await network.start()
    except OSError as error:
        raise PeersUnheard(
            f"cannot listen for peers on {settings.bind_address}:{settings.port}: "
            f"{error.strerror or error}; take another port with --peer-port (0: a free one)"
        ) from error
    if network.port is not None:
        _log.info("peers on %s:%d", settings.bind_address, network.port)
    return network


class PeersUnheard(EnvironmentProblem):
    """The node cannot listen for its peers."""


async def mining_of(node: Node, network: P2pService | None) -> None:
    """Generate blocks if the settings enable it; never returns."""
    settings = node.settings.miner
    if settings.enable and network is not None:
        await mine_by_schedule(node, lambda: network.is_at_rest, lambda: network.has_quorum)
    elif settings.enable and settings.quorum == 0:
        await mine_by_schedule(node)
    elif settings.enable:
        _log.info("no mining: miner.quorum asks for %d peers, there are none", settings.quorum)
    await asyncio.Event().wait()


async def time_of(node: Node, clock: NetworkClock) -> None:
    """Correct a node's clock if its settings name a time server and it has peers; never returns."""
    if node.settings.ntp_server and node.settings.peers.enable:
        await keep_time(clock, node.settings.ntp_server)
    await asyncio.Event().wait()


async def log_heartbeat(node: Node) -> None:
    """Log the node's state as often as its settings say; never returns."""
    pace = Pace(node)
    while pause := node.settings.logging.heartbeat_ms:
        await asyncio.sleep(pause / 1_000)
        chain = node.chain
        peering = node.peering
        _log.info(
            "alive: height %d, the last block is %d s old, %d transactions wait%s%s",
            chain.height,
            max(0, node.clock() - chain.last_block.header.timestamp) // 1_000,
            len(node.pool),
            "" if peering is None else f", {len(peering.connected())} peers",
            pace.text(),
        )


class Pace:
    """The speed at which a node catches up with the chain."""

    def __init__(self, node: Node) -> None:
        self._node = node
        self._last = self._sample()

    def _sample(self) -> tuple[int, int, int]:
        chain = self._node.chain
        return self._node.clock(), chain.height, chain.last_block.header.timestamp

    def text(self) -> str:
        """Blocks per second since the last call and the time left; empty unless far behind."""
        before, self._last = self._last, self._sample()
        seconds = (self._last[0] - before[0]) / 1_000
        blocks, gained = self._last[1] - before[1], (self._last[2] - before[2]) / 1_000
        behind = (self._last[0] - self._last[2]) / 1_000
        if behind < FAR_BEHIND_SECONDS or blocks <= 0 or seconds <= 0 or gained <= seconds:
            return ""
        left = behind * seconds / (gained - seconds)
        return f", syncing: {blocks / seconds:.0f} blocks/s, about {_length(left)} left"


def _length(seconds: float) -> str:
    for unit, size in (("days", 86_400), ("h", 3_600), ("min", 60)):
        if seconds >= 2 * size:
            return f"{seconds / size:.0f} {unit}"
    return f"{seconds:.0f} s"


async def until_stopped(node: Node, mining: asyncio.Task[None]) -> None:
    """Wait until the started node is asked to stop; raises if ``mining``, which never returns,
    fails.
    """
    end_start_of_service()
    stopped = asyncio.create_task(node.wait_for_stop())
    await asyncio.wait((stopped, mining), return_when=asyncio.FIRST_COMPLETED)
    if mining.done():
        error = mining.exception()
        if isinstance(error, EnvironmentProblem):
            raise error
        raise InvariantBroken("mining ended") from error


def run_signer(settings: Settings) -> None:
    """Run the signer alone until a signal ends it."""
    if not is_local(settings.signer.bind_address):
        _log.warning(
            "listening on %s: requests contain seeds that anyone on the network path can read",
            settings.signer.bind_address,
        )
    run_program(lambda: _serve_signer(settings))


async def _serve_signer(settings: Settings) -> None:
    stopped = asyncio.Event()
    call_on_signals(stopped.set)
    server = await start_signer(settings, settings.signer.node_url)
    _log.info("signer on http://%s:%d, node %s", server.host, server.port, settings.signer.node_url)
    end_start_of_service()
    try:
        await stopped.wait()
    finally:
        await server.stop()
