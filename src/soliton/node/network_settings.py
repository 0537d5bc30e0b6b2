"""The sections ``network`` and ``synchronization``: peers, and the limits of synchronization.

What lives here: reading them. What does not: what they do (``soliton.p2p``).

Source: wavesplatform/Waves
``node/src/main/scala/com/wavesplatform/settings/{NetworkSettings,SynchronizationSettings}.scala``.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

import msgspec

from soliton.chain.networks.custom import MAX_INT, MAX_LONG
from soliton.chain.networks.model import Network
from soliton.chain.networks.sections import Section
from soliton.sync.extensions import LoaderSettings
from soliton.sync.microblocks import MicroblockSettings
from soliton.sync.relay import RelaySettings
from soliton.sync.scores import ScoreSettings
from soliton.wire.handshake import MAX_NAME_BYTES, MAX_PORT

MAX_KNOWN_PEERS: Final = 1_000
MAX_CONNECTIONS: Final = 10_000


class HostPort(msgspec.Struct, frozen=True):
    """The configured address of a peer: a host name or IP address, and a port."""

    host: str
    port: int

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


def parse_host_port(text: str) -> HostPort:
    """Parse ``HOST:PORT`` (IPv6 in brackets); raises ``ValueError``."""
    host, colon, port = text.rpartition(":")
    host = host.removeprefix("[").removesuffix("]")
    if (
        not colon
        or not host
        or not (port.isascii() and port.isdecimal())
        or not 0 < int(port[:6]) <= MAX_PORT
    ):
        raise ValueError(f"{text[:80]!r} is not HOST:PORT")
    return HostPort(host, int(port))


class NetworkSettings(msgspec.Struct, frozen=True):
    """``network``: times in ms. ``bind_address`` is ``None`` for a node that does not listen,
    ``known_peers`` are dialled first, ``file`` stores the others. Without ``enable`` there are no
    peers; with ``only_peer`` there is only that one.
    """

    enable: bool
    only_peer: HostPort | None
    bind_address: str | None
    port: int
    declared: HostPort | None
    node_name: str | None
    nonce: int | None
    known_peers: tuple[HostPort, ...]
    file: Path | None
    max_inbound: int = 100
    max_outbound: int = 100
    max_of_host: int = 3
    min_connections: int = 0
    max_candidates: int = 100
    residence_ms: int = 86_400_000
    blacklist_ms: int = 900_000
    suspension_ms: int = 60_000
    idle_ms: int = 300_000
    connection_ms: int = 30_000
    handshake_ms: int = 30_000
    ask_every_ms: int = 120_000
    exchange: bool = True
    blacklisting: bool = True


class Synchronization(msgspec.Struct, frozen=True):
    """``synchronization``: the settings of each machine, how long invalid blocks are remembered
    (ms), and the base target at which the node stops.
    """

    loader: LoaderSettings
    scores: ScoreSettings
    microblocks: MicroblockSettings
    relay: RelaySettings
    invalid_ms: int = 300_000
    max_base_target: int | None = None


def read_network(section: Section, network: Network, directory: Path) -> NetworkSettings:
    """Read the section ``network``."""
    listens = not section.has("bind-address") or bool(section.text("bind-address", ""))
    bind_address = section.text("bind-address", "0.0.0.0") if listens else None  # noqa: S104
    declared = section.text("declared-address", "")
    known = _known_peers(section, network)
    name = section.text("node-name", "")
    if len(name.encode()) > MAX_NAME_BYTES:
        section.refuse("node-name", f"at most {MAX_NAME_BYTES} bytes")
    file = section.text("file", "")
    only = section.text("only-peer", "")
    return NetworkSettings(
        enable=section.boolean("enable", True),
        only_peer=_peer(section, "only-peer", only) if only else None,
        bind_address=bind_address,
        port=section.integer("port", network.peer_port, 0, MAX_PORT),
        declared=_peer(section, "declared-address", declared) if declared else None,
        node_name=name or None,
        nonce=section.integer("nonce", None, -MAX_LONG, MAX_LONG) if section.has("nonce") else None,
        known_peers=known,
        file=Path(file).expanduser() if file else directory / "peers.dat",
        max_inbound=section.integer("max-inbound-connections", 100, 0, MAX_CONNECTIONS),
        max_outbound=section.integer("max-outbound-connections", 100, 0, MAX_CONNECTIONS),
        max_of_host=section.integer("max-single-host-connections", 3, 1, MAX_CONNECTIONS),
        min_connections=section.integer("min-connections", 0, 0, MAX_CONNECTIONS),
        max_candidates=section.integer("max-unverified-peers", 100, 0, MAX_CONNECTIONS),
        residence_ms=section.duration_ms("peers-data-residence-time", 86_400_000),
        blacklist_ms=section.duration_ms("black-list-residence-time", 900_000),
        suspension_ms=section.duration_ms("suspension-residence-time", 60_000),
        idle_ms=section.duration_ms("break-idle-connections-timeout", 300_000),
        connection_ms=section.duration_ms("connection-timeout", 30_000),
        handshake_ms=section.duration_ms("handshake-timeout", 30_000),
        ask_every_ms=section.duration_ms("peers-broadcast-interval", 120_000),
        exchange=section.boolean("enable-peers-exchange", True),
        blacklisting=section.boolean("enable-blacklisting", True),
    )


def _known_peers(section: Section, network: Network) -> tuple[HostPort, ...]:
    key = "known-peers"
    if not section.has(key):
        return tuple(map(parse_host_port, network.known_peers))
    texts = section.text_items(key)
    if len(texts) > MAX_KNOWN_PEERS:
        section.refuse(key, f"at most {MAX_KNOWN_PEERS} peers", show=False)
    found = []
    for number, text in texts:
        try:
            found.append(parse_host_port(text))
        except ValueError:
            section.refuse_item(key, number, "HOST:PORT")
    return tuple(found)


def _peer(section: Section, key: str, text: str) -> HostPort:
    try:
        return parse_host_port(text)
    except ValueError:
        section.refuse(key, "HOST:PORT")


def read_synchronization(section: Section, *, light: bool = False) -> Synchronization:
    """Read the section ``synchronization``; a ``light`` node requests snapshots."""
    micro = section.section("micro-block-synchronizer")
    relay = section.section("utx-synchronizer")
    invalid = section.section("invalid-blocks-storage")
    # Keys of the ecosystem's nodes that have no meaning here.
    invalid.has("max-size")
    for foreign in ("max-buffer-size", "max-buffer-time", "max-threads"):
        relay.has(foreign)
    return Synchronization(
        loader=LoaderSettings(
            timeout=section.duration_ms("synchronization-timeout", 60_000),
            max_rollback=section.integer("max-rollback", 100, 1, 100),
            snapshots=light,
        ),
        scores=ScoreSettings(ttl=section.duration_ms("score-ttl", 90_000)),
        microblocks=MicroblockSettings(
            wait=micro.duration_ms("wait-response-timeout", 2_000),
            announced=micro.duration_ms("inv-cache-timeout", 45_000),
            processed=micro.duration_ms("processed-micro-blocks-cache-timeout", 180_000),
            snapshots=light,
        ),
        relay=RelaySettings(
            seen=relay.integer("network-tx-cache-size", 1_000_000, 1, MAX_INT),
            queue=relay.integer("max-queue-size", 5_000, 1, MAX_INT),
            again=relay.boolean("allow-tx-rebroadcasting", True),
        ),
        invalid_ms=invalid.duration_ms("timeout", 300_000),
        max_base_target=section.integer("max-base-target", None, 1, MAX_LONG)
        if section.has("max-base-target")
        else None,
    )
