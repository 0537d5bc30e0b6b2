"""``soliton devnet``: a private chain with its node, signer and matcher in one process.

What lives here: the settings of the chain, starting and stopping. What does not: the parts.
"""

from __future__ import annotations

import asyncio
import contextlib
import importlib
import logging
from collections.abc import Coroutine, Sequence
from typing import TYPE_CHECKING, Final

import msgspec

from soliton.chain.genesis import genesis_block
from soliton.cli.process import call_on_signals, run_program
from soliton.cli.rest_api import signature_checker
from soliton.cli.run import log_heartbeat, start_api, start_grpc, start_signer, until_stopped
from soliton.controls.activity import MAX_PER_SECOND, Activity
from soliton.controls.clock import DevClock
from soliton.controls.control import Controls, Origin
from soliton.crypto.hashes import secure_hash
from soliton.crypto.keys import key_pair
from soliton.devnet.accounts import RICH_SEED, describe, funded_accounts, network_with
from soliton.devnet.banner import Description, announce
from soliton.devnet.data_service import DataServiceProcess
from soliton.devnet.data_service import start as start_beside
from soliton.devnet.features import Chosen, network_of, remembered
from soliton.devnet.keeping import check_place, directory_of, features_in, load_file, save_file
from soliton.devnet.options import API_KEY, DevnetOptions, OptionsRefused, Ports
from soliton.errors import EnvironmentProblem, SolitonError
from soliton.node.grpc_settings import GrpcSettings
from soliton.node.node import Node
from soliton.node.rest_settings import is_local
from soliton.node.settings import Settings, api_key_hash_text, load_settings
from soliton.node.wallet import Wallet
from soliton.parallel.signatures import SignatureChecker
from soliton.storage.directories import stored_network
from soliton.web.ports import holder, url_of
from soliton.web.server import PortTaken, bind, wait_until_free

if TYPE_CHECKING:
    from pathlib import Path

    from soliton.devnet.fork.chain import Fork
    from soliton.devnet.matcher import DevnetMatcher
    from soliton.devnet.playing import Playing
    from soliton.web.server import RunningService

MAX_BODY_BYTES: Final = 64 * 1024 * 1024
"""Limit on request bodies: a whole chain can be loaded."""

_log = logging.getLogger(__name__)
_blocks_log = logging.getLogger("soliton.node.mining")


def run_devnet(options: DevnetOptions) -> None:
    """Run until Ctrl-C. Without a data directory the chain is in a temporary one."""
    options.check()
    host, ports, durable = options.host, options.ports, options.data_dir is not None
    _check_ports(host, ports, options.workers)
    with directory_of(options.data_dir) as directory:
        settings = load_settings(
            network="devnet",
            data_dir=directory,
            overrides={
                "rest-api.bind-address": host,
                "rest-api.port": ports.node,
                "rest-api.workers": options.workers,
                "rest-api.limits.body-bytes": MAX_BODY_BYTES,
                # The chain makes its own blocks: an old one does not mean that it is behind.
                "rest-api.max-block-age": 0,
                "miner.commit-to-generation": True,
                "rest-api.api-key-hash": api_key_hash_text(API_KEY),
                "signer.bind-address": host,
                "signer.port": ports.signer,
            },
        )
        fork, network = _fork(options), network_with(settings.network, options.funding)
        network = network_of(network, _chosen(options, directory, settings))
        settings = msgspec.structs.replace(
            settings,
            network=network if fork is None else fork.network,
            grpc=GrpcSettings(host, ports.grpc, host, ports.grpc_updates),
        )
        if not is_local(host):
            _log.warning(
                "listening on %s: whoever reaches this machine can use the API key and all "
                "accounts, which everybody knows; a devnet is for development only",
                host,
            )
        phrases = [each.encode() for each in options.funding.phrases()]
        wallet = Wallet.in_memory(RICH_SEED.encode(), phrases)
        clock = DevClock()
        with contextlib.nullcontext() if fork is None else contextlib.closing(fork):
            node = Node(settings, wallet, clock=clock, durable=durable, below=fork)
            try:
                if fork is None:
                    _check_genesis(node)
                run_program(lambda: _serve(node, clock, options, fork))
            finally:
                node.close()


def _chosen(options: DevnetOptions, directory: Path, settings: Settings) -> Chosen:
    """Return the features of the chain: those of the one that is kept, if there is one."""
    if options.state is not None and (found := features_in(options.state)) is not None:
        return options.wanted.kept(found, options.state)
    is_new = stored_network(settings.data_directory) is None
    return remembered(directory, options.wanted, is_new=is_new)


