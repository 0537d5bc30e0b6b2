"""Backups: what the services of one configuration keep on disk, copied beside them, and put back.

Each place is copied so that it is consistent by itself: a store as it is at one moment, a log of
lines up to some line, a file that is always replaced as a whole. The places are those of the
settings, for a backup and for its restore.

What must never be set back is not copied at all: the record of endorsed blocks, without which a
node waits by itself. A signer whose log was put back does not start before somebody has confirmed
that (``soliton.signer.journal``).

What lives here: the places, copying, checking, putting back. What does not: the commands
(``backup``), the files of a store (``soliton.storage.checkpoint``).
"""

from __future__ import annotations

import contextlib
import hashlib
import shutil
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from enum import Enum
from pathlib import Path, PurePosixPath
from typing import Final, NamedTuple

import msgspec

import soliton
from soliton.cli.progress import BYTES, adding, progress
from soliton.cli.snapshot_files import (
    FILES,
    UNFINISHED,
    TargetInUse,
    check_empty,
    hash_parts,
    move_into_place,
    workplace,
)
from soliton.matcher.quarantine import FILE_NAME as QUARANTINE_NAME
from soliton.matcher.settings import MatcherSettings
from soliton.matcher.stores import JOURNAL_NAME, SNAPSHOTS_NAME
from soliton.node.settings import Settings
from soliton.node.wallet import password_path
from soliton.signer.journal import LOCK_NAME, RESTORED_NAME
from soliton.storage.checkpoint import copy_store
from soliton.storage.engine import CURRENT_NAME
from soliton.storage.errors import StorageProblem
from soliton.storage.files import replace_file, sync_directory
from soliton.storage.parts import (
    MANIFEST_NAME,
    Part,
    PartLimits,
    SnapshotProblem,
    check_file,
    check_parts,
    read_pieces,
)

FORMAT: Final = 1
FILE_MODE: Final = 0o600
DIRECTORY_MODE: Final = 0o700
LIMITS: Final = PartLimits(number=1_000_000, size=1 << 40)
"""A store of keys may have a hundred thousand files, a matcher's snapshot many gigabytes."""
MAX_MANIFEST_BYTES: Final = 256 * 1024 * 1024
MAX_DEPTH: Final = 5
MAX_NAME_BYTES: Final = 255
COPYING_TRIES: Final = 5
_RESTORING: Final = ".restoring"
_ORDERS_NAME: Final = "orders"
_CONFIG: Final = "config/"
_NOT_COPIED: Final = (LOCK_NAME, RESTORED_NAME, "LOCK", "owner.lock")


class Kind(Enum):
    """How a place is copied."""

    FILE = "file"
    FILES = "files"
    """The files of a directory, which are appended to or replaced as a whole."""
    STORE = "store"


class Place(NamedTuple):
    """A file or a directory of a service: its name in a backup, and where it is."""

    name: str
    path: Path
    kind: Kind


class BackupManifest(msgspec.Struct, frozen=True):
    """What a backup is: when and by which version it was made, of which network, and its files."""

    format: int
    kind: str
    network: str
    created: str
    program: str
    parts: tuple[Part, ...]


_KIND: Final = "soliton-backup"
_decoder: Final = msgspec.json.Decoder(BackupManifest)


def places_of(
    settings: Settings,
    matcher: MatcherSettings | None,
    configs: Mapping[str, Path],
    included: Sequence[Path],
) -> list[Place]:
    """Return all places of a configuration, also those that do not exist; ``configs`` are the files
    of settings by name, ``included`` further files.
    """
    places = [Place("node/data", settings.data_directory, Kind.STORE)]
    wallet = settings.wallet.file
    if wallet is not None:
        places.append(Place("node/wallet.dat", wallet, Kind.FILE))
        places.append(Place("node/wallet.password", password_path(wallet), Kind.FILE))
    keys = settings.signer.keys
    if keys is not None:
        places.append(Place("signer/keys", keys.directory, Kind.FILES))
        places.append(Place("signer/policy", keys.policy_file, Kind.FILE))
        places.append(Place("signer/state", keys.state_directory, Kind.FILES))
    if matcher is not None:
        # In this order: a journal that is longer than the rest is right, a shorter one is not.
        directory = matcher.directory
        places.append(Place("matcher/snapshots", directory / SNAPSHOTS_NAME, Kind.FILES))
        places.append(Place("matcher/orders", directory / _ORDERS_NAME, Kind.STORE))
        places.append(Place("matcher/journal", directory / JOURNAL_NAME, Kind.FILES))
        quarantine = directory / QUARANTINE_NAME
        places.append(Place("matcher/quarantine.jsonl", quarantine, Kind.FILE))
    places += [Place(_CONFIG + name, path, Kind.FILE) for name, path in configs.items()]
    for number, path in enumerate(included):
        places.append(Place(f"included/{number}-{path.name}", path, Kind.FILE))
    return places


