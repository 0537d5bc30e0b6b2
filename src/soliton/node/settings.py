"""The settings of a node, their defaults, and reading them from a file.

What lives here: ``load_settings`` and the record that it returns. What does not: the syntax of the
file (``settings_file``), the parameters of a private chain (``chain.networks.custom``).

Names follow the ecosystem's configuration, wavesplatform/Waves
``node/src/main/resources/application.conf`` and 0bsnetwork/Zbs ``src/main/resources/
application.conf``, so that existing files work. Every setting is described in
``docs/reference/settings.md``; a test compares.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from copy import deepcopy
from pathlib import Path
from typing import Final, NamedTuple

import msgspec

from soliton.chain import networks
from soliton.chain.networks.custom import MAX_FEATURE_ID, MAX_INT, MAX_LONG
from soliton.chain.networks.custom import read as read_custom
from soliton.chain.networks.model import Network
from soliton.chain.networks.sections import InvalidSetting, Section, did_you_mean
from soliton.crypto import base58
from soliton.crypto.errors import Base58Error
from soliton.crypto.public_secrets import is_public_seed
from soliton.node import grpc_settings, log_settings, network_settings, rest_settings
from soliton.node.grpc_settings import GrpcSettings
from soliton.node.log_settings import LogSettings
from soliton.node.miner_settings import Miner, read_miner
from soliton.node.network_settings import NetworkSettings, Synchronization
from soliton.node.rest_settings import RestApi, api_key_hash_text, is_local
from soliton.node.settings_file import ConfigFile, SettingsError, read_file
from soliton.node.signer_settings import Signer, read_signer
from soliton.storage.keeping import (
    AS_IT_IS,
    DEFAULT_BLOCKS,
    DEFAULT_INTERVAL,
    FULL,
    LEAST_BLOCKS,
    MODES,
    PRUNED,
    Keeping,
)

__all__ = [
    "Database",
    "Features",
    "Miner",
    "Reading",
    "RestApi",
    "Settings",
    "SettingsError",
    "Signer",
    "Utx",
    "WalletSettings",
    "api_key_hash_text",
    "known_keys",
    "load_settings",
    "read_settings",
    "read_tree",
    "refuse_unknown",
]

DEFAULT_NETWORK: Final = "zbs-testnet"
MAX_SEED_CHARS: Final = 2_048
MAX_KEY_CHARS: Final = 200
"""An unknown key is quoted up to this length."""
MAX_SUGGESTIONS: Final = 20
"""For how many unknown keys a similar known one is suggested."""

_OWN_ROOT: Final = "soliton"
_FAMILIES: Final = {"waves": "waves", "zbs": "zbs", "TN": "tn"}
_TYPES: Final = {
    "waves": ("MAINNET", "TESTNET", "STAGENET"),
    "zbs": ("MAINNET", "TESTNET"),
    "tn": ("MAINNET", "TESTNET"),
}

# Sections of the ecosystem's files about the JVM and its libraries, which have no meaning here,
# those of the matcher, which reads them itself (``soliton.matcher.settings``), and keys of older
# nodes: a key of any version of the reference is no error.
_FOREIGN_ROOTS: Final = ("akka", "kamon", "kanela", "logback", "matcher", "metrics", "pekko")
_FOREIGN: Final = {
    "": (
        "checkpoints", "database", "defaults", "extensions-shutdown-timeout",
        "fees", "kamon", "leveldb-cache-size", "logging-level", "matcher", "max-cache-size",
        "metrics", "mvstore-page-split-size", "network-name",
        "remember-blocks-interval-in-cache", "reward", "utx-synchronizer",
    ),
    "blockchain": (
        "blockchain-file", "checkpoint-file", "file", "in-mem-chunks-amount",
        "in-memory-chunk-size", "max-blocks-in-memory", "max-transactions-per-block-diff",
        "min-blocks-in-memory", "minimum-in-memory-diff-blocks", "state-file",
        "store-transactions-in-state",
    ),
    "db": (
        "in-memory", "max-cache-size", "remember-blocks", "rocksdb",
        "rocksdb-cache-size", "store-miners-balance-info", "tx-bloom-filter",
        "tx-bloom-filter-size", "use-bloom-filter",
    ),
    "features": ("auto-activate", "auto-stop"),
    "miner": (
        "generation-delay", "max-challenge-block-wait", "max-complexity-in-micro-block", "offline",
        "tf-like-scheduling",
    ),
    "network": (
        "black-list-threshold", "blockchain-readiness-cache-time", "blockchain-updates-address",
        "blockchain-updates-port", "local-only", "max-connections",
        "min-ephemeral-port-number", "outbound-buffer-size", "path", "state-update-address",
        "state-update-port", "unrequested-packets-threshold",
    ),
    "rest-api": (
        "allow-tx-rebroadcasting", "distribution-by-address-limit", "enable-deprecated-routes",
        "heavy-request-processor-pool-threads", "limited-pool-threads",
        "transactions-snapshots-limit", "utils-threads-limit",
    ),
    "synchronization": (
        "load-entire-chain", "operation-retires", "pin-to-initial-peer", "remote-score-debounce",
        "retries-before-blacklisting", "score-broadcast-interval",
    ),
    "utx": (
        "allow-rebroadcasting", "approx-block-time", "blacklist-src-addresses",
        "blacklisted-sender-addresses", "broadcast-interval", "max-pack-time",
        "max-transaction-age", "priority-pool-size", "reject-transactions-when-blockchain-is-stale",
        "reject-txs-when-blockchain-is-stale", "size",
    ),
}  # fmt: skip

# Known keys without effect yet, which cause a warning.
_NOT_USED_YET: Final = {
    "": ("max-tx-error-log-size",),
    "miner": ("max-pack-time", "max-transactions-in-key-block"),
    "network": ("received-txs-cache-timeout", "traffic-logger", "upnp"),
    "synchronization": ("history-replier", "max-chain-length",
                        "processed-blocks-cache-timeout"),
    "utx": ("allow-blacklisted-transfer-to", "allow-skip-checks",
            "allow-transactions-from-smart-accounts",
            "blacklist-sender-addresses", "cleanup-interval", "fast-lane-addresses",
            "force-validate-in-cleanup"),
}  # fmt: skip


class WalletSettings(msgspec.Struct, frozen=True):
    """``wallet``: the file (``None`` = keep the wallet in memory), its password, a seed to use; or
    the address of a remote signer, the file with the API key for it, and for TLS the files of
    trusted certificates, of the client certificate and of its key.
    """

    file: Path | None
    password: str | None
    seed: bytes | None
    signer: str = ""
    signer_key_file: Path | None = None
    signer_authorities_file: Path | None = None
    signer_certificate_file: Path | None = None
    signer_certificate_key_file: Path | None = None

    def __repr__(self) -> str:
        return f"WalletSettings(file={self.file!r}, password=…, seed=…, signer={self.signer!r})"


class Database(msgspec.Struct, frozen=True):
    """``db``: where the chain is stored, how many blocks can be rolled back, and what is kept."""

    directory: Path
    max_rollback_depth: int
    store_state_hashes: bool
    keeping: Keeping = AS_IT_IS


class Features(msgspec.Struct, frozen=True):
    """``features``: the features that this node votes for."""

    supported: tuple[int, ...]
    auto_shutdown_on_unsupported_feature: bool


class Utx(msgspec.Struct, frozen=True):
    """``utx``: limits of the pool; whether scripts of peers' transactions are run completely."""

    max_size: int
    max_bytes_size: int
    max_scripted_size: int
    always_unlimited_execution: bool = False


