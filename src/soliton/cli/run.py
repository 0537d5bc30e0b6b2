"""``soliton run`` and ``soliton signer``: long-running programs until a signal or a request.

What lives here: wiring a program from its parts. What does not: the parts.
"""

from __future__ import annotations

import asyncio
import contextlib
import gc
import logging
import resource
import signal
import sys
import threading
from collections.abc import Callable, Coroutine
from typing import TYPE_CHECKING, Final

from soliton.api.context import EXPOSED_HEADERS, ApiContext
from soliton.errors import EnvironmentProblem, InvariantBroken
from soliton.node.mining import mine_by_schedule
from soliton.node.node import Node
from soliton.node.rest_settings import ApiLimits, RestApi, is_local
from soliton.node.settings import Settings
from soliton.node.wallet import Wallet
from soliton.parallel.signatures import SignatureChecker
from soliton.web.cors import KEY_HEADERS, Cors

if TYPE_CHECKING:
    from soliton.web.server import RunningService, ServerLimits

_log = logging.getLogger(__name__)

COLLECTOR_THRESHOLDS: Final = (10_000, 2, 50)
"""Containers made and not freed before the search for cycles looks at these, how many such rounds
before it looks at what they left too, and how many of those before it looks at all that has been
made since the start. A microsecond for each is little on a busy machine, and everything waits.
"""
SWITCH_SECONDS: Final = 0.0002
"""How long a thread that has heard of the disk waits for an event loop that does not rest. With the
usual 5 ms a matcher's journal is 8 % slower; with a tenth of this, threads take too many turns.
"""
STACK_BYTES: Final = 16 * 1024 * 1024
"""Of each thread. Some systems give threads very little, and recursion has one limit for all of
them (``soliton.ride.evaluator``).
"""
CHECKED_TOGETHER: Final = 8
"""Signatures of transactions that go to another core at once, while the next ones are read."""
OPEN_FILES: Final = 8_192
"""Several times what all connections that may be open take. Many systems give a program 1,024
unless it asks for more: then clients that rest would leave none for the program's own files.
"""
_STOP_SIGNALS: Final = (signal.SIGINT, signal.SIGTERM)


def run_program(main: Callable[[], Coroutine[None, None, None]]) -> None:
    """Run a coroutine function to its end in a fast event loop."""
    import uvloop

    # What a request makes is freed by counting references: looking for cycles as often as the
    # default does costs a busy program a fifth of its time.
    end_start()
    gc.set_threshold(*COLLECTOR_THRESHOLDS)
    sys.setswitchinterval(SWITCH_SECONDS)
    threading.stack_size(STACK_BYTES)
    _ask_for_open_files()
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(main())


def end_start() -> None:
    """What the start has made stays: the search for cycles need never look at it."""
    gc.freeze()


def _ask_for_open_files() -> None:
    given, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = OPEN_FILES if most == resource.RLIM_INFINITY else min(OPEN_FILES, most)
    if given != resource.RLIM_INFINITY and given < wanted:
        # A system that refuses leaves us what there is.
        with contextlib.suppress(OSError, ValueError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, most))


def call_on_signals(stop: Callable[[], None]) -> None:
    """Let Ctrl-C and a polite kill end the program."""
    loop = asyncio.get_running_loop()
    for number in _STOP_SIGNALS:
        loop.add_signal_handler(number, stop)


def api_context(node: Node, signatures: SignatureChecker | None = None) -> ApiContext:
    """What the REST API needs of a node, and who checks signatures for it."""
    return ApiContext(
        title=f"{node.network.name} node",
        version=node.agent,
        check_api_key=node.settings.rest_api.check_api_key,
        is_api_key_hash=node.settings.rest_api.is_key_hash,
        scopes_of_key=node.settings.rest_api.scopes_of,
        limits=node.settings.rest_api.limits,
        cors=cors_of(node.settings.rest_api),
        clock=node.clock,
        network_clock=node.clock,
        node=node,
        signatures=signatures,
    )


