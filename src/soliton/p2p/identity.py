"""Inputs of ``Core`` from the node's settings and network, for real and simulated networks.

What lives here: settings of the machines, the node's handshake, reading the header of a received
block. What does not: sockets (``service``), the simulated network (``soliton.simulation``).
"""

from __future__ import annotations

from typing import Final

from soliton.chain import blocks
from soliton.node.node import Node
from soliton.node.settings import Settings
from soliton.p2p.core import CoreSettings
from soliton.sync.peers import PeerSettings
from soliton.wire.handshake import Handshake, PeerAddress
from soliton.wire.versions import ANNOUNCED, application_name

_REDIAL_MS: Final = 1_000
"""The pause before the only peer is dialled again."""


def core_settings(settings: Settings) -> CoreSettings:
    """Return the settings of all machines; ``network.only-peer`` disables the search for peers."""
    own, sync = settings.peers, settings.synchronization
    only = own.only_peer is not None
    return CoreSettings(
        peers=PeerSettings(
            max_inbound=own.max_inbound,
            max_outbound=1 if only else own.max_outbound,
            max_of_host=own.max_of_host,
            min_connections=own.min_connections,
            max_candidates=0 if only else own.max_candidates,
            residence=own.residence_ms,
            blacklist=own.blacklist_ms,
            suspension=_REDIAL_MS if only else own.suspension_ms,
            exchange=own.exchange and not only,
            blacklisting=own.blacklisting,
            ask_every=own.ask_every_ms,
        ),
        scores=sync.scores,
        loader=sync.loader,
        microblocks=sync.microblocks,
        relay=sync.relay,
        idle=own.idle_ms,
        handshake=own.handshake_ms,
        invalid=sync.invalid_ms,
    )


def own_handshake(node: Node, nonce: int, declared: PeerAddress | None) -> Handshake:
    """Return the node's handshake."""
    network = node.network
    return Handshake(
        application=application_name(network.family, network.chain_id),
        version=ANNOUNCED[network.family],
        node_name=node.settings.peers.node_name or f"Node-{nonce}",
        nonce=nonce,
        declared=declared,
        time=node.clock() // 1_000,
    )


def read_block(chain_id: int, data: bytes) -> tuple[bytes, bytes]:
    """Return the id and the reference of a block; raises ``ChainError``."""
    header, signature = blocks.decode_header(data, chain_id)
    return blocks.id_of(header, signature), header.reference