def _fork(options: DevnetOptions) -> Fork | None:
    if options.fork is None:
        return None
    from soliton.devnet.fork.beginning import open_fork

    return open_fork(options.fork)


def _check_genesis(node: Node) -> None:
    if node.chain.block_at(1).id != genesis_block(node.network).id:
        raise OptionsRefused(
            f"{node.settings.data_directory} holds a chain that began with other accounts: give "
            "the --accounts, --balance and --seed that it was begun with"
        )


def _check_ports(host: str, ports: Ports, workers: int) -> None:
    """Raise one error for all ports that are in use, before anything starts."""
    options = {"--port": ports.node, "--signer-port": ports.signer, "--matcher-port": ports.matcher}
    if ports.data_service is not None:
        options["--data-service"] = ports.data_service
    if ports.grpc is not None:
        options["--grpc-port"] = ports.grpc
    if ports.grpc_updates is not None:
        options["--grpc-updates-port"] = ports.grpc_updates
    taken = []
    for option, port in options.items():
        try:
            # The processes of a killed devnet hold their ports for a moment.
            if port and (option.startswith("--grpc") or (workers and port == ports.node)):
                wait_until_free(host, port)
            else:
                bind(host, port).close()
        except PortTaken:
            other = holder(port)
            taken.append(f"{option} {port}" + (f" by {other}" if other else ""))
    if taken:
        free = " ".join(f"{option} 0" for option in options)
        raise PortsTaken(
            f"cannot listen on {host}: Address already in use: {', '.join(taken)}; "
            f"take free ones with {free}"
        )


class PortsTaken(EnvironmentProblem):
    """Ports of a devnet are in use."""


async def _serve(node: Node, clock: DevClock, options: DevnetOptions, fork: Fork | None) -> None:
    call_on_signals(node.request_stop)
    controls, playing = _begin(node, clock, options, fork)
    async with contextlib.AsyncExitStack() as parts:
        if options.state is not None:
            parts.callback(save_file, controls, options.state)
        # The node is stopped last: the others use it.
        if fork is not None:
            fork.is_shared = True
        signatures = signature_checker()
        parts.push_async_callback(signatures.close)
        server = await start_api(node, signatures, controls)
        parts.push_async_callback(server.stop)
        # From here on clients can send transactions, while the rest is still starting.
        mining = asyncio.create_task(controls.mining.run())
        heartbeat = asyncio.create_task(log_heartbeat(node))
        parts.callback(mining.cancel)
        parts.callback(heartbeat.cancel)
        matcher = await _start_matcher(node, signatures, _url(server), options, playing)
        parts.push_async_callback(matcher.stop)
        controls.matcher, controls.snapshots.companion = _url(matcher), matcher
        watching = asyncio.create_task(_stop_after_matcher(matcher, node))
        parts.callback(watching.cancel)
        if playing is not None and playing.scenario.markets:
            maintaining = asyncio.create_task(
                await _open_markets(playing, matcher, options, controls)
            )
            parts.callback(maintaining.cancel)
        await asyncio.to_thread(importlib.import_module, "soliton.signer.app")
        signer = await start_signer(node.settings, _url(server))
        parts.push_async_callback(signer.stop)
        description = _description(controls, options, (server, signer, matcher))
        if (port := options.ports.data_service) is not None:
            account = describe(options.funding.phrases()[-1], node.network.chain_id)
            service = await start_beside(_url(server), account.address, options.host, port)
            parts.push_async_callback(service.stop)
            service_ended = asyncio.create_task(_stop_after_service(service, node))
            parts.callback(service_ended.cancel)
            description = msgspec.structs.replace(description, data_service=_url(service))
        if (grpc := await start_grpc(node)) is not None:
            parts.push_async_callback(grpc.stop)
            serving = grpc.settings
            description = msgspec.structs.replace(
                description,
                grpc=_address(options.host, serving.port),
                grpc_updates=_address(options.host, serving.updates_port),
            )
        if playing is not None:
            description = msgspec.structs.replace(description, scenario=playing.played())
        announce(description, options)
        await until_stopped(node, mining)