class Settings(msgspec.Struct, frozen=True):
    """All settings of a node, validated.

    A ``light`` node applies snapshots in place of execution. The clock of one that has peers is
    corrected by the ``ntp_server``, unless that is empty. ``warnings`` are for the operator:
    keys without effect, keys that contradict each other.
    """

    network: Network
    directory: Path
    rest_api: RestApi
    wallet: WalletSettings
    miner: Miner
    db: Database
    features: Features
    rewards_desired: int | None
    utx: Utx
    signer: Signer
    logging: LogSettings
    peers: NetworkSettings
    synchronization: Synchronization
    grpc: GrpcSettings = GrpcSettings()
    light: bool = False
    ntp_server: str = ""
    warnings: tuple[str, ...] = ()

    @property
    def data_directory(self) -> Path:
        """Where the chain is stored."""
        return self.db.directory


class Reading(NamedTuple):
    """Settings with their sources: the ``file``, if there was one, the keys ``given`` on the
    command line (full names), and the ``unknown`` keys with suggestions.
    """

    settings: Settings
    sections: tuple[Section, ...]
    file: ConfigFile | None
    given: frozenset[str]
    unknown: tuple[tuple[str, str], ...]


def load_settings(
    config: Path | None = None,
    network: str | None = None,
    *,
    data_dir: Path | None = None,
    overrides: Mapping[str, object] | None = None,
) -> Settings:
    """Return the settings from a configuration file, if given, and from the command line.

    ``network`` (the name of a preset) and ``data_dir`` (for all files of this node) take precedence
    over the file, and so do ``overrides``: values by key without the root
    (``{"rest-api.port": 7000}``; ``None`` has no effect).

    Raises ``SettingsError`` (``NetworkError`` for ``network``), naming file, line, key and value.
    """
    reading = read_settings(config, network, data_dir=data_dir, overrides=overrides)
    refuse_unknown(reading.file, reading.unknown)
    return reading.settings


