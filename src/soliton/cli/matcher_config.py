"""A matcher's settings from a configuration file.

What lives here: finding the section and the network, and warnings for the operator. What does not:
the meaning of the keys (``soliton.matcher.settings``), the file format (``soliton.node``).
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping
from copy import deepcopy
from pathlib import Path
from typing import Final, NamedTuple

from soliton.chain import networks
from soliton.chain.networks.model import Network
from soliton.chain.networks.sections import InvalidSetting, Section, did_you_mean
from soliton.crypto.public_secrets import is_public_account, is_public_api_key
from soliton.matcher.errors import MatcherSettingsError
from soliton.matcher.settings import MatcherSettings, read
from soliton.node.rest_settings import is_local
from soliton.node.settings import Settings, load_settings, refuse_unknown
from soliton.node.settings_file import ConfigFile, read_file

_PLACES: Final = (("waves", "dex"), ("soliton", "matcher"))
_OF_THE_EXTENSION: Final = {"grpc", "lp-accounts", "order-script-validation"}
INIT_NETWORK: Final = "devnet"
INIT_FILE: Final = "matcher.conf"
_CHAIN_LETTER: Final = "address-scheme-character"

_log = logging.getLogger(__name__)


class MatcherReading(NamedTuple):
    """A matcher's settings with their origin, like ``soliton.node.settings.Reading``."""

    settings: MatcherSettings
    section: Section
    file: ConfigFile | None
    given: frozenset[str]
    unknown: tuple[tuple[str, str], ...]


def matcher_settings(
    config: Path | None,
    network: str | None,
    data_dir: Path | None,
    overrides: Mapping[str, object] | None = None,
) -> MatcherSettings:
    """Return the settings of a matcher: the section ``waves.dex`` or ``soliton.matcher`` of a file.

    ``overrides`` take precedence, by key below the section, unless ``None``. Raises
    ``MatcherSettingsError``, ``SettingsError`` or ``NetworkError``.
    """
    # The rest of the file is read as a node's, so that its mistakes are reported, too.
    node_settings = load_settings(config, network)
    file = None if config is None else read_file(config, network, data_dir)
    if file is not None and not has_matcher(file):
        raise MatcherSettingsError(
            f"{config}: has no section {' or '.join('.'.join(each) for each in _PLACES)}"
        )
    try:
        reading = read_matcher(file, node_settings, network, data_dir, overrides or {})
    except InvalidSetting as error:
        place = "command line" if file is None else file.place(error.key) or config
        raise MatcherSettingsError(f"{place}: {error}") from error
    refuse_unknown(file, reading.unknown)
    for warning in _public_secret_warnings(reading.section, reading.settings):
        _log.warning("%s", warning)
    return reading.settings


def made_by_init(network: str | None, data_dir: Path | None) -> Path | None:
    """Return the file that ``soliton matcher init`` made with the same options, if it exists."""
    path = init_directory(network or INIT_NETWORK, data_dir) / INIT_FILE
    return path if path.is_file() else None


def init_directory(network: str, data_dir: Path | None) -> Path:
    """Return the directory of ``soliton matcher init``."""
    return (data_dir or Path.home() / ".soliton" / network) / "matcher"


def has_matcher(file: ConfigFile) -> bool:
    """Whether a file has settings of a matcher, and not only those of its extension of a node."""
    found = _section_of(file.tree)
    return found is not None and not set(found[1]) <= _OF_THE_EXTENSION


def read_matcher(
    file: ConfigFile | None,
    node_settings: Settings,
    network: str | None,
    data_dir: Path | None,
    overrides: Mapping[str, object],
) -> MatcherReading:
    """Read the settings in a parsed file, next to those of a node; raises ``InvalidSetting``."""
    found = None if file is None else _section_of(file.tree)
    place, tree = found or (_PLACES[-1], {})
    tree = deepcopy(tree)
    path = ".".join(place)
    given = set()
    for key, value in overrides.items():
        if value is not None:
            _put(tree, key, value)
            given.add(f"{path}.{key}")
    section = Section(tree, path, MatcherSettingsError)
    chosen = _network_of(node_settings, network, section)
    directory = data_dir or Path.home() / ".soliton" / chosen.name
    settings = read(section, chosen, directory)
    known = set(section.known_keys())
    unknown = tuple((key, did_you_mean(key, known)) for key in section.unknown())
    return MatcherReading(settings, section, file, frozenset(given), unknown)


def _section_of(tree: Mapping[str, object]) -> tuple[tuple[str, str], dict[str, object]] | None:
    for place in _PLACES:
        outer = tree.get(place[0])
        inner = outer.get(place[1]) if isinstance(outer, dict) else None
        if isinstance(inner, dict):
            return place, inner
    return None


def _public_secret_warnings(section: Section, settings: MatcherSettings) -> Iterator[str]:
    """Warn of publicly known secrets of a matcher that other machines can reach."""
    api = settings.rest_api
    if is_local(api.address):
        return
    place = f"and {section.full('rest-api.address')} {api.address} lets others reach it"
    if any(map(is_public_api_key, api.api_key_hashes)):
        key = section.full("rest-api.api-key-hashes")
        yield f"everybody knows a key of {key}, {place}: choose another"
    if is_public_account(settings.account.public_key):
        yield f"everybody knows the seed of the matcher's account, {place}: choose another"


def _put(tree: dict[str, object], key: str, value: object) -> None:
    *path, last = key.split(".")
    for name in path:
        inner = tree.get(name)
        tree[name] = tree = dict(inner) if isinstance(inner, dict) else {}
    tree[last] = value


def _network_of(node_settings: Settings, network: str | None, section: Section) -> Network:
    """The network of the options, of the section's letter, or of the node's settings."""
    if network is None and section.has(_CHAIN_LETTER) and section.is_sound(_CHAIN_LETTER):
        letter = section.text(_CHAIN_LETTER, "")
        found = [
            each
            for each in (node_settings.network, *map(networks.load, networks.names()))
            if chr(each.chain_id) == letter
        ]
        if not found:
            section.refuse(_CHAIN_LETTER, "the letter of a known network")
        return found[0]
    return node_settings.network