def _begin(
    node: Node, clock: DevClock, options: DevnetOptions, fork: Fork | None
) -> tuple[Controls, Playing | None]:
    """Prepare the chain and its log of activity."""
    account = key_pair(RICH_SEED)
    playing: Playing | None = None

    def prepare() -> None:
        if playing is not None:
            playing.play()
        if fork is not None:
            from soliton.devnet.fork.beginning import missing_funds

            missing = missing_funds(node, options.funding.balance)
            if missing:
                controls.edit(missing)
        # A block of today in the current format, for clients that read the last block.
        node.mine(account)

    origin = None if fork is None else Origin(fork.url, fork.height, fork.block)
    controls = Controls(
        node, account, clock, mode=options.rhythm.mode(), prepare=prepare, origin=origin
    )
    controls.pages = frozenset(options.origins)
    if options.scenario is not None:
        from soliton.devnet.playing import Playing
        from soliton.devnet.scenario import load_scenario

        loaded = load_scenario(options.scenario, options.funding.count)
        playing = Playing(loaded, controls, options.funding)
    if node.chain.height == (1 if fork is None else fork.height):
        prepare()
    if options.state is not None:
        check_place(options.state)
        load_file(controls, options.state)
    known = enumerate(node.wallet.accounts(node.network.chain_id))
    names = {each: f"account {number}" if number else "the rich one" for number, each in known}
    if playing is not None:
        own = {each.name for each in playing.scenario.accounts}
        names |= {playing.people[name].address_bytes: name for name in own}
    logger = logging.getLogger("soliton.activity")
    Activity(controls, logger, names, per_second=MAX_PER_SECOND)
    if not _blocks_log.isEnabledFor(logging.DEBUG):
        # The activity log includes the blocks.
        _blocks_log.setLevel(logging.WARNING)
    return controls, playing


async def _start_matcher(
    node: Node,
    signatures: SignatureChecker,
    url: str,
    options: DevnetOptions,
    playing: Playing | None,
) -> DevnetMatcher:
    # Imported in a thread after the node has started, so that the node's clients need not wait.
    await asyncio.to_thread(importlib.import_module, "soliton.devnet.matcher")
    from soliton.devnet.matcher import start
    from soliton.devnet.matcher_node import LocalNode

    prices: tuple[bytes | None, ...] = ()
    tickers: dict[str, bytes] = {}
    if playing is not None:
        from soliton.devnet.market import codes, price_assets

        prices, tickers = price_assets(playing), codes(playing)
    key_hash, account = secure_hash(API_KEY.encode()), key_pair(options.funding.phrases()[-1])
    return await start(
        LocalNode(node, signatures),
        account,
        options.host,
        options.ports.matcher,
        key_hash,
        durable=options.data_dir is not None,
        price_assets=prices,
        tickers=tickers,
        node_url=url,
    )


async def _open_markets(
    playing: Playing, matcher: DevnetMatcher, options: DevnetOptions, controls: Controls
) -> Coroutine[None, None, None]:
    """Fill the books; return the coroutine that maintains them."""
    from soliton.devnet.market import Markets

    markets = Markets(playing, lambda: matcher.matcher)
    matcher.refill = markets.open
    markets.is_on = options.maker
    if any(each.maker is not None for each in playing.scenario.markets):
        controls.maker = markets
    await markets.open()
    return markets.keep()


async def _stop_after_matcher(matcher: DevnetMatcher, node: Node) -> None:
    """Stop the devnet when its matcher fails, with the reason in the log."""
    try:
        await matcher.ended()
    except SolitonError as error:
        _log.error("the matcher has ended: %s", error)
    except Exception:  # noqa: BLE001 - any failure has to be logged
        _log.exception("the matcher has ended")
    finally:
        node.request_stop()


async def _stop_after_service(service: DataServiceProcess, node: Node) -> None:
    """Stop the devnet when its data service ends."""
    await service.ended()
    _log.error("the data service has ended")
    node.request_stop()


def _url(service: RunningService | DevnetMatcher | DataServiceProcess) -> str:
    return url_of(service.host, service.port)


def _address(host: str, port: int | None) -> str | msgspec.UnsetType:
    return msgspec.UNSET if port is None else f"{host}:{port}"


def _description(
    controls: Controls, options: DevnetOptions, services: Sequence[RunningService | DevnetMatcher]
) -> Description:
    node = controls.node
    rest, signer, matcher = (_url(each) for each in services)
    chain_id = node.network.chain_id
    return Description(
        chain_id=chain_id,
        node=rest,
        signer=signer,
        matcher=matcher,
        api_key=API_KEY,
        data=str(node.settings.directory),
        height=node.chain.height,
        mining=controls.mining.mode,
        balance=options.funding.balance,
        rich=describe(RICH_SEED, chain_id),
        accounts=funded_accounts(chain_id, options.funding),
        fork=controls.origin,
    )