def read_settings(
    config: Path | None = None,
    network: str | None = None,
    *,
    data_dir: Path | None = None,
    overrides: Mapping[str, object] | None = None,
) -> Reading:
    """Read settings with their sources; unknown keys are not refused."""
    chosen = None if network is None else networks.load(network)
    file = None if config is None else read_file(config, network, data_dir)
    try:
        return read_tree(file, chosen, data_dir, overrides or {})
    except InvalidSetting as error:
        raise SettingsError(f"{_source(file, config, error.key)}: {error}") from error


def refuse_unknown(file: ConfigFile | None, unknown: Collection[tuple[str, str]]) -> None:
    """Raise ``SettingsError`` for the first of the unknown keys, if there are any."""
    for key, suggestion in unknown:
        more = f"; {len(unknown) - 1} more: soliton config check" if len(unknown) > 1 else ""
        place = "command line" if file is None else file.place(key)
        raise SettingsError(f"{place}: unknown setting {key[:MAX_KEY_CHARS]}{suggestion}{more}")


def _source(file: ConfigFile | None, config: Path | None, key: str) -> object:
    if config is None or file is None:
        return "command line"
    return file.place(key) or config


def known_keys() -> tuple[str, ...]:
    """Return all known settings, by key without the root, except those of ``custom``."""
    root = Section({}, "", SettingsError)
    _settings(root, root, "waves", None, [])
    return tuple(sorted(root.known_keys()))


def read_tree(
    file: ConfigFile | None,
    network: Network | None,
    data_dir: Path | None,
    overrides: Mapping[str, object],
) -> Reading:
    """Read the settings of a parsed file; raises ``InvalidSetting``."""
    tree = {} if file is None else deepcopy(file.tree)
    roots = [root for root in _FAMILIES if root in tree]
    if len(roots) > 1:
        raise SettingsError(f"has several roots, {' and '.join(roots)}: expected one of them")
    if file is not None and not roots and _OWN_ROOT not in tree:
        raise SettingsError(
            f"has none of the roots {', '.join((_OWN_ROOT, *_FAMILIES))}: expected "
            f"{_OWN_ROOT} {{ … }} around the settings"
        )
    root_name = roots[0] if roots else _OWN_ROOT
    root_tree, own_tree = _as_tree(tree, root_name), _as_tree(tree, _OWN_ROOT)
    if not roots:
        own_tree = root_tree
    given = set()
    for key, value in overrides.items():
        if value is not None:
            is_own = key.startswith(("signer.", "logging."))
            _put(own_tree if is_own else root_tree, key, value)
            given.add(f"{_OWN_ROOT if is_own else root_name}.{key}")
    if data_dir is not None:
        _move_to(root_tree, data_dir)
        given.add(f"{root_name}.directory")
    root = Section(root_tree, root_name, SettingsError)
    own = Section(own_tree, _OWN_ROOT, SettingsError) if roots else root
    notes: list[str] = []
    settings = _settings(root, own, _FAMILIES.get(root_name, "waves"), network, notes)
    sections = (root, own) if own is not root else (root,)
    return Reading(
        settings=msgspec.structs.replace(settings, warnings=tuple(notes)),
        sections=sections,
        file=file,
        given=frozenset(given),
        unknown=tuple(_unknown(tree, file, sections)),
    )


def _unknown(
    tree: Mapping[str, object], file: ConfigFile | None, sections: tuple[Section, ...]
) -> Iterator[tuple[str, str]]:
    """Yield the unknown keys, the first of them with suggestions."""
    roots = (*_FAMILIES, _OWN_ROOT, *_FOREIGN_ROOTS)
    # Values referenced elsewhere are the operator's own variables.
    own = {path.split(".")[0] for path in file.referenced} if file is not None else set()
    for name in tree:
        if name not in roots and name not in own:
            yield name, did_you_mean(name, roots)
    known = {key for section in sections for key in section.known_keys()}
    names = (name for section in sections for name in section.unknown())
    for number, name in enumerate(names):
        yield name, did_you_mean(name, known) if number < MAX_SUGGESTIONS else ""


