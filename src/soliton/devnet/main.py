"""``soliton devnet``: a private chain, its node, the signer and the matcher in one process.

What lives here: the settings of the chain, the banner, starting and stopping. What does not: the
parts.
"""

from __future__ import annotations

import asyncio
import contextlib
import importlib
import logging
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

import click

from soliton.cli.run import (
    call_on_signals,
    run_program,
    signature_checker,
    start_api,
    start_signer,
    tell_state,
    until_stopped,
)
from soliton.crypto.hashes import secure_hash
from soliton.crypto.keys import KeyPair, key_pair
from soliton.devnet.accounts import (
    ACCOUNT_COUNT,
    RICH_SEED,
    DevnetAccount,
    account_seed_phrase,
    describe,
    funded_accounts,
)
from soliton.errors import EnvironmentProblem, SolitonError
from soliton.node.mining import mine_in_rhythm, mine_on_demand
from soliton.node.node import Node
from soliton.node.rest_settings import is_local
from soliton.node.settings import Settings, api_key_hash_text, load_settings
from soliton.node.wallet import Wallet
from soliton.parallel.signatures import SignatureChecker
from soliton.web.ports import holder
from soliton.web.server import PortTaken, bind
from soliton.web.temporary import TemporaryPlace
from soliton.web.workers import wait_until_free

if TYPE_CHECKING:
    from soliton.matcher.run import RunningMatcher
    from soliton.web.server import RunningService

API_KEY: Final = "waves-private-node"

_log = logging.getLogger(__name__)


class Rhythm(NamedTuple):
    """When blocks come: every ``block_time`` seconds or, without it, at once for each transaction
    and after ``heartbeat`` seconds without one (0: only for transactions).
    """

    block_time: float | None
    heartbeat: float


class Ports(NamedTuple):
    """Where the parts listen; 0 takes a free one."""

    node: int
    signer: int
    matcher: int


def run_devnet(
    data_dir: Path | None, host: str, ports: Ports, rhythm: Rhythm, workers: int = 0
) -> None:
    """Run until Ctrl-C. Without ``data_dir`` the chain is in a temporary directory that is removed
    at the end.
    """
    _look_at_ports(host, ports, workers)
    with _directory(data_dir) as directory:
        settings = load_settings(
            network="devnet",
            data_dir=directory,
            overrides={
                "rest-api.bind-address": host,
                "rest-api.port": ports.node,
                "rest-api.workers": workers,
                # It makes its blocks itself: an old one is no sign that others come.
                "rest-api.max-block-age": 0,
                "rest-api.api-key-hash": api_key_hash_text(API_KEY),
                "signer.bind-address": host,
                "signer.port": ports.signer,
            },
        )
        if not is_local(host):
            _log.warning(
                "listening on %s: whoever reaches this machine can use the API key and all "
                "accounts, which everybody knows; a devnet is for development only",
                host,
            )
        phrases = map(account_seed_phrase, range(1, ACCOUNT_COUNT + 1))
        wallet = Wallet.in_memory(RICH_SEED.encode(), (each.encode() for each in phrases))
        node = Node(settings, wallet, durable=data_dir is not None)
        try:
            matcher = _MatcherPlan(ports.matcher, durable=data_dir is not None)
            run_program(lambda: _serve(node, settings, matcher, rhythm))
        finally:
            node.close()


def _look_at_ports(host: str, ports: Ports, workers: int) -> None:
    """Raise one error for all ports that are taken, before anything is started."""
    options = {"--port": ports.node, "--signer-port": ports.signer, "--matcher-port": ports.matcher}
    taken = []
    for option, port in options.items():
        try:
            # Workers of a devnet that was killed have its port for a moment longer.
            if workers and port and port == ports.node:
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
    """Others listen where a devnet was to."""


class _MatcherPlan(NamedTuple):
    port: int
    durable: bool


@contextlib.contextmanager
def _directory(data_dir: Path | None) -> Iterator[Path]:
    if data_dir is not None:
        yield data_dir
        return
    place = TemporaryPlace("soliton-devnet-")
    try:
        yield place.path
    finally:
        place.close()


