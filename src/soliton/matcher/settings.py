"""The settings of a matcher: options, defaults, and reading them from a section.

What lives here: the settings of the service. What does not: those of matching and fees
(``trading_settings``), and the syntax of the file (read by the program that starts the matcher).

Names follow the ecosystem's configuration, wavesplatform/matcher
``dex/src/main/resources/application.conf``, so that sections ``waves.dex { … }`` work.
"""

from __future__ import annotations

import base64
import binascii
import hmac
from collections.abc import Callable, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Final

import msgspec

from soliton.chain.networks.model import Network
from soliton.chain.networks.sections import Section
from soliton.crypto import base58
from soliton.crypto.errors import Base58Error
from soliton.crypto.hashes import secure_hash
from soliton.crypto.keys import KeyPair, key_pair_from_account_seed
from soliton.matcher.account_file import read_account_seed
from soliton.matcher.clock import SteadyClock
from soliton.matcher.errors import MatcherSettingsError
from soliton.matcher.journal.leadership import MAX_NAME_BYTES
from soliton.matcher.journal.topic import Security
from soliton.matcher.trading_settings import (
    TradingSettings,
    public_keys,
    read_tickers,
    read_trading,
)
from soliton.matching.pairs import NATIVE_TEXT, AssetPair
from soliton.proxies import NO_PROXIES, TrustedProxies, read_proxies
from soliton.web.clock import wall_clock

MATCHER_PORT: Final = 6886
MIN_SILENCE_MS: Final = 1_000
MAX_PORT: Final = 65_535
MAX_WORKERS: Final = 64
MAX_SEED_CHARS: Final = 4_096
MAX_COUNT: Final = 1_000_000_000
API_KEY_HASH_LENGTH: Final = 32
MAX_API_KEY_HASH_CHARS: Final = 44
LOCAL: Final = "local"
KAFKA: Final = "kafka"
QUEUE_TYPES: Final = (LOCAL, KAFKA)
IN_MEMORY: Final = "in-mem"
ACCOUNT_STORAGES: Final = (IN_MEMORY, "encrypted-file")
SYNCS: Final = ("always", "interval", "never")
ROLES: Final = ("auto", "standby", "master")
PROTOCOLS: Final = ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")
MECHANISMS: Final = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512")

# Sections of the reference, or of its older versions, that have no effect here.
_FOREIGN: Final = (
    "actor-response-timeout", "balance-watching-buffer-interval",
    "cli", "cli-settings", "comparison-tool", "disable-extra-fee-for-script",
    "event-queue", "grpc", "kamon", "limits", "load",
    "ntp-server", "order-book-snapshot-http-cache", "order-books-recovering-timeout",
    "order-events-coordinator-actor", "order-history", "order-script-validation",
    "pass-execution-parameters", "postgres", "process-consumed-timeout", "redis",
    "redis-internal-client-handler-actor", "rest-order-limit", "root-directory", "secure-keys",
    "snapshot-store", "snapshots-loading-timeout",
    "start-events-processing-timeout", "unchecking-configs", "waiting-offset-tool",
    "waiting-offset-tool-settings", "waiting-queue", "waiting-queue-settings",
    "waves-blockchain-client", "waves-node-extension-address", "waves-node-grpc",

)  # fmt: skip


class Limits(msgspec.Struct, frozen=True):
    """``rest-api.limits``: a client's sustained rate of requests per second (0 for no limit) and
    its burst; whether the limits apply to clients on this machine, too.
    """

    requests_per_second: int = 10_000
    burst: int = 20_000
    local_clients: bool = False


class RestApi(msgspec.Struct, frozen=True):
    """``rest-api``: the server's address, the API keys, the validity of request signatures."""

    address: str = "127.0.0.1"
    port: int = MATCHER_PORT
    api_key_hashes: tuple[bytes, ...] = ()
    cors: bool = True
    api_key_different_host: bool = False
    signature_window_ms: int = 3_600_000
    cancel_all_window_ms: int = 300_000
    """The validity of a signature for cancelling all orders: shorter, because the same bytes are
    signed to list one's orders.
    """
    request_timeout_ms: int = 20_000
    max_body_bytes: int = 100_000
    limits: Limits = Limits()
    workers: int = 0
    """The number of worker processes that read the clients' requests."""
    proxies: TrustedProxies = NO_PROXIES

    def check_api_key(self, key: str) -> bool:
        """Whether ``key`` is a configured one, compared in constant time."""
        offered = secure_hash(key.encode("utf-8", "surrogatepass"))
        right = False
        for expected in self.api_key_hashes:
            right |= hmac.compare_digest(offered, expected)
        return right