def _settings(
    root: Section, own: Section, family: str, chosen: Network | None, notes: list[str]
) -> Settings:
    """Read all sections below ``root``, and Soliton's own ones below ``own``."""
    network = _network(root.section("blockchain"), family, chosen, notes)
    directory = _path(root, "directory") or Path.home() / ".soliton" / network.name
    rest_api_section = root.section("rest-api")
    rest_api = rest_settings.read(rest_api_section, network, notes)
    notes.extend(_without_effect(rest_api_section, "rest-api"))
    notes.extend(rest_settings.public_key_warnings(rest_api_section, rest_api))
    rewards = root.section("rewards")
    features = root.section("features")
    utx = root.section("utx")
    miner = root.section("miner")
    notes.extend(_without_effect(miner, "miner"))
    peers, synchronization = root.section("network"), root.section("synchronization")
    light = root.boolean("enable-light-mode", False)
    settings = Settings(
        network=network,
        directory=directory,
        rest_api=rest_api,
        wallet=_wallet(root.section("wallet"), directory, rest_api, notes),
        miner=read_miner(miner, network, root.texts("extensions")),
        db=_database(root, directory, notes),
        features=Features(
            supported=features.integers("supported", 1, MAX_FEATURE_ID),
            auto_shutdown_on_unsupported_feature=features.boolean(
                "auto-shutdown-on-unsupported-feature", True
            ),
        ),
        rewards_desired=rewards.integer("desired", None, 0, MAX_LONG)
        if rewards.has("desired")
        else None,
        utx=Utx(
            max_size=utx.integer("max-size", 100_000, 1, MAX_INT),
            max_bytes_size=utx.integer("max-bytes-size", 52_428_800, 1, MAX_LONG),
            max_scripted_size=utx.integer("max-scripted-size", 5_000, 0, MAX_INT),
            always_unlimited_execution=utx.boolean("always-unlimited-execution", False),
        ),
        signer=read_signer(own.section("signer"), _own_node(rest_api), directory, notes),
        logging=log_settings.read(own.section("logging")),
        peers=network_settings.read_network(peers, network, directory),
        synchronization=network_settings.read_synchronization(synchronization, light=light),
        grpc=grpc_settings.read(root, notes),
        light=light,
        ntp_server=root.text("ntp-server", "pool.ntp.org"),
    )
    notes.extend(_without_effect(root, ""))
    notes.extend(_without_effect(utx, "utx"))
    notes.extend(_without_effect(features, "features"))
    notes.extend(_without_effect(peers, "network"))
    notes.extend(_without_effect(synchronization, "synchronization"))
    return settings


def _network(section: Section, family: str, chosen: Network | None, notes: list[str]) -> Network:
    """Return the network chosen on the command line, or else that of the file."""
    notes.extend(_without_effect(section, "blockchain"))
    written = section.text("type", "")
    if section.has("custom") and written.upper() == "CUSTOM" and chosen is None:
        return read_custom(section.section("custom"), family, notes)
    kinds = _TYPES[family]
    if not written:
        # The default of the ecosystem's nodes is their test network.
        network = (
            None
            if chosen
            else networks.load(
                DEFAULT_NETWORK if section.path.startswith(_OWN_ROOT) else f"{family}-testnet"
            )
        )
    elif written.upper() in kinds:
        network = networks.load(f"{family}-{written.lower()}")
    elif written in networks.names():
        network = networks.load(written)
    elif written.upper() == "CUSTOM" and chosen is not None:
        network = None
    else:
        section.refuse(
            "type",
            f"{', '.join(kinds)}, CUSTOM (with a section custom), "
            f"or one of {', '.join(networks.names())}"
            f"{did_you_mean(written, (*kinds, *networks.names()))}",
        )
    if chosen is None:
        assert network is not None
        return network
    if written and network is not chosen:
        notes.append(f"{section.full('type')} is {written}, but {chosen.name} was asked for")
    return chosen