def cors_of(settings: RestApi) -> Cors:
    """Which pages of other origins may read a node's answers."""
    told = settings.cors_headers
    headers = told.headers
    if settings.api_key_different_host:
        headers += tuple(name for name in KEY_HEADERS if name not in headers)
    return Cors(
        allows=settings.cors,
        origin=told.origin,
        request_headers=headers,
        methods=told.methods,
        credentials=told.credentials,
        exposed=EXPOSED_HEADERS,
    )


def signature_checker() -> SignatureChecker:
    """Who checks signatures of transactions on another core, to be closed at the end."""
    return SignatureChecker(group=CHECKED_TOGETHER)


async def start_api(node: Node, signatures: SignatureChecker) -> RunningService:
    """Serve the node's REST API where its settings say, with as many processes as they say.

    Where it is one, ``signatures`` checks those of what is sent; further ones do it themselves.
    """
    from soliton.api.app import build_app
    from soliton.web.server import serve

    settings = node.settings.rest_api
    if settings.workers:
        from soliton.cli.workers import start_workers

        return await start_workers(node, api_context(node))
    context = api_context(node, signatures)
    app = build_app(context)
    limits = server_limits(settings.limits)
    tallies = context.traffic.tallies
    return await serve(app, settings.bind_address, settings.port, limits, tallies=tallies)


def server_limits(limits: ApiLimits) -> ServerLimits:
    """What the server of a REST API accepts."""
    from soliton.web.server import ServerLimits

    return ServerLimits(
        connections=limits.connections,
        connections_per_client=limits.connections_per_client,
        counts_local_clients=limits.local_clients,
    )


async def start_signer(settings: Settings, node_url: str) -> RunningService:
    """Serve the signer; it sends what it signs to ``node_url``."""
    from soliton.signer.app import build_app
    from soliton.signer.settings import SERVER_LIMITS, SignerSettings
    from soliton.web.server import serve

    app = build_app(SignerSettings(node_url=node_url, network=settings.network))
    where = settings.signer.bind_address, settings.signer.port
    return await serve(app, *where, SERVER_LIMITS, lifespan=True)


def run_node(settings: Settings) -> None:
    """Serve the chain in the settings' data directory until the node is stopped."""
    wallet = Wallet.open(settings.wallet.file, settings.wallet.password, settings.wallet.seed)
    for warning in wallet.warnings:
        _log.warning("%s", warning)
    node = Node(settings, wallet)
    try:
        run_program(lambda: _serve_node(node))
    finally:
        node.close()


async def _serve_node(node: Node) -> None:
    call_on_signals(node.request_stop)
    _log.info("%s at height %d", node.network.name, node.chain.height)
    server = None
    signatures = signature_checker()
    if node.settings.rest_api.enable:
        server = await start_api(node, signatures)
        _log.info("REST API on http://%s:%d", server.host, server.port)
    mining, telling = asyncio.create_task(_mining(node)), asyncio.create_task(tell_state(node))
    try:
        await until_stopped(node, mining)
    finally:
        mining.cancel()
        telling.cancel()
        if server is not None:
            await server.stop()
        await signatures.close()


async def _mining(node: Node) -> None:
    """Make blocks if the settings say so, for ever."""
    settings = node.settings.miner
    if settings.enable and settings.quorum == 0:
        await mine_by_schedule(node)
    elif settings.enable:
        _log.info("no mining: miner.quorum asks for %d peers, there are none", settings.quorum)
    await asyncio.Event().wait()


async def tell_state(node: Node) -> None:
    """Log how the node is, as often as its settings say, for ever."""
    while pause := node.settings.logging.heartbeat_ms:
        await asyncio.sleep(pause / 1_000)
        chain = node.chain
        _log.info(
            "alive: height %d, the last block is %d s old, %d transactions wait",
            chain.height,
            max(0, node.clock() - chain.last_block.header.timestamp) // 1_000,
            len(node.pool),
        )


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