# --- backing up -----------------------------------------------------------------------------------


def back_up(places: Sequence[Place], target: Path, network: str) -> BackupManifest:
    """Copy all places that exist to a new directory, beside the services that use them.

    Raises ``TargetInUse``, ``StoreInUse``, ``StorageProblem``, ``OSError``.
    """
    work = target.with_name(target.name + UNFINISHED)
    check_empty(target, work)
    with workplace(work):
        files = work / FILES
        for _ in range(COPYING_TRIES):
            shutil.rmtree(files, ignore_errors=True)
            files.mkdir(mode=DIRECTORY_MODE)
            if _copy_all(places, files):
                break
        else:
            raise StorageProblem("files are deleted faster than they can be copied: try again")
        names = sorted(_names_in(files))
        if all(name.startswith(_CONFIG) for name in names):
            raise SnapshotProblem("there is nothing to back up: no place of these settings exists")
        parts = hash_parts(files, names, "hash the files")
        created = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
        manifest = BackupManifest(FORMAT, _KIND, network, created, soliton.__version__, parts)
        encoded = msgspec.json.format(msgspec.json.encode(manifest)) + b"\n"
        replace_file(files / MANIFEST_NAME, [encoded], FILE_MODE)
        move_into_place(files, target)
        shutil.rmtree(work)
    return manifest


def _copy_all(places: Sequence[Place], files: Path) -> bool:
    """Copy once; return false if a service has deleted files meanwhile that the copy needs."""
    before = _listed(places)
    try:
        for place in places:
            target = files / place.name
            if place.kind is Kind.STORE and (place.path / CURRENT_NAME).exists():
                _make_directory(target)
                copy_store(place.path, target, links=False)
                for each in target.iterdir():
                    each.chmod(FILE_MODE)
            elif place.kind is Kind.FILE and place.path.exists():
                _make_directory(target.parent)
                _copy_file(place.path, target)
            elif place.kind is Kind.FILES and place.path.exists():
                _make_directory(target)
                for path in sorted(place.path.iterdir()):
                    if path.name not in _NOT_COPIED and path.is_file():
                        _copy_file(path, target / path.name)
    except FileNotFoundError:
        return False
    # A log that begins later than it did needs a newer snapshot than was copied.
    return before <= _listed(places)


def _listed(places: Sequence[Place]) -> set[Path]:
    """Return the files of the directories that are copied file by file."""
    return {
        path
        for place in places
        if place.kind is Kind.FILES and place.path.exists()
        for path in place.path.iterdir()
    }


def _make_directory(path: Path) -> None:
    path.mkdir(mode=DIRECTORY_MODE, parents=True, exist_ok=True)


def _copy_file(source: Path, target: Path) -> None:
    """Copy a file as far as it goes when it is opened, for its owner only, durably."""
    size = source.stat().st_size

    def pieces() -> Iterator[bytes]:
        left = size
        # A symbolic link in settings is followed, as the services do.
        for piece in read_pieces(source.resolve()):
            yield piece[:left]
            left -= len(piece[:left])
            if not left:
                return

    replace_file(target, pieces(), FILE_MODE)


def _names_in(files: Path) -> Iterator[str]:
    for path in files.rglob("*"):
        if path.is_file() or path.is_symlink():
            yield path.relative_to(files).as_posix()


# --- checking -------------------------------------------------------------------------------------


def read_backup(directory: Path) -> BackupManifest:
    """Return the manifest of a backup; raises ``SnapshotProblem``."""
    try:
        with (directory / MANIFEST_NAME).open("rb") as file:
            data = file.read(MAX_MANIFEST_BYTES + 1)
    except (FileNotFoundError, NotADirectoryError):
        raise SnapshotProblem(f"{directory} holds no backup: it has no {MANIFEST_NAME}") from None
    if len(data) > MAX_MANIFEST_BYTES:
        raise SnapshotProblem(f"the manifest has more than {MAX_MANIFEST_BYTES} bytes")
    try:
        manifest = _decoder.decode(data)
    except (msgspec.MsgspecError, RecursionError, UnicodeDecodeError) as error:
        raise SnapshotProblem(f"the manifest cannot be read: {error}") from error
    if manifest.format != FORMAT or manifest.kind != _KIND:
        raise SnapshotProblem(
            f"{directory} is {manifest.kind[:80]!r} of format {manifest.format}, and this version "
            f"reads {_KIND!r} of format {FORMAT}"
        )
    check_parts(manifest.parts, _is_name, LIMITS)
    return manifest


def _is_name(name: str) -> bool:
    """Whether a name stays inside of the backup."""
    parts = name.split("/")
    return (
        1 < len(parts) <= MAX_DEPTH
        and name.isprintable()
        and "\\" not in name
        and all(
            part not in ("", ".", "..") and len(part.encode(errors="replace")) <= MAX_NAME_BYTES
            for part in parts
        )
    )