async def _serve(node: Node, settings: Settings, plan: _MatcherPlan, rhythm: Rhythm) -> None:
    call_on_signals(node.request_stop)
    account = key_pair(RICH_SEED)
    if node.chain.height == 1:
        # Clients that look at the last block find one of today, in the current format.
        node.mine(account)
    async with contextlib.AsyncExitStack() as parts:
        # The node is left last: the others speak to it.
        signatures = signature_checker()
        parts.push_async_callback(signatures.close)
        server = await start_api(node, signatures)
        parts.push_async_callback(server.stop)
        # From here on clients send transactions, whatever else has yet to start.
        mining = asyncio.create_task(_mining(node, account, rhythm))
        telling = asyncio.create_task(tell_state(node))
        parts.callback(mining.cancel)
        parts.callback(telling.cancel)
        matcher = await _start_matcher(node, signatures, settings, plan)
        parts.push_async_callback(matcher.stop)
        watching = asyncio.create_task(_stop_without(matcher, node))
        parts.callback(watching.cancel)
        await asyncio.to_thread(importlib.import_module, "soliton.signer.app")
        signer = await start_signer(settings, _url(server))
        parts.push_async_callback(signer.stop)
        addresses = _Addresses(_url(server), _url(signer), _url(matcher))
        _print_banner(node, rhythm, addresses)
        await until_stopped(node, mining)


async def _start_matcher(
    node: Node, signatures: SignatureChecker, settings: Settings, plan: _MatcherPlan
) -> RunningMatcher:
    # Imported after the node is there, and in turns with it: its clients need not wait for this.
    await asyncio.to_thread(importlib.import_module, "soliton.devnet.matcher")
    from soliton.devnet.matcher import start
    from soliton.devnet.matcher_node import LocalNode

    host, key_hash = settings.rest_api.bind_address, secure_hash(API_KEY.encode())
    local = LocalNode(node, signatures)
    return await start(local, host, plan.port, key_hash, durable=plan.durable)


async def _stop_without(matcher: RunningMatcher, node: Node) -> None:
    """A devnet whose matcher has failed is none: end it, with the reason in the log."""
    try:
        await matcher.matcher.ended()
    except SolitonError as error:
        _log.error("the matcher has ended: %s", error)
    except Exception:  # noqa: BLE001 - whatever it is, somebody has to read of it
        _log.exception("the matcher has ended")
    finally:
        node.request_stop()


def _url(service: RunningService) -> str:
    return f"http://{service.host}:{service.port}"


async def _mining(node: Node, account: KeyPair, rhythm: Rhythm) -> None:
    if rhythm.block_time is None:
        await mine_on_demand(node, account, rhythm.heartbeat)
    else:
        await mine_in_rhythm(node, account, rhythm.block_time)


def _rhythm_text(rhythm: Rhythm) -> str:
    if rhythm.block_time is not None:
        return f"a block every {rhythm.block_time:g} s"
    if not rhythm.heartbeat:
        return "a block for each transaction"
    return f"a block for each transaction, and after {rhythm.heartbeat:g} s without one"


class _Addresses(NamedTuple):
    node: str
    signer: str
    matcher: str


def _print_banner(node: Node, rhythm: Rhythm, addresses: _Addresses) -> None:
    chain_id = node.network.chain_id
    lines = [
        "Soliton devnet",
        f"  chain id      {chr(chain_id)} ({chain_id}), {_rhythm_text(rhythm)}",
        f"  node          {addresses.node}  (interactive page and REST API)",
        f"  signer        {addresses.signer}",
        f"  matcher       {addresses.matcher}  (interactive page, REST API and WebSocket)",
        f"  X-API-Key     {API_KEY}",
        f"  data          {node.settings.directory}",
        "",
        "Rich account (it mines):",
        *_account_lines(describe(RICH_SEED, chain_id)),
        "",
        "Ten accounts with 1,000,000 coins each (the node's wallet signs for all eleven):",
    ]
    for account in funded_accounts(chain_id):
        lines += _account_lines(account)
    lines += ["", "Ready. Ctrl-C stops."]
    click.echo("\n".join(lines))


def _account_lines(account: DevnetAccount) -> list[str]:
    return [
        f'  {account.address}  seed "{account.seed}"',
        f"    public key {account.public_key}  private key {account.private_key}",
    ]