def _wallet(
    section: Section, directory: Path, rest_api: RestApi, notes: list[str]
) -> WalletSettings:
    in_memory = section.has("file") and _path(section, "file") is None
    text = section.secret("seed")
    seed = None
    if text is not None:
        try:
            seed = base58.decode(text, MAX_SEED_CHARS)
        except Base58Error:
            section.refuse("seed", f"base58 of up to {MAX_SEED_CHARS} characters", show=False)
    if seed is not None and is_public_seed(seed) and not is_local(rest_api.bind_address):
        notes.append(
            f"everybody knows {section.full('seed')}, and others reach this node: choose another"
        )
    signer, key_file = section.text("signer", ""), _path(section, "signer-key-file")
    if signer and not signer.startswith(("http://", "https://", "unix:")):
        section.refuse("signer", "an address that begins with http://, https:// or unix:")
    if signer and (section.has("file") or section.has("seed") or section.has("password")):
        notes.append(f"{section.full('signer')} is set: the wallet's file and seed are not used")
    authorities = _path(section, "signer-authorities-file")
    certificate = _path(section, "signer-certificate-file")
    certificate_key = _path(section, "signer-certificate-key-file")
    if (authorities or certificate or certificate_key) and not signer.startswith("https://"):
        section.refuse("signer", "an address that begins with https://, for its certificates")
    if (certificate is None) != (certificate_key is None):
        section.refuse("signer-certificate-key-file", "set together with signer-certificate-file")
    return WalletSettings(
        signer=signer.rstrip("/"),
        signer_key_file=key_file,
        signer_authorities_file=authorities,
        signer_certificate_file=certificate,
        signer_certificate_key_file=certificate_key,
        file=None if in_memory else _path(section, "file") or directory / "wallet" / "wallet.dat",
        password=section.secret("password"),
        seed=seed,
    )


def _database(root: Section, directory: Path, notes: list[str]) -> Database:
    section = root.section("db")
    notes.extend(_without_effect(section, "db"))
    # Two keys have older names, one level up.
    older_directory = _path(root, "data-directory")
    older_depth = root.integer("max-rollback-depth", 2_000, 1, MAX_INT)
    depth = section.integer("max-rollback-depth", older_depth, 1, MAX_INT)
    return Database(
        directory=_path(section, "directory") or older_directory or directory / "data",
        max_rollback_depth=depth,
        store_state_hashes=section.boolean("store-state-hashes", True),
        keeping=_keeping(section, depth),
    )


def _keeping(section: Section, depth: int) -> Keeping:
    """Read what the store keeps; what is not written is as the store has it."""

    def switch(key: str) -> bool | None:
        return section.boolean(key, True) if section.has(key) else None

    mode = section.text("mode", "") or None
    if mode is not None and mode not in MODES:
        section.refuse("mode", f"{', '.join(MODES)}{did_you_mean(mode, MODES)}")
    by_address = switch("store-transactions-by-address")
    if mode == PRUNED and by_address:
        section.refuse(
            "store-transactions-by-address",
            f"no, or mode = {FULL}: a pruned store has no such list",
        )
    least = max(depth + 1, LEAST_BLOCKS)
    blocks = section.integer("pruned-blocks", max(DEFAULT_BLOCKS, least), least, MAX_INT)
    return Keeping(
        mode=mode,
        blocks=blocks,
        rollback_depth=depth,
        interval=section.integer("cleanup-interval", DEFAULT_INTERVAL, 1, MAX_INT),
        by_address=by_address,
        by_lease=switch("store-lease-states-by-address"),
        calls=switch("store-invoke-script-results"),
    )


def _own_node(rest_api: RestApi) -> str:
    """Return the URL of this node's REST interface."""
    host = rest_api.bind_address
    if host in ("0.0.0.0", "::"):  # noqa: S104 - compared, not bound
        host = "127.0.0.1"
    return f"http://[{host}]:{rest_api.port}" if ":" in host else f"http://{host}:{rest_api.port}"


def _path(section: Section, key: str) -> Path | None:
    text = section.text(key, "")
    return Path(text).expanduser() if text else None


def _without_effect(section: Section, name: str) -> Iterator[str]:
    for foreign in _FOREIGN.get(name, ()):
        section.has(foreign)
    for key in section.written(*_NOT_USED_YET.get(name, ())):
        yield f"{key} has no effect yet"


def _as_tree(tree: Mapping[str, object], root: str) -> dict[str, object]:
    value = tree.get(root, {})
    if not isinstance(value, dict):
        raise SettingsError(f"{root} is {value!r}: expected a section, {{ … }}")
    return value


def _put(tree: dict[str, object], dotted: str, value: object) -> None:
    *above, key = dotted.split(".")
    for part in above:
        below = tree.setdefault(part, {})
        if not isinstance(below, dict):
            below = tree[part] = {}
        tree = below
    tree[key] = value


def _move_to(tree: dict[str, object], data_dir: Path) -> None:
    """Put all data below ``data_dir``, overriding the directories in the file."""
    tree["directory"] = str(data_dir)
    tree.pop("data-directory", None)
    database = tree.get("db")
    if isinstance(database, dict):
        database.pop("directory", None)
