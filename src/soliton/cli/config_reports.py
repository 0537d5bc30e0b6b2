"""``soliton config check`` and ``explain``.

What lives here: finding one problem after the other, and the two reports. What does not: reading
settings (``soliton.node.settings``, ``matcher_config``).
"""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from copy import deepcopy
from importlib import resources
from pathlib import Path
from typing import Final, NamedTuple

import click
import msgspec

from soliton.chain import networks
from soliton.chain.networks.sections import EffectiveSetting, InvalidSetting, remove
from soliton.cli.matcher_config import has_matcher, read_matcher
from soliton.cli.start_checks import start_findings
from soliton.errors import InputError
from soliton.node.settings import (
    MAX_KEY_CHARS,
    Reading,
    Settings,
    load_settings,
    read_settings,
    read_tree,
)
from soliton.node.settings_file import ConfigFile, SettingsError, read_file

MAX_PROBLEMS: Final = 100
"""Limit on the problems that are reported."""
MAX_SHOWN_CHARS: Final = 120
"""Limit on the characters of a value that are shown."""
# Settings whose defaults depend on the network.
_OF_THE_NETWORK: Final = (
    "rest-api.evaluate-script-complexity-limit", "rest-api.port",
    "rest-api.transactions-by-address-limit",
)  # fmt: skip
# Deprecated names, shown only if they are set.
_OLDER: Final = ("data-directory", "max-rollback-depth")


class UnknownKey(InputError):
    """A setting was requested that does not exist."""


class Problem(NamedTuple):
    """A problem of a setting; an empty ``key`` means the file, or settings that were not read."""

    key: str
    text: str


# --- check ----------------------------------------------------------------------------------------


class Examination(NamedTuple):
    """What was found in a file: problems, which stop a start, and notes, both with their places;
    the settings, ``None`` if they cannot be read; whether they are those of a matcher, too.
    """

    problems: list[str]
    notes: list[str]
    settings: Settings | None
    is_matcher: bool = False


def check(path: Path, network: str | None) -> int:
    """Print the problems of a file and return the exit code."""
    found = examine(path, network)
    for text in found.problems:
        click.echo(text)
    for text in found.notes:
        click.echo(text)
    if not found.problems and found.settings is not None:
        name = found.settings.network.name
        kinds = "a node and a matcher" if found.is_matcher else "a node"
        click.echo(f"{path}: no problems; the settings of {kinds} on {name}")
    return int(bool(found.problems))


def examine(path: Path, network: str | None) -> Examination:
    """Find the problems of a file."""
    try:
        file = read_file(path, network)
    except SettingsError as error:
        # The message names the file and line.
        return Examination([str(error)], [], None)
    chosen = None if network is None else networks.load(network)
    around: list[Reading] = []

    def node(tried: ConfigFile) -> Iterable[tuple[str, str]]:
        around[:] = [read_tree(tried, chosen, None, {})]
        return around[0].unknown

    problems = list(_problems(file, node))
    notes = list(around[0].settings.warnings) if around else []
    if around:
        for found in start_findings(around[0].settings, [each.key for each in problems]):
            # Soliton's own sections have a root of their own in the ecosystem's files.
            root = around[0].sections[-1 if found.key.startswith("signer.") else 0].path
            key = f"{root}.{found.key}"
            if found.stops:
                problems.append(Problem(key, f"{key}: {found.text}"))
            else:
                notes.append(f"{key}: {found.text}")
    if has_matcher(file) and around:
        node_settings = around[0].settings
        problems += _problems(file, lambda tried: _of_matcher(tried, node_settings, network))
    places = [(file.place(problem.key), problem.text) for problem in problems]
    # In the order of lines; problems without a line first.
    places.sort(key=lambda each: ("", 0) if each[0] is None else each[0])
    noted = []
    for note in notes:
        key = next((each for each in _words(note) if each in file.places), "")
        noted.append(f"{file.place(key) or path}: note: {note}")
    return Examination(
        [f"{place or path}: {text}" for place, text in places],
        noted,
        around[0].settings if around else None,
        has_matcher(file),
    )


def _of_matcher(
    file: ConfigFile, around: Settings, network: str | None
) -> Iterable[tuple[str, str]]:
    return read_matcher(file, around, network, None, {}).unknown


def _problems(
    file: ConfigFile, read: Callable[[ConfigFile], Iterable[tuple[str, str]]]
) -> Iterator[Problem]:
    """Yield the invalid settings, removing each one before the rest is read again."""
    tried = msgspec.structs.replace(file, tree=deepcopy(file.tree))
    seen: set[str] = set()
    for _ in range(MAX_PROBLEMS):
        try:
            unknown = read(tried)
        except InvalidSetting as error:
            if error.key not in seen:
                yield Problem(error.key, str(error))
            seen.add(error.key)
            if not _remove(tried.tree, error.key):
                if error.key:
                    yield Problem("", "what comes after this was not checked")
                return
        else:
            for key, meant in unknown:
                yield Problem(key, f"unknown setting {key[:MAX_KEY_CHARS]}{meant}")
            return
    yield Problem("", f"more than {MAX_PROBLEMS} problems")