def check_backup(directory: Path, manifest: BackupManifest) -> None:
    """Compare all files with the manifest; raises ``SnapshotProblem``."""
    known = {part.name for part in manifest.parts} | {MANIFEST_NAME}
    for name in _names_in(directory):
        if name not in known:
            raise SnapshotProblem(f"{directory / name} is no part of the backup")
    total = sum(part.size for part in manifest.parts)
    with progress("verify the backup", total, BYTES) as report:
        add = adding(report)
        for part in manifest.parts:
            if any((directory / each).is_symlink() for each in _above(part.name)):
                raise SnapshotProblem(f"{part.name} is behind a symbolic link")
            check_file(directory / part.name, part, add)


def _above(name: str) -> Iterator[str]:
    for parent in PurePosixPath(name).parents:
        if parent.parts:
            yield parent.as_posix()


# --- putting back ---------------------------------------------------------------------------------


def put_back(
    places: Sequence[Place], backup: Path, manifest: BackupManifest, network: str
) -> list[Place]:
    """Copy a backup to the places of the settings, and return those that were in it.

    Files of settings are not among them: they say where the places are. A place may be missing,
    empty, or what the backup has: then an earlier try has put it back. Nothing is written if one of
    them has another content. Raises ``TargetInUse``, ``SnapshotProblem``, ``OSError``.
    """
    if manifest.network != network:
        raise SnapshotProblem(f"the backup is of {manifest.network}, and the settings of {network}")
    check_backup(backup, manifest)
    chosen = [(place, parts) for place in places if (parts := _parts_of(place, manifest))]
    used = {part.name for _, parts in chosen for part in parts}
    unused = sorted({part.name for part in manifest.parts} - used)
    if unused:
        raise SnapshotProblem(
            f"the settings have no place for {unused[0]}: give the same --config, --matcher-config "
            "and --include as for the backup"
        )
    chosen = [(place, parts) for place, parts in chosen if not place.name.startswith(_CONFIG)]
    missing = [(place, parts) for place, parts in chosen if not _is_there(place, parts)]
    total = sum(part.size for _, parts in missing for part in parts)
    with progress("restore", total, BYTES) as report:
        add = adding(report)
        for place, parts in missing:
            _put(place, backup, parts, add)
    return [place for place, _ in chosen]


def _parts_of(place: Place, manifest: BackupManifest) -> list[Part]:
    if place.kind is Kind.FILE:
        return [part for part in manifest.parts if part.name == place.name]
    return [part for part in manifest.parts if part.name.rpartition("/")[0] == place.name]


def _is_there(place: Place, parts: Sequence[Part]) -> bool:
    """Whether a place has the content of the backup; raises ``TargetInUse`` for another one."""
    if place.kind is Kind.FILE:
        if not place.path.exists():
            return False
        if _has(place.path, parts[0]):
            return True
        raise TargetInUse(f"{place.path} exists, and is not the file of the backup")
    try:
        check_empty(place.path)
    except TargetInUse:
        if all(_has(place.path / Path(part.name).name, part) for part in parts):
            return True
        raise
    return False


def _has(path: Path, part: Part) -> bool:
    try:
        check_file(path, part, lambda _size: None)
    except SnapshotProblem:
        return False
    return True


def _put(place: Place, backup: Path, parts: Sequence[Part], add: Callable[[int], None]) -> None:
    """Copy the files of a place to a directory beside it, and rename it."""
    _make_directory(place.path.parent)
    if place.kind is Kind.FILE:
        _write(backup, parts[0], place.path, add)
        return
    work = place.path.with_name(place.path.name + _RESTORING)
    with workplace(work):
        files = work / FILES
        shutil.rmtree(files, ignore_errors=True)
        files.mkdir(mode=DIRECTORY_MODE)
        for part in parts:
            _write(backup, part, files / Path(part.name).name, add)
        if place.name == "signer/state":
            # Before the log is at its place: no signer may start with one that was set back.
            replace_file(files / RESTORED_NAME, [b"{}\n"], FILE_MODE)
        sync_directory(files)
        move_into_place(files, place.path)
        shutil.rmtree(work)


def _write(backup: Path, part: Part, target: Path, add: Callable[[int], None]) -> None:
    digest = hashlib.sha256()

    def pieces() -> Iterator[bytes]:
        for piece in read_pieces(backup / part.name):
            digest.update(piece)
            add(len(piece))
            yield piece
        if digest.hexdigest() != part.sha256:
            raise SnapshotProblem(f"{part.name} has changed while it was read")

    with contextlib.ExitStack() as undo:
        undo.callback(lambda: target.with_name(f"{target.name}.new").unlink(missing_ok=True))
        replace_file(target, pieces(), FILE_MODE)
    target.chmod(FILE_MODE)
