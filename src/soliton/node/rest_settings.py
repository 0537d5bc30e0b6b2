"""The settings of the node's REST interface: its address, API keys, and limits.

What lives here: the section ``rest-api``. What does not: other sections, and reading a file
(``settings``).
"""

from __future__ import annotations

import hmac
import ipaddress
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import msgspec

from soliton.chain.networks.custom import MAX_INT
from soliton.chain.networks.model import Network
from soliton.chain.networks.sections import Section
from soliton.crypto import base58
from soliton.crypto.errors import Base58Error
from soliton.crypto.hashes import secure_hash
from soliton.crypto.public_secrets import is_public_api_key
from soliton.proxies import TrustedProxies, read_proxies

MAX_PORT: Final = 65_535
MAX_REQUEST_LIMIT: Final = 1_000_000
MAX_EVALUATION: Final = 1_000_000
"""The largest complexity of a request to evaluate an expression."""
API_KEY_HASH_LENGTH: Final = 32
MAX_API_KEY_HASH_CHARS: Final = 44
MAX_NAMED_KEYS: Final = 64
"""All of them are compared with each key that a client sends."""
MAX_WORKERS: Final = 64
DEFAULT_LAG: Final = 3
"""In blocks: right after a new block, or during a short fork, a node does not count as behind."""
DEFAULT_BLOCK_AGE_MS: Final = 600_000
"""Blocks come every minute; ten of them missing is no coincidence (e^-10)."""
SCOPES: Final = ("accounts", "debug", "operate", "seeds", "sign")
"""The scopes of named keys, described in ``docs/reference/settings.md``."""

ORIGIN_FROM_REQUEST: Final = "origin-from-request"
MAX_CORS_NAMES: Final = 64

_ORIGIN: Final = re.compile(r"\*|origin-from-request|[a-z][a-z0-9+.-]{0,31}://[!-~]{1,255}")
_HEADER_NAME: Final = re.compile(r"[A-Za-z0-9_-]{1,64}")
_HOST_NAME: Final = re.compile(r"(?=.*[A-Za-z])[A-Za-z0-9.-]{1,253}")
KEY_NAME: Final = re.compile(r"[A-Za-z0-9._-]{1,64}")
_MIB: Final = 1024 * 1024


class ApiLimits(msgspec.Struct, frozen=True):
    """``rest-api.limits``: limits of one client, and of all of them together.

    ``client_percent`` is the share of one core's time that one address may use on average (0: no
    limit), ``client_burst_ms`` the size of its token bucket. Clients on this machine are counted
    only with ``local_clients``. ``long_answers`` are those that are not answered at once.
    """

    body_bytes: int = _MIB
    client_percent: int = 25
    client_burst_ms: int = 5_000
    local_clients: bool = False
    long_answers: int = 256
    long_answers_per_client: int = 32
    connections: int = 1_024
    connections_per_client: int = 128


class CorsHeaders(msgspec.Struct, frozen=True):
    """``rest-api.cors-headers``: the CORS headers, with the reference node's defaults. ``origin``
    is the allowed origin; ``origin-from-request`` allows any.
    """

    origin: str = ORIGIN_FROM_REQUEST
    headers: tuple[str, ...] = (
        "Authorization",
        "Content-Type",
        "X-Requested-With",
        "Timestamp",
        "Signature",
    )
    methods: tuple[str, ...] = ("OPTIONS", "POST", "PUT", "GET", "DELETE")
    credentials: bool = True


class NamedKey(msgspec.Struct, frozen=True):
    """An item of ``rest-api.api-keys``: the hash of an additional key, and its scopes."""

    name: str
    key_hash: bytes
    scopes: frozenset[str]


