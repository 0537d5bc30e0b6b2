"""Reading a configuration file into a plain tree, with the place of every key.

What lives here: finding files and reading them. What does not: the format (``hocon``), and the
meaning of the keys (``settings``).

``${user.home}`` and ``${user.dir}``, system properties in the ecosystem's files, are supported;
other substitutions are looked up in the file, then in the defaults of the reference, then in the
environment.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Final

import msgspec

from soliton.chain.networks.sections import InvalidSetting
from soliton.node.hocon import HoconError, Place, Tree, parse
from soliton.node.hocon_resolving import resolve
from soliton.node.reference_defaults import defaults_below, shared_defaults

MAX_FILE_BYTES: Final = 4 * 1024 * 1024
"""Far more than any configuration needs: refuses a path to another kind of file at once."""
_ENDINGS: Final = ("", ".conf", ".json")
_ROOTS: Final = ("waves", "zbs", "TN", "soliton")


class SettingsError(InvalidSetting):
    """A configuration file cannot be read, or a setting has an invalid value."""


class ConfigFile(msgspec.Struct, frozen=True):
    """A parsed configuration: its ``tree``, the ``places`` of its keys by full name, and the paths
    ``referenced`` by ``${…}``.
    """

    tree: dict[str, object]
    places: Mapping[str, Place]
    referenced: frozenset[str]

    def place(self, key: str) -> Place | None:
        """Return the place of a key, or else of the nearest section above it."""
        while key not in self.places:
            key, _, _ = key.rpartition(".")
            if not key:
                return None
        return self.places[key]


def read_file(path: Path, network: str | None = None, data_dir: Path | None = None) -> ConfigFile:
    """Read a configuration file, and resolve includes and substitutions.

    The options ``network`` and ``data_dir`` determine defaults that a substitution may refer to.
    Raises ``SettingsError``, naming the file and where possible line and column.
    """
    try:
        document = parse(_text(path), str(path), _included)
        # Where nobody knows it (a user without a name, without HOME) it is asked for if it is used.
        home = os.path.expanduser("~")  # noqa: PTH111 - pathlib raises
        properties = {**os.environ, "user.home": home, "user.dir": str(Path.cwd())}
        tree, referenced = resolve(document, properties, partial(_defaults, network, data_dir))
    except HoconError as error:
        text = str(error)
        raise SettingsError(text if text.startswith(str(path)) else f"{path}: {text}") from None
    except OSError as error:
        raise SettingsError(f"{path}: cannot be read: {error.strerror}") from None
    return ConfigFile(tree, document.places, frozenset(referenced))


def _defaults(
    network: str | None, data_dir: Path | None, path: str, peek: Callable[[str], object]
) -> Tree | None:
    root = path.partition(".")[0]
    if root in _ROOTS:
        return defaults_below(root, peek, network, data_dir)
    return shared_defaults()


def _text(path: Path) -> str:
    if path.stat().st_size > MAX_FILE_BYTES:
        raise SettingsError(f"{path}: larger than {MAX_FILE_BYTES} bytes")
    try:
        return path.read_bytes().decode("utf-8").removeprefix("\ufeff")
    except UnicodeDecodeError:
        raise SettingsError(f"{path}: is not UTF-8 text") from None


def _included(name: str, beside: str) -> tuple[str, str] | None:
    """Return an included file, searched in the directory of the including one."""
    for ending in _ENDINGS:
        path = Path(beside).parent / f"{name}{ending}"
        if path.is_file():
            return str(path), _text(path)
    return None