class WebSockets(msgspec.Struct, frozen=True):
    """``web-sockets``: intervals and limits of the streams, times in milliseconds."""

    ping_interval_ms: int = 30_000
    pong_timeout_ms: int = 70_000
    messages_interval_ms: int = 100
    internal_messages_interval_ms: int = 1_000
    max_connection_lifetime_ms: int = 86_400_000
    max_connections: int = 10_000
    max_order_books: int = 10
    max_addresses: int = 10
    jwt_public_key: str = ""
    realtime_accounts: frozenset[bytes] = frozenset()
    """The public keys of the accounts whose streams are not throttled."""


class Queue(msgspec.Struct, frozen=True):
    """``events-queue``: the kind of journal, and its options.

    ``sync`` determines when a command counts as stored, so that an order may be accepted:
    ``always`` once the disk has confirmed it; ``interval`` once the operating system has it, with
    an fsync every ``sync_interval_ms``; ``never`` leaves syncing to the operating system. ``group``
    is the name of this matcher among those that share a topic. ``lease_ms`` is how long a silent
    master stays master; ``role`` is ``standby`` for a matcher that never leads, ``master`` for one
    that takes the lead when it starts. ``delivery_ms`` is the timeout of a write, ``replicas`` the
    replication factor of a topic that has to be created.
    """

    type: str = LOCAL
    sync: str = "always"
    sync_interval_ms: int = 100
    segment_bytes: int = 64 * 1024 * 1024
    servers: str = ""
    topic: str = "dex-events"
    group: str = "dex-server-0"
    lease_ms: int = 10_000
    role: str = "auto"
    delivery_ms: int = 15_000
    replicas: int = 1
    security: Security = Security()


class Settlement(msgspec.Struct, frozen=True):
    """``exchange-transaction-broadcast``: the interval of retries, how many transactions are sent
    concurrently, and for how long one is sent that the node rejects for its content.
    """

    interval_ms: int = 7_000
    parallelism: int = 16
    max_pending_ms: int = 300_000


class NodeAccess(msgspec.Struct, frozen=True):
    """``node``: the node's REST API, and the polling interval if it has no event stream."""

    url: str = "http://127.0.0.1:6869"
    poll_interval_ms: int = 1_000
    timeout_ms: int = 15_000
    max_silence_ms: int = 10_000
    """Orders are rejected if the node has not responded for this time."""
    api_key: str = ""

    def __repr__(self) -> str:
        return f"NodeAccess(url={self.url!r}, poll_interval_ms={self.poll_interval_ms}, api_key=…)"


class MatcherSettings(msgspec.Struct, frozen=True):
    """All settings of a matcher, validated.

    ``account`` signs exchange transactions. ``snapshots_interval`` counts commands.
    """

    network: Network
    directory: Path
    account: KeyPair
    id: str = "default"
    rest_api: RestApi = RestApi()
    web_sockets: WebSockets = WebSockets()
    queue: Queue = Queue()
    settlement: Settlement = Settlement()
    node: NodeAccess = NodeAccess()
    trading: TradingSettings = TradingSettings()
    max_active_orders: int = 400
    max_finalized_orders: int = 100
    batch_cancel_timeout_ms: int = 18_000
    snapshots_interval: int = 1_000_000
    depth_ranges: tuple[int, ...] = (10, 100)
    default_depth: int = 100
    tickers: Mapping[str, bytes] = MappingProxyType({})
    clock: Callable[[], int] = wall_clock

    def pair_name(self, pair: AssetPair) -> str | None:
        """The name of a pair by codes, such as ``BTC/USD``; ``None`` if an asset has no code."""
        codes: dict[bytes | None, str] = {each: code for code, each in self.tickers.items()}
        codes[None] = NATIVE_TEXT
        first, second = codes.get(pair.amount_asset), codes.get(pair.price_asset)
        return None if first is None or second is None else f"{first}/{second}"


