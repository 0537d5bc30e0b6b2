"""``soliton devnet``: a private chain, its node and the signer in one process.

What lives here: the settings of the chain, the banner, starting and stopping. What does not: the
parts.
"""

from __future__ import annotations

import asyncio
import contextlib
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import click

from soliton.cli.run import (
    call_on_signals,
    run_program,
    start_api,
    start_signer,
    until_stopped,
)
from soliton.crypto.keys import KeyPair, key_pair
from soliton.devnet.accounts import RICH_SEED, DevnetAccount, describe, funded_accounts
from soliton.node.mining import mine_in_rhythm, mine_on_demand
from soliton.node.node import Node
from soliton.node.settings import Settings, api_key_hash_text, load_settings
from soliton.node.wallet import Wallet

API_KEY: Final = "waves-private-node"


def run_devnet(
    data_dir: Path | None, host: str, port: int, signer_port: int, block_time: float | None
) -> None:
    """Run until Ctrl-C. Without ``data_dir`` the chain is in a temporary directory that is removed
    at the end.
    """
    with _directory(data_dir) as directory:
        settings = load_settings(
            network="devnet",
            data_dir=directory,
            overrides={
                "rest-api.bind-address": host,
                "rest-api.port": port,
                "rest-api.api-key-hash": api_key_hash_text(API_KEY),
                "signer.bind-address": host,
                "signer.port": signer_port,
            },
        )
        wallet = Wallet.open(None, None, RICH_SEED.encode())
        node = Node(settings, wallet, durable=data_dir is not None)
        try:
            run_program(lambda: _serve(node, settings, block_time))
        finally:
            node.close()


@contextlib.contextmanager
def _directory(data_dir: Path | None) -> Iterator[Path]:
    if data_dir is not None:
        yield data_dir
        return
    with tempfile.TemporaryDirectory(prefix="soliton-devnet-") as name:
        yield Path(name)


async def _serve(node: Node, settings: Settings, block_time: float | None) -> None:
    call_on_signals(node.request_stop)
    account = key_pair(RICH_SEED)
    if node.chain.height == 1:
        # Clients that look at the last block find one of today, in the current format.
        node.mine(account)
    server = await start_api(node)
    node_url = f"http://{server.host}:{server.port}"
    signer = await start_signer(settings, node_url)
    mining = asyncio.create_task(_mining(node, account, block_time))
    _print_banner(node, node_url, f"http://{signer.host}:{signer.port}", block_time)
    try:
        await until_stopped(node, mining)
    finally:
        mining.cancel()
        await signer.stop()
        await server.stop()


async def _mining(node: Node, account: KeyPair, block_time: float | None) -> None:
    if block_time is None:
        await mine_on_demand(node, account)
    else:
        await mine_in_rhythm(node, account, block_time)


def _print_banner(node: Node, node_url: str, signer_url: str, block_time: float | None) -> None:
    chain_id = node.network.chain_id
    rhythm = (
        "a block for each transaction" if block_time is None else f"a block every {block_time} s"
    )
    lines = [
        "Soliton devnet",
        f"  chain id      {chr(chain_id)} ({chain_id}), {rhythm}",
        f"  node          {node_url}  (interactive page and REST API)",
        f"  signer        {signer_url}",
        f"  X-API-Key     {API_KEY}",
        f"  data          {node.settings.directory}",
        "",
        "Rich account (the node's wallet, it mines):",
        *_account_lines(describe(RICH_SEED, chain_id)),
        "",
        "Ten accounts with 1,000,000 coins each:",
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