def _remove(tree: dict[str, object], key: str) -> bool:
    """Remove a setting, or, where that does not help, what it is in, up to the root."""
    while key.count("."):
        if remove(tree, key):
            return True
        key = key[: max(key.rfind("."), key.rfind("["))]
    return False


def _words(text: str) -> Iterator[str]:
    return (word.strip(",:") for word in text.split())


# --- explain --------------------------------------------------------------------------------------


def explain(
    keys: Collection[str], config: Path | None, network: str | None, data_dir: Path | None
) -> None:
    """Print settings with their origins and meanings."""
    # Raises what would prevent a start.
    settings = load_settings(config, network, data_dir=data_dir)
    reading = read_settings(config, network, data_dir=data_dir)
    meanings = _meanings()
    rows = list(_node_rows(reading, meanings["node"], network))
    if reading.file is not None and has_matcher(reading.file):
        rows += _matcher_rows(reading.file, settings, network, data_dir, meanings["matcher"])
    chosen = [row for row in rows if not keys or any(_is_below(row.key, key) for key in keys)]
    if not chosen:
        raise UnknownKey(f"no setting is called {' or '.join(keys)}")
    for row in chosen:
        click.echo(f"{row.key} = {row.value}")
        click.echo(f"    {row.origin}" + (f"; {row.meaning}" if row.meaning else ""))


class _Row(NamedTuple):
    key: str
    value: str
    origin: str
    meaning: str


def _is_below(key: str, prefix: str) -> bool:
    names, prefixes = key.split("."), prefix.split(".")
    return any(names[skip : skip + len(prefixes)] == prefixes for skip in (0, 1, 2))


def _node_rows(
    reading: Reading, meanings: Mapping[str, str], network: str | None
) -> Iterator[_Row]:
    settings = reading.settings
    derived = {
        "blockchain.type": settings.network.name,
        "directory": str(settings.directory),
        "db.directory": str(settings.db.directory),
        "wallet.file": None if settings.wallet.file is None else str(settings.wallet.file),
    }
    answers = [answer for section in reading.sections for answer in section.effective()]
    if all(not answer.key.endswith("blockchain.type") for answer in answers):
        root = reading.sections[0].path
        answers.insert(0, EffectiveSetting(f"{root}.blockchain.type", "", False))
    for answer in answers:
        name = answer.key.partition(".")[2]
        if name in _OLDER and not answer.written:
            continue
        value = answer.value
        if name in derived and (not answer.written or name == "blockchain.type"):
            value = derived[name]
        origin = _origin(answer, reading.file, reading.given)
        if name == "blockchain.type" and network is not None:
            origin = "command line"
        if origin == _DEFAULT and name in _OF_THE_NETWORK:
            origin = f"preset {settings.network.name}"
        yield _Row(answer.key, _shown(value), origin, meanings.get(name, ""))


def _matcher_rows(
    file: ConfigFile,
    around: Settings,
    network: str | None,
    data_dir: Path | None,
    meanings: Mapping[str, str],
) -> Iterator[_Row]:
    reading = read_matcher(file, around, network, data_dir, {})
    for answer in reading.section.effective():
        name = answer.key.removeprefix(f"{reading.section.path}.")
        value = answer.value
        if name == "data-directory":
            value = str(reading.settings.directory)
        origin = _origin(answer, file, reading.given)
        yield _Row(answer.key, _shown(value), origin, meanings.get(name, ""))


_DEFAULT: Final = "default"


def _origin(answer: EffectiveSetting, file: ConfigFile | None, given: Collection[str]) -> str:
    if answer.key in given:
        return "command line"
    place = file.places.get(answer.key) if file is not None and answer.written else None
    return _DEFAULT if place is None else str(place)


def _shown(value: object) -> str:
    if value is None:
        return "none"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, tuple):
        text = f"[{', '.join(_shown(each) for each in value)}]"
    elif isinstance(value, str):
        text = value if value and " " not in value else f'"{value}"'
    else:
        text = str(value)
    return text if len(text) <= MAX_SHOWN_CHARS else f"{text[:MAX_SHOWN_CHARS]}…"


def _meanings() -> Mapping[str, Mapping[str, str]]:
    text = (resources.files("soliton.cli") / "meanings.toml").read_text(encoding="utf-8")
    return msgspec.convert(tomllib.loads(text), dict[str, dict[str, str]])