class RestApi(msgspec.Struct, frozen=True):
    """``rest-api``: the node's REST interface."""

    enable: bool
    bind_address: str
    port: int
    api_key_hash_text: str
    cors: bool
    api_key_different_host: bool
    cors_headers: CorsHeaders
    minimum_peers: int
    max_block_age_ms: int
    max_lag: int
    transactions_by_address_limit: int
    distribution_address_limit: int
    blocks_request_limit: int
    data_keys_request_limit: int
    asset_details_limit: int
    transaction_snapshots_limit: int
    evaluate_script_complexity_limit: int
    workers: int
    limits: ApiLimits
    named_keys: tuple[NamedKey, ...]
    proxies: TrustedProxies
    snapshot_directory: Path | None = None

    @property
    def api_key_hash(self) -> bytes | None:
        """The hash of the API key; ``None`` if the setting is invalid: then no key is accepted."""
        return key_hash(self.api_key_hash_text)

    def check_api_key(self, key: str) -> bool:
        """Whether ``key`` is the configured one, in constant time."""
        expected = self.api_key_hash
        offered = secure_hash(key.encode("utf-8", "surrogatepass"))
        return hmac.compare_digest(offered, expected or b"") and expected is not None

    def is_key_hash(self, text: str) -> bool:
        """Whether a text is the configured hash, sent in place of the key by mistake."""
        offered = text.encode("utf-8", "surrogatepass")
        return hmac.compare_digest(offered, self.api_key_hash_text.encode() or b"\0")

    def scopes_of(self, key: str) -> frozenset[str]:
        """Return the scopes of a named key; empty for an unknown key.

        All keys are compared, each in constant time.
        """
        if not self.named_keys:
            return frozenset()
        offered = secure_hash(key.encode("utf-8", "surrogatepass"))
        found: frozenset[str] = frozenset()
        for named in self.named_keys:
            if hmac.compare_digest(offered, named.key_hash):
                found |= named.scopes
        return found


def api_key_hash_text(key: str) -> str:
    """Return the value of ``rest-api.api-key-hash`` for an API key."""
    return base58.encode(secure_hash(key.encode()))


def read(section: Section, network: Network, notes: list[str]) -> RestApi:
    """Read the section ``rest-api``; notes for the operator are added to ``notes``."""

    def limit(key: str, default: int) -> int:
        return section.integer(key, default, 1, MAX_REQUEST_LIMIT)

    snapshot = section.text("snapshot-directory", "")
    settings = RestApi(
        enable=section.boolean("enable", True),
        bind_address=bind_address(section),
        port=section.integer("port", network.rest_port, 0, MAX_PORT),
        api_key_hash_text=section.text("api-key-hash", ""),
        cors=section.boolean("cors", True),
        api_key_different_host=section.boolean("api-key-different-host", False),
        cors_headers=_cors_headers(section.section("cors-headers")),
        # The older nodes have no such limit, and a private chain may have a single node.
        minimum_peers=section.integer("minimum-peers", int(network.is_public_waves), 0, MAX_INT),
        max_block_age_ms=section.duration_ms("max-block-age", DEFAULT_BLOCK_AGE_MS),
        max_lag=section.integer("max-lag", DEFAULT_LAG, 0, MAX_INT),
        transactions_by_address_limit=limit(
            "transactions-by-address-limit", 10_000 if network.family == "zbs" else 1_000
        ),
        distribution_address_limit=limit("distribution-address-limit", 1_000),
        blocks_request_limit=limit("blocks-request-limit", 100),
        data_keys_request_limit=limit("data-keys-request-limit", 1_000),
        asset_details_limit=limit("asset-details-limit", 100),
        transaction_snapshots_limit=limit("transaction-snapshots-limit", 100),
        evaluate_script_complexity_limit=section.integer(
            "evaluate-script-complexity-limit",
            4_000 if network.family == "tn" else 52_000,
            1,
            MAX_EVALUATION,
        ),
        workers=section.integer("workers", 0, 0, MAX_WORKERS),
        limits=_limits(section.section("limits")),
        named_keys=_named_keys(section),
        proxies=read_proxies(section),
        snapshot_directory=Path(snapshot).expanduser() if snapshot else None,
    )
    if settings.api_key_hash_text and settings.api_key_hash is None:
        notes.append(
            f"{section.full('api-key-hash')} is not the hash of a key: every API key is refused"
        )
    return settings


def public_key_warnings(section: Section, settings: RestApi) -> Iterator[str]:
    """Yield warnings if the interface is reachable by others and an API key is publicly known."""
    if not settings.enable or is_local(settings.bind_address):
        return
    where = f"and {section.full('bind-address')} {settings.bind_address} lets others reach it"
    if settings.api_key_hash is not None and is_public_api_key(settings.api_key_hash):
        yield f"everybody knows the key of {section.full('api-key-hash')}, {where}: choose another"
    for key in settings.named_keys:
        if is_public_api_key(key.key_hash):
            yield f"everybody knows the API key {key.name}, {where}: choose another"


