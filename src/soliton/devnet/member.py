"""One node of a private network, in a process that ``several`` starts.

What lives here: its settings and its services; the first node also has the signer and the matcher.
What does not: starting, watching and ending the nodes (``several``).
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import math
import sys
from pathlib import Path
from typing import Final

import msgspec

from soliton.chain.addresses import address_text, from_public_key
from soliton.chain.networks.model import GenesisTransfer, Network
from soliton.cli import logs
from soliton.cli.process import call_on_signals, end_with_parent, run_program
from soliton.cli.rest_api import signature_checker
from soliton.cli.run import (
    log_heartbeat,
    mining_of,
    start_api,
    start_network,
    start_signer,
    until_stopped,
)
from soliton.crypto import base58
from soliton.crypto.hashes import secure_hash
from soliton.crypto.keys import KeyPair, key_pair
from soliton.devnet.accounts import RICH_SEED, Funding, network_with
from soliton.devnet.features import Chosen, network_of
from soliton.devnet.options import API_KEY
from soliton.node.log_settings import LogSettings
from soliton.node.node import Node
from soliton.node.rest_settings import api_key_hash_text
from soliton.node.settings import Settings, load_settings
from soliton.node.wallet import Wallet
from soliton.web.ports import url_of

LEAST_BLOCK_SECONDS: Final = 1.0
PEER_HOST: Final = "127.0.0.1"
"""Where the nodes talk to each other."""
NO_CONTROLS: Final = (
    "here several agree by proof of stake, which says when a block is due, and one alone can "
    "neither make blocks nor move time; start soliton devnet without --nodes"
)
_SHORTEST_SHARE: Final = 5
"""The shortest delay between two blocks is the mean divided by this."""
_C1: Final = 70_000.0
_C2: Final = 5e17
_USUAL_DRAW: Final = 0.8
"""About the mean of Fair PoS's function of an exponentially distributed number."""


class Member(msgspec.Struct, frozen=True):
    """One of ``count`` nodes: its ``number`` from 0, the REST and peer ports of all nodes, and the
    options of the network. ``begin`` is the genesis time in milliseconds.
    """

    number: int
    count: int
    directory: str
    host: str
    rest_ports: tuple[int, ...]
    peer_ports: tuple[int, ...]
    signer_port: int
    matcher_port: int
    block_seconds: float
    begin: int
    funding: Funding
    durable: bool
    logging: LogSettings
    chosen: Chosen


def miner(number: int) -> KeyPair:
    """Return the mining account of a node; that of the first node is the rich one."""
    return key_pair(miner_seed(number))


def miner_seed(number: int) -> str:
    """Return the seed phrase of a node's mining account."""
    return RICH_SEED if number == 0 else f"soliton devnet miner {number + 1}"


def shared_network(network: Network, member: Member) -> Network:
    """Return the private chain's network, with the rich account's balance shared by all miners."""
    rich = network.genesis.transactions[0]
    part = rich.amount // member.count
    own = tuple(
        GenesisTransfer(
            address_text(from_public_key(miner(each).public_key, network.chain_id)), part
        )
        for each in range(1, member.count)
    )
    first = msgspec.structs.replace(rich, amount=rich.amount - part * len(own))
    funded = network_with(network, member.funding).genesis.transactions[1:]
    transactions = (first, *own, *funded)
    mean = round(member.block_seconds * 1_000)
    shortest = mean // _SHORTEST_SHARE
    stretched = math.exp((mean - shortest) / _C1) - 1
    genesis = msgspec.structs.replace(
        network.genesis,
        block_timestamp=member.begin,
        transaction_timestamp=member.begin,
        transactions=transactions,
        initial_balance=sum(each.amount for each in transactions),
        average_block_delay_ms=mean,
        initial_base_target=max(1, int(_C2 * _USUAL_DRAW / rich.amount / stretched)),
    )
    functionality = msgspec.structs.replace(
        network.functionality, min_block_time_ms=shortest, delay_delta=0
    )
    whole = msgspec.structs.replace(network, genesis=genesis, functionality=functionality)
    return network_of(whole, member.chosen)


def settings_of(member: Member) -> Settings:
    """Return a node's settings: it knows all others from the start, and does not ban, since all
    have one address.
    """
    own = member.number
    others = [f"{PEER_HOST}:{port}" for each, port in enumerate(member.peer_ports) if each != own]
    settings = load_settings(
        network="devnet",
        data_dir=Path(member.directory),
        overrides={
            "rest-api.bind-address": member.host,
            "rest-api.port": member.rest_ports[own],
            "rest-api.max-block-age": 0,
            "rest-api.api-key-hash": api_key_hash_text(API_KEY),
            "signer.bind-address": member.host,
            "signer.port": member.signer_port,
            "network.bind-address": PEER_HOST,
            "network.port": member.peer_ports[own],
            "network.declared-address": f"{PEER_HOST}:{member.peer_ports[own]}",
            "network.node-name": f"node {own + 1}",
            "network.known-peers": others,
            "network.max-single-host-connections": 100,
            "network.suspension-residence-time": "200ms",
            "network.enable-blacklisting": False,
            "miner.quorum": 1,
            "miner.commit-to-generation": True,
            "miner.no-quorum-mining-delay": "500ms",
            "miner.micro-block-interval": f"{_micro_ms(member)}ms",
            "miner.min-micro-block-age": "300ms",
            "miner.private-keys": [base58.encode(miner(own).private_key)],
        },
    )
    return msgspec.structs.replace(settings, network=shared_network(settings.network, member))


def _micro_ms(member: Member) -> int:
    return max(200, min(2_000, round(member.block_seconds * 250)))


def run_member(member: Member) -> None:
    """Serve until stopped, or until the parent process ends."""
    end_with_parent()
    logs.configure_log(member.logging)
    phrases = [each.encode() for each in member.funding.phrases()]
    wallet = Wallet.in_memory(miner_seed(member.number).encode(), phrases)
    node = Node(settings_of(member), wallet, durable=member.durable)
    try:
        run_program(lambda: _serve(node, member))
    finally:
        node.close()


async def _serve(node: Node, member: Member) -> None:
    call_on_signals(node.request_stop)
    async with contextlib.AsyncExitStack() as parts:
        signatures = signature_checker()
        parts.push_async_callback(signatures.close)
        network = await start_network(node)
        if network is not None:
            parts.push_async_callback(network.stop)
        server = await start_api(node, signatures, no_controls=NO_CONTROLS)
        parts.push_async_callback(server.stop)
        mining = asyncio.create_task(mining_of(node, network))
        heartbeat = asyncio.create_task(log_heartbeat(node))
        parts.callback(mining.cancel)
        parts.callback(heartbeat.cancel)
        if member.number == 0:
            from soliton.devnet.matcher import start
            from soliton.devnet.matcher_node import LocalNode

            url = url_of(server.host, server.port)
            key_hash = secure_hash(API_KEY.encode())
            account = key_pair(member.funding.phrases()[-1])
            matcher = await start(
                LocalNode(node, signatures),
                account,
                member.host,
                member.matcher_port,
                key_hash,
                durable=member.durable,
                node_url=url,
            )
            parts.push_async_callback(matcher.stop)
            signer = await start_signer(node.settings, url)
            parts.push_async_callback(signer.stop)
        logging.getLogger(__name__).info("node %d is ready", member.number + 1)
        await until_stopped(node, mining)


if __name__ == "__main__":
    run_member(msgspec.json.decode(sys.argv[1], type=Member))
