"""``soliton run`` and ``soliton signer``: long-running programs until a signal or a request.

What lives here: wiring a program from its parts. What does not: the parts.
"""

from __future__ import annotations

import asyncio
import logging
from dataclasses import replace
from typing import TYPE_CHECKING, Final

import msgspec

from soliton.cli.process import call_on_signals, end_start, run_program
from soliton.cli.rest_api import api_context, server_limits, signature_checker
from soliton.errors import EnvironmentProblem, InvariantBroken
from soliton.node.held_keys import AnyWallet
from soliton.node.mining import mine_by_schedule
from soliton.node.node import Node
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
"""A node whose last block is older than this is not there yet."""


async def start_api(
    node: Node,
    signatures: SignatureChecker,
    controls: Controls | None = None,
    *,
    no_controls: str = "",
) -> RunningService:
    """Serve the node's REST API where its settings say, with as many processes as they say.

    Where it is one, ``signatures`` checks those of what is sent; further ones do it themselves.
    ``no_controls`` says why a private chain has none.
    """
    from soliton.api.app import build_app
    from soliton.web.server import serve

    settings = node.settings.rest_api
    if settings.workers:
        from soliton.cli.workers import start_workers

        return await start_workers(node, api_context(node, controls=controls))
    context = replace(api_context(node, signatures, controls), no_controls=no_controls)
    app = build_app(context)
    limits = server_limits(settings.limits)
    counters = context.traffic.counters
    return await serve(app, settings.bind_address, settings.port, limits, counters=counters)


async def start_signer(settings: Settings, node_url: str) -> RunningService:
    """Serve the signer; it sends what it signs to ``node_url``."""
    from soliton.cli.signer_doors import server_tls, with_socket
    from soliton.signer.app import build_app
    from soliton.signer.settings import SERVER_LIMITS, SignerSettings
    from soliton.web.server import serve

    app = build_app(
        SignerSettings(node_url=node_url, network=settings.network, keys=_kept_keys(settings))
    )
    where = settings.signer.bind_address, settings.signer.port
    app.begin()
    try:
        tls = None if settings.signer.tls is None else server_tls(settings.signer.tls)
        server = await serve(app, *where, SERVER_LIMITS, close=app.close, tls=tls)
        if settings.signer.unix_socket is None:
            return server
        return await with_socket(server, app, settings.signer.unix_socket)
    except BaseException:
        app.close()
        raise


def _kept_keys(settings: Settings) -> KeySettings | None:
    """What the settings say of the signer's own keys."""
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
    """Serve the chain in the settings' data directory until the node is stopped."""
    node = Node(settings, _opened_wallet(settings))
    try:
        run_program(lambda: _serve_node(node))
    finally:
        node.close()


def _opened_wallet(settings: Settings) -> AnyWallet:
    if settings.wallet.signer:
        from soliton.cli.wallet_signer import open_wallet

        return open_wallet(settings.wallet, settings.network.chain_id)
    wallet = Wallet.open(settings.wallet.file, settings.wallet.password, settings.wallet.seed)
    for warning in wallet.warnings:
        _log.warning("%s", warning)
    return wallet


async def _serve_node(node: Node) -> None:
    call_on_signals(node.request_stop)
    _log.info("%s at height %d", node.network.name, node.chain.height)
    server = None
    signatures = signature_checker()
    network = await start_network(node)
    if node.settings.rest_api.enable:
        server = await start_api(node, signatures)
        _log.info("REST API on http://%s:%d", server.host, server.port)
    grpc = await start_grpc(node)
    mining, telling = (
        asyncio.create_task(mining_of(node, network)),
        asyncio.create_task(tell_state(node)),
    )
    try:
        await until_stopped(node, mining)
    finally:
        mining.cancel()
        telling.cancel()
        if grpc is not None:
            await grpc.stop()
        if server is not None:
            await server.stop()
        if network is not None:
            await network.stop()
        await signatures.close()


async def start_grpc(node: Node) -> GrpcService | None:
    """Serve gRPC where the node's settings say so; raises ``EnvironmentProblem``."""
    if not node.settings.grpc.enable:
        return None
    from soliton.cli.grpc_server import GrpcService

    service = GrpcService(node)
    await service.start()
    return service


async def start_network(node: Node) -> P2pService | None:
    """Talk to other nodes, if the settings say so; raises ``PortTaken``."""
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
    """The node cannot listen where its peers look for it."""


async def mining_of(node: Node, network: P2pService | None) -> None:
    """Make blocks if the settings say so, for ever."""
    settings = node.settings.miner
    if settings.enable and network is not None:
        await mine_by_schedule(node, lambda: network.is_at_rest, lambda: network.has_quorum)
    elif settings.enable and settings.quorum == 0:
        await mine_by_schedule(node)
    elif settings.enable:
        _log.info("no mining: miner.quorum asks for %d peers, there are none", settings.quorum)
    await asyncio.Event().wait()


async def tell_state(node: Node) -> None:
    """Log how the node is, as often as its settings say, for ever."""
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
            pace.told(),
        )


class Pace:
    """How fast a node comes nearer to the present."""

    def __init__(self, node: Node) -> None:
        self._node = node
        self._last = self._look()

    def _look(self) -> tuple[int, int, int]:
        chain = self._node.chain
        return self._node.clock(), chain.height, chain.last_block.header.timestamp

    def told(self) -> str:
        """Blocks a second and the time left, of a node that is far behind; since the last call."""
        before, self._last = self._last, self._look()
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
    """Return when the node, which has started, is asked to stop; raises when ``mining``, which
    never ends, does.
    """
    end_start()
    stopped = asyncio.create_task(node.wait_for_stop())
    await asyncio.wait((stopped, mining), return_when=asyncio.FIRST_COMPLETED)
    if mining.done():
        error = mining.exception()
        if isinstance(error, EnvironmentProblem):
            raise error
        raise InvariantBroken("mining ended") from error


def run_signer(settings: Settings) -> None:
    """Serve the signer alone until a signal ends it."""
    if not is_local(settings.signer.bind_address):
        _log.warning(
            "listening on %s: seeds come in requests that anybody on the way can read",
            settings.signer.bind_address,
        )
    run_program(lambda: _serve_signer(settings))


async def _serve_signer(settings: Settings) -> None:
    stopped = asyncio.Event()
    call_on_signals(stopped.set)
    server = await start_signer(settings, settings.signer.node_url)
    _log.info("signer on http://%s:%d, node %s", server.host, server.port, settings.signer.node_url)
    end_start()
    try:
        await stopped.wait()
    finally:
        await server.stop()