def is_local(host: str) -> bool:
    """Whether an address is reachable only from this machine."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host.lower() == "localhost"


def _cors_headers(section: Section) -> CorsHeaders:
    default = CorsHeaders()
    origin = section.text("access-control-allow-origin", default.origin)
    if _ORIGIN.fullmatch(origin) is None:
        expected = f"{ORIGIN_FROM_REQUEST}, * or an origin such as https://wallet.example"
        section.refuse("access-control-allow-origin", expected)

    def names(key: str, otherwise: tuple[str, ...]) -> tuple[str, ...]:
        if not section.has(key):
            return otherwise
        found = section.text_items(key)
        if len(found) > MAX_CORS_NAMES:
            section.refuse(key, f"a list of up to {MAX_CORS_NAMES} names, [ … ]")
        for number, name in found:
            if not _HEADER_NAME.fullmatch(name):
                section.refuse_item(key, number, "a name of up to 64 letters, digits, _ and -")
        return tuple(name for _, name in found)

    return CorsHeaders(
        origin=origin,
        headers=names("access-control-allow-headers", default.headers),
        methods=names("access-control-allow-methods", default.methods),
        credentials=section.boolean("access-control-allow-credentials", default.credentials),
    )


def _limits(section: Section) -> ApiLimits:
    usual = ApiLimits()

    def limit(key: str, default: int) -> int:
        return section.integer(key, default, 1, MAX_REQUEST_LIMIT)

    return ApiLimits(
        body_bytes=section.integer("body-bytes", usual.body_bytes, 1, MAX_INT),
        client_percent=section.integer("client-percent", usual.client_percent, 0, 100),
        client_burst_ms=section.duration_ms("client-burst", usual.client_burst_ms),
        local_clients=section.boolean("local-clients", usual.local_clients),
        long_answers=limit("long-answers", usual.long_answers),
        long_answers_per_client=limit("long-answers-per-client", usual.long_answers_per_client),
        connections=limit("connections", usual.connections),
        connections_per_client=limit("connections-per-client", usual.connections_per_client),
    )


def _named_keys(section: Section) -> tuple[NamedKey, ...]:
    keys: list[NamedKey] = []
    for item in section.sections("api-keys"):
        name = item.text("name", None)
        taken = not KEY_NAME.fullmatch(name) or any(name == key.name for key in keys)
        if taken and item.is_sound("name"):
            item.refuse("name", "a name of its own, of letters, digits and ._-")
        hashed = key_hash(item.text("hash", None))
        if hashed is None and item.is_sound("hash"):
            item.refuse("hash", "base58 of the hash of a key, as POST /utils/hash/secure gives it")
        scopes = frozenset(one_of(item, "scopes", SCOPES))
        keys.append(NamedKey(name, hashed or b"", scopes))
    if len(keys) > MAX_NAMED_KEYS:
        section.refuse("api-keys", f"at most {MAX_NAMED_KEYS} keys", show=False)
    return tuple(keys)


def one_of(section: Section, key: str, choices: tuple[str, ...]) -> tuple[str, ...]:
    """Return a list of some of the ``choices``, of at least one."""
    found = section.text_items(key)
    if not found and section.is_sound(key):
        section.refuse(key, f"a list of {', '.join(choices)}")
    for number, text in found:
        if text not in choices:
            section.refuse_item(key, number, f"one of {', '.join(choices)}")
    return tuple(text for _, text in found)


def key_hash(text: str) -> bytes | None:
    """Decode the base58 hash of a key; ``None`` if it is invalid."""
    try:
        found = base58.decode(text, MAX_API_KEY_HASH_CHARS)
    except Base58Error:
        return None
    return found if len(found) == API_KEY_HASH_LENGTH else None


def bind_address(section: Section, key: str = "bind-address", default: str = "127.0.0.1") -> str:
    """Read an IP address or host name."""
    text = section.text(key, default)
    try:
        return str(ipaddress.ip_address(text))
    except ValueError:
        if not _HOST_NAME.fullmatch(text):
            section.refuse(key, "an IP address, or the name of this host")
        return text
