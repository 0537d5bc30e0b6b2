"""The settings of the gRPC interfaces.

What lives here: the sections ``grpc`` and ``blockchain-updates``, the keys of ``dex`` that the
Scala matcher's extension reads, and the list ``extensions`` that enables them in the ecosystem's
nodes. What does not: serving (``soliton.grpc_api``).

Sources: wavesplatform/Waves ``grpc-server/src/main/resources/application.conf``,
wavesplatform/matcher ``waves-ext/src/main/resources/application.conf``.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

import msgspec

from soliton.chain.addresses import PUBLIC_KEY_LENGTH
from soliton.chain.networks.sections import Section
from soliton.crypto import base58
from soliton.errors import InputError
from soliton.node.miner_settings import COMMITTING
from soliton.node.rest_settings import MAX_PORT, MAX_WORKERS, bind_address
from soliton.proxies import NO_PROXIES, TrustedProxies, read_proxies

NODE_API: Final = "com.wavesplatform.api.grpc.GRPCServerExtension"
UPDATES: Final = "com.wavesplatform.events.BlockchainUpdates"
MATCHER: Final = "com.wavesplatform.dex.grpc.integration.DEXExtension"
_WITHOUT_EFFECT: Final = ("worker-threads",)


class GrpcLimits(msgspec.Struct, frozen=True):
    """``grpc.limits``: concurrent requests and streams of one address, in all processes together,
    and how long (ms) a client may leave data unread. Clients on this machine are counted only with
    ``local_clients``, those of trusted ``proxies`` by their own addresses.
    """

    requests_per_client: int = 1_000
    streams_per_client: int = 250
    read_ms: int = 120_000
    local_clients: bool = False
    proxies: TrustedProxies = NO_PROXIES


class GrpcSettings(msgspec.Struct, frozen=True):
    """Where the services of the node and the stream of updates listen; a service whose port is
    ``None`` is disabled. ``workers`` processes serve them. Clients of the updates may send
    keep-alive pings every ``keep_alive_ms`` at most. Scripts of the ``matcher_pools`` and
    ``matcher_allowed`` accounts (public keys) may read the state about an order.
    """

    host: str = "127.0.0.1"
    port: int | None = None
    updates_host: str = "0.0.0.0"  # noqa: S104 - as the ecosystem's nodes, where it is switched on
    updates_port: int | None = None
    keep_alive_ms: int = 300_000
    workers: int = 1
    matcher_host: str = "127.0.0.1"
    matcher_port: int | None = None
    matcher_pools: frozenset[bytes] = frozenset()
    matcher_allowed: frozenset[bytes] = frozenset()
    limits: GrpcLimits = GrpcLimits()

    @property
    def enable(self) -> bool:
        """Whether any service is enabled."""
        ports = self.port, self.updates_port, self.matcher_port
        return any(each is not None for each in ports)


def read(root: Section, notes: list[str]) -> GrpcSettings:
    """Read the settings below the root of the file."""
    extensions = root.texts("extensions")
    known = (NODE_API, UPDATES, MATCHER, COMMITTING)
    notes.extend(
        f"{root.full('extensions')}: there is no {each} here"
        for each in extensions
        if each not in known
    )
    own, updates = root.section("grpc"), root.section("blockchain-updates")
    notes.extend(
        f"{key} has no effect: grpc.workers says how many processes serve"
        for section in (own, updates)
        for key in section.written(*_WITHOUT_EFFECT)
    )
    port = own.integer("port", 6_870, 0, MAX_PORT)
    updates_port = updates.integer("grpc-port", 6_881, 0, MAX_PORT)
    # Other keys of ``dex`` are the matcher's.
    dex = root.part("dex", "grpc", "lp-accounts", "order-script-validation")
    matcher, pools = dex.section("grpc").section("integration"), dex.section("lp-accounts")
    matcher_port = matcher.integer("port", 6_887, 0, MAX_PORT)
    by_matcher = matcher.boolean("enable", MATCHER in extensions)
    scripts = dex.section("order-script-validation")
    return GrpcSettings(
        host=bind_address(own, "host"),
        port=port if own.boolean("enable", NODE_API in extensions) else None,
        updates_host=bind_address(updates, "host", "0.0.0.0"),  # noqa: S104 - as above
        updates_port=updates_port if updates.boolean("enable", UPDATES in extensions) else None,
        # The Scala matcher asks every 10 seconds; its extension allows for it.
        keep_alive_ms=updates.duration_ms("min-keep-alive", 2_000 if by_matcher else 300_000),
        workers=own.integer("workers", 1, 1, MAX_WORKERS),
        matcher_host=bind_address(matcher, "host"),
        matcher_port=matcher_port if by_matcher else None,
        matcher_pools=_keys(pools, "public-keys") | _keys_in_file(pools, "file-path"),
        matcher_allowed=_keys(scripts, "allowed-blockchain-state-accounts"),
        limits=_limits(own.section("limits"), read_proxies(own)),
    )


def _limits(section: Section, proxies: TrustedProxies) -> GrpcLimits:
    usual = GrpcLimits()
    return GrpcLimits(
        section.integer("requests-per-client", usual.requests_per_client, 1, MAX_CALLS),
        section.integer("streams-per-client", usual.streams_per_client, 1, MAX_CALLS),
        section.duration_ms("read-timeout", usual.read_ms),
        section.boolean("local-clients", usual.local_clients),
        proxies,
    )


def _keys(section: Section, key: str) -> frozenset[bytes]:
    found = set()
    for number, text in section.text_items(key):
        try:
            found.add(_key(text))
        except InputError:
            section.refuse_item(key, number, "a public key in base58")
    return frozenset(found)


def _keys_in_file(section: Section, key: str) -> frozenset[bytes]:
    path = section.text(key, "")
    if not path:
        return frozenset()
    try:
        with Path(path).open(encoding="utf-8") as file:
            text = file.read(MAX_FILE_CHARS)
        return frozenset(_key(line.strip()) for line in text.splitlines() if line.strip())
    except (OSError, ValueError, InputError) as error:
        section.refuse(key, f"a file with a public key in base58 on each line ({error})")


MAX_FILE_CHARS: Final = 1_000_000
MAX_CALLS: Final = 1_000_000


def _key(text: str) -> bytes:
    """Decode a public key; raises ``InputError``."""
    key = base58.decode(text)
    if len(key) != PUBLIC_KEY_LENGTH:
        raise InputError(f"{text} is no public key")
    return key