def read(section: Section, network: Network, directory: Path) -> MatcherSettings:
    """The settings of a section such as ``waves.dex``; the data directory is below ``directory``
    unless the section sets it. Raises ``MatcherSettingsError``.
    """
    for foreign in _FOREIGN:
        section.has(foreign)
    actor, book = section.section("address-actor"), section.section("order-book-http")
    orders = section.section("order-db")
    orders.has("parallelism")
    ranges = book.integers("depth-ranges", 1, 1_000_000) or (10, 100)
    written = section.text("data-directory", "")
    section.has("address-scheme-character")
    return MatcherSettings(
        network=network,
        directory=Path(written).expanduser() if written else directory / "matcher",
        id=section.text("id", "default"),
        rest_api=_rest_api(section.section("rest-api")),
        web_sockets=_web_sockets(section.section("web-sockets"), actor),
        queue=_queue(section.section("events-queue")),
        settlement=_settlement(section.section("exchange-transaction-broadcast")),
        node=_node(section.section("node")),
        trading=read_trading(section, network.chain_id),
        max_active_orders=actor.integer("max-active-orders", 400, 1, MAX_COUNT),
        max_finalized_orders=orders.integer("max-orders", 100, 0, MAX_COUNT),
        batch_cancel_timeout_ms=actor.duration_ms("batch-cancel-timeout", 18_000),
        snapshots_interval=section.integer("snapshots-interval", 1_000_000, 1, MAX_COUNT),
        depth_ranges=tuple(sorted(ranges)),
        default_depth=book.integer("default-depth", 100, 1, 1_000_000),
        tickers=read_tickers(section.section("tickers")),
        account=_account(section.section("account-storage")),
        clock=SteadyClock(),
    )


def _account(section: Section) -> KeyPair:
    memory, file = section.section("in-mem"), section.section("encrypted-file")
    kind = section.text("type", IN_MEMORY)
    if kind not in ACCOUNT_STORAGES:
        section.refuse("type", " or ".join(ACCOUNT_STORAGES))
    # The reference's files contain the keys of both kinds.
    if kind == IN_MEMORY:
        for other in ("path", "password"):
            file.has(other)
        return key_pair_from_account_seed(_seed_in_memory(memory))
    for other in ("seed-in-base-64", "seed-in-base64"):
        memory.has(other)
    path, password = file.text("path", ""), file.secret("password")
    for key, value in (("path", path), ("password", password)):
        if not value and file.is_sound(key):
            expected = "the file that `soliton matcher account-file` makes, and its password"
            file.refuse(key, expected, show=False)
    if not file.is_sound("path", "password"):
        return key_pair_from_account_seed(b"")
    try:
        seed = read_account_seed(Path(path).expanduser(), password or "")
    except MatcherSettingsError as error:
        error.key = file.full("path")
        raise
    return key_pair_from_account_seed(seed)


def _seed_in_memory(memory: Section) -> bytes:
    # The first spelling is the reference's, the second a common variant.
    read, written = memory.secret("seed-in-base-64"), memory.secret("seed-in-base64")
    text = read or written
    if not memory.is_sound("seed-in-base-64", "seed-in-base64"):
        return b""
    if text is None:
        expected = "the account seed of the matcher in base64; `soliton matcher init` makes one"
        memory.refuse("seed-in-base-64", expected)
    try:
        return base64.b64decode(text[:MAX_SEED_CHARS], validate=True)
    except binascii.Error:
        key = "seed-in-base-64" if read else "seed-in-base64"
        memory.refuse(key, "standard base64", show=False)


def _rest_api(section: Section) -> RestApi:
    # The current reference reads only the list, though its sample has the older key, empty.
    section.has("api-key-hash")
    hashes = []
    for number, text in section.text_items("api-key-hashes"):
        try:
            key_hash = base58.decode(text, MAX_API_KEY_HASH_CHARS)
        except Base58Error:
            key_hash = b""
        if len(key_hash) != API_KEY_HASH_LENGTH:
            section.refuse_item("api-key-hashes", number, "the hash of an API key in base58")
        hashes.append(key_hash)
    return RestApi(
        address=section.text("address", "127.0.0.1"),
        port=section.integer("port", MATCHER_PORT, 0, MAX_PORT),
        api_key_hashes=tuple(hashes),
        cors=section.boolean("cors", True),
        api_key_different_host=section.boolean("api-key-different-host", False),
        signature_window_ms=section.duration_ms("signature-window", 3_600_000),
        cancel_all_window_ms=section.duration_ms("cancel-all-window", 300_000),
        request_timeout_ms=section.duration_ms("request-timeout", 20_000),
        max_body_bytes=section.integer("max-body-bytes", 100_000, 1_000, MAX_COUNT),
        limits=_limits(section.section("limits")),
        workers=section.integer("workers", 0, 0, MAX_WORKERS),
        proxies=read_proxies(section),
    )


def _limits(section: Section) -> Limits:
    return Limits(
        requests_per_second=section.integer("requests-per-second", 10_000, 0, MAX_COUNT),
        burst=section.integer("burst", 20_000, 1, MAX_COUNT),
        local_clients=section.boolean("local-clients", False),
    )


def _web_sockets(section: Section, actor: Section) -> WebSockets:
    external = section.section("external-client-handler")
    health = section.section("health-check")
    limits = external.section("subscriptions")
    broadcast = section.section("internal-broadcast")
    section.has("internal-client-handler")
    external.has("health-check")
    actor.has("ws-messages-interval")
    return WebSockets(
        ping_interval_ms=health.duration_ms("ping-interval", 30_000),
        pong_timeout_ms=health.duration_ms("pong-timeout", 70_000),
        messages_interval_ms=external.duration_ms("messages-interval", 100),
        internal_messages_interval_ms=broadcast.duration_ms("messages-interval", 1_000),
        max_connection_lifetime_ms=external.duration_ms("max-connection-lifetime", 86_400_000),
        max_connections=section.integer("max-connections", 10_000, 1, MAX_COUNT),
        max_order_books=limits.integer("max-order-book-number", 10, 1, MAX_COUNT),
        max_addresses=limits.integer("max-address-number", 10, 1, MAX_COUNT),
        jwt_public_key=external.text("jwt-public-key", ""),
        realtime_accounts=public_keys(actor, "realtime-ws-accounts"),
    )


def _queue(section: Section) -> Queue:
    kind = section.text("type", LOCAL)
    if kind not in QUEUE_TYPES:
        section.refuse("type", " or ".join(QUEUE_TYPES))
    section.has("circuit-breaker")
    local, kafka = section.section("local"), section.section("kafka")
    producer = kafka.section("producer")
    for foreign in ("enable-storing", "polling-interval", "max-elements-per-poll"):
        local.has(foreign)
    local.has("clean-before-consume")
    kafka.has("consumer")
    for foreign in ("buffer-size", "client"):
        producer.has(foreign)
    servers = kafka.text("servers", "")
    if kind == KAFKA and not servers and kafka.is_sound("servers"):
        kafka.refuse("servers", "host:port of one broker or more, with commas between")
    group = kafka.text("group", "dex-server-0")
    if not 0 < len(group.encode()) <= MAX_NAME_BYTES:
        kafka.refuse("group", f"a name of at most {MAX_NAME_BYTES} bytes")
    # The reference's way to configure a read-only matcher.
    standby = not producer.boolean("enable", True)
    return Queue(
        type=kind,
        sync=_one_of(local, "sync", SYNCS),
        sync_interval_ms=local.duration_ms("sync-interval", 100),
        segment_bytes=local.integer("segment-bytes", 64 * 1024 * 1024, 4_096, MAX_COUNT),
        servers=servers,
        topic=kafka.text("topic", "dex-events"),
        group=group,
        lease_ms=kafka.duration_ms("lease", 10_000),
        role="standby" if standby else _one_of(kafka, "role", ROLES),
        delivery_ms=kafka.duration_ms("delivery-timeout", 15_000),
        replicas=kafka.integer("replicas", 1, 1, 100),
        security=_kafka_security(kafka.section("security")),
    )


def _kafka_security(section: Section) -> Security:
    protocol = _one_of(section, "protocol", PROTOCOLS)
    user, password = section.text("user", ""), section.secret("password") or ""
    if protocol.startswith("SASL") and not (user and password):
        section.refuse("protocol", f"{protocol} with a user and a password")
    return Security(
        protocol=protocol,
        mechanism=_one_of(section, "mechanism", MECHANISMS),
        user=user,
        password=password,
        ca_file=section.text("ca-file", ""),
    )


def _one_of(section: Section, key: str, choices: tuple[str, ...]) -> str:
    chosen = section.text(key, choices[0])
    if chosen not in choices:
        section.refuse(key, " or ".join(choices))
    return chosen


def _settlement(section: Section) -> Settlement:
    for foreign in ("broadcast-until-confirmed", "max-age"):
        section.has(foreign)
    return Settlement(
        interval_ms=section.duration_ms("interval", 7_000),
        parallelism=section.integer("parallelism", 16, 1, 1_024),
        max_pending_ms=section.duration_ms("max-pending-time", 300_000),
    )


def _node(section: Section) -> NodeAccess:
    url = section.text("url", "http://127.0.0.1:6869")
    if not url.startswith(("http://", "https://")):
        section.refuse("url", "an address that begins with http:// or https://")
    max_silence_ms = section.duration_ms("max-silence", 10_000)
    if max_silence_ms < MIN_SILENCE_MS:
        section.refuse("max-silence", "a second or more")
    return NodeAccess(
        max_silence_ms=max_silence_ms,
        url=url.rstrip("/"),
        poll_interval_ms=section.duration_ms("poll-interval", 1_000),
        timeout_ms=section.duration_ms("timeout", 15_000),
        api_key=section.secret("api-key") or "",
    )
